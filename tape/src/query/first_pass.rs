//! What the first of two passes over a window has found: Σ weight of its keys,
//! and the keys of its pieces. They are kept for the second pass, so that it need
//! not decode the columns of keys again: two bytes a piece, and four for their ticks
//! where these are not computed, as long as all of them take little memory.

use super::dimension::Dimension;
use super::measure::{Cube, Sum};
use super::register::{Key, NULL};
use super::ticks::NONE;
use crate::fast::FastMap;
use crate::format::part::Part;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most bytes that are kept: two days of 50 sessions that wait at every second.
const MOST_BYTES: usize = 1 << 24;
/// The share of the memory limit they may take.
const MEMORY_SHARE: u64 = 8;

/// The selected pieces of a part.
pub struct Pieces {
    /// Number of the key of each.
    numbers: Vec<u16>,
    /// The rows of its ticks, begin and end; empty where they are not kept.
    ranges: Vec<(u16, u16)>,
    /// By number.
    keys: Vec<Key>,
}

/// What the first pass keeps.
pub struct Kept {
    /// By address of the part, which is only compared.
    parts: Mutex<HashMap<usize, Pieces>>,
    /// Σ weight by key.
    weights: Mutex<Cube<Sum>>,
    bytes: AtomicUsize,
    most: usize,
}

impl Kept {
    /// For a process that may use so much memory.
    pub fn new(memory_bytes: Option<u64>) -> Kept {
        let share = memory_bytes.and_then(|bytes| usize::try_from(bytes / MEMORY_SHARE).ok());
        Kept {
            parts: Mutex::default(),
            weights: Mutex::default(),
            bytes: AtomicUsize::new(0),
            most: share.unwrap_or(MOST_BYTES).min(MOST_BYTES),
        }
    }

    /// Takes so many of the bytes that are left, or none.
    fn take(&self, bytes: usize) -> bool {
        let sum = |held: usize| Some(held + bytes).filter(|sum| *sum <= self.most);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.bytes.fetch_update(set, fetch, sum).is_ok()
    }

    /// Keeps the pieces of a part: the number of the key of each and, unless
    /// they are computed, its ticks; and the keys by number.
    pub fn put(&self, part: &Part, numbers: &[u32], ranges: Option<&[(u32, u32)]>, keys: Vec<Key>) {
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
            numbers: numbers.iter().map(|number| *number as u16).collect(),
            ranges: ranges.collect::<Option<_>>().unwrap_or_default(),
            keys,
        };
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.insert(address(part), pieces);
    }

    /// What was added up; threads that add to it wait for each other.
    pub fn weights(&self) -> MutexGuard<'_, Cube<Sum>> {
        self.weights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was kept of the pieces.
    pub fn into_known(self) -> Known {
        let parts = self.parts.into_inner();
        Known(parts.unwrap_or_else(PoisonError::into_inner))
    }
}

fn address(part: &Part) -> usize {
    std::ptr::from_ref(part).addr()
}

/// Stands for the keys of a [`Choice`] that were not chosen.
pub const REST: Key = (u32::MAX, u32::MAX);

/// The keys of a group of dimensions that get cells, numbered from 0 on.
#[derive(Default)]
pub struct Choice {
    dimensions: usize,
    numbers: FastMap<Key, u32>,
    /// By number.
    keys: Vec<Key>,
    /// Number of the others, which are put together or left out.
    rest: Option<u32>,
}

impl Choice {
    /// Some keys of a group; others are left out.
    pub fn of(group: &[&Dimension], keys: impl IntoIterator<Item = Key>) -> Choice {
        let mut choice = Choice {
            dimensions: group.len(),
            ..Choice::default()
        };
        for key in keys {
            let next = choice.keys.len() as u32;
            if *choice.numbers.entry(key).or_insert(next) == next {
                choice.keys.push(key);
            }
        }
        choice
    }

    /// The same, where the others are put together as [`REST`].
    pub fn with_rest(mut self) -> Choice {
        self.rest = Some(self.keys.len() as u32);
        self.keys.push(REST);
        self
    }

    /// The keys by number.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The key has cells of its own.
    pub fn has(&self, key: Key) -> bool {
        self.numbers.contains_key(&key)
    }

    /// Renumbers pieces from `keys` to the chosen keys; drops the pieces, and
    /// their ranges, whose key was not chosen.
    /// Keys may be of more dimensions than the group.
    pub fn apply(&self, keys: &[Key], ranges: &mut Vec<(u32, u32)>, numbers: &mut Vec<u32>) {
        let chosen = self.chosen(keys);
        for number in numbers.iter_mut() {
            *number = chosen[*number as usize];
        }
        drop_others(&chosen, ranges, numbers);
    }

    /// The same for pieces whose keys are known.
    pub fn apply_known(
        &self,
        pieces: &Pieces,
        ranges: &mut Vec<(u32, u32)>,
        numbers: &mut Vec<u32>,
    ) {
        let chosen = self.chosen(&pieces.keys);
        let known = pieces.numbers.iter();
        numbers.clear();
        numbers.extend(known.map(|number| chosen[usize::from(*number)]));
        drop_others(&chosen, ranges, numbers);
    }

    /// The number of each key, [`NONE`] of those that are left out.
    fn chosen(&self, keys: &[Key]) -> Vec<u32> {
        let number = |key: &Key| {
            let found = self.numbers.get(&beginning(*key, self.dimensions));
            found.copied().or(self.rest).unwrap_or(NONE)
        };
        keys.iter().map(number).collect()
    }
}

/// Drops the pieces whose key was not chosen, and their ranges.
fn drop_others(chosen: &[u32], ranges: &mut Vec<(u32, u32)>, numbers: &mut Vec<u32>) {
    if !chosen.contains(&NONE) {
        return;
    }
    let mut kept = 0;
    for piece in 0..numbers.len().min(ranges.len()) {
        let number = numbers[piece];
        if number != NONE {
            (ranges[kept], numbers[kept]) = (ranges[piece], number);
            kept += 1;
        }
    }
    ranges.truncate(kept);
    numbers.truncate(kept);
}

/// The key of the first dimensions.
fn beginning(key: Key, dimensions: usize) -> Key {
    match dimensions {
        0 => (NULL, NULL),
        1 => (key.0, NULL),
        _ => key,
    }
}

/// What is known of the keys of pieces before they are read again.
pub struct Known(HashMap<usize, Pieces>);

impl Known {
    /// The pieces of a part, which has so many.
    pub fn pieces(&self, part: &Part, count: usize) -> Option<&Pieces> {
        let found = self.0.get(&address(part));
        found.filter(|pieces| pieces.numbers.len() == count)
    }

    /// The same when the ticks of each are known, which are put in `ranges`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::part::Identity;
    use crate::format::part_builder::PartBuilder;
    use crate::testing::schema;
    use std::sync::Arc;

    fn parts<const N: usize>() -> [Part; N] {
        std::array::from_fn(|_| {
            let builder = PartBuilder::new(Arc::new(schema().with_runs()));
            builder.unwrap().finish(Identity::default())
        })
    }

    fn limited(most: usize) -> Kept {
        Kept {
            most,
            ..Kept::new(None)
        }
    }

    #[test]
    fn a_part_that_is_too_large_leaves_room_for_the_next() {
        let [small, large, next] = parts();
        let kept = limited(1_000);
        kept.put(&small, &[0, 1, 0], None, vec![(1, 0), (3, 0)]);
        kept.put(&large, &[0; 1_000], None, vec![(2, 0)]);
        kept.put(
            &next,
            &[0, 1],
            Some(&[(3, 4), (5, 9)]),
            vec![(3, 0), (1, 0)],
        );
        let known = kept.into_known();
        assert!(known.pieces(&large, 1_000).is_none());
        assert!(
            known.pieces(&small, 2).is_none(),
            "another number of pieces"
        );
        assert!(known.pieces(&small, 3).is_some());
        let mut ranges = Vec::new();
        assert!(known.pieces_with_ranges(&small, &mut ranges).is_none());
        let pieces = known.pieces_with_ranges(&next, &mut ranges).unwrap();
        assert_eq!(pieces.keys, [(3, 0), (1, 0)]);
        assert_eq!((&pieces.numbers[..], ranges.len()), (&[0, 1][..], 2));
    }

    #[test]
    fn keys_that_are_not_chosen_are_left_out_or_put_together() {
        let catalog = schema();
        let dimension = Dimension::find(&catalog, "dimension", "pid").unwrap();
        let keys = [(5, 1), (6, 1), (5, 2), (7, 1)];
        let pieces = || (vec![(3, 4), (5, 9), (2, 6), (1, 2)], vec![2, 1, 3, 0]);
        let applied = |choice: &Choice| {
            let (mut ranges, mut numbers) = pieces();
            choice.apply(&keys, &mut ranges, &mut numbers);
            let known = Pieces {
                numbers: pieces().1.iter().map(|number| *number as u16).collect(),
                ranges: Vec::new(),
                keys: keys.to_vec(),
            };
            let (mut same, mut other) = (pieces().0, vec![9]);
            choice.apply_known(&known, &mut same, &mut other);
            assert_eq!((&same, &other), (&ranges, &numbers));
            (ranges, numbers)
        };
        let choice = Choice::of(&[&dimension, &dimension], [(6, 1), (5, 1)]);
        assert_eq!(applied(&choice), (vec![(5, 9), (1, 2)], vec![0, 1]));
        let choice = Choice::of(&[&dimension], [(7, NULL), (5, NULL)]).with_rest();
        assert_eq!(choice.keys(), [(7, NULL), (5, NULL), REST]);
        assert_eq!(applied(&choice), (pieces().0, vec![1, 2, 0, 1]));
        let choice = Choice::of(&[], [(NULL, NULL)]);
        assert_eq!(applied(&choice), (pieces().0, vec![0; 4]));
    }

    #[test]
    fn what_two_bytes_cannot_hold_is_not_kept() {
        let [keys, rows] = parts();
        let kept = limited(usize::MAX);
        kept.put(&keys, &[65_536], None, vec![(1, 0); 65_537]);
        kept.put(&rows, &[0], Some(&[(65_535, 65_536)]), vec![(1, 0)]);
        let known = kept.into_known();
        assert!(known.pieces(&keys, 1).is_none());
        let mut ranges = Vec::new();
        assert!(known.pieces_with_ranges(&rows, &mut ranges).is_none());
        assert!(known.pieces(&rows, 1).is_some());
    }
}
