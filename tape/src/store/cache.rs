//! Resources that all tapes of a process share: decoded columns, packs and lists of chunks, limited
//! in bytes; and open files, limited in number. If several threads ask for the same column, one
//! decodes it and the others wait.

use crate::error::Result;
use crate::files::open_files::{FILES, OpenFiles};
use crate::format::coding;
use crate::format::packs::Pack;
use crate::format::table::{BytesColumn, Column};
use crate::store::chunks::{Chunks, Key, Listing};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Default limit of decoded columns in bytes.
const BYTES: u64 = 256 << 20;
/// Average size of a column in bytes, from which the cache estimates its number of entries.
const COLUMN_BYTES: u64 = 32 << 10;

/// Resources that all tapes of a process share. Cheap to clone.
#[derive(Clone)]
pub struct Shared {
    columns: Arc<Columns>,
    files: Arc<OpenFiles>,
}

struct Columns {
    decoded: Cache<Place, Decoded, Weight>,
    files: AtomicU64,
}

/// Number of the file in the cache, kind of the value, and its key.
type Place = (u64, Kind, Key);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Kind {
    Column,
    /// A pack. The key has its number in place of the column.
    Pack,
    /// The list of chunks of a file.
    Chunks(Listing),
}

#[derive(Clone)]
enum Decoded {
    Ints(Column),
    Strings(BytesColumn),
    Pack(Arc<Pack>),
    Chunks(Arc<Chunks>),
}

#[derive(Clone)]
struct Weight;

impl Weighter<Place, Decoded> for Weight {
    fn weight(&self, _: &Place, decoded: &Decoded) -> u64 {
        let bytes = match decoded {
            Decoded::Ints(column) => column.0.capacity() * size_of::<i64>(),
            Decoded::Strings(column) => {
                column.0.ends.capacity() * size_of::<usize>() + column.0.data.capacity()
            }
            Decoded::Pack(pack) => pack.bytes(),
            Decoded::Chunks(chunks) => chunks.bytes(),
        };
        // The entry itself takes 128 bytes.
        bytes as u64 + 128
    }
}

impl Default for Shared {
    fn default() -> Self {
        Shared::new(BYTES)
    }
}

impl Shared {
    /// Keeps decoded columns up to `bytes` bytes. Columns in use may exceed that. At most 224 files
    /// stay open.
    pub fn new(bytes: u64) -> Self {
        Shared::with_files(bytes, FILES)
    }

    /// Same as [`Shared::new`] with another limit of open files. Each reading thread may hold one
    /// more for a moment.
    pub fn with_files(bytes: u64, files: usize) -> Self {
        let columns = usize::try_from(bytes / COLUMN_BYTES).unwrap_or(usize::MAX);
        Shared {
            columns: Arc::new(Columns {
                decoded: Cache::with_weighter(columns.max(16), bytes, Weight),
                files: AtomicU64::new(0),
            }),
            files: Arc::new(OpenFiles::new(files)),
        }
    }

    /// Memory of the kept columns in bytes.
    pub fn bytes(&self) -> u64 {
        self.columns.decoded.weight()
    }

    /// The open files.
    pub(crate) fn files(&self) -> &Arc<OpenFiles> {
        &self.files
    }

    /// The columns of a newly opened file.
    pub(crate) fn of_file(&self) -> OfFile {
        OfFile {
            file: self.columns.files.fetch_add(1, Ordering::Relaxed),
            columns: self.columns.clone(),
        }
    }
}

/// The columns of one file in the shared cache.
pub(crate) struct OfFile {
    columns: Arc<Columns>,
    file: u64,
}

impl OfFile {
    pub(crate) fn ints(&self, key: Key) -> Option<Column> {
        match self.columns.decoded.get(&(self.file, Kind::Column, key)) {
            Some(Decoded::Ints(column)) => Some(column),
            _ => None,
        }
    }

    /// A column of numbers. The first caller decodes it.
    pub(crate) fn ints_or(
        &self,
        key: Key,
        decode: impl FnOnce() -> Result<Column>,
    ) -> Result<Column> {
        let decode = || decode().map(Decoded::Ints);
        Ok(match self.found(Kind::Column, key, decode)? {
            Decoded::Ints(column) => column,
            _ => Column::default(),
        })
    }

    /// The kept value, made by the first caller.
    fn found(
        &self,
        kind: Kind,
        key: Key,
        make: impl FnOnce() -> Result<Decoded>,
    ) -> Result<Decoded> {
        let place = (self.file, kind, key);
        self.columns.decoded.get_or_insert_with(&place, make)
    }

    /// Keeps a column that was decoded as the base of another. No thread waits for such a column:
    /// two columns stored relative to each other would wait for ever.
    pub(crate) fn keep_ints(&self, key: Key, column: &Column) {
        let place = (self.file, Kind::Column, key);
        self.columns
            .decoded
            .insert(place, Decoded::Ints(column.clone()));
    }

    /// A column of strings; see [`OfFile::ints_or`].
    pub(crate) fn strings_or(
        &self,
        key: Key,
        decode: impl FnOnce() -> Result<BytesColumn>,
    ) -> Result<BytesColumn> {
        let decode = || decode().map(Decoded::Strings);
        Ok(match self.found(Kind::Column, key, decode)? {
            Decoded::Strings(column) => column,
            _ => BytesColumn::default(),
        })
    }

    /// A pack by group and number; see [`OfFile::ints_or`].
    pub(crate) fn pack_or(
        &self,
        key: (u32, u8),
        read: impl FnOnce() -> Result<Arc<Pack>>,
    ) -> Result<Arc<Pack>> {
        let read = || read().map(Decoded::Pack);
        Ok(match self.found(Kind::Pack, (key.0, 0, key.1), read)? {
            Decoded::Pack(pack) => pack,
            _ => Arc::default(),
        })
    }

    /// A list of the file's chunks; see [`OfFile::ints_or`].
    pub(crate) fn chunks_or(
        &self,
        listing: Listing,
        read: impl FnOnce() -> Result<Arc<Chunks>>,
    ) -> Result<Arc<Chunks>> {
        let read = || read().map(Decoded::Chunks);
        Ok(
            match self.found(Kind::Chunks(listing), Key::default(), read)? {
                Decoded::Chunks(chunks) => chunks,
                _ => Arc::default(),
            },
        )
    }
}

/// Place where decoded columns are kept.
pub(crate) enum ColumnStore {
    /// With the file, until they are released. One-shot callers decode each column into the memory
    /// of one that they have released.
    Own(Mutex<OfOne>),
    /// In the cache of all files, while there is room.
    Shared(OfFile),
}

impl Default for ColumnStore {
    fn default() -> Self {
        ColumnStore::Own(Mutex::default())
    }
}

/// Values that are kept with one file.
#[derive(Default)]
pub(crate) struct OfOne {
    ints: HashMap<Key, Column>,
    strings: HashMap<Key, BytesColumn>,
    /// Packs; the key is the group and the number of the pack.
    packs: HashMap<(u32, u8), Arc<Pack>>,
    chunks: HashMap<Listing, Arc<Chunks>>,
}

fn locked(cache: &Mutex<OfOne>) -> MutexGuard<'_, OfOne> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ColumnStore {
    pub(crate) fn ints(&self, key: Key) -> Option<Column> {
        match self {
            ColumnStore::Own(cache) => locked(cache).ints.get(&key).cloned(),
            ColumnStore::Shared(columns) => columns.ints(key),
        }
    }

    /// Decodes a column of numbers that is not kept, and keeps it. `depth` is greater than 0 if the
    /// column is the base of another.
    pub(crate) fn ints_or(
        &self,
        key: Key,
        depth: u8,
        read: impl FnOnce() -> Result<Column>,
    ) -> Result<Column> {
        match self {
            ColumnStore::Shared(columns) if depth == 0 => columns.ints_or(key, read),
            ColumnStore::Shared(columns) => {
                let column = read()?;
                columns.keep_ints(key, &column);
                Ok(column)
            }
            ColumnStore::Own(cache) => {
                let column = read()?;
                locked(cache).ints.insert(key, column.clone());
                Ok(column)
            }
        }
    }

    /// True if other questions may use a decoded column again.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, ColumnStore::Shared(_))
    }

    /// Kept strings. `None` for the shared cache, in which other threads may be decoding them.
    pub(crate) fn strings(&self, key: Key) -> Option<BytesColumn> {
        match self {
            ColumnStore::Own(cache) => locked(cache).strings.get(&key).cloned(),
            ColumnStore::Shared(_) => None,
        }
    }

    /// A kept pack, by group and number; see [`ColumnStore::strings`].
    pub(crate) fn pack(&self, key: (u32, u8)) -> Option<Arc<Pack>> {
        match self {
            ColumnStore::Own(cache) => locked(cache).packs.get(&key).cloned(),
            ColumnStore::Shared(_) => None,
        }
    }

    /// A pack by group and number.
    pub(crate) fn pack_or(
        &self,
        key: (u32, u8),
        read: impl FnOnce() -> Result<Arc<Pack>>,
    ) -> Result<Arc<Pack>> {
        match self {
            ColumnStore::Shared(columns) => columns.pack_or(key, read),
            ColumnStore::Own(cache) => {
                let pack = read()?;
                locked(cache).packs.insert(key, pack.clone());
                Ok(pack)
            }
        }
    }

    /// A list of the file's chunks. If it is kept with the file, it is never released.
    pub(crate) fn chunks_or(
        &self,
        listing: Listing,
        read: impl FnOnce() -> Result<Arc<Chunks>>,
    ) -> Result<Arc<Chunks>> {
        let cache = match self {
            ColumnStore::Shared(columns) => return columns.chunks_or(listing, read),
            ColumnStore::Own(cache) => cache,
        };
        if let Some(known) = locked(cache).chunks.get(&listing) {
            return Ok(known.clone());
        }
        let chunks = read()?;
        locked(cache).chunks.insert(listing, chunks.clone());
        Ok(chunks)
    }

    pub(crate) fn strings_or(
        &self,
        key: Key,
        read: impl FnOnce() -> Result<BytesColumn>,
    ) -> Result<BytesColumn> {
        match self {
            ColumnStore::Shared(columns) => columns.strings_or(key, read),
            ColumnStore::Own(cache) => {
                let column = read()?;
                locked(cache).strings.insert(key, column.clone());
                Ok(column)
            }
        }
    }

    /// Frees the values of a group, if they are kept with the file.
    pub(crate) fn release(&self, group: u32) {
        let ColumnStore::Own(cache) = self else {
            return;
        };
        let mut cache = locked(cache);
        let released = cache.ints.extract_if(|key, _| key.0 == group);
        released.for_each(|(_, column)| coding::recycle(column));
        cache.strings.retain(|key, _| key.0 != group);
        cache.packs.retain(|key, _| key.0 != group);
    }
}
