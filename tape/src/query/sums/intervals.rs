//! The intervals of rows: a row has the counts of the `elapsed_ms` before its `time`, and counts as a
//! whole in the bucket with the middle of this interval. This holds for statements, their plans, and
//! tables.

use crate::format::part::Part;
use crate::query::rows::parse::Window;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::store::snapshot::Snapshot;

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

/// How the recorded times of several nodes become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// The nodes recorded one after the other, such as before and after a copy: their times add up.
    InTurn,
    /// Nodes recorded at the same time: the node counts that recorded longest in a bucket.
    AtOnce,
}

impl Nodes {
    /// Finds out which of both these nodes are.
    pub fn of(store: &Snapshot, nodes: &[u64]) -> Nodes {
        let mut times: Vec<(i64, i64)> = nodes.iter().filter_map(|n| store.times(*n)).collect();
        times.sort_unstable();
        match times.windows(2).all(|pair| pair[0].1 < pair[1].0) {
            true => Nodes::InTurn,
            false => Nodes::AtOnce,
        }
    }

    /// Adds the buckets of one more node.
    pub fn add(self, all: &mut [Recorded], own: Vec<Recorded>) {
        for (all, own) in all.iter_mut().zip(own) {
            match self {
                Nodes::InTurn => {
                    all.elapsed_ms += own.elapsed_ms;
                    all.grain_ms = all.grain_ms.max(own.grain_ms);
                    all.covered_us += own.covered_us;
                }
                Nodes::AtOnce if own.elapsed_ms > all.elapsed_ms => *all = own,
                Nodes::AtOnce => (),
            }
        }
    }
}

/// True if the part may have rows of a table that count in the window.
pub fn may_have(part: &Part, table: &str, window: Window) -> QueryResult<bool> {
    let Some((first, last)) = part.range(table, "time")? else {
        return Ok(false);
    };
    let (_, longest) = part.range(table, "elapsed_ms")?.unwrap_or_default();
    let begin = first.saturating_sub(longest).saturating_mul(1000);
    Ok(begin < window.until && last.saturating_mul(1000) >= window.since)
}

/// The middle of a row's interval, µs since 1970.
pub fn middle_us(time_ms: i64, elapsed_ms: i64) -> i64 {
    time_ms
        .saturating_mul(1000)
        .saturating_sub(elapsed_ms.saturating_mul(500))
}

/// Adds an interval that was recorded completely.
pub fn record(buckets: &Buckets, time_ms: i64, elapsed_ms: i64, recorded: &mut [Recorded]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_nodes_in_turn_add_up_and_of_others_the_longest_counts() {
        let one = |elapsed_ms, grain_ms, covered_us| Recorded {
            elapsed_ms,
            grain_ms,
            covered_us,
        };
        let added = |nodes: Nodes| {
            let mut all = vec![Recorded::default(); 2];
            nodes.add(&mut all, vec![one(3, 3, 30), one(9, 2, 80)]);
            nodes.add(&mut all, vec![one(5, 1, 40), one(4, 4, 10)]);
            all
        };
        assert_eq!(added(Nodes::InTurn), [one(8, 3, 70), one(13, 4, 90)]);
        assert_eq!(added(Nodes::AtOnce), [one(5, 1, 40), one(9, 2, 80)]);
    }

    #[test]
    fn an_interval_counts_at_its_middle_and_covers_its_length() {
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
