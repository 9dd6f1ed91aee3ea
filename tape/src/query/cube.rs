//! Sums by key and bucket. A part is added block of ticks by block: a run that
//! covers a block adds to its sum and its most sessions in one tick at once,
//! whatever its length. Memory is bounded by keys × buckets that occur.

use super::number::{Ratio, p99};
use super::ticks::{BLOCK, NONE, Observed, Ticks};
use std::collections::HashMap;
use std::hash::Hash;

/// One key in one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The bucket.
    pub bucket: u32,
    /// Most rows in one tick.
    pub sessions: u32,
    /// Σ weight.
    pub sum_ms: i64,
}

/// The cells of a key, ascending by bucket.
#[derive(Clone, Debug, Default)]
pub struct Cells(pub Vec<Cell>);

impl Cells {
    /// Adds a cell.
    pub fn add(&mut self, cell: Cell) {
        let rows = &mut self.0;
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

    /// Σ weight of all buckets.
    pub fn sum_ms(&self) -> i64 {
        self.0.iter().map(|c| c.sum_ms).sum()
    }

    /// Most rows in one tick.
    pub fn sessions(&self) -> i64 {
        self.0
            .iter()
            .map(|c| i64::from(c.sessions))
            .max()
            .unwrap_or(0)
    }

    /// A bucket's cell.
    pub fn bucket(&self, bucket: u32) -> Option<&Cell> {
        let row = self.0.binary_search_by_key(&bucket, |c| c.bucket).ok()?;
        self.0.get(row)
    }

    /// Adds the cells of other parts.
    pub fn merge(&mut self, other: Cells) {
        if self.0.last().map(|c| c.bucket) < other.0.first().map(|c| c.bucket) {
            self.0.extend(other.0);
            return;
        }
        let (own, mut other) = (std::mem::take(&mut self.0), other.0.into_iter().peekable());
        self.0.reserve(own.len() + other.len());
        for cell in own {
            while let Some(before) = other.next_if(|o| o.bucket < cell.bucket) {
                self.0.push(before);
            }
            self.0.push(cell);
            while let Some(same) = other.next_if(|o| o.bucket == cell.bucket) {
                self.add(same);
            }
        }
        self.0.extend(other);
    }

    /// AAS of each bucket with rows.
    pub fn loads(&self, observed: &Observed) -> Vec<Ratio> {
        let mut coverage = observed.buckets().iter();
        let loads = self.0.iter().filter_map(|cell| {
            let (_, c) = coverage.find(|(bucket, _)| *bucket == cell.bucket)?;
            Ratio::new(cell.sum_ms.into(), c.observed_ms.into())
        });
        loads.collect()
    }

    /// Highest AAS of a bucket.
    pub fn peak(&self, observed: &Observed) -> Ratio {
        self.loads(observed)
            .into_iter()
            .max()
            .unwrap_or(Ratio::ZERO)
    }

    /// 99th percentile of the AAS of observed buckets.
    pub fn p99(&self, observed: &Observed) -> Ratio {
        let buckets = observed.observed_buckets();
        p99(self.loads(observed), buckets).unwrap_or(Ratio::ZERO)
    }

    /// The cells of several keys taken together, without the most rows in one
    /// tick, which does not follow from them.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Cells>) -> Cells {
        let mut sums: HashMap<u32, i64> = HashMap::new();
        for cells in all {
            for cell in &cells.0 {
                *sums.entry(cell.bucket).or_default() += cell.sum_ms;
            }
        }
        let mut cells: Vec<Cell> = sums
            .into_iter()
            .map(|(bucket, sum_ms)| Cell {
                bucket,
                sessions: 0,
                sum_ms,
            })
            .collect();
        cells.sort_unstable_by_key(|c| c.bucket);
        Cells(cells)
    }
}

impl Cell {
    fn add(&mut self, other: &Cell) {
        self.sum_ms += other.sum_ms;
        self.sessions = self.sessions.max(other.sessions);
    }
}

/// Cells by key.
#[derive(Debug)]
pub struct Cube<K> {
    ids: HashMap<K, usize>,
    cells: Vec<Cells>,
}

impl<K> Default for Cube<K> {
    fn default() -> Self {
        Cube {
            ids: HashMap::new(),
            cells: Vec::new(),
        }
    }
}

impl<K: Hash + Eq> Cube<K> {
    /// Adds the cells of a part: by code, whose key has this id.
    pub fn add(&mut self, cells: &[(u32, Cell)], ids: &[usize]) {
        for (code, cell) in cells {
            self.cells[ids[*code as usize]].add(*cell);
        }
    }

    /// Adds a cell to the key with this id.
    #[inline]
    pub fn add_cell(&mut self, id: usize, cell: Cell) {
        self.cells[id].add(cell);
    }

    /// The id of a key.
    pub fn id(&mut self, key: K) -> usize {
        let next = self.cells.len();
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.cells.push(Cells::default());
        }
        id
    }

    /// Adds the cells of other parts.
    pub fn merge(&mut self, other: Cube<K>) {
        for (key, cells) in other.into_keys() {
            let id = self.id(key);
            self.cells[id].merge(cells);
        }
    }

    /// Bytes that the cells take.
    pub fn bytes(&self) -> usize {
        let cells = self.cells.iter().map(|cells| cells.0.capacity());
        cells.sum::<usize>() * size_of::<Cell>()
    }

    /// Keys that occur, with their cells.
    pub fn into_keys(self) -> Vec<(K, Cells)> {
        let mut cells: Vec<Option<Cells>> = self.cells.into_iter().map(Some).collect();
        let keys = self.ids.into_iter().filter_map(|(key, id)| {
            let cells = cells[id].take()?;
            (!cells.0.is_empty()).then_some((key, cells))
        });
        keys.collect()
    }
}

/// Adds up the pieces of a part. Its memory is used again for the next one.
#[derive(Default)]
pub struct Adder {
    entries: Entries,
    counts: Counts,
    cells: Vec<(u32, Cell)>,
}

impl Adder {
    /// The cells of pieces, by code: `ranges` are the rows of their ticks
    /// (begin, end), `codes` their keys, below `width`. They come ascending
    /// by bucket; a bucket of many blocks has several for one code.
    pub fn cells(
        &mut self,
        ticks: &Ticks,
        ranges: &[(u32, u32)],
        codes: &[u32],
        width: usize,
    ) -> &[(u32, Cell)] {
        self.entries.fill(ticks, ranges, codes);
        self.counts.widen(width);
        self.cells.clear();
        for (block, (begin, end)) in ticks.blocks().iter().enumerate() {
            let bucket = ticks.bucket[*begin as usize];
            if bucket == NONE {
                continue;
            }
            for entry in self.entries.of(block) {
                self.counts.add(entry, (end - begin) as u8);
            }
            self.counts.take(|code, sum, sessions| {
                let sum_ms = i64::from(sum) * ticks.weight_ms[*begin as usize];
                let cell = Cell {
                    bucket,
                    sessions,
                    sum_ms,
                };
                self.cells.push((code, cell));
            });
        }
        &self.cells
    }
}

/// A piece within a block: its code, first tick and end.
#[derive(Clone, Copy, Default)]
struct Entry {
    code: u32,
    begin: u8,
    end: u8,
}

/// Pieces cut at the blocks of ticks, by block (a counting sort).
#[derive(Default)]
struct Entries {
    entries: Vec<Entry>,
    /// End of each block's entries.
    ends: Vec<u32>,
}

impl Entries {
    fn fill(&mut self, ticks: &Ticks, ranges: &[(u32, u32)], codes: &[u32]) {
        let blocks = ticks.blocks();
        let Entries { entries, ends } = self;
        ends.clear();
        ends.resize(blocks.len() + 1, 0);
        let some = |range: &&(u32, u32)| range.0 < range.1;
        for (begin, end) in ranges.iter().filter(some) {
            for block in ticks.block_of(*begin)..=ticks.block_of(end - 1) {
                ends[block + 1] += 1;
            }
        }
        for block in 0..blocks.len() {
            ends[block + 1] += ends[block];
        }
        // What it held before is written over.
        entries.resize(ends[blocks.len()] as usize, Entry::default());
        for ((begin, end), code) in ranges.iter().zip(codes) {
            if begin == end {
                continue;
            }
            for block in ticks.block_of(*begin)..=ticks.block_of(end - 1) {
                let (from, to) = blocks[block];
                let place = &mut ends[block];
                entries[*place as usize] = Entry {
                    code: *code,
                    begin: (begin.max(&from) - from) as u8,
                    end: (end.min(&to) - from) as u8,
                };
                *place += 1;
            }
        }
        ends.truncate(blocks.len());
    }

    fn of(&self, block: usize) -> &[Entry] {
        let begin = block.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.entries[begin as usize..self.ends[block] as usize]
    }
}

/// The rows of one code in a block.
#[derive(Clone, Copy, Default)]
struct Count {
    /// Rows of all ticks taken together.
    sum: u32,
    /// Pieces that cover the whole block.
    whole: u32,
    /// Most of the others in one tick.
    most: u32,
    /// The others by tick.
    ticks: [u32; BLOCK],
}

/// Rows by code in one block.
#[derive(Default)]
struct Counts {
    by_code: Vec<Count>,
    /// Codes that occur.
    codes: Vec<u32>,
}

impl Counts {
    fn widen(&mut self, width: usize) {
        if self.by_code.len() < width {
            self.by_code.resize(width, Count::default());
        }
    }

    #[inline]
    fn add(&mut self, entry: &Entry, length: u8) {
        let count = &mut self.by_code[entry.code as usize];
        if count.sum == 0 {
            self.codes.push(entry.code);
        }
        count.sum += u32::from(entry.end - entry.begin);
        if entry.begin == 0 && entry.end == length {
            count.whole += 1;
            return;
        }
        for tick in &mut count.ticks[usize::from(entry.begin)..usize::from(entry.end)] {
            *tick += 1;
            count.most = count.most.max(*tick);
        }
    }

    /// Calls `each` with code, rows and most rows in one tick, and clears.
    fn take(&mut self, mut each: impl FnMut(u32, u32, u32)) {
        for code in self.codes.drain(..) {
            let count = &mut self.by_code[code as usize];
            each(code, count.sum, count.whole + count.most);
            *count = Count::default();
        }
    }
}
