//! Which hours of a node are over and sealed, and what is known of them. An
//! hour's generation is the number of its ticks and markers: merging and thinning
//! change neither, and what comes late or back adds some.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use tacho_tape::query::middle_us;
use tacho_tape::schema::STATS;
use tacho_tape::{Part, Result};

/// Milliseconds of an hour.
pub const HOUR_MS: i64 = 3_600_000;
/// A pass over the statistics speaks of two hours at most, so that it comes no
/// later than this after the middle of its interval.
const LATE_MS: i64 = HOUR_MS;
/// Tables whose rows have a time of their own.
pub const TIMED: [&str; 5] = [
    "marker",
    "server",
    "server_database",
    "server_replica",
    "server_slot",
];

/// Ticks and markers by hour.
pub type Counts = BTreeMap<i64, u64>;

/// A part of a file that does not change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    file: Arc<PathBuf>,
    group: u32,
    ticks: (u64, u64),
}

/// Counts of the parts that were looked through.
#[derive(Default)]
pub struct Counted(HashMap<Key, Counts>);

/// The hour of a time in ms.
pub fn hour_of(ms: i64) -> i64 {
    ms.div_euclid(HOUR_MS)
}

impl Counted {
    /// The hours that are over and sealed, and their generations. A part that
    /// cannot be read counts nothing.
    pub fn closed(&mut self, parts: &[&Part], now_ms: i64) -> Counts {
        let mut counts = Counts::new();
        for part in parts.iter().filter(|part| !part.info().open) {
            for (hour, count) in self.of(part).unwrap_or_default() {
                *counts.entry(hour).or_default() += count;
            }
        }
        let open = parts.iter().filter(|part| part.info().open);
        let open = open.filter_map(|part| earliest_ms(part)).min();
        let end = [now_ms, settled_ms(parts, now_ms)].into_iter().chain(open);
        let end = end.min().unwrap_or(now_ms);
        counts.retain(|hour, _| (hour + 1).saturating_mul(HOUR_MS) <= end);
        counts
    }

    fn of(&mut self, part: &Part) -> Result<Counts> {
        let info = part.info();
        let key = Key {
            file: info.file.clone(),
            group: info.group,
            ticks: (info.first_tick, info.last_tick),
        };
        if let Some(known) = self.0.get(&key) {
            return Ok(known.clone());
        }
        let counts = count(part)?;
        part.release();
        if !info.file.as_os_str().is_empty() {
            self.0.insert(key, counts.clone());
        }
        Ok(counts)
    }
}

/// Ticks and markers of a part by hour.
///
/// # Errors
/// They are damaged.
pub fn count(part: &Part) -> Result<Counts> {
    let mut counts = Counts::new();
    let (first, last) = (hour_of(part.min_ms()), hour_of(part.max_ms()));
    if first == last {
        counts.insert(first, part.rows("tick") as u64);
    } else {
        for slot in part.ints("tick", "slot_time")?.iter() {
            *counts.entry(hour_of(*slot)).or_default() += 1;
        }
    }
    for time in part.ints("marker", "time")?.iter() {
        *counts.entry(hour_of(*time)).or_default() += 1;
    }
    counts.retain(|_, count| *count > 0);
    Ok(counts)
}

/// The earliest time of a row of a part, ms; `None` without rows, or when they
/// cannot be read: then all may be.
fn earliest_ms(part: &Part) -> Option<i64> {
    let ticks = (part.min_ms() <= part.max_ms()).then(|| part.min_ms());
    let timed = TIMED.iter().map(|table| range(part, table).map(|r| r.0));
    let of_statements = statements_ms(part).map(|r| r.0);
    timed.chain([ticks, of_statements]).flatten().min()
}

/// No statistics will come whose interval has its middle before this, ms: a pass
/// was made then, and the next one begins where it ended; or it is too long ago.
fn settled_ms(parts: &[&Part], now_ms: i64) -> i64 {
    let mut last = now_ms.saturating_sub(LATE_MS);
    let parts = parts.iter().copied();
    let newest = parts.filter_map(|part| Some((range(part, STATS)?.1, part)));
    let mut newest: Vec<(i64, &Part)> = newest.collect();
    newest.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    for (time, part) in newest {
        if time <= last {
            break;
        }
        // What cannot be read tells nothing; it is told when its hour is made.
        last = last.max(last_pass_ms(part, now_ms).unwrap_or(last));
    }
    last
}

/// When the last pass was made, ms, of which all is recorded: its last row is
/// without an entry. One behind `now_ms` is of a clock that was set back.
fn last_pass_ms(part: &Part, now_ms: i64) -> Option<i64> {
    let (entry, time) = (part.ints(STATS, "entry"), part.ints(STATS, "time"));
    let (entry, time) = (entry.ok()?, time.ok()?);
    let passes = entry.iter().zip(time.iter());
    let passes = passes.filter(|(entry, time)| **entry == 0 && **time <= now_ms);
    let last = passes.map(|(_, time)| *time).max();
    part.release();
    last
}

/// The least and the greatest time of the rows of a table.
pub fn range(part: &Part, table: &str) -> Option<(i64, i64)> {
    match part.range(table, "time") {
        Ok(range) => range,
        // Let it be read, so that the damage is told.
        Err(_) => Some((i64::MIN, i64::MAX)),
    }
}

/// The same of the middles of the intervals of statistics, or wider.
pub fn statements_ms(part: &Part) -> Option<(i64, i64)> {
    let (first, last) = range(part, STATS)?;
    let longest = part.range(STATS, "elapsed_ms").ok().flatten();
    let longest = longest.map_or(HOUR_MS, |range| range.1);
    Some((middle_us(first, longest).div_euclid(1_000), last))
}
