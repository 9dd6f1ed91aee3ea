//! Durations of executions: their distribution and its percentiles.

use crate::format::schema::{HISTOGRAM_BUCKETS, LONG_BUCKETS};
use crate::query::value::number::Ratio;

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

/// Executions by duration: the buckets of the histogram, then the ones of the long histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram(pub [i64; HISTOGRAM_BUCKETS + LONG_BUCKETS]);

impl Default for Histogram {
    fn default() -> Self {
        Histogram([0; HISTOGRAM_BUCKETS + LONG_BUCKETS])
    }
}

impl Histogram {
    /// Adds executions to a bucket. A sum that would overflow stays at the largest number.
    pub fn add(&mut self, bucket: usize, count: i64) {
        if let Some(sum) = self.0.get_mut(bucket) {
            *sum = sum.saturating_add(count);
        }
    }

    /// The duration in ms that `percent` of the executions did not exceed; `None` without
    /// executions. All of them took `total_time`, in units of 10 µs.
    pub fn percentile(&self, total_time: i64, percent: i64) -> Option<Ratio> {
        let classes = self.classes();
        let executions = Executions {
            classes,
            total_time,
        };
        let (num, den) = executions.percentile_ms(percent)?;
        Ratio::new(num, den)
    }

    /// Classes of durations in ascending order. Executions recorded before the last histogram
    /// bucket was divided have a class of their own, without an end.
    pub fn classes(&self) -> Vec<DurationClass> {
        let (short, long) = self.0.split_at(HISTOGRAM_BUCKETS);
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
        let divided = long.iter().fold(0, |sum: i64, n| sum.saturating_add(*n));
        let undivided = short[last].saturating_sub(divided);
        let mut classes: Vec<_> = (0..last).map(|b| closed(b, short[b])).collect();
        classes.push(open(last, undivided.max(0)));
        classes.extend((0..LONG_BUCKETS - 1).map(|b| closed(last + b, long[b])));
        classes.push(open(last + LONG_BUCKETS - 1, long[LONG_BUCKETS - 1]));
        classes
    }
}

/// Counted times are multiples of 10 µs, too coarse for executions shorter than this; for these the
/// total time gives no bounds.
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
    /// denominator) of ms. It is interpolated linearly between the bounds of its class. If the
    /// class has an end, it is therefore off by less than a factor of two. `None` without
    /// executions. `counters.c` in the extension has the same rule for statistics that are not
    /// recorded yet.
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

    /// Bounds of the durations in a class, in µs. The total time of all executions often gives
    /// closer bounds than the class. Example: a single execution of 294 ms is in the class from 262
    /// to 524 ms. Because it took all of the total time, both bounds are 294 ms.
    ///
    /// Upper bound: suppose that all executions are as short as their classes allow. The rest of
    /// the total time then belongs to executions above the begin of this class. One execution may
    /// have all of the rest. Several have it in equal shares on average, and an even spread ends at
    /// twice that share. The lower bound follows in the same way from the ends of the classes.
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
        // If the total time contradicts the classes, it gives no bound.
        let fits = |us: &i128| *us >= 0;
        let end = least.filter(fits).map(|us| class.begin_us + share(us));
        let begin = most.filter(fits).map(|us| end_us - share(us));
        (
            begin.map_or(class.begin_us, |us| us.max(class.begin_us)),
            end.map_or(end_us, |us| us.min(end_us)),
        )
    }

    /// Bounds for a class without an end. All other executions are assumed in the middle of their
    /// classes; the executions of this class take the rest of the total time. One execution takes
    /// all of it. The bounds for several are the begin of the class, and an end at which their mean
    /// is the middle.
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
        let mut histogram = Histogram::default();
        histogram.0[last] = undivided;
        for &(bucket, count) in counts {
            if bucket >= last {
                histogram.0[last] += count;
            }
            let long = usize::from(bucket >= last);
            histogram.0[bucket + long] += count;
        }
        let classes = histogram.classes();
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
    fn no_percentile_exceeds_the_total_time() {
        // One execution of 294 ms, in the class from 262 to 524 ms.
        for percent in [50, 95, 99] {
            assert_eq!(p(percent, &[(18, 1)], 29_400), Some(294.0));
        }
        // One execution of 400 ms, in the upper half of the same class.
        assert_eq!(p(99, &[(18, 1)], 40_000), Some(400.0));
        // 100 executions of 270 ms each: their mean is near the begin of the class.
        assert_eq!(p(50, &[(18, 100)], 2_700_000), Some(270.0));
        assert_eq!(p(99, &[(18, 100)], 2_700_000), Some(277.698_88));
        // One execution of 294 ms beside 99 of 1.1 ms, which take 101.4 ms at least.
        assert_eq!(p(100, &[(10, 99), (18, 1)], 40_290), Some(301.524));
    }

    #[test]
    fn a_class_without_an_end_ends_at_twice_the_mean_of_its_executions() {
        // One execution of 60 s (6,000,000 units of 10 us). The version that recorded it did
        // not yet divide the last bucket of the histogram.
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
        // Ten of the executions were recorded before the last bucket was divided.
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
}
