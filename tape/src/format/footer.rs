//! The description of a sealed file: read from its tail, footer and index, or gathered from its
//! chunks if these are damaged.

use crate::crc::crc32c;
use crate::error::{Error, Kind, Result};
use crate::files::storage::{ReadFile, read_readable};
use crate::format::bytes::{u32_at, u64_at};
use crate::format::codec;
use crate::format::entry::{
    CHUNK_BYTES, CHUNK_MAGIC, COLUMN, ENTRY_BYTES, Entry, FOOTER, GROUP, INDEX, PACK, SCHEMA,
};
use crate::format::frame::Frame;
use crate::format::hello;
use crate::format::log::{IDENTITY_BYTES, parse_identity};
use crate::format::packs::{PACK_BYTES, Pack};
use crate::format::part::{Identity, LogDamage};
use crate::format::schema::{FAR_MS, Schema};
use crate::format::sealed_write::{
    GROUP_BYTES, GroupInfo, HEAD_BYTES, HEAD_MAGIC, MAX_ROWS, TAIL_BYTES, TAIL_MAGIC, VERSION,
    schema_crc, schema_frame,
};
use crate::format::sums::Sums;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum number of rows of a table for each byte of its file.
const ROWS_PER_BYTE: u64 = 1 << 12;

/// Number of bytes that are read at once from the end of a file. Most footers are smaller.
const END_BYTES: usize = 1 << 13;

/// The bytes of a sealed file.
#[derive(Clone)]
pub(crate) struct Bytes {
    file: Arc<dyn ReadFile>,
    path: Arc<PathBuf>,
    length: u64,
}

/// The description of a file without its columns.
pub(crate) struct Footer {
    pub(crate) identity: Identity,
    pub(crate) schema_crc: u32,
    /// Checksum of the footer; 0 if the file has none.
    pub(crate) crc: u32,
    /// The groups of the file. `Footer::read` removes group 0 at its end.
    pub(crate) groups: Vec<(u32, GroupInfo)>,
    /// Number of rows of each dictionary and table of totals, by id of the table.
    pub(crate) rows: Vec<(u8, u32)>,
    /// Chunks in group 0. For a file of version 1 or without a footer: all chunks.
    pub(crate) entries: Vec<Entry>,
    /// Damaged bytes between the chunks of a file without a footer.
    pub(crate) gaps: Vec<Gap>,
    pub(crate) damage: Vec<LogDamage>,
}

/// Bytes that are not a valid chunk.
pub(crate) struct Gap {
    pub(crate) damage: LogDamage,
    /// The chunks before and after these bytes.
    before: Option<Entry>,
    after: Option<Entry>,
}

impl Gap {
    /// True if these bytes may have been the chunk of this column.
    pub(crate) fn may_hold(&self, schema: &Schema, column: &Entry) -> bool {
        let column = order(schema, column);
        let before = self.before.as_ref().and_then(|e| order(schema, e));
        let is_before = |after: &Entry| column < order(schema, after);
        before < column && self.after.as_ref().is_none_or(is_before)
    }
}

/// Position of a chunk in the order of a file. `None` comes first.
fn order(schema: &Schema, chunk: &Entry) -> Option<(u32, usize, usize)> {
    // Group 0 is written last.
    let group = chunk.group.wrapping_sub(1);
    let last = (group, usize::MAX, usize::MAX);
    let table = schema.index_of_id(chunk.table);
    let column = table.and_then(|t| schema.tables[t].index_of_id(chunk.column));
    match (chunk.kind, table, column) {
        (SCHEMA, ..) => None,
        (PACK, ..) => Some((group, usize::MAX - 1, usize::from(chunk.column))),
        (COLUMN, Some(table), Some(column)) => Some((group, table, column)),
        _ => Some(last),
    }
}

/// Schemas by checksum. Most files have the same schema.
#[derive(Default)]
pub struct Schemas(HashMap<u32, Arc<Schema>>);

impl Schemas {
    /// Adds a schema with table `run`, as if a file had it.
    pub(crate) fn learn(&mut self, schema: &Schema) {
        let crc = schema_crc(&schema_frame(schema));
        self.0.insert(crc, Arc::new(schema.clone()));
    }

    /// The schema of a file.
    pub(crate) fn of(&mut self, bytes: &Bytes, footer: &Footer) -> Result<Arc<Schema>> {
        if let Some(known) = self.0.get(&footer.schema_crc) {
            return Ok(known.clone());
        }
        let entry = footer.entries.iter().find(|e| e.kind == SCHEMA);
        let entry = entry.ok_or_else(|| bytes.damaged("sealed file has no schema", 0))?;
        let chunk = bytes.read(entry.offset, bytes.chunk_bytes(entry)?)?;
        let (entry, data) = bytes.parse_chunk(&chunk, entry.offset)?;
        let plain = codec::decompress(data, entry.plain_bytes)?;
        let frame =
            Frame::parse(&plain)?.ok_or_else(|| bytes.damaged("schema ends too early", 0))?;
        let schema = Arc::new(hello::read_schema(&frame.all_sections()?)?);
        self.0.insert(schema_crc(&plain), schema.clone());
        Ok(schema)
    }
}

impl Bytes {
    pub(crate) fn new(file: Arc<dyn ReadFile>, path: Arc<PathBuf>) -> Result<Self> {
        let length = file.bytes().map_err(|e| Error::io("read file", &path, e))?;
        Ok(Bytes { file, path, length })
    }

    /// The same file with its current length.
    pub(crate) fn again(&self) -> Result<Self> {
        Bytes::new(self.file.clone(), self.path.clone())
    }

    pub(crate) fn path(&self) -> &Arc<PathBuf> {
        &self.path
    }

    pub(crate) fn damaged(&self, what: impl Into<String>, offset: u64) -> Error {
        Error::damaged(what).at(&self.path).offset(offset)
    }

    fn read(&self, offset: u64, bytes: usize) -> Result<Vec<u8>> {
        self.check_end(offset, bytes)?;
        let mut buffer = vec![0; bytes];
        self.read_to(offset, &mut buffer)?;
        Ok(buffer)
    }

    fn read_to(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.check_end(offset, buffer.len())?;
        let read = self.file.read_at(offset, buffer);
        let failed = |e| Error::io("read file", &self.path, e).offset(offset);
        match read.map_err(failed)? {
            n if n == buffer.len() => Ok(()),
            _ => Err(self.short()),
        }
    }

    /// Reads the end of the file from offset `from`; returns `from`.
    fn read_end(&self, from: u64, buffer: &mut Vec<u8>) -> Result<u64> {
        buffer.resize((self.length - from) as usize, 0);
        self.read_to(from, buffer)?;
        Ok(from)
    }

    /// Refuses a range beyond the end of the file before memory is taken for it.
    fn check_end(&self, offset: u64, bytes: usize) -> Result<()> {
        let end = offset.checked_add(bytes as u64);
        let end = end.filter(|end| *end <= self.length);
        end.map(|_| ()).ok_or_else(|| self.short())
    }

    fn short(&self) -> Error {
        self.damaged("file ends too early", self.length)
    }

    fn chunk_bytes(&self, entry: &Entry) -> Result<usize> {
        let bytes = usize::try_from(entry.chunk_bytes());
        bytes.map_err(|_| self.damaged("chunk is too long", entry.offset))
    }

    /// Reads a chunk and checks its checksum and its kind; returns its data.
    pub(crate) fn data(&self, entry: &Entry) -> Result<Vec<u8>> {
        let bytes = self.chunk_bytes(entry)?;
        let mut chunk = self.read(entry.offset, bytes)?;
        let (found, _) = self.parse_chunk(&chunk, entry.offset)?;
        let same = Entry {
            min: entry.min,
            max: entry.max,
            ..found
        };
        if same != *entry {
            let what = "chunk does not match its entry in the footer";
            return Err(self.damaged(what, entry.offset));
        }
        chunk.truncate(bytes - 4);
        chunk.drain(..CHUNK_BYTES);
        Ok(chunk)
    }

    /// The first two bytes of a chunk's data, unchecked.
    pub(crate) fn begin(&self, entry: &Entry) -> Result<Vec<u8>> {
        self.read(entry.offset + CHUNK_BYTES as u64, 2)
    }

    /// Checks a chunk's checksum; returns its description and its data.
    fn parse_chunk<'a>(&self, chunk: &'a [u8], offset: u64) -> Result<(Entry, &'a [u8])> {
        let broken = || self.damaged("damaged chunk", offset);
        let entry = Entry::parse_head(chunk, offset).ok_or_else(broken)?;
        let end = CHUNK_BYTES + entry.data_bytes as usize;
        let data = chunk.get(CHUNK_BYTES..end).ok_or_else(broken)?;
        match u32_at(chunk, end) {
            Some(crc) if crc == crc32c(&chunk[..end]) => Ok((entry, data)),
            _ => Err(broken()),
        }
    }

    /// The index's entries for the chunks of groups.
    pub(crate) fn index(&self, entry: &Entry) -> Result<Vec<Entry>> {
        let plain = self.plain(entry, &self.data(entry)?)?;
        parse_entries(&plain).ok_or_else(|| self.damaged("invalid index", entry.offset))
    }

    /// The small columns in a chunk.
    pub(crate) fn pack(&self, entry: &Entry) -> Result<Pack> {
        let broken = || self.damaged("invalid pack", entry.offset);
        if entry.plain_bytes > PACK_BYTES {
            return Err(broken());
        }
        let plain = codec::decompress(&self.data(entry)?, entry.plain_bytes);
        let plain = plain.map_err(|_| broken())?;
        Pack::parse(plain, entry).ok_or_else(broken)
    }

    /// Decompresses data that has at most one entry for each chunk of the file.
    fn plain(&self, entry: &Entry, data: &[u8]) -> Result<Vec<u8>> {
        let most = self.length / (CHUNK_BYTES + 4) as u64;
        if u64::from(entry.plain_bytes) > most * ENTRY_BYTES as u64 {
            let what = "index lists more chunks than the file can hold";
            return Err(self.damaged(what, entry.offset));
        }
        codec::decompress(data, entry.plain_bytes)
    }

    fn parse_head(&self, head: &[u8]) -> Result<Identity> {
        let crc_at = HEAD_BYTES - 4;
        let crc = head.get(..crc_at).map(crc32c);
        if crc.is_none() || crc != u32_at(head, crc_at) || head[..4] != HEAD_MAGIC {
            return Err(self.damaged("invalid file head", 0));
        }
        if !(1..=VERSION).contains(&head[4]) {
            let message = format!("unsupported version {} of sealed file", head[4]);
            return Err(Error::new(Kind::Version, message).at(&self.path));
        }
        parse_identity(&head[8..]).ok_or_else(|| self.damaged("file head has no identity", 0))
    }

    /// Parses the footer chunk, whose place is in the tail. The end of the file is read into memory
    /// that each thread keeps: allocating and clearing it for each of many files would cost as much
    /// as parsing their footers.
    fn with_footer_chunk<T>(&self, parse: impl Fn(&[u8], u64) -> Result<T>) -> Result<T> {
        thread_local! {
            static END: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let from = self.length.saturating_sub(END_BYTES as u64);
        let at = self.length.saturating_sub(TAIL_BYTES as u64);
        let broken = || self.damaged("invalid file tail", at);
        let mut buffer = END.take();
        let from = match self.read_end(from, &mut buffer) {
            // The unreadable bytes may lie before the footer.
            Err(error) if error.is_damage() => self.read_end(at, &mut buffer)?,
            read => read?,
        };
        let before = buffer.len().checked_sub(TAIL_BYTES).ok_or_else(broken)?;
        let (end, tail) = buffer.split_at(before);
        let (crc, rest) = (u32_at(tail, 16), &tail[..16]);
        if tail[..4] != TAIL_MAGIC || crc != Some(crc32c(rest)) {
            return Err(broken());
        }
        let length = u32_at(tail, 4).unwrap_or(0) as usize;
        let offset = u64_at(tail, 8).unwrap_or(0);
        let parsed = match offset.checked_sub(from) {
            Some(skip) if offset.checked_add(length as u64) == Some(at) => {
                parse(&end[skip as usize..], offset)
            }
            _ => parse(&self.read(offset, length)?, offset),
        };
        END.set(buffer);
        parsed
    }
}

impl Footer {
    /// Reads the footer, or gathers the chunks if it is damaged.
    ///
    /// # Errors
    /// The file could not be read, is of a later version, or has nothing valid.
    pub(crate) fn read(bytes: &Bytes) -> Result<Footer> {
        let mut footer = match Footer::from_tail(bytes) {
            Err(error) if error.is_damage() => Footer::from_chunks(bytes, error)?,
            read => read?,
        };
        footer.check_groups(bytes)?;
        footer.rows = footer.shared_rows(bytes);
        footer.groups.retain(|g| g.0 != 0);
        Ok(footer)
    }

    /// Drops all entries except the one of the schema. The footer of a damaged file keeps all of
    /// them.
    pub(crate) fn without_entries(mut self) -> Footer {
        if self.damage.is_empty() {
            let schema = self.entries.iter().find(|e| e.kind == SCHEMA);
            self.entries = schema.copied().into_iter().collect();
        }
        self
    }

    pub(crate) fn from_tail(bytes: &Bytes) -> Result<Footer> {
        let mut head = [0; HEAD_BYTES];
        let read = bytes.read_to(0, &mut head);
        let head_error = match read.and_then(|()| bytes.parse_head(&head)) {
            Err(error) if !error.is_damage() => return Err(error),
            head => head.err(),
        };
        let mut footer = bytes.with_footer_chunk(|chunk, offset| {
            let (entry, data) = bytes.parse_chunk(chunk, offset)?;
            if entry.kind != FOOTER {
                return Err(bytes.damaged("file tail does not point to a footer", offset));
            }
            let footer = match entry.plain_bytes {
                0 => parse_footer(data),
                _ => parse_footer(&bytes.plain(&entry, data)?),
            };
            footer.ok_or_else(|| bytes.damaged("invalid footer", offset))
        })?;
        if let Some(error) = head_error {
            let damage = damage_of(0, HEAD_BYTES as u64, error.reason());
            footer.damage.push(damage);
        }
        Ok(footer)
    }

    /// Gathers the chunks of a file whose tail or footer is damaged.
    fn from_chunks(bytes: &Bytes, reason: Error) -> Result<Footer> {
        let (mut footer, end) = gather(bytes)?;
        if footer.groups.is_empty() {
            let offset = reason.offset.unwrap_or(0);
            return Err(match reason.kind {
                Kind::Damaged => bytes.damaged(reason.message, offset),
                _ => reason,
            });
        }
        let length = bytes.length.saturating_sub(end.offset).max(1);
        footer.gaps.push(Gap {
            damage: damage_of(end.offset, length, reason.reason()),
            before: end.last,
            after: None,
        });
        let damage = footer.gaps.iter().map(|gap| gap.damage.clone());
        footer.damage.extend(damage);
        Ok(footer)
    }

    fn shared_rows(&self, bytes: &Bytes) -> Vec<(u8, u32)> {
        let shared = self.groups.iter().find(|g| g.0 == 0);
        match shared {
            Some((_, group)) => group.rows.clone(),
            None => {
                let packs = self.entries.iter().filter(|e| e.kind == PACK);
                let packs = packs.filter(|e| e.group == 0);
                let packs: Vec<Pack> = packs.filter_map(|e| bytes.pack(e).ok()).collect();
                let packed = packs.iter().flat_map(Pack::columns).map(|c| c.0);
                let own = self.entries.iter().copied();
                dictionary_rows(own.chain(packed), bytes.length)
            }
        }
    }

    fn check_groups(&self, bytes: &Bytes) -> Result<()> {
        let damaged = |what: &str| Err(Error::damaged(what).at(&bytes.path));
        let most = most_rows(bytes.length);
        let mut rows = self.groups.iter().flat_map(|g| &g.1.rows);
        if rows.any(|r| u64::from(r.1) > most) {
            return damaged("group has more rows than the file can hold");
        }
        let far = |ms: i64| ms.unsigned_abs() >= FAR_MS;
        let mut ticks = self.groups.iter().filter(|g| g.1.min_ms <= g.1.max_ms);
        match ticks.any(|g| far(g.1.min_ms) || far(g.1.max_ms)) {
            true => damaged("group has impossible times"),
            false => Ok(()),
        }
    }
}

impl Bytes {
    /// The chunks of groups in a file whose index is damaged, and the bytes between chunks.
    pub(crate) fn without_index(&self) -> Result<(Vec<Entry>, Vec<Gap>)> {
        let (mut found, _) = gather(self)?;
        found.entries.retain(|e| e.group != 0);
        Ok((found.entries, found.gaps))
    }
}

/// The entry of the index in a footer.
pub(crate) fn index_entry(entries: &[Entry]) -> Option<&Entry> {
    entries.iter().find(|e| e.kind == INDEX)
}

/// Maximum number of rows of a table in a file of this length. Readers allocate memory for the rows
/// that a file claims.
fn most_rows(bytes: u64) -> u64 {
    bytes.saturating_mul(ROWS_PER_BYTE).min(MAX_ROWS as u64)
}

/// Rows of the dictionaries, from the entries of their columns.
fn dictionary_rows(entries: impl Iterator<Item = Entry>, bytes: u64) -> Vec<(u8, u32)> {
    let most = most_rows(bytes);
    let shared = entries.filter(|e| e.kind == COLUMN && e.group == 0);
    let shared = shared.filter(|e| u64::from(e.rows) <= most);
    let mut rows: Vec<(u8, u32)> = shared.map(|e| (e.table, e.rows)).collect();
    rows.sort_unstable();
    rows.dedup_by_key(|r| r.0);
    rows
}

fn parse_footer(footer: &[u8]) -> Option<Footer> {
    let mut at = IDENTITY_BYTES + 8;
    let count = u32_at(footer, IDENTITY_BYTES + 4)? as usize;
    let mut groups = Vec::with_capacity(count.min(footer.len() / GROUP_BYTES));
    for _ in 0..count {
        let length = u32_at(footer, at + 4)? as usize;
        let data = footer.get(at + 8..(at + 8).checked_add(length)?)?;
        groups.push((u32_at(footer, at)?, GroupInfo::parse(data)?));
        at += 8 + length;
    }
    let entries = footer.get(at + 4..)?;
    if entries.len() / ENTRY_BYTES != u32_at(footer, at)? as usize {
        return None;
    }
    Some(Footer {
        identity: parse_identity(footer)?,
        schema_crc: u32_at(footer, IDENTITY_BYTES)?,
        crc: crc32c(footer),
        groups,
        rows: Vec::new(),
        entries: parse_entries(entries)?,
        gaps: Vec::new(),
        damage: Vec::new(),
    })
}

fn parse_entries(bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::with_capacity(bytes.len() / ENTRY_BYTES);
    for entry in bytes.chunks(ENTRY_BYTES) {
        entries.push(Entry::parse(entry)?);
    }
    Some(entries)
}

/// Finds the valid chunks of a file, whatever lies between them.
pub(crate) struct Chunks<'a> {
    all: &'a [u8],
    at: usize,
    pub(crate) sums: Sums<'a>,
}

impl<'a> Chunks<'a> {
    pub(crate) fn new(all: &'a [u8]) -> Self {
        Chunks {
            all,
            at: HEAD_BYTES.min(all.len()),
            sums: Sums::new(all),
        }
    }

    /// The description and the data of the next valid chunk.
    pub(crate) fn next_valid(&mut self) -> Option<(Entry, &'a [u8])> {
        loop {
            let rest = self.all.get(self.at..)?;
            self.at += rest.windows(4).position(|w| w == CHUNK_MAGIC)?;
            if let Some((entry, data)) = self.valid() {
                self.at += entry.chunk_bytes() as usize;
                return Some((entry, data));
            }
            self.at += 1;
        }
    }

    /// The valid chunk that begins at the current offset.
    fn valid(&mut self) -> Option<(Entry, &'a [u8])> {
        let at = self.at;
        let entry = Entry::parse_head(self.all.get(at..)?, at as u64)?;
        let end = (at + CHUNK_BYTES).checked_add(entry.data_bytes as usize)?;
        let data = self.all.get(at + CHUNK_BYTES..end)?;
        let stored = u32_at(self.all, end)?;
        (self.sums.of(at, end) == stored).then_some((entry, data))
    }
}

/// The end of the last chunk of a file.
struct End {
    offset: u64,
    last: Option<Entry>,
}

/// Goes through the chunks of a file; returns their description and their end.
fn gather(bytes: &Bytes) -> Result<(Footer, End)> {
    let all = read_readable(&*bytes.file, 0, bytes.length);
    let all = all.map_err(|e| Error::io("read file", &bytes.path, e))?;
    let identity = match bytes.parse_head(&all) {
        Err(error) if error.kind == Kind::Version => return Err(error),
        identity => identity.unwrap_or_default(),
    };
    let mut footer = Footer {
        identity,
        schema_crc: 0,
        crc: 0,
        groups: Vec::new(),
        rows: Vec::new(),
        entries: Vec::new(),
        gaps: Vec::new(),
        damage: Vec::new(),
    };
    let mut chunks = Chunks::new(&all);
    let mut end = End {
        offset: chunks.at as u64,
        last: None,
    };
    while let Some((entry, data)) = chunks.next_valid() {
        if entry.offset > end.offset {
            let length = entry.offset - end.offset;
            footer.gaps.push(Gap {
                damage: damage_of(end.offset, length, "damaged chunk".to_string()),
                before: end.last,
                after: Some(entry),
            });
        }
        end = End {
            offset: chunks.at as u64,
            last: Some(entry),
        };
        if entry.kind == GROUP {
            let group = GroupInfo::parse(data).map(|g| (entry.group, g));
            footer.groups.extend(group);
        }
        if entry.kind != FOOTER && entry.kind != INDEX {
            footer.entries.push(entry);
        }
    }
    Ok((footer, end))
}

pub(crate) fn damage_of(offset: u64, bytes: u64, reason: String) -> LogDamage {
    LogDamage {
        offset,
        bytes,
        since_ms: None,
        until_ms: None,
        reason,
    }
}
