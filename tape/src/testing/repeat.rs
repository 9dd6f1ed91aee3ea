//! Repeats a day or an hour of history, for benchmarks. Chunks are copied; only columns with ticks
//! or times are rewritten.

use crate::error::{Error, Result};
use crate::files::directory::{Kind, Numbers};
use crate::files::storage::Storage;
use crate::format::codec;
use crate::format::coding::{GAPS, OFFSET, STARTS};
use crate::format::entry::{COLUMN, Entry, GROUP, INDEX, SCHEMA};
use crate::format::part::Part;
use crate::format::schema::ColumnType;
use crate::format::sealed_write::{BlockWriter, GroupInfo};
use crate::store::sealed_read::{BlockFile, Schemas};
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;

/// Distance of a copy from its original in time and in ticks. The time is in whole minutes.
struct Shift {
    ms: i64,
    ticks: i64,
}

/// Replaces a sealed file by `days` copies with the numbers after it. The last copy has the same
/// day, the others have the days before.
///
/// # Errors
/// The file could not be read or written.
pub fn repeat_day(storage: &dyn Storage, number: u64, days: u64) -> Result<()> {
    repeat(storage, &[number], days, DAY_MS)
}

/// Replaces sealed files by `times` copies of all of them, with the numbers after the last file.
/// `numbers` ascend. The last copy has the original times; each copy before it is `period_ms`
/// (whole minutes) earlier.
///
/// # Errors
/// A file could not be read or written.
pub fn repeat(storage: &dyn Storage, numbers: &[u64], times: u64, period_ms: i64) -> Result<()> {
    let blocks: Vec<BlockFile> = numbers
        .iter()
        .map(|n| opened(storage, *n))
        .collect::<Result<_>>()?;
    let parts: Vec<Vec<Part>> = blocks.iter().map(|block| block.parts().collect()).collect();
    let all = || parts.iter().flatten();
    let first = all().map(Part::first_tick).min().unwrap_or(0);
    let last = all().map(Part::last_tick).max().unwrap_or(0);
    let mut number = numbers.last().copied().unwrap_or(0);
    for time in 1..=times {
        let shift = Shift {
            ms: (time as i64 - times as i64) * period_ms,
            ticks: (time * (last - first + 1)) as i64,
        };
        for (block, parts) in blocks.iter().zip(&parts) {
            number += 1;
            copy(storage, block, parts, Numbers::one(number), &shift)?;
        }
    }
    numbers.iter().try_for_each(|number| {
        let name = Numbers::one(*number).name(Kind::Sealed);
        let removed = storage.remove(&name);
        removed.map_err(|e| Error::io("remove file", &storage.directory().join(&name), e))
    })
}

fn opened(storage: &dyn Storage, number: u64) -> Result<BlockFile> {
    let name = Numbers::one(number).name(Kind::Sealed);
    let path = storage.directory().join(&name);
    let file = storage.open(&name);
    let file = file.map_err(|e| Error::io("open file", &path, e))?;
    BlockFile::open_whole(file, &path, &mut Schemas::default())
}

fn copy(
    storage: &dyn Storage,
    block: &BlockFile,
    parts: &[Part],
    numbers: Numbers,
    shift: &Shift,
) -> Result<()> {
    let Some(any) = parts.first() else {
        return Ok(());
    };
    let name = numbers.name(Kind::Sealed);
    let path = storage.directory().join(&name);
    let file = storage.create(&name);
    let file = file.map_err(|e| Error::io("create file", &path, e))?;
    let schema = Arc::new(any.schema().clone());
    let identity = block.identity().clone();
    let mut writer = BlockWriter::new(identity, schema, file, path)?;
    for chunk in block.chunks() {
        let (entry, data) = chunk?;
        let part = parts.iter().find(|p| p.info().group == entry.group);
        match entry.kind {
            SCHEMA | INDEX => (),
            GROUP => {
                let info = GroupInfo::parse(&data);
                let info = info.ok_or_else(|| Error::damaged("damaged chunk"))?;
                writer.group_info(entry.group, &shift.group(info))?;
            }
            _ => {
                let (entry, data) = shift.column(part.unwrap_or(any), entry, data)?;
                writer.stored(entry, &data)?;
            }
        }
    }
    writer.end()?;
    parts.iter().for_each(Part::release);
    Ok(())
}

impl Shift {
    fn group(&self, mut info: GroupInfo) -> GroupInfo {
        if info.first_tick <= info.last_tick {
            info.first_tick += self.ticks as u64;
            info.last_tick += self.ticks as u64;
            info.min_ms += self.ms;
            info.max_ms += self.ms;
        }
        info
    }

    /// A column with its times and ticks moved. Columns stored relative to others stay as they are.
    fn column(&self, part: &Part, entry: Entry, data: Vec<u8>) -> Result<(Entry, Vec<u8>)> {
        let schema = part.schema();
        let table = schema.index_of_id(entry.table);
        let column = table.and_then(|t| schema.tables[t].index_of_id(entry.column));
        let (Some(t), Some(c)) = (table, column) else {
            return Ok((entry, data));
        };
        let (table, column) = (&schema.tables[t], &schema.tables[t].columns[c]);
        let by = match column.name.as_str() {
            _ if entry.kind != COLUMN || matches!(entry.coding, GAPS | OFFSET | STARTS) => 0,
            "tick" | "at" | "first_tick" => self.ticks,
            "minute" => self.ms / 60_000,
            "last_slot_ms" | "vcpus_slot_ms" => self.ms,
            _ if column.ty == ColumnType::Time => self.ms,
            _ => 0,
        };
        if by == 0 {
            return Ok((entry, data));
        }
        let values = part.ints(&table.name, &column.name)?;
        let moved = values.iter().map(|v| if *v == 0 { 0 } else { v + by });
        let mut coded = Vec::new();
        codec::encode_ints(&mut coded, &moved.collect::<Vec<i64>>())?;
        let moved = Entry {
            coding: coded[0],
            min: if entry.min == 0 { 0 } else { entry.min + by },
            max: if entry.max == 0 { 0 } else { entry.max + by },
            ..entry
        };
        Ok((moved, coded.split_off(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::part::Identity;
    use crate::format::part_builder::PartBuilder;
    use crate::store::snapshot::Snapshot;
    use crate::testing::memory::MemoryStorage;
    use crate::testing::schema;
    use crate::write::seal::write_sealed;

    #[test]
    fn a_repeated_day_differs_in_ticks_and_times_only() {
        let storage = MemoryStorage::new();
        let mut b = PartBuilder::new(Arc::new(schema().with_runs())).unwrap();
        let session = [("pid", 7), ("category", 1)];
        let session = b.intern("session", &session).unwrap();
        for tick in 5..25 {
            let times = ("slot_time", 9 * DAY_MS + 1_000 * tick);
            let values = [("tick", tick), times, ("interval_ms", 1_000)];
            b.row("tick", &values).unwrap();
            let state = ("state", 1 + tick / 9 % 2);
            b.sample(tick as u64, session, &[state]).unwrap();
        }
        write_sealed(&storage, 1, b, Identity::default(), Default::default()).unwrap();
        repeat_day(&storage, 1, 3).unwrap();
        let store = Snapshot::open_storage(&storage).unwrap();
        assert_eq!(store.damage(), []);
        let parts: Vec<&Part> = store.parts(0).collect();
        assert_eq!(parts.len(), 3);
        for (day, part) in parts.iter().enumerate() {
            let day = day as i64;
            let (ticks, ms) = (20 * (day + 1), DAY_MS * (day + 7));
            assert_eq!(part.first_tick() as i64, 5 + ticks);
            assert_eq!(part.max_ms(), 24_000 + ms);
            let column = |table: &str, name: &str| part.ints(table, name).unwrap().to_vec();
            let firsts = [5, 9, 18].map(|tick| tick + ticks);
            assert_eq!(column("run", "first_tick"), firsts);
            assert_eq!(column("run", "ticks"), [4, 9, 7]);
            assert_eq!(column("tick", "slot_time")[0], 5_000 + ms);
            assert_eq!(column("minute", "minute"), [1_440 * (day + 7)]);
            assert_eq!(column("minute", "sum_ms"), [11_000]);
        }
    }
}
