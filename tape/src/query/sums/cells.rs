//! The load of a key in each bucket, and the figures that answers compute from it.

use super::closed_buckets::Finished;
use crate::query::rows::ticks::Observed;
use crate::query::value::number::{self, Ratio};
use std::collections::BTreeMap;
use std::ops::Range;

/// One key in one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The bucket.
    pub bucket: u32,
    /// Largest number of sessions in one tick.
    pub sessions: u32,
    /// Sum of the weights.
    pub sum_ms: i64,
}

/// Collects the cells of one key.
pub trait Bin: Default {
    /// Adds a cell.
    fn add(&mut self, cell: Cell);

    /// Adds cells, mostly in ascending order of buckets.
    fn extend(&mut self, cells: impl Iterator<Item = Cell>);

    /// Adds cells in ascending order of buckets. No bucket is before `first`.
    fn append(&mut self, first: u32, cells: impl ExactSizeIterator<Item = Cell>);

    /// Adds the cells from other parts.
    fn merge(&mut self, other: Self);
}

/// Sum of the weights of cells, in ms; `None` without cells.
pub type Sum = Option<i64>;

impl Bin for Sum {
    #[inline]
    fn add(&mut self, cell: Cell) {
        *self.get_or_insert(0) += cell.sum_ms;
    }

    fn extend(&mut self, cells: impl Iterator<Item = Cell>) {
        cells.for_each(|cell| self.add(cell));
    }

    fn append(&mut self, _: u32, cells: impl ExactSizeIterator<Item = Cell>) {
        self.extend(cells);
    }

    fn merge(&mut self, other: Sum) {
        *self = self.map_or(other, |own| Some(own + other.unwrap_or(0)));
    }
}

/// The cells of a key in the buckets of a window.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// The cells in ascending order of buckets.
    pub rows: Vec<Cell>,
    /// Summary of buckets whose cells were dropped.
    finished: Option<Box<Finished>>,
}

impl From<Vec<Cell>> for Cells {
    fn from(rows: Vec<Cell>) -> Cells {
        Cells {
            rows,
            finished: None,
        }
    }
}

impl Bin for Cells {
    fn add(&mut self, cell: Cell) {
        let rows = &mut self.rows;
        match rows.last_mut() {
            Some(last) if last.bucket == cell.bucket => last.add(&cell),
            Some(last) if last.bucket > cell.bucket => {
                let row = rows.partition_point(|r| r.bucket < cell.bucket);
                if rows[row].bucket == cell.bucket {
                    rows[row].add(&cell);
                } else {
                    rows.insert(row, cell);
                }
            }
            _ => rows.push(cell),
        }
    }

    fn extend(&mut self, cells: impl Iterator<Item = Cell>) {
        self.rows.reserve(cells.size_hint().1.unwrap_or(0));
        let mut last = self.rows.last().map(|c| c.bucket);
        for cell in cells {
            if last.is_none_or(|last| last < cell.bucket) {
                last = Some(cell.bucket);
                self.rows.push(cell);
            } else {
                self.add(cell);
            }
        }
    }

    fn append(&mut self, first: u32, cells: impl ExactSizeIterator<Item = Cell>) {
        match self.rows.last() {
            Some(last) if last.bucket >= first => self.extend(cells),
            _ => self.rows.extend(cells),
        }
    }

    fn merge(&mut self, other: Cells) {
        match (&mut self.finished, other.finished) {
            (Some(own), Some(finished)) => own.merge(*finished),
            (own, finished) => *own = own.take().or(finished),
        }
        if self.rows.last().map(|c| c.bucket) < other.rows.first().map(|c| c.bucket) {
            self.rows.extend(other.rows);
            return;
        }
        let own = std::mem::take(&mut self.rows);
        let (mut own, mut other) = (&own[..], &other.rows[..]);
        self.rows.reserve(own.len() + other.len());
        // A thread reads many neighbouring buckets in turn, so cells are copied in stretches.
        while let (Some(first), Some(second)) = (own.first(), other.first()) {
            if first.bucket == second.bucket {
                self.rows.push(*first);
                self.add(*second);
                (own, other) = (&own[1..], &other[1..]);
                continue;
            }
            let behind = match first.bucket < second.bucket {
                true => (&mut own, second.bucket),
                false => (&mut other, first.bucket),
            };
            let (rest, until) = behind;
            let (before, after) = rest.split_at(rest.partition_point(|c| c.bucket < until));
            self.rows.extend_from_slice(before);
            *rest = after;
        }
        self.rows.extend_from_slice(own);
        self.rows.extend_from_slice(other);
    }
}

impl Cells {
    /// Sum of the weights of all buckets.
    pub fn sum_ms(&self) -> i64 {
        let sum: i64 = self.rows.iter().map(|c| c.sum_ms).sum();
        sum + self.finished.as_ref().map_or(0, |f| f.sum_ms)
    }

    /// Largest number of sessions in one tick.
    pub fn sessions(&self) -> i64 {
        let finished = self.finished.iter().map(|f| f.sessions);
        let all = self.rows.iter().map(|c| c.sessions).chain(finished);
        all.max().map_or(0, i64::from)
    }

    /// True if no cell was added.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.finished.is_none()
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        let finished = self.finished.as_ref().map_or(0, |f| f.bytes());
        self.rows.capacity() * size_of::<Cell>() + finished
    }

    /// Removes the cells of these buckets and returns them.
    pub fn take(&mut self, buckets: Range<u32>) -> impl Iterator<Item = Cell> {
        let begin = self.rows.partition_point(|c| c.bucket < buckets.start);
        let end = self.rows.partition_point(|c| c.bucket < buckets.end);
        self.rows.drain(begin..end)
    }

    /// Replaces the cells of these buckets by their summary. `weigh` gives the observed weight of a
    /// cell's bucket. At most `observed` buckets were observed.
    pub fn finish(
        &mut self,
        buckets: Range<u32>,
        observed: usize,
        mut weigh: impl FnMut(&Cell) -> i64,
    ) {
        let finished = self.finished.take();
        let mut finished = finished.unwrap_or_else(|| Box::new(Finished::of(observed)));
        for cell in self.take(buckets) {
            finished.add(cell.sum_ms, cell.sessions, weigh(&cell));
        }
        self.finished = Some(finished);
    }

    /// The same cells with a summary of finished buckets.
    pub fn with_finished(self, finished: Finished) -> Cells {
        let finished = Some(Box::new(finished));
        Cells { finished, ..self }
    }

    /// The cell of a bucket.
    pub fn bucket(&self, bucket: u32) -> Option<&Cell> {
        let row = self.rows.binary_search_by_key(&bucket, |c| c.bucket).ok()?;
        self.rows.get(row)
    }

    /// AAS of each bucket with a cell.
    pub fn loads(&self, observed: &Observed) -> Vec<Ratio> {
        let loads = self.weighed(observed);
        loads.filter_map(|(ms, of)| ratio(ms, of)).collect()
    }

    /// For each bucket with a cell: weight of the cell, and observed weight of the bucket, in ms.
    fn weighed<'a>(&'a self, observed: &'a Observed) -> impl Iterator<Item = (i64, i64)> + 'a {
        let cells = self.rows.iter();
        let all = cells.map(|cell| (cell.sum_ms, observed.weight_ms(cell.bucket)));
        all.filter(|(_, of)| *of > 0)
    }

    /// Highest AAS of a bucket.
    pub fn peak(&self, observed: &Observed) -> Ratio {
        let mut most = (0, 1);
        for (ms, of) in self.weighed(observed) {
            let is_more = match of == most.1 {
                true => ms > most.0,
                false => i128::from(ms) * i128::from(most.1) > i128::from(most.0) * i128::from(of),
            };
            if is_more {
                most = (ms, of);
            }
        }
        let most = ratio(most.0, most.1).unwrap_or(Ratio::ZERO);
        let finished = self.finished.as_ref().map(|f| f.peak());
        finished.map_or(most, |finished| finished.max(most))
    }

    /// 99th percentile of the AAS of observed buckets.
    pub fn p99(&self, observed: &Observed) -> Ratio {
        let buckets = observed.observed_buckets();
        if let Some(finished) = &self.finished {
            return finished.p99(self.loads(observed), buckets);
        }
        if number::p99_is_zero(self.rows.len(), buckets) {
            return Ratio::ZERO;
        }
        // If all weights divide one number, loads compare as integers: a cell's sum times that
        // number divided by the weight.
        let found = match self.scaled(observed) {
            Some((loads, of)) => {
                let by = |ms: i64| ratio(ms, of).unwrap_or(Ratio::ZERO);
                number::p99(loads, buckets, by)
            }
            None => number::p99(self.loads(observed), buckets, |load| load),
        };
        found.unwrap_or(Ratio::ZERO)
    }

    /// AAS of each bucket with a cell, as numerators over one denominator. `None` without a common
    /// multiple of the weights, or if a numerator is too large.
    fn scaled(&self, observed: &Observed) -> Option<(Vec<i64>, i64)> {
        let of = observed.common_ms()?;
        let mut loads = Vec::with_capacity(self.rows.len());
        let (mut weight_ms, mut times) = (of, 1);
        for cell in &self.rows {
            let own = observed.weight_ms(cell.bucket);
            if own != weight_ms {
                if own <= 0 {
                    continue;
                }
                (weight_ms, times) = (own, of / own);
            }
            loads.push(cell.sum_ms.checked_mul(times)?);
        }
        Some((loads, of))
    }

    /// The cells of several keys added up. The sum lacks the largest number of sessions in one
    /// tick, which does not follow from them, and finished buckets.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Cells>) -> Cells {
        let all: Vec<&[Cell]> = all.into_iter().map(|cells| &cells.rows[..]).collect();
        let first = all.iter().filter_map(|c| c.first()).map(|c| c.bucket).min();
        let last = all.iter().filter_map(|c| c.last()).map(|c| c.bucket).max();
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
        let count: usize = all.iter().map(|cells| cells.len()).sum();
        let cells = all.iter().copied().flatten();
        let found: Vec<(u32, i64)> = if ((last - first) as usize) < 8 * count + 1024 {
            let mut sums: Vec<Option<i64>> = vec![None; (last - first) as usize + 1];
            for cell in cells {
                *sums[(cell.bucket - first) as usize].get_or_insert(0) += cell.sum_ms;
            }
            let some = (first..).zip(sums);
            some.filter_map(|(bucket, sum)| Some((bucket, sum?)))
                .collect()
        } else {
            let mut sums: BTreeMap<u32, i64> = BTreeMap::new();
            for cell in cells {
                *sums.entry(cell.bucket).or_default() += cell.sum_ms;
            }
            sums.into_iter().collect()
        };
        let cells = found.into_iter().map(|(bucket, sum_ms)| Cell {
            bucket,
            sessions: 0,
            sum_ms,
        });
        cells.collect::<Vec<Cell>>().into()
    }

    /// The cells minus `parts`, the cells of some keys among them. The result also lacks the
    /// largest number of sessions in one tick.
    pub fn without<'a>(&self, parts: impl IntoIterator<Item = &'a Cells>) -> Cells {
        let mut parts = Cells::merged(parts).rows.into_iter().peekable();
        let left = self.rows.iter().filter_map(|cell| {
            while parts.next_if(|part| part.bucket < cell.bucket).is_some() {}
            let part = parts.next_if(|part| part.bucket == cell.bucket);
            let sum_ms = cell.sum_ms - part.map_or(0, |part| part.sum_ms);
            let left = Cell {
                bucket: cell.bucket,
                sessions: 0,
                sum_ms,
            };
            (sum_ms != 0).then_some(left)
        });
        left.collect::<Vec<Cell>>().into()
    }
}

fn ratio(ms: i64, of_ms: i64) -> Option<Ratio> {
    Ratio::new(ms.into(), of_ms.into())
}

impl Cell {
    fn add(&mut self, other: &Cell) {
        self.sum_ms += other.sum_ms;
        self.sessions = self.sessions.max(other.sessions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells(found: &[(u32, u32)]) -> Cells {
        let mut cells = Cells::default();
        for (bucket, sum) in found {
            cells.add(Cell {
                bucket: *bucket,
                sessions: sum % 7,
                sum_ms: i64::from(*sum),
            });
        }
        cells
    }

    fn observed(weights_ms: &[i64]) -> Observed {
        let mut observed = Observed::default();
        for (bucket, weight_ms) in weights_ms.iter().enumerate() {
            observed.at(bucket as u32).observed_ms = *weight_ms;
        }
        observed.index();
        observed
    }

    proptest! {
        #[test]
        fn merged_or_extended_is_as_added_one_by_one(
            a in prop::collection::vec((0..90u32, 1..50u32), 0..60),
            b in prop::collection::vec((0..90u32, 1..50u32), 0..60),
        ) {
            let expected = cells(&[&a[..], &b[..]].concat());
            let mut merged = cells(&a);
            merged.merge(cells(&b));
            prop_assert_eq!(&merged.rows, &expected.rows);
            let mut extended = cells(&a);
            extended.extend(cells(&b).rows.into_iter());
            prop_assert_eq!(&extended.rows, &expected.rows);
        }

        #[test]
        fn a_percentile_of_scaled_sums_equals_the_percentile_of_ratios(
            weights_ms in prop::collection::vec(prop::sample::select(vec![0, 1, 59_000, 60_000]), 1..300),
            sums in prop::collection::vec((0..300u32, 1..5_000_000u32), 0..300),
        ) {
            let observed = observed(&weights_ms);
            let seen = |found: &&(u32, u32)| (found.0 as usize) < weights_ms.len();
            let sums: Vec<(u32, u32)> = sums.iter().filter(seen).copied().collect();
            let cells = cells(&sums);
            prop_assert!(cells.scaled(&observed).is_some());
            let buckets = observed.observed_buckets();
            prop_assert_eq!(buckets, weights_ms.iter().filter(|ms| **ms > 0).count());
            let expected = number::p99(cells.loads(&observed), buckets, |load| load);
            prop_assert_eq!(cells.p99(&observed), expected.unwrap_or(Ratio::ZERO));
        }
    }

    #[test]
    fn weights_without_a_small_common_multiple_are_compared_as_ratios() {
        let observed = observed(&[(1 << 40) + 1, 1 << 39, 3]);
        let cells = cells(&[(0, 10), (1, 7), (2, 1)]);
        assert!(cells.scaled(&observed).is_none());
        assert_eq!(cells.peak(&observed), ratio(1, 3).unwrap());
        assert!(cells.p99(&observed) > ratio(32, 100).unwrap());
    }
}
