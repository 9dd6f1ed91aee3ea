//! Sealed files: a head, chunks, a footer, a tail. A chunk holds the schema, the bounds of a group,
//! or one column of a table of a group. Group 0 holds the dictionaries, which all groups share.
//!
//! The footer lists the chunks of group 0, and the index before it lists the chunks of the other
//! groups. Every chunk has a description of itself and a checksum, so footer and index can be
//! rebuilt from the chunks.
//!
//! A sealed file of the writer has one group. A file of many groups has the same format.

use crate::crc::crc32c;
use crate::error::{Error, Result};
use crate::files::storage::AppendFile;
use crate::format::bytes::{u32_at, u64_at};
use crate::format::codec;
use crate::format::coding;
use crate::format::entry::{CHUNK_BYTES, COLUMN, Entry, FOOTER, GROUP, INDEX, PACK, SCHEMA};
use crate::format::frame::{FrameBuilder, HELLO};
use crate::format::hello;
use crate::format::log::{IDENTITY_BYTES, encode_identity};
use crate::format::numbers;
use crate::format::packs::{Packs, pack_of};
use crate::format::part::{Identity, PartInfo};
use crate::format::schema::{ColumnType, RUN, Schema};
use crate::format::table::{Data, Table};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) const HEAD_MAGIC: [u8; 4] = [0xF1, 0x54, 0x43, 0x54];
pub(crate) const TAIL_MAGIC: [u8; 4] = [0xF1, 0x54, 0x43, 0x45];
/// Version of the format that is written. Readers accept versions 1 to this one.
pub(crate) const VERSION: u8 = 3;
/// Length of the head in bytes.
pub(crate) const HEAD_BYTES: usize = 44;
/// Length of the tail in bytes.
pub(crate) const TAIL_BYTES: usize = 20;
/// Maximum number of rows of a table in a group.
pub(crate) const MAX_ROWS: usize = 1 << 25;

/// Description of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupInfo {
    pub(crate) first_tick: u64,
    pub(crate) last_tick: u64,
    pub(crate) min_ms: i64,
    pub(crate) max_ms: i64,
    pub(crate) lost_definitions: u64,
    pub(crate) dropped_rows: u64,
    pub(crate) statements_ms: u64,
    /// The frames that the group was made of.
    pub(crate) frames: FrameRange,
    /// Number of rows by id of the table.
    pub(crate) rows: Vec<(u8, u32)>,
}

/// The frames of one life of the sampler that a group was made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameRange {
    /// Life of the sampler; 0 if the rows did not come in frames.
    pub incarnation: u64,
    /// Sequence of the first frame.
    pub first: u64,
    /// Sequence of the last frame.
    pub last: u64,
    /// Number that is added to the tick numbers of the frames.
    pub tick_base: u64,
}

const GROUP_FIELDS: usize = 11;
/// Minimum length of a group's description in bytes.
pub(crate) const GROUP_BYTES: usize = GROUP_FIELDS * 8;

impl GroupInfo {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let fields: [u64; GROUP_FIELDS] = [
            self.first_tick,
            self.last_tick,
            self.min_ms as u64,
            self.max_ms as u64,
            self.lost_definitions,
            self.dropped_rows,
            self.frames.incarnation,
            self.frames.first,
            self.frames.last,
            self.frames.tick_base,
            self.statements_ms,
        ];
        for field in fields {
            out.extend_from_slice(&field.to_le_bytes());
        }
        for (table, rows) in &self.rows {
            out.push(*table);
            out.extend_from_slice(&rows.to_le_bytes());
        }
        out
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<GroupInfo> {
        let field = |i: usize| u64_at(bytes, i * 8);
        let tables = bytes.get(GROUP_BYTES..)?.chunks_exact(5);
        let mut rows = Vec::with_capacity(tables.len());
        for table in tables {
            rows.push((table[0], u32_at(table, 1)?));
        }
        Some(GroupInfo {
            first_tick: field(0)?,
            last_tick: field(1)?,
            min_ms: field(2)? as i64,
            max_ms: field(3)? as i64,
            lost_definitions: field(4)?,
            dropped_rows: field(5)?,
            statements_ms: field(10)?,
            frames: FrameRange {
                incarnation: field(6)?,
                first: field(7)?,
                last: field(8)?,
                tick_base: field(9)?,
            },
            rows,
        })
    }
}

/// Number of bytes that are collected before a write.
const PENDING_BYTES: usize = 1 << 18;

/// Writes a sealed file from start to end.
pub struct BlockWriter {
    file: Box<dyn AppendFile>,
    path: PathBuf,
    pending: Vec<u8>,
    schema: Arc<Schema>,
    identity: Identity,
    offset: u64,
    entries: Vec<Entry>,
    groups: Vec<(u32, Vec<u8>)>,
    schema_crc: u32,
    /// The packs of the current group.
    packs: Packs,
}

/// The schema as a frame, which its chunk contains.
pub(crate) fn schema_frame(schema: &Schema) -> Vec<u8> {
    let mut frame = FrameBuilder::new(HELLO, 0, 0, 0);
    hello::write_schema(&mut frame, schema);
    frame.finish()
}

/// The checksum at the end of a schema's frame, which tells schemas apart. (A checksum over the
/// whole frame would be the same for all frames.)
pub(crate) fn schema_crc(frame: &[u8]) -> u32 {
    crc32c(&frame[..frame.len().saturating_sub(4)])
}

/// Result of writing a sealed file.
pub type Written = Result<()>;

impl BlockWriter {
    /// Writes the head and the schema to a new file. `path` is for messages. The schema has table
    /// `run`.
    ///
    /// # Errors
    /// The bytes could not be written.
    pub fn new(
        identity: Identity,
        schema: Arc<Schema>,
        file: Box<dyn AppendFile>,
        path: PathBuf,
    ) -> Result<Self> {
        let mut head = HEAD_MAGIC.to_vec();
        head.extend_from_slice(&[VERSION, HEAD_BYTES as u8, 0, 0]);
        encode_identity(&mut head, &identity);
        let crc = crc32c(&head);
        head.extend_from_slice(&crc.to_le_bytes());
        let frame = schema_frame(&schema);
        let mut writer = BlockWriter {
            file,
            path,
            pending: Vec::new(),
            schema,
            identity,
            offset: 0,
            entries: Vec::new(),
            groups: Vec::new(),
            schema_crc: schema_crc(&frame),
            packs: Packs::default(),
        };
        writer.write(&head)?;
        let schema = Entry {
            kind: SCHEMA,
            ..Entry::default()
        };
        writer.packed(schema, &frame)?;
        Ok(writer)
    }

    /// Writes a chunk that is not a column, compressed with zstd.
    fn packed(&mut self, mut entry: Entry, plain: &[u8]) -> Written {
        let (data, plain_bytes) = codec::compress(plain)?;
        entry.plain_bytes = plain_bytes;
        self.chunk(entry, &data)
    }

    fn write(&mut self, bytes: &[u8]) -> Written {
        self.offset += bytes.len() as u64;
        self.pending.extend_from_slice(bytes);
        match self.pending.len() >= PENDING_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Written {
        let written = self.file.append(&self.pending);
        self.pending.clear();
        written.map_err(|e| Error::io("write file", &self.path, e))
    }

    /// Writes a group: every table that is not a dictionary.
    ///
    /// # Errors
    /// The bytes could not be written.
    pub(crate) fn group(
        &mut self,
        info: &PartInfo,
        frames: FrameRange,
        tables: &[Table],
    ) -> Written {
        let number = self.groups.len() as u32 + 1;
        let own = |t: &usize| !self.is_shared(*t);
        let chosen: Vec<usize> = (0..tables.len()).filter(own).collect();
        self.tables(number, &chosen, tables)?;
        let group = GroupInfo {
            first_tick: info.first_tick,
            last_tick: info.last_tick,
            min_ms: info.min_ms,
            max_ms: info.max_ms,
            lost_definitions: info.lost_definitions,
            dropped_rows: info.dropped_rows,
            statements_ms: info.statements_ms,
            frames,
            rows: self.rows(&chosen, tables),
        };
        self.group_info(number, &group)
    }

    /// Writes dictionaries, totals, index, footer and tail, and syncs the file. Returns its length
    /// in bytes.
    ///
    /// # Errors
    /// The bytes could not be written.
    pub(crate) fn finish(mut self, tables: &[Table]) -> Result<u64> {
        let shared = |t: &usize| self.is_shared(*t);
        let chosen: Vec<usize> = (0..tables.len()).filter(shared).collect();
        self.tables(0, &chosen, tables)?;
        let group = GroupInfo {
            rows: self.rows(&chosen, tables),
            ..GroupInfo::default()
        };
        self.group_info(0, &group)?;
        self.end()
    }

    /// Writes index, footer and tail, and syncs the file. Returns its length in bytes.
    pub(crate) fn end(mut self) -> Result<u64> {
        let of_groups = self.entries.extract_if(.., |e| e.group != 0);
        let mut index = Vec::new();
        of_groups.for_each(|entry| entry.encode(&mut index));
        if !index.is_empty() {
            let entry = Entry {
                kind: INDEX,
                ..Entry::default()
            };
            self.packed(entry, &index)?;
        }
        let footer = self.footer();
        let at = self.offset;
        // The footer is not compressed: zstd would slow down opening many files.
        let entry = Entry {
            kind: FOOTER,
            ..Entry::default()
        };
        self.chunk(entry, &footer)?;
        let mut tail = TAIL_MAGIC.to_vec();
        tail.extend_from_slice(&((self.offset - at) as u32).to_le_bytes());
        tail.extend_from_slice(&at.to_le_bytes());
        let crc = crc32c(&tail);
        tail.extend_from_slice(&crc.to_le_bytes());
        self.write(&tail)?;
        self.flush()?;
        let synced = self.file.sync();
        synced.map_err(|e| Error::io("synchronize file", &self.path, e))?;
        Ok(self.offset)
    }

    fn is_shared(&self, table: usize) -> bool {
        self.schema.is_dictionary(table) || self.schema.is_totals(table)
    }

    fn rows(&self, chosen: &[usize], tables: &[Table]) -> Vec<(u8, u32)> {
        let used = chosen.iter().filter(|&&t| tables[t].rows > 0);
        used.map(|&t| (self.schema.tables[t].id, tables[t].rows as u32))
            .collect()
    }

    /// Writes the packs and the description of a group.
    pub(crate) fn group_info(&mut self, number: u32, group: &GroupInfo) -> Written {
        for (pack, plain) in self.packs.take() {
            let entry = Entry {
                kind: PACK,
                column: pack,
                group: number,
                ..Entry::default()
            };
            self.packed(entry, &plain)?;
        }
        let data = group.encode();
        let entry = Entry {
            kind: GROUP,
            group: number,
            ..Entry::default()
        };
        self.chunk(entry, &data)?;
        self.groups.push((number, data));
        Ok(())
    }

    fn tables(&mut self, group: u32, chosen: &[usize], tables: &[Table]) -> Written {
        for &t in chosen {
            if tables[t].rows > MAX_ROWS {
                let name = &self.schema.tables[t].name;
                return Err(Error::damaged(format!(
                    "table \"{name}\" has too many rows"
                )));
            }
            for column in 0..tables[t].columns.len() {
                self.column(group, t, column, tables)?;
            }
        }
        Ok(())
    }

    fn column(&mut self, group: u32, t: usize, c: usize, tables: &[Table]) -> Written {
        let def = &self.schema.tables[t];
        let mut entry = Entry {
            kind: COLUMN,
            table: def.id,
            column: def.columns[c].id,
            group,
            rows: tables[t].rows as u32,
            ..Entry::default()
        };
        match &tables[t].columns[c] {
            Data::Ints(values) => {
                let (min, max) = bounds(values);
                if (min, max) == (0, 0) {
                    return Ok(());
                }
                (entry.min, entry.max) = (min, max);
                let coded = self.code(t, c, values, tables)?;
                entry.coding = coded[0];
                self.stored(entry, &coded[1..])
            }
            Data::Bytes(strings) if !strings.data.is_empty() => {
                entry.coding = coding::STRINGS;
                let plain = codec::encode_strings(strings);
                match self.pack(&entry, &plain) {
                    true => Ok(()),
                    false => self.packed(entry, &plain),
                }
            }
            _ => Ok(()),
        }
    }

    /// Puts a column into its pack. Returns false if it is too large or its table has none.
    fn pack(&mut self, entry: &Entry, data: &[u8]) -> bool {
        let table = self.schema.index_of_id(entry.table);
        let pack = table.and_then(|table| pack_of(&self.schema, table));
        pack.is_some_and(|pack| self.packs.add(pack, entry, data))
    }

    /// Writes a coded column of numbers, or a column as it was read.
    pub(crate) fn stored(&mut self, entry: Entry, data: &[u8]) -> Written {
        match entry.plain_bytes == 0 && self.pack(&entry, data) {
            true => Ok(()),
            false => self.chunk(entry, data),
        }
    }

    /// Coding byte and data of a column of numbers.
    fn code(&self, t: usize, c: usize, values: &[i64], tables: &[Table]) -> Result<Vec<u8>> {
        let mut coded = Vec::new();
        if let Some(derived) = derive(&self.schema, t, c, values, tables) {
            coded.push(derived.coding);
            coded.extend_from_slice(&derived.base);
            codec::encode_ints(&mut coded, &derived.values)?;
        } else if self.is_unsorted_reference(t, c) {
            codec::encode_references(&mut coded, values)?;
        } else if self.schema.is_totals(t) {
            codec::encode_paged(&mut coded, values)?;
        } else {
            codec::encode_ints(&mut coded, values)?;
        }
        if pack_of(&self.schema, t).is_some() && !codec::is_rewritten(coded[0]) {
            numbers::shorten(&mut coded, values);
        }
        Ok(coded)
    }

    /// True if the column has references in no order. Runs are sorted by session, so their other
    /// references are unordered.
    fn is_unsorted_reference(&self, t: usize, c: usize) -> bool {
        let (table, column) = (&self.schema.tables[t], &self.schema.tables[t].columns[c]);
        table.name == RUN && column.ty == ColumnType::Ref && column.name != "session"
    }

    fn chunk(&mut self, mut entry: Entry, data: &[u8]) -> Written {
        entry.offset = self.offset;
        entry.data_bytes =
            u32::try_from(data.len()).map_err(|_| Error::damaged("column is larger than 4 GiB"))?;
        let mut chunk = Vec::with_capacity(CHUNK_BYTES + data.len() + 4);
        entry.encode_head(&mut chunk);
        chunk.extend_from_slice(data);
        let crc = crc32c(&chunk);
        chunk.extend_from_slice(&crc.to_le_bytes());
        self.write(&chunk)?;
        self.entries.push(entry);
        Ok(())
    }

    fn footer(&self) -> Vec<u8> {
        let mut out = Vec::new();
        encode_identity(&mut out, &self.identity);
        debug_assert_eq!(out.len(), IDENTITY_BYTES);
        out.extend_from_slice(&self.schema_crc.to_le_bytes());
        out.extend_from_slice(&(self.groups.len() as u32).to_le_bytes());
        for (number, data) in &self.groups {
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&(data.len() as u32).to_le_bytes());
            out.extend_from_slice(data);
        }
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        for entry in &self.entries {
            entry.encode(&mut out);
        }
        out
    }
}

/// The least and the greatest number; zeros for an empty column.
fn bounds(values: &[i64]) -> (i64, i64) {
    let Some((&first, rest)) = values.split_first() else {
        return (0, 0);
    };
    rest.iter().fold((first, first), |(min, max), &value| {
        (min.min(value), max.max(value))
    })
}

/// A column rewritten relative to others, which makes its numbers smaller.
struct Derived {
    coding: u8,
    /// Ids of table and column of the base.
    base: Vec<u8>,
    values: Vec<i64>,
}

/// Rules for rewriting: (table, column, coding, base table, base column).
const DERIVED: [(&str, &str, u8, &str, &str); 7] = [
    (RUN, "query_start", coding::STARTS, "tick", "taken_at"),
    (RUN, "xact_start", coding::STARTS, RUN, "query_start"),
    (RUN, "state_change", coding::STARTS, RUN, "query_start"),
    (RUN, "xmin", coding::STARTS, "tick", "next_xid"),
    (RUN, "xid", coding::STARTS, "tick", "next_xid"),
    (RUN, "first_tick", coding::GAPS, "tick", "tick"),
    ("tick", "taken_at", coding::OFFSET, "tick", "slot_time"),
];

fn derive(
    schema: &Schema,
    t: usize,
    c: usize,
    values: &[i64],
    tables: &[Table],
) -> Option<Derived> {
    let def = &schema.tables[t];
    let rule = |r: &&(&str, &str, u8, &str, &str)| r.0 == def.name && r.1 == def.columns[c].name;
    let &(_, _, coding, base_table, base_column) = DERIVED.iter().find(rule)?;
    let (bt, bc) = schema.column(base_table, base_column)?;
    let all = |t: usize, c: usize| tables[t].ints(c);
    let base = all(bt, bc);
    let values = match coding {
        coding::OFFSET => {
            let pairs = values.iter().zip(&*base);
            pairs.map(|(v, b)| v.wrapping_sub(*b)).collect()
        }
        coding::GAPS => {
            let sessions = all(t, def.index("session")?);
            let lengths = all(t, def.index("ticks")?);
            codec::gaps(values, &sessions, &lengths, base.first().copied()?)
        }
        _ => {
            let sessions = all(t, def.index("session")?);
            let base = if bt == t {
                base
            } else {
                let first = all(t, def.index("first_tick")?);
                let (_, number) = schema.column("tick", "tick")?;
                at_ticks(&first, &all(bt, number), &base).into()
            };
            codec::starts(values, &sessions, &base)?
        }
    };
    Some(Derived {
        coding,
        base: vec![schema.tables[bt].id, schema.tables[bt].columns[bc].id],
        values,
    })
}

/// The value in a column of table `tick` for each of these ticks; 0 for a missing tick. `numbers`
/// ascend.
pub(crate) fn at_ticks(ticks: &[i64], numbers: &[i64], values: &[i64]) -> Vec<i64> {
    let mut next = 0;
    let mut value = |tick: &i64| {
        // The next tick is tried first, because the ticks of a session are mostly consecutive.
        let row = match numbers.get(next) {
            Some(number) if number == tick => Ok(next),
            _ => numbers.binary_search(tick),
        };
        let row = row.ok()?;
        next = row + 1;
        values.get(row).copied()
    };
    ticks.iter().map(|t| value(t).unwrap_or(0)).collect()
}
