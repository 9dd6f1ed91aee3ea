//! Reads sealed files. Opening reads tail and footer; when they are damaged,
//! the chunks are gone through instead. Columns are read and decoded when
//! they are asked for, and kept.

use crate::block::{
    CHUNK_BYTES, CHUNK_MAGIC, COLUMN, ENTRY_BYTES, Entry, FOOTER, FrameRange, GROUP, GroupInfo,
    HEAD_BYTES, HEAD_MAGIC, MAX_ROWS, SCHEMA, TAIL_BYTES, TAIL_MAGIC, VERSION, at_ticks,
    schema_crc, schema_frame,
};
use crate::codec::{self, Span, Stretch};
use crate::error::{Error, Kind, Result};
use crate::frame::{Frame, crc32c, u32_at, u64_at};
use crate::hello;
use crate::log::{IDENTITY_BYTES, LogDamage, parse_identity};
use crate::part::{Identity, Part, PartInfo, Source};
use crate::query::totals;
use crate::schema::{ColumnType, FAR_MS, RUN, Schema};
use crate::storage::{ReadFile, read_all};
use crate::table::{BytesColumn, Column, Strings};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Most rows of a table by the length of its file.
const ROWS_PER_BYTE: u64 = 1 << 12;

/// Codings of columns that are spans.
const AS_SPANS: [u8; 2] = [codec::CONSTANT, codec::SPANS];

/// How deep a column may be rewritten against another.
const MAX_DEPTH: u8 = 4;

/// An open sealed file.
pub struct BlockFile {
    shared: Arc<Shared>,
    groups: Vec<(u32, GroupInfo)>,
    identity: Identity,
    /// What was damaged when it was opened; columns say so when they are read.
    pub damage: Vec<LogDamage>,
}

/// What all groups of a file share.
struct Shared {
    file: Arc<dyn ReadFile>,
    path: PathBuf,
    schema: Arc<Schema>,
    /// Chunks of columns by group, table, column, ascending; made when one is
    /// asked for.
    columns: OnceLock<Vec<(Key, Entry)>>,
    /// All chunks but the footer; read again when they were forgotten.
    entries: OnceLock<Vec<Entry>>,
    /// Checksum of the footer, which must be the same then: a file that is
    /// opened by name may be another one.
    footer_crc: u32,
    /// Rows of the dictionaries and totals by id of the table.
    rows: Vec<(u8, u32)>,
    cache: Mutex<Cache>,
}

/// Group, table, column.
type Key = (u32, u8, u8);

#[derive(Default)]
struct Cache {
    ints: HashMap<Key, Column>,
    strings: HashMap<Key, BytesColumn>,
}

/// Schemas that were read, by checksum: most files have the same.
#[derive(Default)]
pub struct Schemas(HashMap<u32, Arc<Schema>>);

impl Schemas {
    /// Knows a schema, with table `run`, as if a file had it.
    pub(crate) fn learn(&mut self, schema: &Schema) {
        let crc = schema_crc(&schema_frame(schema));
        self.0.insert(crc, Arc::new(schema.clone()));
    }
}

fn damaged(what: impl Into<String>, path: &Path, offset: u64) -> Error {
    Error::damaged(what).at(path).offset(offset)
}

/// Readers take memory for the rows a table claims: as many as a file of this
/// length may hold.
fn most_rows(bytes: u64) -> u64 {
    bytes.saturating_mul(ROWS_PER_BYTE).min(MAX_ROWS as u64)
}

fn check_groups(index: &Index, bytes: u64) -> Result<()> {
    let most = most_rows(bytes);
    let mut rows = index.groups.iter().flat_map(|g| &g.1.rows);
    if rows.any(|r| u64::from(r.1) > most) {
        let what = "group with more rows than its file can hold";
        return Err(Error::damaged(what));
    }
    let far = |ms: i64| ms.unsigned_abs() >= FAR_MS;
    let mut ticks = index.groups.iter().filter(|g| g.1.min_ms <= g.1.max_ms);
    match ticks.any(|g| far(g.1.min_ms) || far(g.1.max_ms)) {
        true => Err(Error::damaged("group with impossible times")),
        false => Ok(()),
    }
}

/// Rows of the dictionaries by what their columns say.
fn dictionary_rows(entries: &[Entry], bytes: u64) -> Vec<(u8, u32)> {
    let most = most_rows(bytes);
    let shared = entries.iter().filter(|e| e.kind == COLUMN && e.group == 0);
    let shared = shared.filter(|e| u64::from(e.rows) <= most);
    let mut rows: Vec<(u8, u32)> = shared.map(|e| (e.table, e.rows)).collect();
    rows.sort_unstable();
    rows.dedup_by_key(|r| r.0);
    rows
}

/// What is known of a file before its columns.
struct Index {
    identity: Identity,
    schema_crc: u32,
    /// 0 without a footer.
    footer_crc: u32,
    groups: Vec<(u32, GroupInfo)>,
    entries: Vec<Entry>,
    damage: Vec<LogDamage>,
}

impl BlockFile {
    /// Opens a sealed file.
    ///
    /// # Errors
    /// It could not be read, is of a later version, or nothing of it is valid.
    pub fn open(file: Arc<dyn ReadFile>, path: &Path, schemas: &mut Schemas) -> Result<BlockFile> {
        let bytes = file.bytes().map_err(|e| Error::io("read file", path, e))?;
        let index = match read_footer(&*file, path, bytes) {
            Ok(index) => index,
            Err(error) if matches!(error.kind, Kind::Io | Kind::Version) => return Err(error),
            Err(error) => rebuild(&*file, path, &error)?,
        };
        check_groups(&index, bytes).map_err(|e| e.at(path))?;
        let schema = read_schema(&*file, path, &index, schemas)?;
        let shared_rows = index.groups.iter().find(|g| g.0 == 0);
        let rows = match shared_rows {
            Some((_, group)) => group.rows.clone(),
            None => dictionary_rows(&index.entries, bytes),
        };
        let shared = Shared {
            columns: OnceLock::new(),
            entries: OnceLock::from(index.entries),
            footer_crc: index.footer_crc,
            rows,
            file,
            path: path.to_path_buf(),
            schema,
            cache: Mutex::default(),
        };
        Ok(BlockFile {
            shared: Arc::new(shared),
            groups: index.groups.into_iter().filter(|g| g.0 != 0).collect(),
            identity: index.identity,
            damage: index.damage,
        })
    }

    /// Gives back the memory of what the footer says of columns, which is read
    /// again when it is needed. A file without a valid footer keeps it.
    pub fn forget_entries(&mut self) {
        if let Some(shared) = Arc::get_mut(&mut self.shared)
            && self.damage.is_empty()
        {
            shared.entries.take();
        }
    }

    /// Who wrote it.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The frames it was made of, by group.
    pub fn frames(&self) -> impl Iterator<Item = FrameRange> {
        self.groups.iter().map(|g| g.1.frames)
    }

    /// Its tables and columns.
    pub fn schema(&self) -> Arc<Schema> {
        self.shared.schema.clone()
    }

    /// The groups as parts.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        self.groups.iter().map(|(number, group)| {
            let info = PartInfo {
                identity: self.identity.clone(),
                file: self.shared.path.clone(),
                group: *number,
                has_totals: rows_of(&self.shared.rows, totals::FIRST_ID).is_some(),
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
                group: *number,
                rows: group.rows.clone(),
            };
            Part::new(info, self.shared.schema.clone(), Arc::new(source))
        })
    }

    /// All chunks but the footer, in the order of the file.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Result<(Entry, Vec<u8>)>> {
        let entries = self.shared.entries().unwrap_or_default().iter();
        entries.map(|entry| Ok((*entry, self.shared.data(entry)?)))
    }

    /// Reads every chunk; returns those that are damaged.
    ///
    /// # Errors
    /// The file could not be read.
    pub fn verify(&self) -> Result<Vec<LogDamage>> {
        let mut found = self.damage.clone();
        for entry in self.shared.entries()? {
            match self.shared.data(entry) {
                Err(error) if error.kind == Kind::Damaged => {
                    found.push(self.damage_of_chunk(entry, &error));
                }
                Err(error) => return Err(error),
                Ok(_) => (),
            }
        }
        Ok(found)
    }
}

impl BlockFile {
    /// What a damaged chunk held, and of which time.
    fn damage_of_chunk(&self, entry: &Entry, error: &Error) -> LogDamage {
        let schema = &self.shared.schema;
        let table = schema.index_of_id(entry.table).map(|t| &schema.tables[t]);
        let column = table.and_then(|t| Some(&t.columns[t.index_of_id(entry.column)?]));
        let reason = match (entry.kind, table, column) {
            (COLUMN, Some(table), Some(column)) => format!(
                "{}: column {} of {} rows of {}",
                error.message, column.name, entry.rows, table.name
            ),
            _ => error.message.clone(),
        };
        let group = self.groups.iter().find(|g| g.0 == entry.group);
        let ticks = group.filter(|(_, g)| g.min_ms <= g.max_ms);
        LogDamage {
            since_ms: ticks.map(|g| g.1.min_ms),
            until_ms: ticks.map(|g| g.1.max_ms),
            ..damage_of(entry.offset, entry.chunk_bytes(), reason)
        }
    }
}

fn damage_of(offset: u64, bytes: u64, reason: String) -> LogDamage {
    LogDamage {
        offset,
        bytes,
        since_ms: None,
        until_ms: None,
        reason,
    }
}

fn read_exactly(file: &dyn ReadFile, path: &Path, offset: u64, bytes: usize) -> Result<Vec<u8>> {
    let length = file.bytes().map_err(|e| Error::io("read file", path, e))?;
    let end = offset.checked_add(bytes as u64);
    if end.is_none_or(|end| end > length) {
        return Err(damaged("file that ends too early", path, length));
    }
    let mut buffer = vec![0; bytes];
    let read = file.read_at(offset, &mut buffer);
    match read.map_err(|e| Error::io("read file", path, e))? {
        n if n == bytes => Ok(buffer),
        _ => Err(damaged("file that ends too early", path, length)),
    }
}

fn read_footer(file: &dyn ReadFile, path: &Path, bytes: u64) -> Result<Index> {
    let head = read_exactly(file, path, 0, HEAD_BYTES)?;
    let head_error = parse_head(&head, path).err();
    if let Some(error) = head_error.filter(|e| e.kind == Kind::Version) {
        return Err(error);
    }
    let at = bytes.saturating_sub(TAIL_BYTES as u64);
    let tail = read_exactly(file, path, at, TAIL_BYTES)?;
    let (crc, rest) = (u32_at(&tail, 16), &tail[..16]);
    if tail[..4] != TAIL_MAGIC || crc != Some(crc32c(rest)) {
        return Err(damaged("damaged tail of a sealed file", path, at));
    }
    let length = u32_at(&tail, 4).unwrap_or(0) as usize;
    let offset = u64_at(&tail, 8).unwrap_or(0);
    let chunk = read_exactly(file, path, offset, length)?;
    let (entry, data) = parse_chunk(&chunk, offset, path)?;
    if entry.kind != FOOTER {
        return Err(damaged(
            "tail that does not lead to the footer",
            path,
            offset,
        ));
    }
    let footer = codec::decompress(data, entry.plain_bytes)?;
    let mut index = parse_footer(&footer);
    if let Some(index) = &mut index
        && parse_head(&head, path).is_err()
    {
        let what = "damaged head of a sealed file".to_string();
        index.damage.push(damage_of(0, HEAD_BYTES as u64, what));
    }
    index.ok_or_else(|| damaged("footer that is not valid", path, offset))
}

fn parse_head(head: &[u8], path: &Path) -> Result<Identity> {
    let crc_at = HEAD_BYTES - 4;
    let crc = head.get(..crc_at).map(crc32c);
    if crc.is_none() || crc != u32_at(head, crc_at) || head[..4] != HEAD_MAGIC {
        return Err(damaged("damaged head of a sealed file", path, 0));
    }
    if head[4] != VERSION {
        let message = format!("sealed file of version {}", head[4]);
        return Err(Error::new(Kind::Version, message).at(path));
    }
    parse_identity(&head[8..]).ok_or_else(|| damaged("head without an identity", path, 0))
}

/// Checks a chunk's checksum; returns what it is and its data.
fn parse_chunk<'a>(chunk: &'a [u8], offset: u64, path: &Path) -> Result<(Entry, &'a [u8])> {
    let broken = || damaged("damaged chunk", path, offset);
    let entry = Entry::parse_head(chunk, offset).ok_or_else(broken)?;
    let end = CHUNK_BYTES + entry.data_bytes as usize;
    let data = chunk.get(CHUNK_BYTES..end).ok_or_else(broken)?;
    match u32_at(chunk, end) {
        Some(crc) if crc == crc32c(&chunk[..end]) => Ok((entry, data)),
        _ => Err(broken()),
    }
}

fn parse_footer(footer: &[u8]) -> Option<Index> {
    let mut at = IDENTITY_BYTES + 8;
    let mut groups = Vec::new();
    for _ in 0..u32_at(footer, IDENTITY_BYTES + 4)? {
        let length = u32_at(footer, at + 4)? as usize;
        let data = footer.get(at + 8..(at + 8).checked_add(length)?)?;
        groups.push((u32_at(footer, at)?, GroupInfo::parse(data)?));
        at += 8 + length;
    }
    let entries = footer.get(at + 4..)?.chunks_exact(ENTRY_BYTES);
    if entries.len() != u32_at(footer, at)? as usize {
        return None;
    }
    Some(Index {
        identity: parse_identity(footer)?,
        schema_crc: u32_at(footer, IDENTITY_BYTES)?,
        footer_crc: crc32c(footer),
        groups,
        entries: entries.map(Entry::parse).collect::<Option<_>>()?,
        damage: Vec::new(),
    })
}

/// Goes through the chunks of a file whose tail, footer or both are damaged.
fn rebuild(file: &dyn ReadFile, path: &Path, reason: &Error) -> Result<Index> {
    let bytes = read_all(file).map_err(|e| Error::io("read file", path, e))?;
    let identity = parse_head(&bytes, path);
    if let Some(version) = identity.as_ref().err().filter(|e| e.kind == Kind::Version) {
        return Err(Error::new(Kind::Version, version.message.clone()).at(path));
    }
    let mut index = Index {
        identity: identity.unwrap_or_default(),
        schema_crc: 0,
        footer_crc: 0,
        groups: Vec::new(),
        entries: Vec::new(),
        damage: Vec::new(),
    };
    let mut at = HEAD_BYTES.min(bytes.len());
    let mut good_until = at;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(skip) = rest.windows(4).position(|w| w == CHUNK_MAGIC) else {
            break;
        };
        at += skip;
        let Ok((entry, data)) = parse_chunk(&bytes[at..], at as u64, path) else {
            at += 1;
            continue;
        };
        if at > good_until {
            index.damage.push(gap(good_until, at));
        }
        at += entry.chunk_bytes() as usize;
        good_until = at;
        if entry.kind == GROUP {
            index
                .groups
                .extend(GroupInfo::parse(data).map(|g| (entry.group, g)));
        }
        if entry.kind != FOOTER {
            index.entries.push(entry);
        }
    }
    if index.groups.is_empty() {
        return Err(damaged(
            reason.message.clone(),
            path,
            reason.offset.unwrap_or(0),
        ));
    }
    let end = bytes.len().max(good_until + 1);
    index.damage.push(LogDamage {
        reason: reason.message.clone(),
        ..gap(good_until.min(bytes.len()), end)
    });
    Ok(index)
}

fn gap(from: usize, to: usize) -> LogDamage {
    let what = "damaged chunk".to_string();
    damage_of(from as u64, (to - from) as u64, what)
}

fn read_schema(
    file: &dyn ReadFile,
    path: &Path,
    index: &Index,
    schemas: &mut Schemas,
) -> Result<Arc<Schema>> {
    if let Some(known) = schemas.0.get(&index.schema_crc) {
        return Ok(known.clone());
    }
    let entry = index.entries.iter().find(|e| e.kind == SCHEMA);
    let entry = entry.ok_or_else(|| damaged("sealed file without a schema", path, 0))?;
    let chunk = read_exactly(file, path, entry.offset, entry.chunk_bytes() as usize)?;
    let (entry, data) = parse_chunk(&chunk, entry.offset, path)?;
    let plain = codec::decompress(data, entry.plain_bytes)?;
    let frame = Frame::parse(&plain)?.ok_or_else(|| damaged("incomplete schema", path, 0))?;
    let schema = Arc::new(hello::read_schema(&frame.all_sections()?)?);
    schemas.0.insert(schema_crc(&plain), schema.clone());
    Ok(schema)
}

impl Shared {
    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self) -> Result<&[Entry]> {
        if let Some(known) = self.entries.get() {
            return Ok(known);
        }
        let bytes = self.file.bytes();
        let bytes = bytes.map_err(|e| Error::io("read file", &self.path, e))?;
        let index = read_footer(&*self.file, &self.path, bytes)?;
        if index.footer_crc != self.footer_crc {
            let what = "file that was written anew while it was read";
            return Err(damaged(what, &self.path, 0));
        }
        Ok(self.entries.get_or_init(|| index.entries))
    }

    /// The chunk of a column; of several the last counts.
    fn column(&self, key: Key) -> Result<Option<&Entry>> {
        let entries = self.entries()?;
        let columns = self.columns.get_or_init(|| {
            let columns = entries.iter().filter(|e| e.kind == COLUMN);
            let columns = columns.map(|e| ((e.group, e.table, e.column), *e));
            let mut columns: Vec<(Key, Entry)> = columns.collect();
            columns.sort_by_key(|c| c.0);
            columns
        });
        let end = columns.partition_point(|c| c.0 <= key);
        let found = columns[..end].last().filter(|found| found.0 == key);
        Ok(found.map(|found| &found.1))
    }

    /// Data of a chunk whose checksum is right and which is what it should be.
    fn data(&self, entry: &Entry) -> Result<Vec<u8>> {
        let bytes = usize::try_from(entry.chunk_bytes());
        let bytes =
            bytes.map_err(|_| damaged("chunk that is too long", &self.path, entry.offset))?;
        let mut chunk = read_exactly(&*self.file, &self.path, entry.offset, bytes)?;
        let (found, _) = parse_chunk(&chunk, entry.offset, &self.path)?;
        let same = Entry {
            min: entry.min,
            max: entry.max,
            ..found
        };
        if same != *entry {
            return Err(damaged(
                "chunk that is not the one in the footer",
                &self.path,
                entry.offset,
            ));
        }
        chunk.truncate(bytes - 4);
        chunk.drain(..CHUNK_BYTES);
        Ok(chunk)
    }
}

/// The columns of a group and of the dictionaries.
struct GroupSource {
    shared: Arc<Shared>,
    group: u32,
    rows: Vec<(u8, u32)>,
}

fn rows_of(rows: &[(u8, u32)], table: u8) -> Option<usize> {
    let found = rows.iter().find(|r| r.0 == table);
    found.map(|r| r.1 as usize)
}

impl GroupSource {
    /// Group that holds a table, and its rows.
    fn place(&self, id: u8) -> (u32, usize) {
        match rows_of(&self.rows, id) {
            Some(rows) => (self.group, rows),
            None => (0, rows_of(&self.shared.rows, id).unwrap_or(0)),
        }
    }

    fn key(&self, table: usize, column: usize) -> Option<Key> {
        let def = self.shared.schema.tables.get(table)?;
        let (group, _) = self.place(def.id);
        Some((group, def.id, def.columns.get(column)?.id))
    }

    fn column(&self, table: usize, column: usize, depth: u8) -> Result<Option<Column>> {
        let Some(key) = self.key(table, column) else {
            return Ok(None);
        };
        let shared = &self.shared;
        if let Some(known) = shared.cache().ints.get(&key) {
            return Ok(Some(known.clone()));
        }
        let Some(entry) = shared.column(key)? else {
            return Ok(None);
        };
        let at = |mut error: Error| {
            error.path.get_or_insert_with(|| shared.path.clone());
            error.offset.get_or_insert(entry.offset);
            error
        };
        self.check_rows(entry).map_err(at)?;
        let data = shared.data(entry)?;
        let values = self.decode(table, entry, &data, depth).map_err(at)?;
        let def = &shared.schema.tables[table].columns[column];
        if !def.are_sensible(&values) {
            return Err(at(Error::damaged("column with impossible times")));
        }
        let column = Column(Arc::new(values));
        shared.cache().ints.insert(key, column.clone());
        Ok(Some(column))
    }

    /// Data and rows of a column of table `run` in one of some codings, with
    /// the coding before it.
    fn coded(&self, name: &str, codings: &[u8]) -> Option<(Vec<u8>, usize)> {
        let (table, column) = self.shared.schema.column(RUN, name)?;
        let entry = self.shared.column(self.key(table, column)?).ok()??;
        if !codings.contains(&entry.coding) {
            return None;
        }
        self.check_rows(entry).ok()?;
        let mut data = vec![entry.coding];
        data.extend(self.shared.data(entry).ok()?);
        Some((data, entry.rows as usize))
    }

    fn check_rows(&self, entry: &Entry) -> Result<()> {
        let (_, rows) = self.place(entry.table);
        match entry.rows as usize == rows && rows <= MAX_ROWS {
            true => Ok(()),
            false => Err(Error::damaged(
                "column with another number of rows than its table",
            )),
        }
    }

    /// A column this one was rewritten against; zeros when it is left out.
    fn base(&self, table: usize, column: usize, depth: u8) -> Result<Column> {
        if depth >= MAX_DEPTH {
            return Err(Error::damaged("column that is rewritten against itself"));
        }
        let found = self.column(table, column, depth + 1)?;
        Ok(found.unwrap_or_else(|| Column(Arc::new(vec![0; self.rows(table)]))))
    }

    /// Table and column that data begins with.
    fn base_place(&self, data: &[u8]) -> Option<(usize, usize)> {
        let schema = &self.shared.schema;
        let table = schema.index_of_id(*data.first()?)?;
        Some((table, schema.tables[table].index_of_id(*data.get(1)?)?))
    }

    fn decode(&self, table: usize, entry: &Entry, data: &[u8], depth: u8) -> Result<Vec<i64>> {
        let rows = entry.rows as usize;
        if !matches!(entry.coding, codec::STARTS | codec::GAPS | codec::OFFSET) {
            return codec::decode_values(entry.coding, data, rows);
        }
        let broken = || Error::damaged("column that is rewritten against nothing");
        let schema = &self.shared.schema;
        let (base_table, base_column) = self.base_place(data).ok_or_else(broken)?;
        let base_def = &schema.tables[base_table];
        let base = self.base(base_table, base_column, depth)?;
        let mut coded = codec::decode_ints(data.get(2..).unwrap_or(&[]), rows)?;
        if entry.coding == codec::OFFSET {
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
        if entry.coding == codec::GAPS {
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
        let def = self.shared.schema.tables.get(table);
        let ty = def.and_then(|d| d.columns.get(column)).map(|c| c.ty);
        match ty {
            Some(ColumnType::Bytes) | None => Ok(None),
            Some(_) => self.column(table, column, 0),
        }
    }

    fn bytes(&self, table: usize, column: usize) -> Result<Option<BytesColumn>> {
        let Some(key) = self.key(table, column) else {
            return Ok(None);
        };
        let shared = &self.shared;
        if let Some(known) = shared.cache().strings.get(&key) {
            return Ok(Some(known.clone()));
        }
        let Some(entry) = shared.column(key)? else {
            return Ok(None);
        };
        if entry.coding != codec::STRINGS {
            return Ok(None);
        }
        self.check_rows(entry)?;
        let data = shared.data(entry)?;
        let strings: Strings =
            codec::decode_strings(&data, entry.plain_bytes, entry.rows as usize)?;
        let column = BytesColumn(Arc::new(strings));
        shared.cache().strings.insert(key, column.clone());
        Ok(Some(column))
    }

    fn spans(&self, column: &str) -> Option<Vec<Span>> {
        let (coded, rows) = self.coded(column, &AS_SPANS)?;
        codec::spans(&coded, rows)
    }

    fn stretches(&self) -> Option<Vec<Stretch>> {
        let (sessions, ticks) = (self.spans("session")?, self.spans("ticks")?);
        let (gaps, rows) = self.coded("first_tick", &[codec::GAPS])?;
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
        let bounds = entry.map_or((0, 0), |entry| (entry.min, entry.max));
        (bounds != (i64::MIN, i64::MAX)).then_some(bounds)
    }

    fn release(&self, shared: bool) {
        let group = if shared { 0 } else { self.group };
        let mut cache = self.shared.cache();
        let released = cache.ints.extract_if(|key, _| key.0 == group);
        released.for_each(|(_, column)| codec::recycle(column));
        cache.strings.retain(|key, _| key.0 != group);
    }
}
