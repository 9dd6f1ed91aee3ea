//! Keys of pieces that the first of two passes over a window has found, kept
//! for the second, which then decodes and numbers no column of keys again: two
//! bytes a piece, and four for their ticks where these are not computed, as long
//! as all of them take little memory.

use super::coder::Key;
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
    /// Keys by id, of each thread.
    lists: Vec<Vec<Key>>,
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

    /// Completes a list: keys by id.
    pub fn set_list(&self, list: usize, keys: Vec<Key>) {
        self.found().lists[list] = keys;
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
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if ids.len() > 1 << 16 || before + bytes > self.most {
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
            let mut number = |key: &Key| {
                if is_last && !chosen.contains(key) {
                    return NONE;
                }
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
