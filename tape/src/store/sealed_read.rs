//! Reads sealed files. Opening a file reads its tail and footer (`footer.rs`). The index and the
//! columns are read when a column is first needed; decoded columns are kept.

use crate::error::{Error, Result};
use crate::files::storage::ReadFile;
use crate::format::codec::{self, EqualRun, Span};
use crate::format::coding;
use crate::format::entry::{COLUMN, Entry, PACK};
use crate::format::footer::{Bytes, Footer, Gap, damage_of, index_entry};
use crate::format::packs::{PACKS, Pack, pack_of};
use crate::format::part::{Chunk, Identity, LogDamage, Part, PartInfo, Source};
use crate::format::schema::{ColumnDef, ColumnType, RUN, Schema};
use crate::format::sealed_write::{FrameRange, GroupInfo, MAX_ROWS, at_ticks};
use crate::format::table::{Batch, BytesColumn, Column, Strings, in_batches};
use crate::format::totals;
use crate::store::cache::ColumnStore;
use crate::store::chunks::{Chunks, Key, Listing};
use std::cmp::Reverse;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

pub use crate::format::footer::Schemas;

/// Codings of columns that are stored as spans.
const AS_SPANS: [u8; 2] = [coding::CONSTANT, coding::SPANS];

/// Maximum length of a chain of columns, each stored relative to the next one.
const MAX_DEPTH: u8 = 4;

/// An open sealed file. Cheap to clone.
#[derive(Clone)]
pub struct BlockFile {
    shared: Arc<Shared>,
    /// Damage found when the file was opened. Unreadable columns are errors when they are read.
    pub damage: Vec<LogDamage>,
}

/// Data that all groups of a file share.
struct Shared {
    bytes: Bytes,
    schema: Arc<Schema>,
    identity: Identity,
    /// Number and description of each group except group 0.
    groups: Vec<(u32, GroupInfo)>,
    /// Number of rows of each dictionary and table of totals, by id of the table.
    rows: Vec<(u8, u32)>,
    /// Checksum of the footer. It must be the same when the footer is read again, because a file
    /// opened by name may have been replaced.
    footer_crc: u32,
    /// The chunks gathered from a file without a valid footer.
    gathered: Option<Arc<Chunks>>,
    /// The chunks gathered because the index is damaged. Gathering reads the whole file.
    broken_index: OnceLock<Arc<Chunks>>,
    kept: ColumnStore,
}

/// A column of the file: in a chunk of its own, or in a pack.
struct Stored {
    entry: Entry,
    pack: Option<(Arc<Pack>, Range<usize>)>,
}

impl BlockFile {
    /// Opens a sealed file.
    ///
    /// # Errors
    /// The file could not be read, is of a later version, or has nothing valid.
    pub fn open(file: Arc<dyn ReadFile>, path: &Path, schemas: &mut Schemas) -> Result<BlockFile> {
        let bytes = Bytes::new(file, Arc::new(path.to_path_buf()))?;
        let footer = Footer::read(&bytes)?;
        BlockFile::new(bytes, footer, schemas, ColumnStore::default())
    }

    /// Same as [`BlockFile::open`], but also reads the index, so `damage` includes damage of the
    /// index. For callers that read the whole file.
    ///
    /// # Errors
    /// The errors of [`BlockFile::open`].
    pub fn open_whole(
        file: Arc<dyn ReadFile>,
        path: &Path,
        schemas: &mut Schemas,
    ) -> Result<BlockFile> {
        let mut block = BlockFile::open(file, path, schemas)?;
        block.damage = block.damage_with_index()?;
        Ok(block)
    }

    /// A file whose footer was read.
    pub(crate) fn new(
        bytes: Bytes,
        footer: Footer,
        schemas: &mut Schemas,
        kept: ColumnStore,
    ) -> Result<BlockFile> {
        let schema = schemas.of(&bytes, &footer)?;
        let gathered = match footer.damage.is_empty() {
            true => None,
            false => Some(Chunks::gathered(footer.entries, None, footer.gaps)),
        };
        let shared = Shared {
            bytes,
            schema,
            identity: footer.identity,
            groups: footer.groups,
            rows: footer.rows,
            footer_crc: footer.crc,
            gathered: gathered.map(Arc::new),
            broken_index: OnceLock::new(),
            kept,
        };
        Ok(BlockFile {
            shared: Arc::new(shared),
            damage: footer.damage,
        })
    }

    /// The node and server that wrote it.
    pub fn identity(&self) -> &Identity {
        &self.shared.identity
    }

    /// The frames that each group was made of.
    pub fn frames(&self) -> impl Iterator<Item = FrameRange> {
        self.shared.groups.iter().map(|g| g.1.frames)
    }

    /// Tables and columns of the file.
    pub fn schema(&self) -> Arc<Schema> {
        self.shared.schema.clone()
    }

    /// The groups as parts.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        let has_totals = rows_of(&self.shared.rows, totals::FIRST_ID).is_some();
        let groups = self.shared.groups.iter().enumerate();
        groups.map(move |(index, (number, group))| {
            let info = PartInfo {
                identity: self.shared.identity.clone(),
                file: self.shared.bytes.path().clone(),
                group: *number,
                has_totals,
                open: false,
                first_tick: group.first_tick,
                last_tick: group.last_tick,
                min_ms: group.min_ms,
                max_ms: group.max_ms,
                lost_definitions: group.lost_definitions,
                dropped_rows: group.dropped_rows,
                statements_ms: group.statements_ms,
            };
            let source = GroupSource {
                shared: self.shared.clone(),
                index,
            };
            Part::new(info, self.shared.schema.clone(), Arc::new(source))
        })
    }

    /// All chunks except the footer, in the order of the file. Packs are replaced by their columns.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Result<(Entry, Vec<u8>)>> {
        let entries = self.shared.all().unwrap_or_default().into_iter();
        entries.flat_map(|entry| match entry.kind {
            PACK => match self.shared.bytes.pack(&entry) {
                Ok(pack) => pack.columns().map(|(e, d)| Ok((e, d.to_vec()))).collect(),
                Err(error) => vec![Err(error)],
            },
            _ => vec![self.shared.bytes.data(&entry).map(|data| (entry, data))],
        })
    }

    /// The entries of the file's packs.
    #[cfg(test)]
    pub(crate) fn packs(&self) -> Vec<Entry> {
        let mut all = self.shared.all().unwrap_or_default();
        all.retain(|e| e.kind == PACK);
        all
    }

    /// Reads every chunk; returns the damaged ones.
    ///
    /// # Errors
    /// The file could not be read.
    pub fn verify(&self) -> Result<Vec<LogDamage>> {
        let mut found = Vec::new();
        for entry in self.shared.all()? {
            match self.shared.bytes.data(&entry) {
                Err(error) if error.is_damage() => {
                    found.push(self.damage_of_chunk(&entry, &error));
                }
                Err(error) => return Err(error),
                Ok(_) => (),
            }
        }
        found.extend(self.damage_with_index()?);
        Ok(without_nested(found))
    }
}

/// Sorts damage by offset; drops damage within other damage.
fn without_nested(mut damage: Vec<LogDamage>) -> Vec<LogDamage> {
    let end = |d: &LogDamage| d.offset.saturating_add(d.bytes);
    damage.sort_by_key(|d| (d.offset, Reverse(end(d))));
    let mut reported_until = None;
    damage.retain(|d| {
        let is_new = reported_until < Some(end(d));
        reported_until = reported_until.max(Some(end(d)));
        is_new
    });
    damage
}

impl BlockFile {
    /// Damage found when the file was opened, and damage of its index.
    fn damage_with_index(&self) -> Result<Vec<LogDamage>> {
        let mut found = self.damage.clone();
        let index = self.shared.index()?;
        let gaps = index.gaps.iter().map(|gap| &gap.damage);
        found.extend(gaps.chain(&index.damage).cloned());
        Ok(without_nested(found))
    }

    /// Description of a damaged chunk: its contents and time.
    fn damage_of_chunk(&self, entry: &Entry, error: &Error) -> LogDamage {
        let schema = &self.shared.schema;
        let table = schema.index_of_id(entry.table).map(|t| &schema.tables[t]);
        let column = table.and_then(|t| Some(&t.columns[t.index_of_id(entry.column)?]));
        let reason = match (entry.kind, table, column) {
            (COLUMN, Some(table), Some(column)) => format!(
                "{}: column {} of {} rows of {}",
                error.reason(),
                column.name,
                entry.rows,
                table.name
            ),
            (PACK, ..) => {
                let pack = usize::from(entry.column).wrapping_sub(1);
                let of = PACKS.get(pack).unwrap_or(&"a later version");
                format!("{}: pack of {of}", error.reason())
            }
            _ => error.reason(),
        };
        let group = self.shared.groups.iter().find(|g| g.0 == entry.group);
        let ticks = group.filter(|(_, g)| g.min_ms <= g.max_ms);
        LogDamage {
            since_ms: ticks.map(|g| g.1.min_ms),
            until_ms: ticks.map(|g| g.1.max_ms),
            ..damage_of(entry.offset, entry.chunk_bytes(), reason)
        }
    }
}

impl Shared {
    /// The chunks in the footer. The footer is read again when it is needed, because most files are
    /// never queried.
    fn footer_chunks(&self) -> Result<Arc<Chunks>> {
        if let Some(known) = &self.gathered {
            return Ok(known.clone());
        }
        self.kept.chunks_or(Listing::Footer, || {
            let of_all = |error: Error| error.of_group(self.bytes.path(), 0);
            let footer = self.footer_again().map_err(of_all)?;
            Ok(Arc::new(Chunks::new(footer.entries)))
        })
    }

    fn footer_again(&self) -> Result<Footer> {
        let footer = Footer::from_tail(&self.bytes.again()?)?;
        match footer.crc == self.footer_crc {
            true => Ok(footer),
            false => {
                let what = "file was replaced while it was read";
                Err(self.bytes.damaged(what, 0))
            }
        }
    }

    /// The chunks in the index; empty if the file has none.
    fn index(&self) -> Result<Arc<Chunks>> {
        if let Some(known) = self.broken_index.get() {
            return Ok(known.clone());
        }
        self.kept.chunks_or(Listing::Index, || {
            let footer = self.footer_chunks()?;
            let Some(entry) = index_entry(footer.entries()) else {
                return Ok(Arc::default());
            };
            match self.bytes.index(entry) {
                Err(error) if error.is_damage() => self.without_index(entry, &error),
                read => Ok(Arc::new(Chunks::new(read?))),
            }
        })
    }

    /// The chunks of a file whose index is damaged.
    fn without_index(&self, index: &Entry, error: &Error) -> Result<Arc<Chunks>> {
        self.footer_again()?;
        let (entries, gaps) = self.bytes.without_index()?;
        let damage = damage_of(index.offset, index.chunk_bytes(), error.reason());
        let chunks = Arc::new(Chunks::gathered(entries, Some(damage), gaps));
        Ok(self.broken_index.get_or_init(|| chunks).clone())
    }

    /// The entries of all chunks except the footer, in the order of the file.
    fn all(&self) -> Result<Vec<Entry>> {
        let mut all = self.footer_chunks()?.entries().to_vec();
        all.extend(self.index()?.entries());
        all.sort_by_key(|e| e.offset);
        Ok(all)
    }

    /// The chunk of a kind with the given group, table and column; the last one if there are
    /// several.
    fn chunk(&self, kind: u8, key: Key) -> Result<Option<Entry>> {
        let own = self.footer_chunks()?.find(kind, key);
        if own.is_some() || key.0 == 0 {
            return Ok(own);
        }
        Ok(self.index()?.find(kind, key))
    }

    /// A column; `None` if it was left out. A lost column is an error.
    fn column(&self, key: Key) -> Result<Option<Stored>> {
        if let Some(entry) = self.chunk(COLUMN, key)? {
            return Ok(Some(Stored { entry, pack: None }));
        }
        if key.0 == 0 && rows_of(&self.rows, key.1).is_none() {
            return Ok(None);
        }
        let table = self.schema.index_of_id(key.1);
        let number = table.and_then(|table| pack_of(&self.schema, table));
        let pack = match number {
            Some(number) => self.pack((key.0, number))?,
            None => None,
        };
        if let Some(pack) = &pack
            && let Some((entry, range)) = pack.find(key.1, key.2)
        {
            let pack = Some((pack.clone(), range));
            return Ok(Some(Stored { entry, pack }));
        }
        let missing = number.filter(|_| pack.is_none());
        self.check_lost(key, missing)?;
        Ok(None)
    }

    /// A pack by group and number; `None` if the file lacks it.
    fn pack(&self, key: (u32, u8)) -> Result<Option<Arc<Pack>>> {
        if let Some(known) = self.kept.pack(key) {
            return Ok(Some(known));
        }
        let Some(entry) = self.chunk(PACK, (key.0, 0, key.1))? else {
            return Ok(None);
        };
        let read = || self.bytes.pack(&entry).map(Arc::new);
        self.kept.pack_or(key, read).map(Some)
    }

    /// The coded data of a column.
    fn data(&self, stored: &Stored) -> Result<Vec<u8>> {
        match &stored.pack {
            Some((pack, range)) => Ok(pack.data(range.clone()).to_vec()),
            None => self.bytes.data(&stored.entry),
        }
    }

    /// Fails if a missing column may have been in damaged bytes. `missing_pack` is the number of
    /// its pack if that is missing, too.
    fn check_lost(&self, key: Key, missing_pack: Option<u8>) -> Result<()> {
        let index = match key.0 {
            0 => None,
            _ => Some(self.index()?).filter(|index| index.damage.is_some()),
        };
        let Some(gathered) = index.as_ref().or(self.gathered.as_ref()) else {
            return Ok(());
        };
        let column = Entry {
            kind: COLUMN,
            group: key.0,
            table: key.1,
            column: key.2,
            ..Entry::default()
        };
        let pack = missing_pack.map(|number| Entry {
            kind: PACK,
            table: 0,
            column: number,
            ..column
        });
        let places = [Some(column), pack];
        let may_hold = |gap: &&Gap| {
            let places = places.iter().flatten();
            places.into_iter().any(|e| gap.may_hold(&self.schema, e))
        };
        let lost = gathered.gaps.iter().find(may_hold);
        match lost.map(|gap| &gap.damage) {
            Some(damage) => Err(self.bytes.damaged(damage.reason.clone(), damage.offset)),
            None => Ok(()),
        }
    }
}

/// The columns of a group and of the dictionaries.
struct GroupSource {
    shared: Arc<Shared>,
    /// Index of the group.
    index: usize,
}

fn check_times(def: &ColumnDef, values: &[i64]) -> Result<()> {
    match def.are_sensible(values) {
        true => Ok(()),
        false => Err(Error::damaged("column has impossible times")),
    }
}

fn rows_of(rows: &[(u8, u32)], table: u8) -> Option<usize> {
    let found = rows.iter().find(|r| r.0 == table);
    found.map(|r| r.1 as usize)
}

impl GroupSource {
    fn group(&self) -> &(u32, GroupInfo) {
        &self.shared.groups[self.index]
    }

    /// The group that contains a table, and its number of rows.
    fn place(&self, id: u8) -> (u32, usize) {
        let (number, group) = self.group();
        match rows_of(&group.rows, id) {
            Some(rows) => (*number, rows),
            None => (0, rows_of(&self.shared.rows, id).unwrap_or(0)),
        }
    }

    fn key(&self, table: usize, column: usize) -> Option<Key> {
        let def = self.shared.schema.tables.get(table)?;
        let (group, _) = self.place(def.id);
        Some((group, def.id, def.columns.get(column)?.id))
    }

    /// Adds the group of a column to its error.
    fn placed(&self, table: usize, error: Error) -> Error {
        let def = self.shared.schema.tables.get(table);
        let group = def.map_or(0, |def| self.place(def.id).0);
        error.of_group(self.shared.bytes.path(), group)
    }

    fn has_numbers(&self, table: usize, column: usize) -> bool {
        let def = self.shared.schema.tables.get(table);
        let column = def.and_then(|d| d.columns.get(column));
        column.is_some_and(|c| c.ty != ColumnType::Bytes)
    }

    fn column(&self, table: usize, column: usize, depth: u8) -> Result<Option<Column>> {
        let Some(key) = self.key(table, column) else {
            return Ok(None);
        };
        let shared = &self.shared;
        if let Some(known) = shared.kept.ints(key) {
            return Ok(Some(known));
        }
        let Some(stored) = shared.column(key)? else {
            return Ok(None);
        };
        let read = || {
            let decode = |data: &[u8]| self.decode(table, &stored.entry, data, depth);
            self.read((table, column), &stored, decode)
        };
        shared.kept.ints_or(key, depth, read).map(Some)
    }

    /// A range of rows of a column; `None` if the column was left out. The decoded rows are not
    /// kept.
    fn column_rows(
        &self,
        table: usize,
        column: usize,
        rows: Range<usize>,
    ) -> Result<Option<Column>> {
        let Some(key) = self.key(table, column) else {
            return Ok(None);
        };
        let known = self.shared.kept.ints(key);
        if let Some(known) = known {
            return Ok(Some(known.rows(rows)));
        }
        let Some(stored) = self.shared.column(key)? else {
            return Ok(None);
        };
        let entry = &stored.entry;
        if codec::is_rewritten(entry.coding) {
            let all = self.column(table, column, 0)?;
            return Ok(all.map(|all| all.rows(rows)));
        }
        let (coding, all) = (entry.coding, entry.rows as usize);
        let decode = |data: &[u8]| codec::decode_rows(coding, data, all, rows);
        self.read((table, column), &stored, decode).map(Some)
    }

    /// Calls `each` with the batches of a column; false if the column was left out.
    fn column_batches(&self, table: usize, column: usize, each: Batch) -> Result<bool> {
        let Some(key) = self.key(table, column) else {
            return Ok(false);
        };
        let kept = &self.shared.kept;
        let stored = match kept.is_shared() || kept.ints(key).is_some() {
            true => None,
            false => self.shared.column(key)?,
        };
        let Some(stored) = stored.filter(|stored| stored.entry.coding == coding::PCO) else {
            return Ok(in_batches(self.column(table, column, 0)?, each));
        };
        let rows = stored.entry.rows as usize;
        let def = &self.shared.schema.tables[table].columns[column];
        let read = |data: &[u8]| {
            codec::decode_batches(data, rows, |values| {
                check_times(def, values)?;
                each(values);
                Ok(())
            })
        };
        self.read_data(&stored, read).map(|()| true)
    }

    /// Reads a column; errors have its file and offset.
    fn read(
        &self,
        (table, column): (usize, usize),
        stored: &Stored,
        decode: impl FnOnce(&[u8]) -> Result<Vec<i64>>,
    ) -> Result<Column> {
        let def = &self.shared.schema.tables[table].columns[column];
        self.read_data(stored, |data| {
            let values = decode(data)?;
            check_times(def, &values)?;
            Ok(Column(Arc::new(values)))
        })
    }

    /// Reads the coded data of a column; errors have its file and offset.
    fn read_data<T>(&self, stored: &Stored, decode: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let (shared, entry) = (&self.shared, &stored.entry);
        let at = |mut error: Error| {
            error
                .path
                .get_or_insert_with(|| shared.bytes.path().to_path_buf());
            error.offset.get_or_insert(entry.offset);
            error
        };
        self.check_rows(entry).map_err(at)?;
        decode(&shared.data(stored)?).map_err(at)
    }

    /// The coding byte and data of a column, with its number of rows. `None` unless it has one of
    /// these codings.
    fn coded(&self, table: usize, column: usize, codings: &[u8]) -> Option<(Vec<u8>, usize)> {
        let stored = self.shared.column(self.key(table, column)?).ok()??;
        let entry = &stored.entry;
        if !codings.contains(&entry.coding) {
            return None;
        }
        self.check_rows(entry).ok()?;
        let mut data = vec![entry.coding];
        data.extend(self.shared.data(&stored).ok()?);
        Some((data, entry.rows as usize))
    }

    fn strings(&self, table: usize, column: usize) -> Result<Option<BytesColumn>> {
        let Some(key) = self.key(table, column) else {
            return Ok(None);
        };
        let shared = &self.shared;
        if let Some(known) = shared.kept.strings(key) {
            return Ok(Some(known));
        }
        let Some(stored) = shared.column(key)? else {
            return Ok(None);
        };
        let entry = &stored.entry;
        if entry.coding != coding::STRINGS {
            return Ok(None);
        }
        let read = || {
            let at = |error: Error| error.at(shared.bytes.path()).offset(entry.offset);
            self.check_rows(entry).map_err(at)?;
            let data = shared.data(&stored)?;
            let strings = codec::decode_strings(&data, entry.plain_bytes, entry.rows as usize);
            let strings: Strings = strings.map_err(at)?;
            Ok(BytesColumn(Arc::new(strings)))
        };
        shared.kept.strings_or(key, read).map(Some)
    }

    fn check_rows(&self, entry: &Entry) -> Result<()> {
        let (_, rows) = self.place(entry.table);
        match entry.rows as usize == rows && rows <= MAX_ROWS {
            true => Ok(()),
            false => Err(Error::damaged(
                "column and its table have different numbers of rows",
            )),
        }
    }

    /// The base of a rewritten column; zeros if it is left out.
    fn base(&self, table: usize, column: usize, depth: u8) -> Result<Column> {
        if depth >= MAX_DEPTH {
            return Err(Error::damaged("column refers to itself"));
        }
        let found = self.column(table, column, depth + 1)?;
        Ok(found.unwrap_or_else(|| Column(Arc::new(vec![0; self.rows(table)]))))
    }

    /// Table and column of the base, from the start of the data.
    fn base_place(&self, data: &[u8]) -> Option<(usize, usize)> {
        let schema = &self.shared.schema;
        let table = schema.index_of_id(*data.first()?)?;
        Some((table, schema.tables[table].index_of_id(*data.get(1)?)?))
    }

    /// Adds the chunks that reading a column needs.
    fn add_chunks(
        &self,
        (table, column): (usize, usize),
        depth: u8,
        chunks: &mut Vec<Chunk>,
    ) -> Result<()> {
        let (Some(key), shared) = (self.key(table, column), &self.shared) else {
            return Ok(());
        };
        let number = pack_of(&shared.schema, table).unwrap_or(0);
        let chunk = match shared.chunk(COLUMN, key)? {
            None if key.0 == 0 && rows_of(&shared.rows, key.1).is_none() => None,
            None => shared.chunk(PACK, (key.0, 0, number))?,
            own => own,
        };
        chunks.extend(chunk.map(|entry| Chunk {
            offset: entry.offset,
            bytes: entry.chunk_bytes(),
        }));
        let is_rewritten =
            |entry: &Entry| entry.kind == COLUMN && codec::is_rewritten(entry.coding);
        let Some(entry) = chunk.filter(is_rewritten).filter(|_| depth < MAX_DEPTH) else {
            return Ok(());
        };
        let Some((base_table, base)) = self.base_place(&shared.bytes.begin(&entry)?) else {
            return Ok(());
        };
        let own = |name| (table, shared.schema.tables[table].index(name));
        let numbers = (base_table, shared.schema.tables[base_table].index("tick"));
        let others = match entry.coding {
            coding::OFFSET => vec![],
            coding::GAPS => vec![own("session"), own("ticks")],
            _ if base_table == table => vec![own("session")],
            _ => vec![own("session"), own("first_tick"), numbers],
        };
        self.add_chunks((base_table, base), depth + 1, chunks)?;
        for (table, column) in others {
            if let Some(column) = column {
                self.add_chunks((table, column), depth + 1, chunks)?;
            }
        }
        Ok(())
    }

    fn decode(&self, table: usize, entry: &Entry, data: &[u8], depth: u8) -> Result<Vec<i64>> {
        let rows = entry.rows as usize;
        if !codec::is_rewritten(entry.coding) {
            return codec::decode_values(entry.coding, data, rows);
        }
        let broken = || Error::damaged("column refers to a missing column");
        let schema = &self.shared.schema;
        let (base_table, base_column) = self.base_place(data).ok_or_else(broken)?;
        let base_def = &schema.tables[base_table];
        let base = self.base(base_table, base_column, depth)?;
        let mut coded = codec::decode_ints(data.get(2..).unwrap_or(&[]), rows)?;
        if entry.coding == coding::OFFSET {
            if base.len() != rows {
                return Err(broken());
            }
            let pairs = coded.iter().zip(base.iter());
            return Ok(pairs.map(|(v, b)| v.wrapping_add(*b)).collect());
        }
        let def = &schema.tables[table];
        let own = |name: &str| {
            let column = def.index(name).ok_or_else(broken)?;
            self.base(table, column, depth)
        };
        let sessions = own("session")?;
        if entry.coding == coding::GAPS {
            let origin = base.first().copied().unwrap_or(0);
            codec::from_gaps(&mut coded, &sessions, &own("ticks")?, origin);
            return Ok(coded);
        }
        if base_table == table {
            return Ok(codec::from_starts(&coded, &sessions, &base));
        }
        let number = base_def.index("tick").ok_or_else(broken)?;
        let numbers = self.base(base_table, number, depth)?;
        let base = at_ticks(&own("first_tick")?, &numbers, &base);
        Ok(codec::from_starts(&coded, &sessions, &base))
    }
}

impl Source for GroupSource {
    fn rows(&self, table: usize) -> usize {
        let def = self.shared.schema.tables.get(table);
        def.map_or(0, |def| self.place(def.id).1)
    }

    fn ints(&self, table: usize, column: usize) -> Result<Option<Column>> {
        match self.has_numbers(table, column) {
            true => self.column(table, column, 0),
            false => Ok(None),
        }
        .map_err(|error| self.placed(table, error))
    }

    fn batches(&self, table: usize, column: usize, each: Batch) -> Result<bool> {
        match self.has_numbers(table, column) {
            true => self.column_batches(table, column, each),
            false => Ok(false),
        }
        .map_err(|error| self.placed(table, error))
    }

    fn ints_of(&self, table: usize, column: usize, rows: Range<usize>) -> Result<Option<Column>> {
        match self.has_numbers(table, column) {
            true => self.column_rows(table, column, rows),
            false => Ok(None),
        }
        .map_err(|error| self.placed(table, error))
    }

    fn bytes(&self, table: usize, column: usize) -> Result<Option<BytesColumn>> {
        let read = self.strings(table, column);
        read.map_err(|error| self.placed(table, error))
    }

    fn spans(&self, table: usize, column: usize) -> Option<Vec<Span>> {
        let (coded, rows) = self.coded(table, column, &AS_SPANS)?;
        codec::spans(&coded, rows)
    }

    fn stretches(&self) -> Option<Vec<EqualRun>> {
        let spans = |name| {
            let (table, column) = self.shared.schema.column(RUN, name)?;
            self.spans(table, column)
        };
        let (sessions, ticks) = (spans("session")?, spans("ticks")?);
        let (table, column) = self.shared.schema.column(RUN, "first_tick")?;
        let (gaps, rows) = self.coded(table, column, &[coding::GAPS])?;
        let (table, column) = self.base_place(&gaps[1..])?;
        let origin = self.base(table, column, 0).ok()?.first().copied();
        let gaps = codec::spans(gaps.get(3..)?, rows)?;
        Some(codec::stretches(
            &gaps,
            &sessions,
            &ticks,
            origin.unwrap_or(0),
        ))
    }

    fn bounds(&self, table: usize, column: usize) -> Option<(i64, i64)> {
        let entry = self.shared.column(self.key(table, column)?).ok()?;
        let bounds = entry.map_or((0, 0), |stored| (stored.entry.min, stored.entry.max));
        (bounds != (i64::MIN, i64::MAX)).then_some(bounds)
    }

    fn chunks(&self, table: usize, column: usize) -> Result<Vec<Chunk>> {
        let mut chunks = Vec::new();
        let added = self.add_chunks((table, column), 0, &mut chunks);
        added.map_err(|error| self.placed(table, error))?;
        Ok(chunks)
    }

    fn damage(&self) -> Option<LogDamage> {
        self.shared.broken_index.get()?.damage.clone()
    }

    fn release(&self, shared: bool) {
        let group = if shared { 0 } else { self.group().0 };
        self.shared.kept.release(group);
    }
}
