//! Keys of pieces that the first of two passes over a window has found, kept
//! for the second, which then decodes and numbers no column of keys again: two
//! bytes a piece, and four for their ticks where these are not computed, as long
//! as all of them take little memory.

use super::coder::Key;
use super::cube::Cube;
use super::dimension::Dimension;
use super::ticks::NONE;
use crate::fast::FastMap;
use crate::part::Part;
use std::collections::{HashMap, HashSet};
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
    /// Id in a list of keys by number.
    ids: Vec<usize>,
    /// The list.
    list: usize,
}

#[derive(Default)]
struct Found {
    /// By address of the part, which is only compared.
    parts: HashMap<usize, Pieces>,
    /// Keys by id, of each thread; those that no piece has are left out.
    lists: Vec<Vec<Option<Key>>>,
}

/// What the first pass keeps.
pub struct Kept {
    found: Mutex<Found>,
    bytes: AtomicUsize,
    most: usize,
}

impl Kept {
    /// For a process that may use so much memory.
    pub fn new(memory_bytes: Option<u64>) -> Kept {
        let share = memory_bytes.and_then(|bytes| usize::try_from(bytes / MEMORY_SHARE).ok());
        Kept {
            found: Mutex::default(),
            bytes: AtomicUsize::new(0),
            most: share.unwrap_or(MOST_BYTES).min(MOST_BYTES),
        }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a list of keys that a thread will make.
    pub fn new_list(&self) -> usize {
        let lists = &mut self.found().lists;
        lists.push(Vec::new());
        lists.len() - 1
    }

    /// Completes a list from the keys by id of its thread. When they take too
    /// much memory, its pieces go, too.
    pub fn set_list(&self, list: usize, cube: &Cube<Key>) {
        let mut found = self.found();
        let own = found.parts.values().filter(|pieces| pieces.list == list);
        let wanted: HashSet<usize> = own.flat_map(|p| p.ids.iter().copied()).collect();
        let keys = cube.keys(&wanted);
        if self.take(keys.iter().map(bytes_of).sum()) {
            found.lists[list] = keys;
        } else {
            found.parts.retain(|_, pieces| pieces.list != list);
        }
    }

    /// Takes so many of the bytes that are left, or none.
    fn take(&self, bytes: usize) -> bool {
        let sum = |held: usize| Some(held + bytes).filter(|sum| *sum <= self.most);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.bytes.fetch_update(set, fetch, sum).is_ok()
    }

    /// Keeps the pieces of a part: the number of the key of each and, unless
    /// they are computed, its ticks; and the id in a list by number.
    pub fn put(
        &self,
        part: &Part,
        numbers: &[u32],
        ranges: Option<&[(u32, u32)]>,
        (ids, list): (&[usize], usize),
    ) {
        let small = |rows: u32| u16::try_from(rows).ok();
        let ranges = ranges.unwrap_or_default().iter();
        let bytes = size_of_val(ids)
            + numbers.len() * size_of::<u16>()
            + ranges.len() * size_of::<(u16, u16)>();
        if ids.len() > 1 << 16 || !self.take(bytes) {
            return;
        }
        let ranges = ranges.map(|(begin, end)| Some((small(*begin)?, small(*end)?)));
        let pieces = Pieces {
            numbers: numbers.iter().map(|number| *number as u16).collect(),
            ranges: ranges.collect::<Option<_>>().unwrap_or_default(),
            ids: ids.to_vec(),
            list,
        };
        self.found().parts.insert(address(part), pieces);
    }

    /// What was kept in the numbers of a second pass: of the last group of
    /// dimensions only chosen keys have one, those before begin like it.
    pub fn numbered(self, groups: &[Vec<&Dimension>], chosen: &HashSet<Key>) -> Known {
        let found = self.found.into_inner();
        let Found { parts, lists } = found.unwrap_or_else(PoisonError::into_inner);
        let mut known = Known {
            parts,
            groups: Vec::with_capacity(groups.len()),
        };
        for (index, group) in groups.iter().enumerate() {
            let is_last = index + 1 == groups.len();
            let mut numbers: FastMap<Key, u32> = FastMap::default();
            let mut keys = Vec::new();
            let mut number = |key: &Option<Key>| {
                let Some(key) = key.as_ref().filter(|k| !is_last || chosen.contains(*k)) else {
                    return NONE;
                };
                let key = beginning(key, group.len());
                *numbers.entry(key).or_insert_with_key(|key| {
                    keys.push(key.clone());
                    keys.len() as u32 - 1
                })
            };
            let lists = lists.iter();
            let lists = lists.map(|list| list.iter().map(&mut number).collect());
            let lists = lists.collect();
            known.groups.push(Group { keys, lists });
        }
        known
    }
}

fn bytes_of(key: &Option<Key>) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    size_of::<Option<Key>>() + key.as_ref().map_or(0, |key| text(&key.0) + text(&key.1))
}

fn address(part: &Part) -> usize {
    std::ptr::from_ref(part).addr()
}

/// The key of the first dimensions.
fn beginning(key: &Key, dimensions: usize) -> Key {
    match dimensions {
        0 => (None, None),
        1 => (key.0.clone(), None),
        _ => key.clone(),
    }
}

/// What is known of the keys of pieces before they are read again.
pub struct Known {
    parts: HashMap<usize, Pieces>,
    groups: Vec<Group>,
}

/// The keys of a group of dimensions.
struct Group {
    /// By number.
    keys: Vec<Key>,
    /// Number, or [`NONE`], by list and id.
    lists: Vec<Vec<u32>>,
}

impl Known {
    /// The pieces of a part, which has so many.
    pub fn pieces(&self, part: &Part, count: usize) -> Option<&Pieces> {
        let found = self.parts.get(&address(part));
        found.filter(|pieces| pieces.numbers.len() == count)
    }

    /// The same when the ticks of each are known, which are put in `ranges`.
    pub fn pieces_with_ranges(&self, part: &Part, ranges: &mut Vec<(u32, u32)>) -> Option<&Pieces> {
        let found = self.parts.get(&address(part))?;
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

    /// The keys of a group of dimensions by number.
    pub fn keys(&self, group: usize) -> &[Key] {
        &self.groups[group].keys
    }

    /// The number of each piece's key in a group of dimensions; drops the
    /// pieces, and their ranges, that have none.
    pub fn numbers(
        &self,
        group: usize,
        pieces: &Pieces,
        ranges: &mut Vec<(u32, u32)>,
        numbers: &mut Vec<u32>,
    ) {
        let list = &self.groups[group].lists[pieces.list];
        let by_number: Vec<u32> = pieces.ids.iter().map(|id| list[*id]).collect();
        numbers.clear();
        numbers.resize(ranges.len(), 0);
        let mut kept = 0;
        for (piece, number) in pieces.numbers.iter().enumerate() {
            let number = by_number[usize::from(*number)];
            (ranges[kept], numbers[kept]) = (ranges[piece], number);
            kept += usize::from(number != NONE);
        }
        ranges.truncate(kept);
        numbers.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::PartBuilder;
    use crate::part::Identity;
    use crate::testing::schema;
    use std::sync::Arc;

    fn parts<const N: usize>() -> [Part; N] {
        std::array::from_fn(|_| {
            let builder = PartBuilder::new(Arc::new(schema().with_runs()));
            builder.unwrap().finish(Identity::default())
        })
    }

    fn key(text: &str) -> Key {
        (Some(text.to_string()), None)
    }

    fn cube(texts: &[&str]) -> Cube<Key> {
        let mut cube = Cube::default();
        texts.iter().for_each(|text| _ = cube.id(key(text)));
        cube
    }

    fn limited(most: usize) -> Kept {
        Kept {
            most,
            ..Kept::new(None)
        }
    }

    /// What is known when all keys are chosen; one group without dimensions
    /// and one of the keys.
    fn known(kept: Kept, chosen: &[&str]) -> Known {
        let dimension = Dimension::find(&schema(), "dimension", "pid").unwrap();
        let chosen = chosen.iter().map(|text| key(text)).collect();
        kept.numbered(&[vec![], vec![&dimension]], &chosen)
    }

    #[test]
    fn a_part_that_is_too_large_leaves_room_for_the_next() {
        let [small, large, next] = parts();
        let kept = limited(1_000);
        let list = kept.new_list();
        kept.put(&small, &[0, 1, 0], None, (&[0, 2], list));
        kept.put(&large, &[0; 1_000], None, (&[1], list));
        kept.put(&next, &[0, 1], Some(&[(3, 4), (5, 9)]), (&[2, 0], list));
        kept.set_list(list, &cube(&["a", "b", "c"]));
        let known = known(kept, &["c"]);
        assert!(known.pieces(&large, 1_000).is_none());
        assert!(
            known.pieces(&small, 2).is_none(),
            "another number of pieces"
        );
        assert!(known.pieces(&small, 3).is_some());
        let (mut ranges, mut numbers) = (Vec::new(), Vec::new());
        assert!(known.pieces_with_ranges(&small, &mut ranges).is_none());
        let pieces = known.pieces_with_ranges(&next, &mut ranges).unwrap();
        known.numbers(0, pieces, &mut ranges, &mut numbers);
        assert_eq!((&numbers[..], ranges.len()), (&[0, 0][..], 2));
        known.numbers(1, pieces, &mut ranges, &mut numbers);
        assert_eq!((&numbers[..], &ranges[..]), (&[0][..], &[(3, 4)][..]));
        assert_eq!(known.keys(1), [key("c")]);
    }

    #[test]
    fn what_two_bytes_cannot_hold_is_not_kept() {
        let [keys, rows] = parts();
        let kept = limited(usize::MAX);
        let list = kept.new_list();
        kept.put(&keys, &[65_536], None, (&[0; 65_537], list));
        kept.put(&rows, &[0], Some(&[(65_535, 65_536)]), (&[0], list));
        kept.set_list(list, &cube(&["a"]));
        let known = known(kept, &["a"]);
        assert!(known.pieces(&keys, 1).is_none());
        let mut ranges = Vec::new();
        assert!(known.pieces_with_ranges(&rows, &mut ranges).is_none());
        assert!(known.pieces(&rows, 1).is_some());
    }

    #[test]
    fn pieces_whose_keys_are_too_long_are_not_kept() {
        let [long, short] = parts();
        let kept = limited(1_000);
        let lists = [kept.new_list(), kept.new_list()];
        kept.put(&long, &[0], None, (&[0], lists[0]));
        kept.put(&short, &[0], None, (&[1], lists[1]));
        kept.set_list(lists[0], &cube(&[&"x".repeat(1_000)]));
        // A key that no piece has counts nothing.
        kept.set_list(lists[1], &cube(&[&"x".repeat(1_000), "b"]));
        let known = known(kept, &["b"]);
        assert!(known.pieces(&long, 1).is_none());
        assert!(known.pieces(&short, 1).is_some());
        assert_eq!(known.keys(1), [key("b")]);
    }
}
