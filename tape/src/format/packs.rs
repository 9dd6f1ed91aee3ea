//! Packs: the small columns of some tables of a group in one chunk. Most columns of ten minutes are
//! shorter than the overhead of a chunk: head, checksum, entry in the index.

use crate::format::coding::STRINGS;
use crate::format::entry::{COLUMN, Entry};
use crate::format::numbers::{put_number, take_number, unzigzag, zigzag};
use crate::format::schema::{PLAN_STATS, RUN, STATS, Schema};
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum length of a column in a pack, in bytes. A longer column has a chunk of its own, so
/// readers of a large file read only the columns that they need.
const SMALL_BYTES: usize = 1 << 10;
/// Maximum length of a pack before compression, in bytes.
pub(crate) const PACK_BYTES: u32 = 1 << 19;
/// Contents of each pack, by number from 1 on.
pub(crate) const PACKS: [&str; 6] = [
    "dictionaries",
    "totals",
    "statistics of statements",
    "texts",
    "ticks",
    "measurements",
];

/// The pack for the small columns of a table. Runs have none: if one of their columns is damaged,
/// the others are kept.
pub(crate) fn pack_of(schema: &Schema, table: usize) -> Option<u8> {
    match schema.tables[table].name.as_str() {
        RUN => None,
        "text" => Some(4),
        "tick" => Some(5),
        STATS | PLAN_STATS => Some(3),
        _ if schema.is_dictionary(table) => Some(1),
        _ if schema.is_totals(table) => Some(2),
        _ => Some(6),
    }
}

/// The packs of a group that is being written, by number.
#[derive(Default)]
pub(crate) struct Packs(BTreeMap<u8, Packing>);

#[derive(Default)]
struct Packing {
    columns: usize,
    directory: Vec<u8>,
    data: Vec<u8>,
}

impl Packs {
    /// Adds a column; returns false if it is too large.
    pub(crate) fn add(&mut self, pack: u8, entry: &Entry, data: &[u8]) -> bool {
        let packing = self.0.entry(pack).or_default();
        let bytes = packing.directory.len() + packing.data.len();
        let is_full = bytes + SMALL_BYTES + 64 > PACK_BYTES as usize;
        if data.len() > SMALL_BYTES || is_full {
            return false;
        }
        packing.columns += 1;
        let out = &mut packing.directory;
        out.extend_from_slice(&[entry.table, entry.column, entry.coding]);
        put_number(out, u64::from(entry.rows));
        put_number(out, data.len() as u64);
        if entry.coding != STRINGS {
            put_number(out, zigzag(entry.min));
            put_number(out, zigzag(entry.max));
        }
        packing.data.extend_from_slice(data);
        true
    }

    /// The packs of a group, each with its number and bytes.
    pub(crate) fn take(&mut self) -> Vec<(u8, Vec<u8>)> {
        let packs = std::mem::take(&mut self.0).into_iter();
        let packs = packs.filter(|(_, packing)| packing.columns > 0);
        let plain = |packing: Packing| {
            let mut plain = Vec::new();
            put_number(&mut plain, packing.columns as u64);
            plain.extend_from_slice(&packing.directory);
            plain.extend_from_slice(&packing.data);
            plain
        };
        packs
            .map(|(pack, packing)| (pack, plain(packing)))
            .collect()
    }
}

/// A pack that was read.
#[derive(Default)]
pub(crate) struct Pack {
    plain: Vec<u8>,
    /// Columns in the pack with the places of their data, sorted by table and column.
    columns: Vec<(Entry, Range<usize>)>,
    /// Length in bytes before the data.
    pub(crate) directory_bytes: usize,
}

impl Pack {
    /// Memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.plain.capacity() + self.columns.capacity() * size_of::<(Entry, Range<usize>)>()
    }

    /// Parses a pack's bytes. Its columns get the offset of the pack's chunk. `None` if they are
    /// invalid.
    pub(crate) fn parse(plain: Vec<u8>, chunk: &Entry) -> Option<Pack> {
        let mut rest = &plain[..];
        let count = take_number(&mut rest)?;
        let mut columns = Vec::new();
        let mut end = 0usize;
        for _ in 0..count {
            let (&[table, column, coding], after) = rest.split_first_chunk()?;
            rest = after;
            let rows = u32::try_from(take_number(&mut rest)?).ok()?;
            let begin = end;
            end = begin.checked_add(usize::try_from(take_number(&mut rest)?).ok()?)?;
            let mut entry = Entry {
                kind: COLUMN,
                coding,
                table,
                column,
                rows,
                data_bytes: (end - begin).try_into().ok()?,
                plain_bytes: 0,
                min: i64::MIN,
                max: i64::MAX,
                ..*chunk
            };
            if coding != STRINGS {
                entry.min = unzigzag(take_number(&mut rest)?);
                entry.max = unzigzag(take_number(&mut rest)?);
            }
            columns.push((entry, begin..end));
        }
        if end != rest.len() {
            return None;
        }
        let directory_bytes = plain.len() - rest.len();
        for (_, range) in &mut columns {
            *range = range.start + directory_bytes..range.end + directory_bytes;
        }
        columns.sort_by_key(|(entry, _)| (entry.table, entry.column));
        Some(Pack {
            plain,
            columns,
            directory_bytes,
        })
    }

    /// Finds a column by the ids of table and column.
    pub(crate) fn find(&self, table: u8, column: u8) -> Option<(Entry, Range<usize>)> {
        let key = |(entry, _): &(Entry, Range<usize>)| (entry.table, entry.column);
        let found = self.columns.binary_search_by_key(&(table, column), key);
        found.ok().map(|at| self.columns[at].clone())
    }

    /// All columns with their data.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (Entry, &[u8])> {
        let columns = self.columns.iter();
        columns.map(|(entry, range)| (*entry, &self.plain[range.clone()]))
    }

    /// The bytes at a range from [`Pack::find`].
    pub(crate) fn data(&self, range: Range<usize>) -> &[u8] {
        &self.plain[range]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::entry::PACK;

    #[test]
    fn a_pack_gives_back_its_columns_and_refuses_large_ones() {
        let entry = |table, column, coding| Entry {
            kind: COLUMN,
            coding,
            table,
            column,
            group: 3,
            rows: 300,
            min: if coding == STRINGS { i64::MIN } else { -5 },
            max: i64::MAX,
            ..Entry::default()
        };
        let mut packs = Packs::default();
        assert!(packs.add(2, &entry(9, 4, 1), b"abc"));
        assert!(packs.add(2, &entry(9, 2, STRINGS), b""));
        assert!(packs.add(1, &entry(8, 1, 2), &[7; SMALL_BYTES]));
        assert!(!packs.add(1, &entry(8, 2, 2), &[7; SMALL_BYTES + 1]));
        let taken = packs.take();
        assert_eq!(taken.iter().map(|pack| pack.0).collect::<Vec<_>>(), [1, 2]);
        assert!(packs.take().is_empty());
        let plain = taken[1].1.clone();
        // Number, then ids, coding, rows in two bytes, length, bounds; strings have no bounds.
        assert_eq!(plain.len(), 1 + (3 + 2 + 1 + 1 + 10) + (3 + 2 + 1) + 3);
        let chunk = Entry {
            kind: PACK,
            group: 3,
            offset: 77,
            ..Entry::default()
        };
        for end in 0..plain.len() {
            assert!(Pack::parse(plain[..end].to_vec(), &chunk).is_none());
        }
        let pack = Pack::parse(plain, &chunk).unwrap();
        let (found, range) = pack.find(9, 4).unwrap();
        let expected = Entry {
            offset: 77,
            data_bytes: 3,
            ..entry(9, 4, 1)
        };
        assert_eq!((found, pack.data(range)), (expected, &b"abc"[..]));
        assert!(pack.find(9, 3).is_none());
        let columns: Vec<u8> = pack.columns().map(|c| c.0.column).collect();
        assert_eq!(columns, [2, 4]);
    }
}
