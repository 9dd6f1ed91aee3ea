//! Buckets of a key that are complete. Answers about a long window need the sum, the maximum and
//! the 99th percentile of the loads. For these a running sum and the greatest hundredth of the
//! loads are enough. Therefore no cell is kept for each key and minute of a year.

use crate::query::value::number::{self, Ratio};
use std::cmp::Ordering;

/// Summary of the finished buckets of a key.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// Sum of the weights.
    pub sum_ms: i64,
    /// Largest number of sessions in one tick.
    pub sessions: u32,
    /// Number of buckets that have cells and observed time.
    buckets: usize,
    greatest: Greatest,
}

impl Finished {
    /// A summary of at most `observed` buckets.
    pub fn of(observed: usize) -> Finished {
        Finished {
            greatest: Greatest {
                keep: number::p99_needs(observed),
                ..Greatest::default()
            },
            ..Finished::default()
        }
    }

    /// Adds a bucket. `sum_ms` and `sessions` are the key's weight and its largest number of
    /// sessions in one tick; `weight_ms` is the observed weight.
    pub fn add(&mut self, sum_ms: i64, sessions: u32, weight_ms: i64) {
        self.sum_ms += sum_ms;
        self.sessions = self.sessions.max(sessions);
        if weight_ms > 0 {
            self.buckets += 1;
            self.greatest.add(Load(sum_ms, weight_ms));
        }
    }

    /// Adds another summary.
    pub fn merge(&mut self, other: Finished) {
        self.sum_ms += other.sum_ms;
        self.sessions = self.sessions.max(other.sessions);
        self.buckets += other.buckets;
        self.greatest.keep = self.greatest.keep.max(other.greatest.keep);
        for load in other.greatest.loads {
            self.greatest.add(load);
        }
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Finished>() + self.greatest.loads.capacity() * size_of::<Load>()
    }

    /// Highest AAS of a bucket.
    pub fn peak(&self) -> Ratio {
        let most = self.greatest.loads.iter().max();
        most.map_or(Ratio::ZERO, |load| load.ratio())
    }

    /// 99th percentile of the AAS of `observed` buckets: these buckets, `others`, and buckets
    /// without load.
    pub fn p99(&self, others: Vec<Ratio>, observed: usize) -> Ratio {
        let present = self.buckets + others.len();
        let mut greatest = others;
        greatest.extend(self.greatest.loads.iter().map(|load| load.ratio()));
        number::p99_of_greatest(greatest, present, observed).unwrap_or(Ratio::ZERO)
    }
}

/// Weight of a key and observed weight of a bucket, in ms. The latter is positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load(i64, i64);

impl Load {
    fn ratio(self) -> Ratio {
        Ratio::new(self.0.into(), self.1.into()).unwrap_or(Ratio::ZERO)
    }
}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Load {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if self.1 == other.1 {
            return self.0.cmp(&other.0);
        }
        let cross = |a: i64, b: i64| i128::from(a) * i128::from(b);
        cross(self.0, other.1).cmp(&cross(other.0, self.1))
    }
}

/// The greatest of many loads.
#[derive(Clone, Debug, Default)]
struct Greatest {
    /// Number of loads that are kept.
    keep: usize,
    /// At most `2 * keep` loads.
    loads: Vec<Load>,
    /// No dropped load is greater than this.
    floor: Option<Load>,
}

impl Greatest {
    #[inline]
    fn add(&mut self, load: Load) {
        if self.floor.is_some_and(|floor| load <= floor) {
            return;
        }
        if self.loads.len() >= 2 * self.keep {
            self.loads
                .select_nth_unstable_by(self.keep, |a, b| b.cmp(a));
            self.floor = Some(self.loads[self.keep]);
            self.loads.truncate(self.keep);
        }
        self.loads.push(load);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_greatest_values_give_the_percentile_of_all(
            loads in prop::collection::vec((1..40i64, prop::sample::select(vec![0, 59, 60])), 1..900),
            open in prop::collection::vec((1..40i64, 60..61i64), 0..9),
            idle in 0..400usize,
            threads in 1..4usize,
        ) {
            let all = loads.iter().chain(&open).filter(|load| load.1 > 0);
            let all: Vec<Ratio> = all.map(|load| Load(load.0, load.1).ratio()).collect();
            let observed = all.len() + idle;
            let mut finished = vec![Finished::of(observed); threads];
            for (bucket, load) in loads.iter().enumerate() {
                let (sum_ms, sessions) = (load.0, (load.0 % 5) as u32);
                finished[bucket % threads].add(sum_ms, sessions, load.1);
            }
            let mut found = finished.pop().unwrap();
            finished.into_iter().for_each(|other| found.merge(other));
            prop_assert_eq!(found.sum_ms, loads.iter().map(|load| load.0).sum::<i64>());
            let most = loads.iter().map(|load| load.0 % 5).max();
            prop_assert_eq!(Some(i64::from(found.sessions)), most);
            let loads = loads.iter().filter(|load| load.1 > 0);
            let peak = loads.map(|load| Load(load.0, load.1)).max();
            prop_assert_eq!(found.peak(), peak.map_or(Ratio::ZERO, Load::ratio));
            let open = open.iter().map(|load| Load(load.0, load.1).ratio()).collect();
            let expected = number::p99(all, observed, |load| load).unwrap_or(Ratio::ZERO);
            prop_assert_eq!(found.p99(open, observed), expected);
            prop_assert!(found.greatest.loads.len() <= 2 * found.greatest.keep);
            prop_assert!(found.bytes() >= size_of::<Load>() * found.greatest.loads.len());
        }
    }
}
