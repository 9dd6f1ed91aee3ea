//! Sums by key and bucket. A part is added one block of ticks after the other. A run that covers a
//! block is counted once for the whole block. This holds for the sum and for the largest number of
//! sessions in one tick. Memory is limited by the pairs of key and bucket that occur.

use super::cells::{Bin, Cell, Cells, Sum};
use super::choice::Choice;
use super::closed_buckets::Finished;
use crate::fast::FastMap;
use crate::query::rows::integers::{Key, NULL, Number};
use crate::query::rows::ticks::{NONE, Observed, Ticks};
use std::ops::Range;

/// Cells or sums of keys. Keys are numbered from 0 on.
#[derive(Debug)]
pub struct Cube<B> {
    /// For keys of one dimension: number + 1 of each id. Ids are dense; questions about processes
    /// have a million of them.
    single: Vec<u32>,
    /// Numbers of keys with two dimensions.
    pairs: FastMap<Key, Number>,
    /// Key of each number.
    keys: Vec<Key>,
    /// Cells or sum of each number.
    all: Vec<B>,
}

impl<B> Default for Cube<B> {
    fn default() -> Self {
        Cube {
            single: Vec::new(),
            pairs: FastMap::default(),
            keys: Vec::new(),
            all: Vec::new(),
        }
    }
}

impl<B: Bin> Cube<B> {
    /// The cells or the sum of the key with this number.
    #[inline]
    pub fn at(&mut self, number: Number) -> &mut B {
        &mut self.all[number.index()]
    }

    /// The number of a key. A new key gets the next number.
    pub fn number(&mut self, key: Key) -> Number {
        let next = Number::at(self.all.len());
        let number = match key {
            (id, NULL) => {
                let at = id.index();
                if at >= self.single.len() {
                    self.single.resize(at + 1, 0);
                }
                match &mut self.single[at] {
                    known @ 0 => {
                        *known = next.index() as u32 + 1;
                        next
                    }
                    known => Number::new(*known - 1),
                }
            }
            pair => *self.pairs.entry(pair).or_insert(next),
        };
        if number == next {
            self.keys.push(key);
            self.all.push(B::default());
        }
        number
    }

    /// Adds the keys of `other`.
    pub fn merge(&mut self, other: Cube<B>) {
        if self.all.is_empty() {
            *self = other;
            return;
        }
        for (key, bin) in other.into_keys() {
            let number = self.number(key);
            self.at(number).merge(bin);
        }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Memory of keys and bins in bytes.
    pub fn bytes(&self) -> usize {
        self.single.capacity() * size_of::<u32>()
            + self.pairs.capacity() * size_of::<(Key, Number)>()
            + self.keys.capacity() * size_of::<Key>()
            + self.all.capacity() * size_of::<B>()
    }

    /// The cells or sums of all keys.
    pub fn all(&mut self) -> impl Iterator<Item = &mut B> {
        self.all.iter_mut()
    }

    /// All keys with their cells or sums.
    pub fn into_keys(self) -> impl Iterator<Item = (Key, B)> {
        self.keys.into_iter().zip(self.all)
    }
}

impl Cube<Sum> {
    /// All keys that have cells, with their sums.
    pub fn sums(&self) -> impl Iterator<Item = (Key, i64)> {
        let keys = self.keys.iter().zip(&self.all);
        keys.filter_map(|(key, sum)| Some((*key, (*sum)?)))
    }
}

impl Cube<Cells> {
    /// A cube with the keys and numbers of a choice.
    pub fn of(choice: &Choice) -> Cube<Cells> {
        let mut cube = Cube::default();
        choice.keys().iter().for_each(|key| _ = cube.number(*key));
        cube
    }

    /// Memory in bytes, including the cells.
    pub fn cell_bytes(&self) -> usize {
        self.bytes() + self.all.iter().map(Cells::bytes).sum::<usize>()
    }

    /// All keys that have cells, with their cells.
    pub fn into_cells(self) -> impl Iterator<Item = (Key, Cells)> {
        self.into_keys().filter(|(_, cells)| !cells.is_empty())
    }
}

/// The sums of one thread.
pub struct Measures {
    /// The observed time.
    pub observed: Observed,
    /// Cells for each group of dimensions.
    pub cubes: Vec<Cube<Cells>>,
    /// Sums of the window from totals, if the question needs only sums.
    pub weights: Cube<Sum>,
    /// Summary of finished buckets: the load of all keys together minus the load of the keys that
    /// have cells. It becomes the line "other".
    pub rest: Finished,
}

impl Measures {
    /// Adds the sums of another thread.
    pub fn merge(&mut self, other: Measures) {
        self.observed.merge(&other.observed);
        self.rest.merge(other.rest);
        self.weights.merge(other.weights);
        for (cube, other) in self.cubes.iter_mut().zip(other.cubes) {
            cube.merge(other);
        }
    }

    /// Replaces the cells of these buckets by their summary. At most `observed` buckets were
    /// observed.
    pub fn finish(&mut self, buckets: Range<u32>, observed: usize) {
        if buckets.is_empty() {
            return;
        }
        let weights_ms = self.observed.finish(buckets.clone());
        let at = |cell: &Cell| (cell.bucket - buckets.start) as usize;
        let [whole, keys] = &mut self.cubes[..] else {
            return;
        };
        let mut rest_ms = vec![0; weights_ms.len()];
        for cell in whole.all().flat_map(|cells| cells.take(buckets.clone())) {
            rest_ms[at(&cell)] += cell.sum_ms;
        }
        for cells in keys.all() {
            cells.finish(buckets.clone(), observed, |cell| {
                rest_ms[at(cell)] -= cell.sum_ms;
                weights_ms[at(cell)]
            });
        }
        for (sum_ms, weight_ms) in rest_ms.into_iter().zip(weights_ms) {
            if sum_ms != 0 {
                self.rest.add(sum_ms, 0, weight_ms);
            }
        }
    }
}

/// A [`Grid`] has at most this many counts for each piece, plus [`GRID_LEAST`].
const GRID_BY_PIECE: usize = 32;
const GRID_LEAST: usize = 1 << 16;
/// Same as [`GRID_BY_PIECE`], for pieces that come one by one.
const GRID_ONE_BY_ONE: usize = 4;
/// Maximum number of counts in a [`Grid`].
const GRID_MOST: usize = 1 << 22;

/// Adds up the pieces of a part. It reuses its memory for the next part.
#[derive(Default)]
pub struct Adder {
    grid: Grid,
    places: Places,
    counts: Vec<Count>,
    /// Numbers that occur in the current span.
    numbers: Vec<Number>,
}

impl Adder {
    /// Calls `each` with the cells of pieces, by number of the key. `ranges` are the rows of each
    /// piece's ticks (begin, end); `numbers` are the numbers of the pieces' keys, below `width`.
    /// Cells come in ascending order of buckets. If the ticks of a bucket have different weights, a
    /// key has several cells for it.
    pub fn cells(
        &mut self,
        ticks: &Ticks,
        ranges: &[(u32, u32)],
        numbers: &[Number],
        width: usize,
        mut each: impl FnMut(Number, Cell),
    ) {
        let entries = width.saturating_mul(ticks.len());
        let most = GRID_MOST.min(GRID_LEAST + GRID_BY_PIECE * ranges.len());
        if entries <= most && self.grid.fill(ticks.len(), ranges, numbers, width) {
            self.grid.cells(ticks, width, &mut each);
        } else {
            self.sorted_cells(ticks, ranges, numbers, width, &mut each);
        }
    }

    /// An empty grid for pieces that come one by one, with keys below `width`. `None` if it would
    /// take more memory than the ranges and numbers of `pieces` pieces.
    pub fn grid(&mut self, ticks: &Ticks, pieces: usize, width: usize) -> Option<&mut Grid> {
        let entries = width.saturating_mul(ticks.len());
        let most = GRID_MOST.min(GRID_LEAST + GRID_ONE_BY_ONE * pieces);
        (entries <= most).then(|| {
            self.grid.clear(ticks.len(), width);
            &mut self.grid
        })
    }

    fn sorted_cells(
        &mut self,
        ticks: &Ticks,
        ranges: &[(u32, u32)],
        numbers: &[Number],
        width: usize,
        each: &mut impl FnMut(Number, Cell),
    ) {
        self.places.fill(ticks, ranges, numbers);
        if self.counts.len() < width {
            self.counts.resize(width, Count::default());
        }
        let mut span = (NONE, 0);
        for (block, (begin, end)) in ticks.blocks().iter().enumerate() {
            let row = *begin as usize;
            let next = (ticks.bucket[row], ticks.weight_ms[row]);
            if next != span {
                self.end(span, each);
                span = next;
            }
            if span.0 != NONE {
                self.block(block, *begin, *end);
            }
        }
        self.end(span, each);
    }

    fn block(&mut self, block: usize, begin: u32, end: u32) {
        let (counts, numbers) = (&mut self.counts, &mut self.numbers);
        let whole = self.places.of(whole(begin, block));
        for number in whole {
            let count = &mut counts[number.index()];
            if count.sum == 0 {
                numbers.push(*number);
            }
            count.whole += 1;
            count.most = count.most.max(count.whole);
            count.sum += u64::from(end - begin);
        }
        for tick in begin..end {
            for number in self.places.of(single(tick, block)) {
                let count = &mut counts[number.index()];
                if count.sum == 0 {
                    numbers.push(*number);
                }
                if count.tick != tick + 1 {
                    count.tick = tick + 1;
                    count.now = count.whole;
                }
                count.now += 1;
                count.most = count.most.max(count.now);
                count.sum += 1;
            }
        }
        for number in whole {
            counts[number.index()].whole = 0;
        }
    }

    /// Ends a span of consecutive ticks with one bucket and weight: calls `each` with its cells.
    fn end(&mut self, (bucket, weight_ms): (u32, i64), each: &mut impl FnMut(Number, Cell)) {
        for number in self.numbers.drain(..) {
            let count = std::mem::take(&mut self.counts[number.index()]);
            let cell = Cell {
                bucket,
                sessions: count.most,
                sum_ms: count.sum as i64 * weight_ms,
            };
            each(number, cell);
        }
    }
}

/// Number of pieces with each key at each tick. It is the fastest way unless there are many keys
/// for few pieces.
#[derive(Default)]
pub struct Grid {
    counts: Vec<u16>,
    /// Number of ticks, which is the number of counts of each key.
    rows: usize,
    /// True if a count did not fit into 16 bits.
    is_over: bool,
}

impl Grid {
    fn clear(&mut self, rows: usize, width: usize) {
        self.counts.clear();
        self.counts.resize(rows * width, 0);
        (self.rows, self.is_over) = (rows, false);
    }

    /// Counts a piece with this key at the ticks of a range.
    #[inline]
    pub fn add(&mut self, number: Number, (begin, end): (u32, u32)) {
        let at = number.index() * self.rows;
        let (begin, end) = (at + begin as usize, at + end as usize);
        let mut is_over = false;
        let mut add = |count: &mut u16| {
            *count = count.wrapping_add(1);
            is_over |= *count == 0;
        };
        if end == begin + 1 {
            add(&mut self.counts[begin]);
        } else {
            for count in &mut self.counts[begin..end] {
                add(count);
            }
        }
        self.is_over |= is_over;
    }

    /// True if a count did not fit into 16 bits, so that the counts are wrong.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Counts the pieces. Returns false if a count does not fit into 16 bits.
    fn fill(
        &mut self,
        rows: usize,
        ranges: &[(u32, u32)],
        numbers: &[Number],
        width: usize,
    ) -> bool {
        self.clear(rows, width);
        for (range, number) in ranges.iter().zip(numbers) {
            self.add(*number, *range);
        }
        !self.is_over
    }

    /// Calls `each` with the cells, in ascending order of keys and buckets.
    pub fn cells(&self, ticks: &Ticks, width: usize, each: &mut impl FnMut(Number, Cell)) {
        let spans = ticks.spans();
        let rows = self.counts.chunks_exact(ticks.len().max(1)).take(width);
        for (number, counts) in rows.enumerate() {
            for (begin, end) in &spans {
                let row = *begin as usize;
                let counts = &counts[row..*end as usize];
                let most = counts.iter().fold(0, |most, count| most.max(*count));
                if most == 0 {
                    continue;
                }
                let sum: u32 = counts.iter().map(|count| u32::from(*count)).sum();
                let cell = Cell {
                    bucket: ticks.bucket[row],
                    sessions: u32::from(most),
                    sum_ms: i64::from(sum) * ticks.weight_ms[row],
                };
                each(Number::at(number), cell);
            }
        }
    }
}

/// The pieces of one key in a span.
#[derive(Clone, Copy, Default)]
struct Count {
    /// Number of pieces, summed over all ticks.
    sum: u64,
    /// 1 + the row of the tick that `now` belongs to; 0 before the first tick.
    tick: u32,
    /// Number of pieces so far in that tick.
    now: u32,
    /// Number of pieces that cover the whole block.
    whole: u32,
    /// Largest number of pieces in one tick.
    most: u32,
}

/// The numbers of pieces' keys, sorted by place (a counting sort). A piece stands at every block that it
/// covers, and at each of its other ticks.
#[derive(Default)]
struct Places {
    numbers: Vec<Number>,
    /// End of the numbers of each place.
    ends: Vec<u32>,
}

/// The place of pieces that cover a block; it stands before the places of its ticks.
#[inline]
fn whole(begin: u32, block: usize) -> usize {
    begin as usize + block
}

/// The place of pieces that have this tick but do not cover its block.
#[inline]
fn single(tick: u32, block: usize) -> usize {
    tick as usize + block + 1
}

impl Places {
    fn fill(&mut self, ticks: &Ticks, ranges: &[(u32, u32)], all: &[Number]) {
        let places = ticks.len() + ticks.blocks().len();
        let Places { numbers, ends } = self;
        // Counts are shifted by one place, so that ends serve as starts while the places are
        // filled.
        ends.clear();
        ends.resize(places + 1, 0);
        for range in ranges {
            for_each_place(ticks, *range, |place| ends[place + 1] += 1);
        }
        for place in 0..places {
            ends[place + 1] += ends[place];
        }
        // Every old value is overwritten.
        numbers.resize(ends[places] as usize, Number::default());
        for (range, number) in ranges.iter().zip(all) {
            for_each_place(ticks, *range, |place| {
                let end = &mut ends[place];
                numbers[*end as usize] = *number;
                *end += 1;
            });
        }
    }

    fn of(&self, place: usize) -> &[Number] {
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.numbers[begin as usize..self.ends[place] as usize]
    }
}

#[inline]
fn for_each_place(ticks: &Ticks, (begin, end): (u32, u32), mut each: impl FnMut(usize)) {
    if end == begin + 1 {
        // Most pieces have one tick. A block of one tick counts the piece either way.
        each(single(begin, ticks.block_of(begin)));
        return;
    }
    let mut at = begin;
    while at < end {
        let block = ticks.block_of(at);
        let (from, to) = ticks.blocks()[block];
        if at == from && to <= end {
            each(whole(from, block));
            at = to;
            continue;
        }
        let stop = to.min(end);
        for tick in at..stop {
            each(single(tick, block));
        }
        at = stop;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::rows::integers::Id;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// For a key's number and a bucket: the largest number of rows, and the sum.
    type ByBucket = BTreeMap<(Number, u32), (u32, i64)>;

    fn put(found: &mut ByBucket, number: Number, cell: Cell) {
        let sum = found.entry((number, cell.bucket)).or_default();
        *sum = (sum.0.max(cell.sessions), sum.1 + cell.sum_ms);
    }

    fn naive(ticks: &Ticks, ranges: &[(u32, u32)], numbers: &[Number]) -> ByBucket {
        let mut by_tick: BTreeMap<(Number, u32), u32> = BTreeMap::new();
        for ((begin, end), number) in ranges.iter().zip(numbers) {
            (*begin..*end).for_each(|row| *by_tick.entry((*number, row)).or_default() += 1);
        }
        let mut found = ByBucket::new();
        for ((number, row), count) in by_tick {
            let row = row as usize;
            let cell = Cell {
                bucket: ticks.bucket[row],
                sessions: count,
                sum_ms: i64::from(count) * ticks.weight_ms[row],
            };
            if cell.bucket != NONE {
                put(&mut found, number, cell);
            }
        }
        found
    }

    proptest! {
        #[test]
        fn keys_are_numbered_as_they_are_met(
            keys in prop::collection::vec((0..20_u32, prop_oneof![Just(0), 1..4_u32]), 0..60),
        ) {
            let id = |(a, b)| (Id::new(a), Id::new(b));
            let keys: Vec<Key> = keys.into_iter().map(id).collect();
            let mut expected: Vec<(Key, Sum)> = Vec::new();
            let (mut cube, mut other) = (Cube::<Sum>::default(), Cube::<Sum>::default());
            for (at, key) in keys.iter().enumerate() {
                let known = expected.iter().position(|known| known.0 == *key);
                let place = known.unwrap_or(expected.len());
                if place == expected.len() {
                    expected.push((*key, Some(0)));
                }
                expected[place].1 = expected[place].1.map(|sum| sum + at as i64);
                prop_assert_eq!(cube.number(*key), Number::at(place));
                *cube.at(Number::at(place)) = expected[place].1;
                let number = other.number(*key);
                *other.at(number) = expected[place].1;
            }
            prop_assert_eq!(cube.len(), expected.len());
            cube.merge(other);
            let twice = |sum: Sum| sum.map(|sum| 2 * sum);
            let merged = expected.iter().map(|(key, sum)| (*key, twice(*sum)));
            prop_assert_eq!(cube.into_keys().collect::<Vec<_>>(), merged.collect::<Vec<_>>());
        }
    }

    proptest! {
        #[test]
        fn a_grid_a_sort_and_counting_tick_by_tick_agree(
            rows in prop::collection::vec((0..4u32, 1..3i64), 1..60),
            pieces in prop::collection::vec((0..60u32, 0..30u32, 0..5u32), 0..80),
        ) {
            let mut rows: Vec<(u32, i64)> = rows;
            rows.sort_by_key(|row| row.0);
            let rows = rows.iter().map(|(bucket, weight)| {
                (if *bucket == 3 { NONE } else { *bucket }, 1_000 * weight)
            });
            let ticks = Ticks::of_rows(rows);
            let all = ticks.len() as u32;
            let range = |p: &(u32, u32, u32)| (p.0.min(all), (p.0 + p.1).min(all));
            let ranges: Vec<(u32, u32)> = pieces.iter().map(range).collect();
            let numbers: Vec<Number> = pieces.iter().map(|p| Number::new(p.2)).collect();
            let expected = naive(&ticks, &ranges, &numbers);
            let mut adder = Adder::default();
            for _ in 0..2 {
                let mut found = ByBucket::new();
                adder.cells(&ticks, &ranges, &numbers, 5, |number, cell| {
                    put(&mut found, number, cell);
                });
                prop_assert_eq!(&found, &expected);
                let mut found = ByBucket::new();
                let mut each = |number, cell| put(&mut found, number, cell);
                adder.sorted_cells(&ticks, &ranges, &numbers, 5, &mut each);
                prop_assert_eq!(&found, &expected);
            }
        }
    }

    #[test]
    fn more_sessions_in_a_tick_than_a_grid_can_count_are_counted() {
        let ticks = Ticks::of_rows([(0, 1_000), (0, 1_000)].into_iter());
        let ranges = vec![(1, 2); 70_000];
        let mut found = ByBucket::new();
        let each = |number, cell| put(&mut found, number, cell);
        Adder::default().cells(&ticks, &ranges, &vec![Number::default(); 70_000], 1, each);
        assert_eq!(
            found,
            ByBucket::from([((Number::default(), 0), (70_000, 70_000_000))])
        );
    }
}
