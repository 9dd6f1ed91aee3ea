//! The counters of statements: the columns of `statement_stats` that are added up. A question finds
//! the counters it needs once; rows are read by place.

use super::executions::Histogram;
use crate::format::schema::{ColumnDef, ColumnType, HISTOGRAM_BUCKETS, SINCE_CALL, STATS, Schema};
use crate::query::ask::row::Numeric;
use crate::query::value::number::Ratio;

/// Columns of the table that are no counters.
const KEYS: [&str; 4] = ["time", "elapsed_ms", "entry", SINCE_CALL];

/// A counter of the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter<'c> {
    /// Column of the table.
    pub name: &'c str,
    /// The kind of its numbers.
    pub unit: Unit,
}

/// The counters that code uses by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Executions.
    Calls,
    /// Duration of all executions.
    Time,
    /// Squares of the durations.
    Squares,
    /// Rows of all executions.
    Rows,
    /// Blocks that were in shared buffers.
    Hits,
    /// Blocks that were not in shared buffers.
    Reads,
    /// Blocks of temporary files that were written.
    TempWrites,
    /// Executions that ended with an error.
    Errors,
}

impl Named {
    /// All counters that code uses by name, in the order of their declaration.
    const ALL: [Named; 8] = [
        Named::Calls,
        Named::Time,
        Named::Squares,
        Named::Rows,
        Named::Hits,
        Named::Reads,
        Named::TempWrites,
        Named::Errors,
    ];

    /// Column of the table.
    pub const fn column(self) -> &'static str {
        match self {
            Named::Calls => "calls",
            Named::Time => "total_exec_time",
            Named::Squares => "square_exec_time",
            Named::Rows => "rows",
            Named::Hits => "shared_blks_hit",
            Named::Reads => "shared_blks_read",
            Named::TempWrites => "temp_blks_written",
            Named::Errors => "errors",
        }
    }
}

/// The kind of numbers that a counter adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things, such as calls or blocks.
    Count,
    /// Durations in units of 10 µs.
    Time,
    /// Squares of durations, in hundredths of a square millisecond.
    Squares,
    /// Executions in a bucket of the histogram. The buckets of the long histogram follow the others.
    Bucket(usize),
}

impl<'c> Counter<'c> {
    fn of(column: &'c ColumnDef) -> Counter<'c> {
        let name = column.name.as_str();
        let bucket = |prefix| name.strip_prefix(prefix)?.parse::<usize>().ok();
        let long = |bucket| HISTOGRAM_BUCKETS + bucket;
        let bucket = bucket("histogram_long_").map(long).or(bucket("histogram_"));
        let unit = match bucket {
            Some(bucket) => Unit::Bucket(bucket),
            None if name.starts_with("square_") => Unit::Squares,
            None if column.ty == ColumnType::Span => Unit::Time,
            None => Unit::Count,
        };
        Counter { name, unit }
    }

    /// False for squares and the histogram: answers have only figures computed from them.
    pub fn is_shown(&self) -> bool {
        matches!(self.unit, Unit::Count | Unit::Time)
    }

    /// True if it is one of `named`.
    pub fn is_any_of(&self, named: &[Named]) -> bool {
        named.iter().any(|named| named.column() == self.name)
    }

    /// True for a bucket of the histogram.
    pub fn is_bucket(&self) -> bool {
        matches!(self.unit, Unit::Bucket(_))
    }
}

/// Counters in the order of their sums. The sum of a counter that is not among them is 0.
#[derive(Clone, Debug, Default)]
pub struct Counters<'c> {
    list: Vec<Counter<'c>>,
    /// Place of each counter in [`Named::ALL`].
    named: [Option<usize>; Named::ALL.len()],
    /// Bucket and place of each counter of the histogram.
    buckets: Vec<(usize, usize)>,
    /// True if the time of the last call is needed, too.
    has_last_call: bool,
}

impl<'c> Counters<'c> {
    /// All counters of a catalog, in its order.
    pub fn of(catalog: &'c Schema) -> Counters<'c> {
        let columns = catalog.table(STATS).map_or(&[][..], |t| &t.columns);
        let columns = columns.iter().filter(|c| !KEYS.contains(&c.name.as_str()));
        Counters::new(columns.map(Counter::of).collect()).with_last_call()
    }

    /// The same counters and the time of the last call.
    #[must_use]
    pub fn with_last_call(mut self) -> Self {
        self.has_last_call = true;
        self
    }

    /// True if the time of the last call is needed, too.
    pub fn has_last_call(&self) -> bool {
        self.has_last_call
    }

    /// The counters that `needs` accepts, without the time of the last call.
    pub fn only(&self, needs: impl Fn(&Counter) -> bool) -> Counters<'c> {
        let needed = self.list.iter().copied().filter(|c| needs(c));
        Counters::new(needed.collect())
    }

    fn new(list: Vec<Counter<'c>>) -> Counters<'c> {
        let place = |name: &str| list.iter().position(|c| c.name == name);
        let bucket = |(place, counter): (usize, &Counter)| match counter.unit {
            Unit::Bucket(bucket) => Some((bucket, place)),
            _ => None,
        };
        Counters {
            named: Named::ALL.map(|named| place(named.column())),
            buckets: list.iter().enumerate().filter_map(bucket).collect(),
            has_last_call: false,
            list,
        }
    }

    /// The counters in order.
    pub fn list(&self) -> &[Counter<'c>] {
        &self.list
    }

    /// Zero for each counter.
    pub fn zeros(&self) -> Sums {
        Sums {
            counts: vec![0; self.list.len()],
            last_call_ms: None,
        }
    }

    /// The place of a counter.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|c| c.name == name)
    }

    /// True if a counter is among them.
    pub fn has(&self, named: Named) -> bool {
        self.named[named as usize].is_some()
    }

    /// The sum of a counter. Durations are in units of 10 µs.
    pub fn sum(&self, sums: &Sums, named: Named) -> i64 {
        sums.at(self.named[named as usize])
    }

    /// Number of executions.
    pub fn calls(&self, sums: &Sums) -> i64 {
        self.sum(sums, Named::Calls)
    }

    /// Duration of all executions in units of 10 µs.
    pub fn time(&self, sums: &Sums) -> i64 {
        self.sum(sums, Named::Time)
    }

    /// Mean duration of an execution in ms; `None` without calls.
    pub fn mean(&self, sums: &Sums) -> Option<Ratio> {
        let calls = i128::from(self.calls(sums)) * 100;
        Ratio::new(self.time(sums).into(), calls)
    }

    /// Standard deviation of the durations in ms; `None` without calls.
    pub fn deviation(&self, sums: &Sums) -> Option<Numeric> {
        let calls = self.calls(sums) as f64;
        if calls == 0.0 {
            return None;
        }
        let time = self.time(sums) as f64 / 100.0;
        let squares = self.sum(sums, Named::Squares) as f64 / 100.0;
        let variance = (squares - time * time / calls) / calls;
        Some(Numeric(
            (variance.max(0.0).sqrt() * 10_000.0).round() as i128
        ))
    }

    /// The duration in ms that `percent` of the executions did not exceed; `None` without
    /// executions.
    pub fn percentile(&self, sums: &Sums, percent: i64) -> Option<Ratio> {
        self.histogram(sums).percentile(self.time(sums), percent)
    }

    /// Executions by duration.
    pub fn histogram(&self, sums: &Sums) -> Histogram {
        let mut histogram = Histogram::default();
        for &(bucket, place) in &self.buckets {
            histogram.add(bucket, sums.counts[place]);
        }
        histogram
    }

    /// Bucket and column of each counter of the histogram.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, &'c str)> {
        let all = self.buckets.iter();
        all.map(|&(bucket, place)| (bucket, self.list[place].name))
    }
}

/// One sum for each counter, and the last call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// The sums in the order of the counters.
    pub counts: Vec<i64>,
    /// Time of the last call, in ms since 1970; `None` if it is not known.
    pub last_call_ms: Option<i64>,
}

impl Sums {
    /// The sum of the counter with the index `place`; 0 for `None`.
    pub fn at(&self, place: Option<usize>) -> i64 {
        place.map_or(0, |place| self.counts[place])
    }

    /// Time of the last call, in µs since 1970.
    pub fn last_call_us(&self) -> Option<i64> {
        self.last_call_ms.map(|ms| ms.saturating_mul(1_000))
    }

    /// Adds `other`. A sum that would overflow stays at the largest number.
    pub fn add(&mut self, other: &Sums) {
        for (to, from) in self.counts.iter_mut().zip(&other.counts) {
            *to = to.saturating_add(*from);
        }
        self.last_call_ms = self.last_call_ms.max(other.last_call_ms);
    }
}
