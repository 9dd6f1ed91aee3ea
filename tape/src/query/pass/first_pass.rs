//! Results of the first of two passes over a window: sum of the weights of each key, and the key of
//! each piece. The second pass then need not decode the columns of keys again. A piece takes two
//! bytes, and four more for its ticks unless these are computed. Nothing more is kept once
//! [`MOST_BYTES`] are used.

use crate::format::part::Part;
use crate::query::rows::integers::{Key, Number};
use crate::query::sums::cells::Sum;
use crate::query::sums::choice::Choice;
use crate::query::sums::measure::Cube;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Memory limit of the kept results in bytes. Example: with two bytes a piece, it is enough for
/// almost two days of 50 sessions that begin a piece (a row of runs) each second.
const MOST_BYTES: usize = 1 << 24;
/// The results may use this fraction (1/8) of the memory limit.
const MEMORY_SHARE: u64 = 8;

/// The selected pieces of a part's runs.
pub struct Pieces {
    /// Number of each piece's key.
    numbers: Vec<u16>,
    /// Start and end of each piece's ticks, as rows of table `tick`; empty if they are not kept.
    ranges: Vec<(u16, u16)>,
    /// Key of each number.
    keys: Vec<Key>,
}

/// The results that the first pass keeps.
pub struct FirstPass {
    /// The pieces of each part. The key is the address of the part, which is only compared.
    parts: Mutex<HashMap<usize, Pieces>>,
    /// Sum of the weights of each key.
    weights: Mutex<Cube<Sum>>,
    bytes: AtomicUsize,
    most: usize,
}

impl FirstPass {
    /// Empty results for a process with this memory limit.
    pub fn new(memory_bytes: Option<u64>) -> FirstPass {
        let share = memory_bytes.and_then(|bytes| usize::try_from(bytes / MEMORY_SHARE).ok());
        FirstPass {
            parts: Mutex::default(),
            weights: Mutex::default(),
            bytes: AtomicUsize::new(0),
            most: share.unwrap_or(MOST_BYTES).min(MOST_BYTES),
        }
    }

    /// Reserves `bytes` of the remaining memory; false if they do not fit.
    fn take(&self, bytes: usize) -> bool {
        let sum = |held: usize| Some(held + bytes).filter(|sum| *sum <= self.most);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.bytes.fetch_update(set, fetch, sum).is_ok()
    }

    /// Keeps the pieces of a part: the number of each piece's key, the ranges of its ticks unless
    /// they are computed, and the key of each number.
    pub fn put(
        &self,
        part: &Part,
        numbers: &[Number],
        ranges: Option<&[(u32, u32)]>,
        keys: Vec<Key>,
    ) {
        let small = |rows: u32| u16::try_from(rows).ok();
        let ranges = ranges.unwrap_or_default().iter();
        let bytes = keys.len() * size_of::<Key>()
            + numbers.len() * size_of::<u16>()
            + ranges.len() * size_of::<(u16, u16)>();
        if keys.len() > 1 << 16 || !self.take(bytes) {
            return;
        }
        let ranges = ranges.map(|(begin, end)| Some((small(*begin)?, small(*end)?)));
        let pieces = Pieces {
            numbers: numbers.iter().map(|number| number.index() as u16).collect(),
            ranges: ranges.collect::<Option<_>>().unwrap_or_default(),
            keys,
        };
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.insert(address(part), pieces);
    }

    /// The sums so far. Threads wait for each other here.
    pub fn weights(&self) -> MutexGuard<'_, Cube<Sum>> {
        self.weights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kept pieces.
    pub fn into_known(self) -> KnownPieces {
        let parts = self.parts.into_inner();
        KnownPieces(parts.unwrap_or_else(PoisonError::into_inner))
    }
}

fn address(part: &Part) -> usize {
    std::ptr::from_ref(part).addr()
}

/// The pieces whose keys are known before the second pass reads them.
#[derive(Default)]
pub struct KnownPieces(HashMap<usize, Pieces>);

impl KnownPieces {
    /// True if pieces of the part were kept.
    pub fn has(&self, part: &Part) -> bool {
        self.0.contains_key(&address(part))
    }

    /// The pieces of a part. `None` if they were not kept, or if the second pass found another
    /// number of pieces (`count`).
    pub fn pieces(&self, part: &Part, count: usize) -> Option<&Pieces> {
        let found = self.0.get(&address(part));
        found.filter(|pieces| pieces.numbers.len() == count)
    }

    /// The pieces of a part. `None` unless the ranges of their ticks were kept; copies these to
    /// `ranges`.
    pub fn pieces_with_ranges(&self, part: &Part, ranges: &mut Vec<(u32, u32)>) -> Option<&Pieces> {
        let found = self.0.get(&address(part))?;
        let known = &found.ranges;
        if known.is_empty() || known.len() != found.numbers.len() {
            return None;
        }
        ranges.clear();
        ranges.extend(
            known
                .iter()
                .map(|(begin, end)| (u32::from(*begin), u32::from(*end))),
        );
        Some(found)
    }
}

impl Pieces {
    /// Keeps only the pieces whose keys get cells, and sets `numbers` to these keys' numbers. On
    /// entry `ranges` has the ranges of all pieces.
    pub fn choose(&self, choice: &Choice, ranges: &mut Vec<(u32, u32)>, numbers: &mut Vec<Number>) {
        choice.apply_known(&self.keys, &self.numbers, ranges, numbers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::part::Identity;
    use crate::format::part_builder::PartBuilder;
    use crate::query::rows::integers::{Id, NULL};
    use crate::testing::schema;
    use std::sync::Arc;

    fn parts<const N: usize>() -> [Part; N] {
        std::array::from_fn(|_| {
            let builder = PartBuilder::new(Arc::new(schema().with_runs()));
            builder.unwrap().finish(Identity::default())
        })
    }

    fn numbers(all: &[u32]) -> Vec<Number> {
        all.iter().map(|number| Number::new(*number)).collect()
    }

    fn keys(ids: &[u32]) -> Vec<Key> {
        ids.iter().map(|id| (Id::new(*id), NULL)).collect()
    }

    fn limited(most: usize) -> FirstPass {
        FirstPass {
            most,
            ..FirstPass::new(None)
        }
    }

    #[test]
    fn a_part_that_is_too_large_leaves_room_for_the_next() {
        let [small, large, next] = parts();
        let first_pass = limited(1_000);
        first_pass.put(&small, &numbers(&[0, 1, 0]), None, keys(&[1, 3]));
        first_pass.put(&large, &numbers(&[0; 1_000]), None, keys(&[2]));
        first_pass.put(
            &next,
            &numbers(&[0, 1]),
            Some(&[(3, 4), (5, 9)]),
            keys(&[3, 1]),
        );
        let known = first_pass.into_known();
        assert!(known.pieces(&large, 1_000).is_none());
        assert!(
            known.pieces(&small, 2).is_none(),
            "number of pieces differs"
        );
        assert!(known.pieces(&small, 3).is_some());
        let mut ranges = Vec::new();
        assert!(known.pieces_with_ranges(&small, &mut ranges).is_none());
        let pieces = known.pieces_with_ranges(&next, &mut ranges).unwrap();
        assert_eq!(pieces.keys, keys(&[3, 1]));
        assert_eq!((&pieces.numbers[..], ranges.len()), (&[0, 1][..], 2));
    }

    #[test]
    fn numbers_beyond_two_bytes_are_not_kept() {
        let [many, rows] = parts();
        let first_pass = limited(usize::MAX);
        first_pass.put(&many, &numbers(&[65_536]), None, keys(&[1; 65_537]));
        first_pass.put(&rows, &numbers(&[0]), Some(&[(65_535, 65_536)]), keys(&[1]));
        let known = first_pass.into_known();
        assert!(known.pieces(&many, 1).is_none());
        let mut ranges = Vec::new();
        assert!(known.pieces_with_ranges(&rows, &mut ranges).is_none());
        assert!(known.pieces(&rows, 1).is_some());
    }
}
