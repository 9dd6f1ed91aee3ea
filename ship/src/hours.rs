//! Which hours of a node are over and sealed, and what is known of them: the
//! number of their ticks and markers, which merging and thinning do not change,
//! and to which what comes late or back adds some.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use tacho_tape::error::Kind;
use tacho_tape::format::schema::STATS;
use tacho_tape::query::middle_us;
use tacho_tape::{Error, Part, Result};

/// Milliseconds of an hour.
pub const HOUR_MS: i64 = 3_600_000;
/// A pass over the statistics speaks of two hours at most, so that it comes no
/// later than this after the middle of its interval.
const LATE_MS: i64 = HOUR_MS;
/// Tables whose rows have a time of their own.
pub const TIMED: [&str; 6] = [
    "marker",
    "server",
    "server_database",
    "server_replica",
    "server_slot",
    "server_io",
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
pub struct Counted {
    before: HashMap<Key, Counts>,
    /// Of this look.
    now: HashMap<Key, Counts>,
}

/// The hour of a time in ms.
pub fn hour_of(ms: i64) -> i64 {
    ms.div_euclid(HOUR_MS)
}

/// What was found by a look at the parts of a node.
#[derive(Default)]
pub struct Closed {
    /// Ticks and markers of the hours that are over and sealed.
    pub counts: Counts,
    /// No hour before this one can become over and sealed any more.
    pub end: i64,
    /// What could not be counted, and counts nothing.
    pub damage: Vec<Error>,
}

impl Counted {
    /// The hours that are over and sealed.
    ///
    /// # Errors
    /// Something could not be read that may be readable later.
    pub fn closed(&mut self, parts: &[&Part], now_ms: i64) -> Result<Closed> {
        let mut closed = Closed::default();
        for part in parts.iter().filter(|part| !part.info().open) {
            match self.of(part) {
                Ok(counts) => {
                    for (hour, count) in counts {
                        *closed.counts.entry(hour).or_default() += count;
                    }
                }
                Err(error) if is_lasting(&error) => closed.damage.push(error),
                Err(error) => return Err(error),
            }
        }
        let open = parts.iter().filter(|part| part.info().open);
        let open = open
            .map(|part| earliest_ms(part))
            .collect::<Result<Vec<_>>>()?;
        let ends = [now_ms, settled_ms(parts, now_ms)?].into_iter();
        let end = ends.chain(open.into_iter().flatten()).min();
        closed.end = hour_of(end.unwrap_or(now_ms));
        closed.counts.retain(|hour, _| *hour < closed.end);
        Ok(closed)
    }

    /// Forgets the parts that were not asked for since this was called last.
    pub fn forget_others(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    fn of(&mut self, part: &Part) -> Result<Counts> {
        let info = part.info();
        let key = Key {
            file: info.file.clone(),
            group: info.group,
            ticks: (info.first_tick, info.last_tick),
        };
        let known = self.now.get(&key).or_else(|| self.before.get(&key));
        let counts = match known {
            Some(known) => known.clone(),
            None => count(part).inspect(|_| part.release())?,
        };
        if !info.file.as_os_str().is_empty() {
            self.now.insert(key, counts.clone());
        }
        Ok(counts)
    }
}

/// Reading again leads to the same, until somebody repairs it.
pub fn is_lasting(error: &Error) -> bool {
    error.is_damage() || error.kind == Kind::Version
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

/// The earliest time of a row of a part, ms; `None` without rows.
fn earliest_ms(part: &Part) -> Result<Option<i64>> {
    Ok(ranges(part)?.into_iter().map(|range| range.0).min())
}

/// The latest time of a row of a part, ms, or a later one; `None` without rows.
///
/// # Errors
/// They could not be read, and may be readable later.
pub fn latest_ms(part: &Part) -> Result<Option<i64>> {
    Ok(ranges(part)?.into_iter().map(|range| range.1).max())
}

/// Of which times the rows of each table of a part are.
fn ranges(part: &Part) -> Result<Vec<(i64, i64)>> {
    let with_ticks = part.min_ms() <= part.max_ms();
    let mut ranges = Vec::new();
    ranges.extend(with_ticks.then(|| (part.min_ms(), part.max_ms())));
    for table in TIMED {
        ranges.extend(range(part, table)?);
    }
    ranges.extend(statements_ms(part)?);
    Ok(ranges)
}

/// No statistics will come whose interval has its middle before this, ms: a pass
/// was made then, and the next one begins where it ended; or it is too long ago.
fn settled_ms(parts: &[&Part], now_ms: i64) -> Result<i64> {
    let mut last = now_ms.saturating_sub(LATE_MS);
    let mut newest = Vec::new();
    for part in parts {
        newest.extend(range(part, STATS)?.map(|range| (range.1, *part)));
    }
    newest.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    for (time, part) in newest {
        if time <= last {
            break;
        }
        match last_pass_ms(part, now_ms) {
            Ok(pass) => last = pass.map_or(last, |pass| pass.max(last)),
            // It is told when its hour is made.
            Err(error) if is_lasting(&error) => (),
            Err(error) => return Err(error),
        }
    }
    Ok(last)
}

/// When the last pass was made, ms, of which all is recorded: its last row is
/// without an entry. One behind `now_ms` is of a clock that was set back.
fn last_pass_ms(part: &Part, now_ms: i64) -> Result<Option<i64>> {
    let (entry, time) = (part.ints(STATS, "entry")?, part.ints(STATS, "time")?);
    let passes = entry.iter().zip(time.iter());
    let passes = passes.filter(|(entry, time)| **entry == 0 && **time <= now_ms);
    let last = passes.map(|(_, time)| *time).max();
    part.release();
    Ok(last)
}

/// The least and the greatest time of the rows of a table, or wider where they are
/// damaged: reading the rows tells it then.
///
/// # Errors
/// They could not be read, and may be readable later.
pub fn range(part: &Part, table: &str) -> Result<Option<(i64, i64)>> {
    match part.range(table, "time") {
        Err(error) if is_lasting(&error) => Ok(Some(around(part))),
        range => range,
    }
}

/// Of which times rows may be that were recorded with the ticks of a part.
fn around(part: &Part) -> (i64, i64) {
    match part.min_ms() <= part.max_ms() {
        true => (
            part.min_ms().saturating_sub(LATE_MS),
            part.max_ms().saturating_add(LATE_MS),
        ),
        false => (i64::MIN, i64::MAX),
    }
}

/// The same as [`range`] of the middles of the intervals of statistics, or wider.
///
/// # Errors
/// They could not be read, and may be readable later.
pub fn statements_ms(part: &Part) -> Result<Option<(i64, i64)>> {
    let Some((first, last)) = range(part, STATS)? else {
        return Ok(None);
    };
    let longest = match part.range(STATS, "elapsed_ms") {
        Err(error) if is_lasting(&error) => None,
        range => range?,
    };
    let longest = longest.map_or(2 * LATE_MS, |range| range.1);
    Ok(Some((middle_us(first, longest).div_euclid(1_000), last)))
}
