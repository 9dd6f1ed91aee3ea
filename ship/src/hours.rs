//! Finds the hours of a node that are over and sealed, and counts their ticks and
//! markers. Merging and thinning do not change the counts. Rows that come late, or
//! come back after a repair, increase them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use tacho_tape::error::Kind;
use tacho_tape::format::schema::STATS;
use tacho_tape::query::middle_us;
use tacho_tape::{Error, Part, Result};

/// Milliseconds of an hour.
pub const HOUR_MS: i64 = 3_600_000;
/// An hour may have rows in parts whose ticks are up to this many ms from it.
pub const NEAR_MS: i64 = 24 * HOUR_MS;
/// A pass over the statistics covers at most two hours. It is therefore made at most this many ms
/// after the middle of its interval.
const LATE_MS: i64 = HOUR_MS;
/// Tables whose rows have a time of their own.
pub const TIMED: [&str; 7] = [
    "marker",
    "server",
    "server_database",
    "server_replica",
    "server_slot",
    "server_io",
    "server_disk",
];

/// Number of ticks and markers by hour since 1970.
pub type Counts = BTreeMap<i64, u64>;

/// Identifies a part of a file that does not change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    file: Arc<PathBuf>,
    group: u32,
    ticks: (u64, u64),
}

/// Counts of the parts that were read.
#[derive(Default)]
pub struct TickCounts {
    before: HashMap<Key, Counts>,
    /// Parts of the current look.
    now: HashMap<Key, Counts>,
}

/// The hour of a time in ms.
pub fn hour_of(ms: i64) -> i64 {
    ms.div_euclid(HOUR_MS)
}

/// Result of a look at the parts of a node.
#[derive(Default)]
pub struct Closed {
    /// Ticks and markers of the hours that are over and sealed.
    pub counts: Counts,
    /// The first hour that is not closed. All hours before it are closed or will never have ticks.
    pub end: i64,
    /// The first hour that has ticks and is held back, and the reason.
    pub held: Option<(i64, HoldReason)>,
    /// Damage that kept rows from being counted.
    pub damage: Vec<Error>,
}

/// Reason why an hour is held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// The hour is not over.
    End,
    /// Statistics of statements may still be recorded.
    Statistics,
    /// A log is still being written.
    Log(PathBuf),
}

impl TickCounts {
    /// The hours that are over and sealed. `are_written`: some process writes the
    /// logs; otherwise a log counts as sealed.
    ///
    /// # Errors
    /// A file could not be read; a later attempt may succeed.
    pub fn closed(&mut self, parts: &[&Part], now_ms: i64, are_written: bool) -> Result<Closed> {
        let mut closed = Closed::default();
        let is_open = |part: &&&Part| are_written && part.info().open;
        for part in parts.iter().filter(|part| !is_open(part)) {
            let counts = self.counts_of(part, &mut closed.damage)?;
            for (hour, count) in counts {
                *closed.counts.entry(hour).or_default() += count;
            }
        }
        let mut waits = vec![(now_ms, HoldReason::End)];
        for part in parts.iter().filter(is_open) {
            let file = || HoldReason::Log(part.info().file.to_path_buf());
            waits.extend(earliest_ms(part)?.map(|ms| (ms, file())));
        }
        waits.push((settled_ms(parts, now_ms)?, HoldReason::Statistics));
        closed.end(waits);
        Ok(closed)
    }

    /// Forgets the parts that were not used since the last call.
    pub fn forget_others(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// Counts the rows of a part. Damaged rows count nothing and add to `damage`.
    fn counts_of(&mut self, part: &Part, damage: &mut Vec<Error>) -> Result<Counts> {
        let info = part.info();
        let key = Key {
            file: info.file.clone(),
            group: info.group,
            ticks: (info.first_tick, info.last_tick),
        };
        let known = self.now.get(&key).or_else(|| self.before.get(&key));
        if let Some(known) = known.cloned() {
            self.now.insert(key, known.clone());
            return Ok(known);
        }
        let before = damage.len();
        let counts = count(part, damage)?;
        part.release();
        // A log gets more rows, and damage may be repaired: neither is remembered.
        let stays = !info.open && damage.len() == before && !info.file.as_os_str().is_empty();
        if stays {
            self.now.insert(key, counts.clone());
        }
        Ok(counts)
    }
}

impl Closed {
    /// Keeps the hours before the first one that must wait. Each wait holds back
    /// the hour of its time and all later hours. `held` gets the first wait of the
    /// list that applies.
    fn end(&mut self, waits: Vec<(i64, HoldReason)>) {
        let hours = || waits.iter().map(|(ms, _)| hour_of(*ms));
        self.end = hours().min().unwrap_or(self.end);
        let later = self.counts.split_off(&self.end);
        let of_logs = waits
            .iter()
            .filter(|(_, wait)| matches!(wait, HoldReason::Log(_)));
        let of_logs = of_logs.map(|(ms, _)| hour_of(*ms));
        let Some(first) = later.into_keys().chain(of_logs).min() else {
            return;
        };
        let mut waits = waits.into_iter();
        let wait = waits.find(|(ms, _)| hour_of(*ms) <= first);
        self.held = wait.map(|(_, wait)| (first, wait));
    }
}

/// True if another attempt would fail as well, because the file is damaged or has
/// another format version.
pub fn is_lasting(error: &Error) -> bool {
    error.is_damage() || error.kind == Kind::Version
}

/// A part whose ticks cannot be read has fewer hours than this, or its times are wrong; a part has
/// a day at most.
const MOST_HOURS: i64 = 48;

/// Counts ticks and markers of a part by hour. Damaged ones count nothing and add
/// to `damage`; the hours of damaged ticks are listed nevertheless, with 0.
///
/// # Errors
/// A file could not be read; a later attempt may succeed.
pub fn count(part: &Part, damage: &mut Vec<Error>) -> Result<Counts> {
    let mut counts = Counts::new();
    let (first, last) = (hour_of(part.min_ms()), hour_of(part.max_ms()));
    let ticks = part.rows("tick") as u64;
    if first == last && ticks > 0 {
        counts.insert(first, ticks);
    } else if let Some(slots) = unless_damaged(part.ints("tick", "slot_time"), damage)? {
        for slot in slots.iter() {
            *counts.entry(hour_of(*slot)).or_default() += 1;
        }
    } else if last - first < MOST_HOURS {
        counts.extend((first..=last).map(|hour| (hour, 0)));
    }
    let markers = unless_damaged(part.ints("marker", "time"), damage)?;
    for time in markers.iter().flat_map(|times| times.iter()) {
        *counts.entry(hour_of(*time)).or_default() += 1;
    }
    Ok(counts)
}

/// The value that was read. `None` if the file is damaged: then the error is added to `damage`.
fn unless_damaged<T>(read: Result<T>, damage: &mut Vec<Error>) -> Result<Option<T>> {
    match read {
        Err(error) if is_lasting(&error) => {
            damage.push(error);
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// Time of the part's earliest row, ms since 1970; `None` without rows.
fn earliest_ms(part: &Part) -> Result<Option<i64>> {
    Ok(ranges(part)?.into_iter().map(|range| range.0).min())
}

/// Time of the part's latest row or a later time, ms since 1970; `None` without rows.
///
/// # Errors
/// A file could not be read; a later attempt may succeed.
pub fn latest_ms(part: &Part) -> Result<Option<i64>> {
    Ok(ranges(part)?.into_iter().map(|range| range.1).max())
}

/// First and last time of the rows of each table, ms since 1970.
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

/// Time in ms before which the statistics are complete: no later pass has the middle
/// of its interval before it. Either a pass ended then, and the next one begins there,
/// or the time is more than `LATE_MS` ago.
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
            // The damage is reported when the hour is made.
            Err(error) if is_lasting(&error) => (),
            Err(error) => return Err(error),
        }
    }
    Ok(last)
}

/// Time of the last pass that is recorded completely, ms since 1970; `None` without one. The last
/// row of such a pass has no entry. A pass after `now_ms` is left out, because the clock was set
/// back.
fn last_pass_ms(part: &Part, now_ms: i64) -> Result<Option<i64>> {
    let (entry, time) = (part.ints(STATS, "entry")?, part.ints(STATS, "time")?);
    let passes = entry.iter().zip(time.iter());
    let passes = passes.filter(|(entry, time)| **entry == 0 && **time <= now_ms);
    let last = passes.map(|(_, time)| *time).max();
    part.release();
    Ok(last)
}

/// First and last time of a table's rows; wider if the times are damaged. Reading
/// the rows reports the damage.
///
/// # Errors
/// A file could not be read; a later attempt may succeed.
pub fn range(part: &Part, table: &str) -> Result<Option<(i64, i64)>> {
    match part.range(table, "time") {
        Err(error) if is_lasting(&error) => Ok(Some(around(part))),
        range => range,
    }
}

/// Widest range of times of rows that were recorded with the ticks of a part.
fn around(part: &Part) -> (i64, i64) {
    match part.min_ms() <= part.max_ms() {
        true => (
            part.min_ms().saturating_sub(LATE_MS),
            part.max_ms().saturating_add(LATE_MS),
        ),
        false => (i64::MIN, i64::MAX),
    }
}

/// First and last time of the middles of the statistics' intervals, or wider.
///
/// # Errors
/// A file could not be read; a later attempt may succeed.
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
