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
    /// The first hour that is held back, and why.
    pub held: Option<(i64, Wait)>,
    /// What could not be counted, and counts nothing.
    pub damage: Vec<Error>,
}

/// What an hour waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Its end.
    End,
    /// Statistics of statements that may still be recorded.
    Statistics,
    /// The end of a log that somebody writes.
    Log(PathBuf),
}

impl Counted {
    /// The hours that are over and sealed. A log counts as sealed unless somebody
    /// writes logs.
    ///
    /// # Errors
    /// Something could not be read that may be readable later.
    pub fn closed(&mut self, parts: &[&Part], now_ms: i64, are_written: bool) -> Result<Closed> {
        let mut closed = Closed::default();
        let is_open = |part: &&&Part| are_written && part.info().open;
        for part in parts.iter().filter(|part| !is_open(part)) {
            let counts = self.of(part, &mut closed.damage)?;
            for (hour, count) in counts {
                *closed.counts.entry(hour).or_default() += count;
            }
        }
        let mut waits = vec![(now_ms, Wait::End)];
        for part in parts.iter().filter(is_open) {
            let file = || Wait::Log(part.info().file.to_path_buf());
            waits.extend(earliest_ms(part)?.map(|ms| (ms, file())));
        }
        waits.push((settled_ms(parts, now_ms)?, Wait::Statistics));
        closed.end(waits);
        Ok(closed)
    }

    /// Forgets the parts that were not asked for since this was called last.
    pub fn forget_others(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// Counts a part; what is damaged of it counts nothing, and is told.
    fn of(&mut self, part: &Part, damage: &mut Vec<Error>) -> Result<Counts> {
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
        // Rows are added to a log, and what is damaged may be repaired.
        let stays = !info.open && damage.len() == before && !info.file.as_os_str().is_empty();
        if stays {
            self.now.insert(key, counts.clone());
        }
        Ok(counts)
    }
}

impl Closed {
    /// Leaves the hours before the first that waits for something. Each wait holds
    /// back the hour of its time and later ones; the first in the list is told.
    fn end(&mut self, waits: Vec<(i64, Wait)>) {
        let hours = || waits.iter().map(|(ms, _)| hour_of(*ms));
        self.end = hours().min().unwrap_or(self.end);
        let later = self.counts.split_off(&self.end);
        let of_logs = waits
            .iter()
            .filter(|(_, wait)| matches!(wait, Wait::Log(_)));
        let of_logs = of_logs.map(|(ms, _)| hour_of(*ms));
        let Some(first) = later.into_keys().chain(of_logs).min() else {
            return;
        };
        let mut waits = waits.into_iter();
        let wait = waits.find(|(ms, _)| hour_of(*ms) <= first);
        self.held = wait.map(|(_, wait)| (first, wait));
    }
}

/// Reading again leads to the same, until somebody repairs it.
pub fn is_lasting(error: &Error) -> bool {
    error.is_damage() || error.kind == Kind::Version
}

/// Most hours that a part may be of whose ticks cannot be read: it is of a day.
const MOST_HOURS: i64 = 48;

/// Ticks and markers of a part by hour. What of them is damaged counts nothing, and
/// is told; the hours of such ticks are there all the same.
///
/// # Errors
/// They could not be read, and may be readable later.
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

/// What was read; `None` when it is damaged, which is told.
fn unless_damaged<T>(read: Result<T>, damage: &mut Vec<Error>) -> Result<Option<T>> {
    match read {
        Err(error) if is_lasting(&error) => {
            damage.push(error);
            Ok(None)
        }
        read => read.map(Some),
    }
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
