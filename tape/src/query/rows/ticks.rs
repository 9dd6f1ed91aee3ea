//! The ticks of a part within a window, and the observed time in each bucket.

use crate::format::codec::EqualRun;
use crate::format::part::Part;
use crate::format::table::Column;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::query::value::number::Ratio;
use std::collections::BTreeSet;
use std::ops::Range;

/// Bucket of a tick that does not count because it failed or lies outside the window.
pub const NONE: u32 = u32::MAX;

/// The ticks of a part in ascending order of their numbers.
pub struct Ticks {
    numbers: Vec<i64>,
    /// Row of each number (minus the first number); empty if the numbers are too sparse.
    rows: Vec<u32>,
    /// True if no number is missing.
    are_contiguous: bool,
    /// Slot time of each tick, in ms since 1970.
    pub slot_ms: Vec<i64>,
    /// Nominal interval of each tick in ms, which is its weight.
    pub weight_ms: Vec<i64>,
    /// Bucket of each tick, or [`NONE`].
    pub bucket: Vec<u32>,
    /// Start and end of blocks of consecutive rows.
    blocks: Vec<(u32, u32)>,
    /// Block of each row.
    block_of: Vec<u32>,
}

/// The columns of table `tick` that a question reads.
pub const COLUMNS: [&str; 5] = ["tick", "slot_time", "interval_ms", "status", "vcpus_x100"];

/// Maximum number of ticks in a block. A run that covers a block adds the weights of its ticks in
/// one step.
const BLOCK: usize = 8;

/// The rows of a stretch's runs in table `tick`.
#[derive(Clone, Copy, Debug)]
pub struct RunRanges {
    begin: u32,
    step: u32,
    length: u32,
    runs: u32,
}

impl RunRanges {
    /// The rows of a run, by its position in the stretch.
    #[inline]
    pub fn of(&self, run: u32) -> (u32, u32) {
        let begin = self.begin + run * self.step;
        (begin, begin + self.length)
    }

    /// The rows of each run.
    pub fn all(self) -> impl ExactSizeIterator<Item = (u32, u32)> {
        (0..self.runs).map(move |run| self.of(run))
    }

    /// The rows of all runs together, if each run begins where the one before it ends.
    pub fn together(&self) -> Option<(u32, u32)> {
        (self.step == self.length).then(|| (self.begin, self.begin + self.runs * self.length))
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.runs as usize
    }
}

impl Ticks {
    /// Reads the ticks of a part and adds them to `observed`.
    pub fn read(part: &Part, buckets: &Buckets, observed: &mut Observed) -> QueryResult<Ticks> {
        Ticks::read_unless(part, buckets, observed, || Ok(()))
    }

    /// Same as [`Ticks::read`], but calls `check_cancel` before each column.
    pub fn read_unless(
        part: &Part,
        buckets: &Buckets,
        observed: &mut Observed,
        check_cancel: impl Fn() -> QueryResult<()>,
    ) -> QueryResult<Ticks> {
        let mut columns = COLUMNS.map(|_| Column::default());
        for (column, name) in columns.iter_mut().zip(COLUMNS) {
            check_cancel()?;
            *column = part.ints("tick", name)?;
        }
        let [number, slot, weight, status, vcpus] = columns;
        let failed = part.schema().value("tick_status", "failed");
        let mut order: Vec<usize> = (0..number.len()).collect();
        if !number.is_sorted() {
            order.sort_by_key(|row| number[*row]);
        }
        let mut ticks = Ticks {
            numbers: order.iter().map(|row| number[*row]).collect(),
            rows: Vec::new(),
            are_contiguous: false,
            slot_ms: order.iter().map(|row| slot[*row]).collect(),
            weight_ms: order.iter().map(|row| weight[*row].max(0)).collect(),
            bucket: Vec::with_capacity(order.len()),
            blocks: Vec::new(),
            block_of: Vec::with_capacity(order.len()),
        };
        for (i, row) in order.iter().enumerate() {
            let bucket = ticks.slot_ms[i]
                .checked_mul(1000)
                .and_then(|us| buckets.index(us))
                .map_or(NONE, |b| b as u32);
            let failed = failed == Some(status[*row]);
            if ticks.slot_ms[i].saturating_mul(1000) < buckets.since() {
                observed.before(ticks.slot_ms[i], ticks.weight_ms[i]);
            }
            observed.tick(
                bucket,
                ticks.slot_ms[i],
                ticks.weight_ms[i],
                failed,
                vcpus[*row],
            );
            ticks.bucket.push(if failed { NONE } else { bucket });
        }
        ticks.index();
        Ok(ticks)
    }

    /// Lets only ticks of these buckets count.
    pub fn count_within(&mut self, buckets: &BTreeSet<u32>) {
        // All ticks of a block are in one bucket, so blocks stay valid.
        for bucket in &mut self.bucket {
            if !buckets.contains(bucket) {
                *bucket = NONE;
            }
        }
    }

    /// Ticks with the given buckets and weights.
    #[cfg(test)]
    pub fn of_rows(rows: impl Iterator<Item = (u32, i64)>) -> Ticks {
        let (bucket, weight_ms): (Vec<u32>, Vec<i64>) = rows.unzip();
        let mut ticks = Ticks {
            numbers: (0..bucket.len() as i64).collect(),
            rows: Vec::new(),
            are_contiguous: false,
            slot_ms: vec![0; bucket.len()],
            weight_ms,
            bucket,
            blocks: Vec::new(),
            block_of: Vec::new(),
        };
        ticks.index();
        ticks
    }

    fn index(&mut self) {
        for row in 0..self.bucket.len() {
            let belongs = |begin: usize| {
                row - begin < BLOCK
                    && self.bucket[row] == self.bucket[begin]
                    && self.weight_ms[row] == self.weight_ms[begin]
            };
            match self.blocks.last_mut() {
                Some(block) if belongs(block.0 as usize) => block.1 = row as u32 + 1,
                _ => self.blocks.push((row as u32, row as u32 + 1)),
            }
            self.block_of.push(self.blocks.len() as u32 - 1);
        }
        let (Some(first), Some(last)) = (self.numbers.first(), self.numbers.last()) else {
            return;
        };
        let mut pairs = self.numbers.windows(2);
        self.are_contiguous = pairs.all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        let range = last.wrapping_sub(*first) as u64;
        if range < 4 * self.numbers.len() as u64 + 1024 {
            self.rows = vec![NONE; range as usize + 1];
            for (row, number) in self.numbers.iter().enumerate() {
                self.rows[(number - first) as usize] = row as u32;
            }
        }
    }

    /// Number of ticks.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// True if no tick counts.
    pub fn is_idle(&self) -> bool {
        self.bucket.iter().all(|bucket| *bucket == NONE)
    }

    /// The number of the tick in a row.
    pub fn number(&self, row: usize) -> i64 {
        self.numbers[row]
    }

    /// The rows of a run; empty if its first tick is not stored.
    #[inline]
    pub fn range(&self, first_tick: i64, ticks: i64) -> (u32, u32) {
        let row = if self.rows.is_empty() {
            self.numbers
                .binary_search(&first_tick)
                .map_or(NONE, |row| row as u32)
        } else {
            let offset = first_tick.wrapping_sub(self.numbers[0]) as u64;
            self.rows.get(offset as usize).copied().unwrap_or(NONE)
        };
        if row == NONE {
            return (0, 0);
        }
        let left = (self.numbers.len() - row as usize) as i64;
        (row, row + ticks.clamp(0, left) as u32)
    }

    /// The rows of the first `runs` runs of a stretch. `None` if a tick of them or between them is
    /// not stored.
    pub fn ranges(&self, stretch: &EqualRun, runs: usize) -> Option<RunRanges> {
        let (first, length) = stretch.run(stretch.row);
        let step = stretch.run(stretch.row + 1).0.checked_sub(first)?;
        let steps = i64::try_from(runs).ok()?.checked_sub(1)?;
        let end = step
            .checked_mul(steps)?
            .checked_add(first)?
            .checked_add(length)?;
        let origin = *self.numbers.first()?;
        let are_stored = self.are_contiguous
            && step >= 0
            && length >= 0
            && origin <= first
            && end.checked_sub(origin)? <= self.numbers.len() as i64;
        // The row is the number minus the first number.
        let begin = first.checked_sub(origin)?;
        are_stored.then_some(RunRanges {
            begin: begin as u32,
            step: step as u32,
            length: length as u32,
            runs: runs as u32,
        })
    }

    /// The weight of every tick if all ticks count and have the same weight.
    pub fn same_weight_ms(&self) -> Option<i64> {
        let first = *self.weight_ms.first()?;
        let all_count = !self.bucket.contains(&NONE);
        (all_count && self.weight_ms.iter().all(|weight| *weight == first)).then_some(first)
    }

    /// For each row: number of counting ticks before it, and the sum of their weights.
    pub fn before(&self) -> Vec<(u32, i64)> {
        let mut before = Vec::with_capacity(self.len() + 1);
        let mut sum = (0, 0);
        for (bucket, weight_ms) in self.bucket.iter().zip(&self.weight_ms) {
            before.push(sum);
            if *bucket != NONE {
                sum = (sum.0 + 1, sum.1 + weight_ms);
            }
        }
        before.push(sum);
        before
    }

    /// Calls `piece` with bucket and weight for each block in rows `a..b`.
    pub fn pieces(&self, a: u32, b: u32, mut piece: impl FnMut(u32, i64)) {
        let mut at = a;
        while at < b {
            let end = self.blocks[self.block_of(at)].1.min(b);
            let (bucket, weight) = (self.bucket[at as usize], self.weight_ms[at as usize]);
            if bucket != NONE {
                piece(bucket, weight * i64::from(end - at));
            }
            at = end;
        }
    }

    /// Start and end of blocks: at most [`BLOCK`] consecutive rows with the same bucket and weight.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks
    }

    /// Start and end of spans of counting rows: consecutive rows with the same bucket and weight,
    /// at most 2^16 in a span.
    pub fn spans(&self) -> Vec<(u32, u32)> {
        let key = |row: u32| (self.bucket[row as usize], self.weight_ms[row as usize]);
        let mut spans: Vec<(u32, u32)> = Vec::new();
        let blocks = self.blocks.iter().filter(|(row, _)| key(*row).0 != NONE);
        for (begin, end) in blocks {
            match spans.last_mut() {
                Some(last)
                    if last.1 == *begin
                        && key(last.0) == key(*begin)
                        && end - last.0 <= 1 << 16 =>
                {
                    last.1 = *end;
                }
                _ => spans.push((*begin, *end)),
            }
        }
        spans
    }

    /// The block of a row.
    #[inline]
    pub fn block_of(&self, row: u32) -> usize {
        self.block_of[row as usize] as usize
    }
}

/// The observed time of one bucket or of a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coverage {
    /// Σ weight of ticks that are ok or late.
    pub observed_ms: i64,
    /// Σ weight of failed ticks.
    pub failed_ms: i64,
    /// Ticks that are ok or late.
    pub ticks_observed: i64,
    /// Ticks that failed.
    pub ticks_failed: i64,
    /// Slot time and interval of the last tick.
    last: Option<(i64, i64)>,
    /// Slot time and vCPUs of the last tick that knows them.
    vcpus: Option<(i64, i64)>,
}

impl Coverage {
    /// The numbers as stored in a file (`docs/format.md`, table `minute`).
    pub fn to_row(self) -> [i64; 8] {
        let (last, interval) = self.last.unwrap_or_default();
        let (seen, vcpus) = self.vcpus.unwrap_or_default();
        [
            self.observed_ms,
            self.failed_ms,
            self.ticks_observed,
            self.ticks_failed,
            last,
            interval,
            seen,
            vcpus,
        ]
    }

    /// The inverse of [`Coverage::to_row`], for a minute with ticks.
    pub fn from_row(row: [i64; 8]) -> Coverage {
        Coverage {
            observed_ms: row[0],
            failed_ms: row[1],
            ticks_observed: row[2],
            ticks_failed: row[3],
            last: Some((row[4], row[5])),
            vcpus: (row[7] != 0).then_some((row[6], row[7])),
        }
    }

    /// Adds the observed time of `other`.
    pub fn add(&mut self, other: &Coverage) {
        self.observed_ms += other.observed_ms;
        self.failed_ms += other.failed_ms;
        self.ticks_observed += other.ticks_observed;
        self.ticks_failed += other.ticks_failed;
        self.last = later(self.last, other.last);
        self.vcpus = later(self.vcpus, other.vcpus);
    }

    /// Number of vCPUs at the last tick that knows it, not rounded.
    pub fn vcpus(&self) -> Option<Ratio> {
        Ratio::new(i128::from(self.vcpus?.1), 100)
    }

    /// Interval of the last tick in ms; `None` without ticks.
    pub fn last_interval_ms(&self) -> Option<i64> {
        self.last.map(|l| l.1)
    }

    /// Number of ticks that a window of `window_us` should have. `interval_ms` is the interval of
    /// the last tick at or before the window's end.
    pub fn ticks_expected(&self, window_us: i64, interval_ms: Option<i64>) -> i64 {
        let interval_ms = interval_ms.filter(|i| *i > 0).unwrap_or(1000);
        let seen_ms = i128::from(self.observed_ms) + i128::from(self.failed_ms);
        let rest = (i128::from(window_us) - seen_ms * 1000).max(0);
        let rest = i64::try_from(rest / (i128::from(interval_ms) * 1000));
        self.ticks_observed + self.ticks_failed + rest.unwrap_or(0)
    }

    /// Observed percentage of a window, at most 100; `None` for an empty window.
    pub fn percent(&self, window_us: i64) -> Option<Ratio> {
        let observed = i128::from(self.observed_ms) * 1000;
        let window = i128::from(window_us);
        Ratio::new(100 * observed.min(window), window)
    }
}

/// Largest common multiple of the weights that is used, in ms.
const MOST_COMMON_MS: i64 = 1 << 40;

/// The least common multiple of the positive numbers; `None` above [`MOST_COMMON_MS`].
fn common_multiple(numbers: impl Iterator<Item = i64>) -> Option<i64> {
    let (mut common, mut last) = (1, 1);
    for number in numbers {
        if number <= 0 || number == last {
            continue;
        }
        let (mut a, mut b) = (common, number);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        common = number.checked_mul(common / a)?;
        if common > MOST_COMMON_MS {
            return None;
        }
        last = number;
    }
    Some(common)
}

fn later(a: Option<(i64, i64)>, b: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (a, b) {
        (Some(x), Some(y)) => Some(if y.0 >= x.0 { y } else { x }),
        (a, b) => a.or(b),
    }
}

/// The observed time of each bucket. Only buckets with ticks use memory.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    by_bucket: Vec<(u32, Coverage)>,
    /// [`Observed::weight_ms`] of each bucket from the first on, after [`Observed::index`].
    weights_ms: Vec<i64>,
    /// Common multiple of the weights of all buckets, after [`Observed::index`].
    common_ms: Option<i64>,
    /// Number of buckets with observed time, after [`Observed::index`].
    observed_buckets: Option<usize>,
    /// Sum of the finished buckets, and the number of them with observed time.
    finished: (Coverage, usize),
    /// Slot time and interval of the last tick before the window.
    pub interval_before: Option<(i64, i64)>,
}

impl Observed {
    fn tick(&mut self, bucket: u32, slot_ms: i64, weight_ms: i64, failed: bool, vcpus: i64) {
        if bucket == NONE {
            return;
        }
        let mut one = Coverage {
            last: Some((slot_ms, weight_ms)),
            vcpus: (vcpus > 0).then_some((slot_ms, vcpus)),
            ..Coverage::default()
        };
        if failed {
            (one.ticks_failed, one.failed_ms) = (1, weight_ms);
        } else {
            (one.ticks_observed, one.observed_ms) = (1, weight_ms);
        }
        self.at(bucket).add(&one);
    }

    /// The coverage of a bucket, to add to it.
    pub fn at(&mut self, bucket: u32) -> &mut Coverage {
        self.weights_ms.clear();
        self.common_ms = None;
        let rows = &mut self.by_bucket;
        let row = match rows.last() {
            Some(last) if last.0 == bucket => rows.len() - 1,
            Some(last) if last.0 > bucket => rows.partition_point(|r| r.0 < bucket),
            _ => rows.len(),
        };
        if rows.get(row).is_none_or(|r| r.0 != bucket) {
            rows.insert(row, (bucket, Coverage::default()));
        }
        &mut rows[row].1
    }

    /// Adds the observed time of other parts.
    pub fn merge(&mut self, other: &Observed) {
        let own = std::mem::take(&mut self.by_bucket);
        let (mut own, mut others) = (own.iter().peekable(), other.by_bucket.iter().peekable());
        while let Some((bucket, coverage)) = match (own.peek(), others.peek()) {
            (Some(a), Some(b)) if b.0 < a.0 => others.next(),
            (Some(_), _) => own.next(),
            _ => others.next(),
        } {
            self.at(*bucket).add(coverage);
        }
        self.finished.0.add(&other.finished.0);
        self.finished.1 += other.finished.1;
        self.interval_before = later(self.interval_before, other.interval_before);
    }

    /// Takes out buckets that are complete and adds them to the sum of finished ones; returns their
    /// weights in ms.
    pub fn finish(&mut self, buckets: Range<u32>) -> Vec<i64> {
        let begin = self.by_bucket.partition_point(|b| b.0 < buckets.start);
        let end = self.by_bucket.partition_point(|b| b.0 < buckets.end);
        let mut weights = vec![0; buckets.len()];
        for (bucket, coverage) in self.by_bucket.drain(begin..end) {
            weights[(bucket - buckets.start) as usize] = coverage.observed_ms;
            self.finished.0.add(&coverage);
            self.finished.1 += usize::from(coverage.observed_ms > 0);
        }
        weights
    }

    /// Remembers the last tick of a minute before the window.
    pub fn minute_before(&mut self, coverage: &Coverage) {
        self.interval_before = later(self.interval_before, coverage.last);
    }

    /// Remembers the last tick before the window.
    pub fn before(&mut self, slot_ms: i64, interval_ms: i64) {
        self.interval_before = later(self.interval_before, Some((slot_ms, interval_ms)));
    }

    /// Unfinished buckets with ticks, in ascending order.
    pub fn buckets(&self) -> &[(u32, Coverage)] {
        &self.by_bucket
    }

    /// The coverage of one bucket.
    pub fn bucket(&self, bucket: u32) -> Coverage {
        let row = self.by_bucket.binary_search_by_key(&bucket, |r| r.0);
        row.map_or_else(|_| Coverage::default(), |row| self.by_bucket[row].1)
    }

    /// Makes [`Observed::weight_ms`] a table look-up if buckets are dense.
    pub fn index(&mut self) {
        let (Some(first), Some(last)) = (self.by_bucket.first(), self.by_bucket.last()) else {
            return;
        };
        let (first, range) = (first.0, (last.0 - first.0) as usize + 1);
        let weights = self.by_bucket.iter().map(|b| b.1.observed_ms);
        self.common_ms = common_multiple(weights);
        self.observed_buckets = Some(self.count_observed());
        if range > 8 * self.by_bucket.len() + 1024 {
            return;
        }
        self.weights_ms = vec![0; range];
        for (bucket, coverage) in &self.by_bucket {
            self.weights_ms[(bucket - first) as usize] = coverage.observed_ms;
        }
    }

    /// A common multiple of the weights of all buckets. `None` if it would be large, or before
    /// [`Observed::index`].
    pub fn common_ms(&self) -> Option<i64> {
        self.common_ms
    }

    /// Sum of the observed weights in a bucket, in ms.
    #[inline]
    pub fn weight_ms(&self, bucket: u32) -> i64 {
        if self.weights_ms.is_empty() {
            return self.bucket(bucket).observed_ms;
        }
        let first = self.by_bucket.first().map_or(0, |first| first.0);
        let at = bucket.wrapping_sub(first) as usize;
        self.weights_ms.get(at).copied().unwrap_or(0)
    }

    /// The coverage of the whole window.
    pub fn total(&self) -> Coverage {
        let mut total = self.finished.0;
        for (_, coverage) in &self.by_bucket {
            total.add(coverage);
        }
        total
    }

    /// Number of buckets with observed time.
    pub fn observed_buckets(&self) -> usize {
        // Callers ask once for each key.
        let known = self.observed_buckets;
        known.unwrap_or_else(|| self.count_observed()) + self.finished.1
    }

    fn count_observed(&self) -> usize {
        let some = self.by_bucket.iter().filter(|b| b.1.observed_ms > 0);
        some.count()
    }
}
