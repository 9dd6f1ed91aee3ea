//! Adds up the counters of statements by entry and bucket. A row has the counts of an entry in the
//! `elapsed_ms` before `time`. The whole row counts in the bucket with the middle of this interval.
//! A row without an entry means that the interval was recorded completely.

use crate::format::part::Part;
use crate::format::schema::{ColumnType, HISTOGRAM_BUCKETS, LONG_BUCKETS, STATS, Schema};
use crate::query::ask::damage::Damage;
use crate::query::rows::keys::View;
use crate::query::rows::parse::Window;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::filter::Filter;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Identifies a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryKey {
    /// Query id; `None` for the sum of evicted entries.
    pub query_id: Option<i64>,
    /// Name of the database.
    pub database: Option<String>,
    /// Name of the role.
    pub username: Option<String>,
    /// True if executed as a top-level statement.
    pub toplevel: bool,
}

impl EntryKey {
    /// A column's value as text, for filters.
    fn text(&self, column: &str) -> Option<String> {
        match column {
            "query_id" => self.query_id.map(|id| id.to_string()),
            "database" => self.database.clone(),
            "username" => self.username.clone(),
            _ => Some(self.toplevel.to_string()),
        }
    }
}

/// Filters by column.
pub type Filters = Vec<(String, Filter)>;

/// A counter of the catalog.
#[derive(Clone, Debug)]
pub struct Counter {
    /// Column of the table.
    pub name: String,
    /// True if the counter is a duration in units of 10 µs.
    pub is_time: bool,
}

/// The counters of a catalog: sums, sums of squares, buckets of the histogram.
pub fn counters(catalog: &Schema) -> Vec<Counter> {
    let table = catalog.table(STATS);
    let columns = table.map_or(&[][..], |t| t.columns.as_slice());
    let counter = |c: &&crate::format::schema::ColumnDef| {
        !["time", "elapsed_ms", "entry"].contains(&c.name.as_str())
    };
    let columns = columns.iter().filter(counter);
    columns
        .map(|c| Counter {
            name: c.name.clone(),
            is_time: c.ty == ColumnType::Span,
        })
        .collect()
}

/// One sum for each counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums(pub Vec<i64>);

impl Sums {
    /// Adds `other`. A sum that would overflow stays at the largest number.
    pub fn add(&mut self, other: &Sums) {
        for (to, from) in self.0.iter_mut().zip(&other.0) {
            *to = to.saturating_add(*from);
        }
    }
}

/// The recorded time of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Sum of the intervals that count in it.
    pub elapsed_ms: i64,
    /// The longest of these intervals.
    pub grain_ms: i64,
    /// Length of the part of the bucket that intervals cover.
    pub covered_us: i64,
}

/// Adds up the rows of parts.
pub struct Stats<'a> {
    /// The window, half-open.
    pub window: Window,
    /// The counters to add up.
    pub counters: Vec<Counter>,
    /// Filters of entries.
    pub filters: Filters,
    /// Turns bytes in an encoding into text.
    pub decode: fn(i64, &[u8]) -> String,
    /// Takes the damage that is found.
    pub damage: &'a Damage,
    /// Set to end the query.
    pub cancel: &'a AtomicBool,
}

/// Sums by key and bucket, and the recorded time of each bucket.
#[derive(Default)]
pub struct SumsByEntry {
    /// By number of the key and index of the bucket.
    pub sums: HashMap<(u32, u32), Sums>,
    /// By index of the bucket.
    pub recorded: Vec<Recorded>,
}

impl Stats<'_> {
    /// Adds up the rows of one node's parts. `number` maps an entry to the number for its sums.
    pub fn sums<'p>(
        &self,
        parts: impl IntoIterator<Item = &'p Part>,
        buckets: &Buckets,
        mut number: impl FnMut(EntryKey) -> u32,
    ) -> QueryResult<SumsByEntry> {
        let mut found = SumsByEntry {
            recorded: vec![Recorded::default(); buckets.len()],
            ..SumsByEntry::default()
        };
        for part in parts {
            self.check_cancel()?;
            if self.damage.note_and_continue(self.overlaps(part))? == Some(true) {
                let added = self.add_part(part, buckets, &mut number, &mut found);
                self.damage.note_and_continue(added)?;
                part.release();
            }
        }
        self.damage.check()?;
        Ok(found)
    }

    /// True if the filters accept a statement.
    pub fn wants(&self, key: &EntryKey) -> bool {
        let accepts =
            |(column, filter): &(String, Filter)| filter.accepts(key.text(column).as_deref());
        self.filters.iter().all(accepts)
    }

    pub(super) fn check_cancel(&self) -> QueryResult<()> {
        match self.cancel.load(Ordering::Relaxed) {
            true => Err(QueryError::canceled()),
            false => Ok(()),
        }
    }

    /// True if the part may have rows of the window.
    pub(super) fn overlaps(&self, part: &Part) -> QueryResult<bool> {
        let Some((first, last)) = part.range(STATS, "time")? else {
            return Ok(false);
        };
        let (_, longest) = part.range(STATS, "elapsed_ms")?.unwrap_or_default();
        let begin = first.saturating_sub(longest).saturating_mul(1000);
        Ok(begin < self.window.until && last.saturating_mul(1000) >= self.window.since)
    }

    /// Number of each entry by reference; `None` if the filters refuse it.
    pub(super) fn entries(
        &self,
        part: &Part,
        number: &mut impl FnMut(EntryKey) -> u32,
    ) -> QueryResult<Vec<Option<u32>>> {
        let view = View::new(part, self.decode);
        let column = |name: &str| part.ints("entry", name);
        let (query_id, toplevel) = (column("query_id")?, column("toplevel")?);
        let (database, username) = (column("database")?, column("username")?);
        let mut numbers = vec![None];
        for row in 0..query_id.len() {
            let key = EntryKey {
                query_id: Some(query_id[row]).filter(|id| *id != 0),
                database: view.name(database[row])?,
                username: view.name(username[row])?,
                toplevel: toplevel[row] != 0,
            };
            numbers.push(self.wants(&key).then(|| number(key)));
        }
        Ok(numbers)
    }

    fn add_part(
        &self,
        part: &Part,
        buckets: &Buckets,
        number: &mut impl FnMut(EntryKey) -> u32,
        found: &mut SumsByEntry,
    ) -> QueryResult<()> {
        let (time, elapsed) = (part.ints(STATS, "time")?, part.ints(STATS, "elapsed_ms")?);
        let entry = part.ints(STATS, "entry")?;
        let entries = self.entries(part, number)?;
        let mut cells: Vec<((u32, u32), Sums)> = Vec::new();
        let mut known: HashMap<(u32, u32), usize> = HashMap::new();
        let mut rows: Vec<(usize, usize)> = Vec::new();
        for row in 0..time.len() {
            if entry[row] == 0 {
                record(buckets, time[row], elapsed[row], &mut found.recorded);
                continue;
            }
            let index = usize::try_from(entry[row]).unwrap_or(usize::MAX);
            let Some(number) = entries.get(index).copied().flatten() else {
                continue;
            };
            let Some(bucket) = buckets.index(middle_us(time[row], elapsed[row])) else {
                continue;
            };
            let key = (number, bucket as u32);
            let cell = *known.entry(key).or_insert_with(|| {
                cells.push((key, Sums(vec![0; self.counters.len()])));
                cells.len() - 1
            });
            rows.push((row, cell));
        }
        for (c, counter) in self.counters.iter().enumerate() {
            self.check_cancel()?;
            if part.range(STATS, &counter.name)? == Some((0, 0)) {
                continue;
            }
            let values = part.ints(STATS, &counter.name)?;
            for &(row, cell) in &rows {
                let sum = &mut cells[cell].1.0[c];
                *sum = sum.saturating_add(values[row]);
            }
        }
        for (key, sums) in cells {
            let width = self.counters.len();
            let total = found.sums.entry(key);
            total.or_insert_with(|| Sums(vec![0; width])).add(&sums);
        }
        Ok(())
    }
}

/// The middle of a row's interval, µs.
pub fn middle_us(time_ms: i64, elapsed_ms: i64) -> i64 {
    time_ms
        .saturating_mul(1000)
        .saturating_sub(elapsed_ms.saturating_mul(500))
}

/// Adds an interval that was recorded completely.
fn record(buckets: &Buckets, time_ms: i64, elapsed_ms: i64, recorded: &mut [Recorded]) {
    if let Some(bucket) = buckets.index(middle_us(time_ms, elapsed_ms)) {
        let bucket = &mut recorded[bucket];
        bucket.elapsed_ms += elapsed_ms;
        bucket.grain_ms = bucket.grain_ms.max(elapsed_ms);
    }
    let end = time_ms.saturating_mul(1000);
    let begin = end.saturating_sub(elapsed_ms.saturating_mul(1000));
    let mut at = begin.max(buckets.since());
    while at < end
        && let Some(bucket) = buckets.index(at)
    {
        let until = buckets.clipped(bucket).1.min(end);
        recorded[bucket].covered_us += until - at;
        at = until;
    }
}

/// Column of a histogram bucket.
pub fn histogram_column(bucket: usize) -> String {
    format!("histogram_{bucket}")
}

/// Column of a bucket of the long histogram, which divides the last bucket of the histogram.
fn long_column(bucket: usize) -> String {
    format!("histogram_long_{bucket}")
}

/// True if the counter is a histogram bucket.
pub fn is_bucket(counter: &str) -> bool {
    counter.starts_with("histogram_")
}

/// The executions in a range of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationClass {
    /// Shortest duration in µs.
    pub begin_us: i128,
    /// Start of the next class in µs; `None` if the class has no end.
    pub end_us: Option<i128>,
    /// Number of executions.
    pub count: i64,
}

impl DurationClass {
    fn middle_us(&self) -> i128 {
        self.end_us
            .map_or(self.begin_us, |end| (self.begin_us + end) / 2)
    }
}

/// Classes of durations in ascending order, from the sums of the counters. Executions recorded
/// before the last histogram bucket was divided have a class of their own, without an end.
pub fn duration_classes(get: impl Fn(&str) -> i64) -> Vec<DurationClass> {
    let last = HISTOGRAM_BUCKETS - 1;
    let begin = |b: usize| if b == 0 { 0 } else { 1_i128 << b };
    let closed = |b: usize, count| DurationClass {
        begin_us: begin(b),
        end_us: Some(begin(b + 1)),
        count,
    };
    let open = |b: usize, count| DurationClass {
        end_us: None,
        ..closed(b, count)
    };
    let long = (0..LONG_BUCKETS).map(|b| get(&long_column(b)));
    let long: Vec<i64> = long.collect();
    let divided = long.iter().fold(0, |sum: i64, n| sum.saturating_add(*n));
    let undivided = get(&histogram_column(last)).saturating_sub(divided);
    let mut classes: Vec<_> = (0..last)
        .map(|b| closed(b, get(&histogram_column(b))))
        .collect();
    classes.push(open(last, undivided.max(0)));
    classes.extend((0..LONG_BUCKETS - 1).map(|b| closed(last + b, long[b])));
    classes.push(open(last + LONG_BUCKETS - 1, long[LONG_BUCKETS - 1]));
    classes
}

/// Times come in 10 µs. Executions that are shorter are not bounded by them.
const EXACT_US: i128 = 1024;

/// Distribution and total time of an entry's executions.
pub struct Executions {
    /// Classes in ascending order of durations.
    pub classes: Vec<DurationClass>,
    /// Total time in units of 10 µs.
    pub total_time: i64,
}

impl Executions {
    /// The duration that `percent` of the executions did not exceed, as a fraction (numerator,
    /// denominator) of ms. It is interpolated linearly between the bounds of its class, so it is
    /// off by less than a factor of two if the class has an end. `None` without executions.
    /// `counters.c` in the extension has the same rule for statistics that are not recorded yet.
    pub fn percentile_ms(&self, percent: i64) -> Option<(i128, i128)> {
        let n: i128 = self.classes.iter().map(|c| i128::from(c.count)).sum();
        if n == 0 {
            return None;
        }
        // Ranks in hundredths.
        let mut rank = n * i128::from(percent);
        for class in &self.classes {
            let count = i128::from(class.count);
            if count > 0 && rank <= count * 100 {
                let (begin, end) = self.bounds_us(class);
                let us = (begin * count * 100 + (end - begin) * rank, count * 100);
                return Some((us.0, us.1 * 1000));
            }
            rank -= count * 100;
        }
        None
    }

    /// The bounds of the executions of a class. Their time says more than the
    /// class: one of 294 ms in the class from 262 to 524 ms is all of it. If all others are
    /// as short as their classes allow, the rest of the time is above the begin of this
    /// class. One execution may have all of it, the mean of several their share: an even
    /// spread ends at twice that. The begin is found from the ends in the same way.
    fn bounds_us(&self, class: &DurationClass) -> (i128, i128) {
        let Some(end_us) = class.end_us else {
            return self.open_bounds_us(class);
        };
        if class.begin_us < EXACT_US {
            return (class.begin_us, end_us);
        }
        let share = |us: i128| 2 * us / i128::from(class.count).max(2);
        let total_us = i128::from(self.total_time) * 10;
        let with = self.classes.iter().filter(|c| c.count > 0);
        let sum = |us: fn(&DurationClass) -> Option<i128>| -> Option<i128> {
            let all = with.clone();
            all.map(|c| Some(i128::from(c.count) * us(c)?)).sum()
        };
        let least = sum(|c| Some(c.begin_us)).map(|least| total_us - least);
        let most = sum(|c| c.end_us).map(|most| most - total_us);
        // A time that does not fit bounds nothing.
        let fits = |us: &i128| *us >= 0;
        let end = least.filter(fits).map(|us| class.begin_us + share(us));
        let begin = most.filter(fits).map(|us| end_us - share(us));
        (
            begin.map_or(class.begin_us, |us| us.max(class.begin_us)),
            end.map_or(end_us, |us| us.min(end_us)),
        )
    }

    /// The executions of a class without an end take what the others have left of the
    /// time, in the middle of their classes: one has all of that, several end at twice
    /// the mean of it.
    fn open_bounds_us(&self, class: &DurationClass) -> (i128, i128) {
        let others = self.classes.iter().filter(|c| !std::ptr::eq(*c, class));
        let others: i128 = others.map(|c| i128::from(c.count) * c.middle_us()).sum();
        let left = i128::from(self.total_time) * 10 - others;
        if class.count == 1 {
            let all = left.max(class.begin_us);
            return (all, all);
        }
        let end = 2 * left / i128::from(class.count) - class.begin_us;
        (class.begin_us, end.max(class.begin_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts by bucket number; numbers from 23 on are the long histogram.
    fn p(percent: i64, counts: &[(usize, i64)], total_time: i64) -> Option<f64> {
        percentile(percent, counts, 0, total_time)
    }

    fn percentile(
        percent: i64,
        counts: &[(usize, i64)],
        undivided: i64,
        total_time: i64,
    ) -> Option<f64> {
        let last = HISTOGRAM_BUCKETS - 1;
        let of = |bucket: usize| counts.iter().filter(|c| c.0 == bucket).map(|c| c.1).sum();
        let long: i64 = counts.iter().filter(|c| c.0 >= last).map(|c| c.1).sum();
        let classes = duration_classes(|name| {
            let number = |begin: &str| name.strip_prefix(begin)?.parse::<usize>().ok();
            match (number("histogram_long_"), number("histogram_")) {
                (Some(b), _) => of(last + b),
                (_, Some(b)) if b == last => long + undivided,
                (_, Some(b)) => of(b),
                _ => 0,
            }
        });
        let executions = Executions {
            classes,
            total_time,
        };
        let (num, den) = executions.percentile_ms(percent)?;
        Some(num as f64 / den as f64)
    }

    #[test]
    fn percentiles_are_linear_within_a_bucket() {
        assert_eq!(p(95, &[], 0), None);
        // 100 executions of 1024 to 2048 us: the 95th lies at 95 %.
        assert_eq!(p(95, &[(10, 100)], 0), Some(1.9968));
        assert_eq!(p(50, &[(0, 50), (10, 50)], 0), Some(0.002));
        assert_eq!(p(75, &[(0, 50), (10, 50)], 0), Some(1.536));
    }

    #[test]
    fn no_percentile_is_beyond_what_the_time_of_all_allows() {
        // One of 294 ms, in the class from 262 to 524 ms.
        for percent in [50, 95, 99] {
            assert_eq!(p(percent, &[(18, 1)], 29_400), Some(294.0));
        }
        // One of 400 ms, in the upper half of it.
        assert_eq!(p(99, &[(18, 1)], 40_000), Some(400.0));
        // 100 of 270 ms each: their mean is near the begin of the class.
        assert_eq!(p(50, &[(18, 100)], 2_700_000), Some(270.0));
        assert_eq!(p(99, &[(18, 100)], 2_700_000), Some(277.698_88));
        // One of 294 ms beside 99 of 1.1 ms, which take 101.4 ms at least.
        assert_eq!(p(100, &[(10, 99), (18, 1)], 40_290), Some(301.524));
    }

    #[test]
    fn a_class_without_an_end_ends_at_twice_the_mean_of_its_executions() {
        // One execution of 60 s (6,000,000 units of 10 us), recorded before that bucket was
        // divided.
        assert_eq!(percentile(50, &[], 1, 6_000_000), Some(60_000.0));
        // Without a time the class begins and ends at 2^23 us.
        assert_eq!(percentile(95, &[], 1, 0), Some(8_388.608));
        // One execution of 10 hours, in the last bucket of the long histogram.
        assert_eq!(p(50, &[(34, 1)], 3_600_000_000), Some(36_000_000.0));
    }

    #[test]
    fn a_percentile_is_less_than_a_factor_of_two_off() {
        // 19 executions of 9 s and one of 90 s.
        let of = |percent| p(percent, &[(23, 19), (26, 1)], 26_100_000).unwrap();
        assert_eq!((of(50), of(95)), (10_300.385_368_421_053, 12_020.985));
        assert_eq!(of(99), 94_714.931_2);
        // Some of them were recorded before that bucket was divided.
        let of = |percent| percentile(percent, &[(23, 9), (26, 1)], 10, 26_100_000).unwrap();
        assert_eq!(of(50), 8_388.608);
        assert!(of(99) > 67_108.864 && of(99) < 134_217.728);
        // One execution of each duration, up to 9.5 hours.
        for us in (0..35).flat_map(|b| [1_i64 << b, (1 << b) + (1 << b) / 3]) {
            let bucket = us.ilog2() as usize;
            let ms = p(95, &[(bucket, 1)], us / 10).unwrap();
            let off = ms * 1000.0 / us as f64;
            assert!(off > 0.5 && off < 2.0, "{us} us: {ms} ms");
        }
    }

    #[test]
    fn an_interval_counts_where_its_middle_is_and_covers_what_it_reaches() {
        let buckets = Buckets::new(0, 180_000_000, 60_000_000, None, 10).unwrap();
        let mut recorded = vec![Recorded::default(); 3];
        record(&buckets, 60_010, 60_000, &mut recorded);
        record(&buckets, 180_000, 60_000, &mut recorded);
        let one = |elapsed_ms, covered_us| Recorded {
            elapsed_ms,
            grain_ms: elapsed_ms,
            covered_us,
        };
        assert_eq!(
            recorded,
            [
                one(60_000, 59_990_000),
                one(0, 10_000),
                one(60_000, 60_000_000)
            ]
        );
    }
}
