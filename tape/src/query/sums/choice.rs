//! The keys that get cells of their own: the ones that an answer prints.

use crate::fast::FastMap;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::integers::{Id, Key, NULL, Number};

/// Key that stands for all keys that were not chosen.
pub const REST: Key = (Id::MAX, Id::MAX);

/// The keys of a group of dimensions that get cells, numbered from 0 on.
#[derive(Default)]
pub struct Choice {
    dimensions: usize,
    numbers: FastMap<Key, Number>,
    /// Key of each number.
    keys: Vec<Key>,
    /// Number of [`REST`]; `None` if other keys are left out.
    rest: Option<Number>,
}

impl Choice {
    /// Chooses these keys of a group; others are left out.
    pub fn of(group: &[&Dimension], keys: impl IntoIterator<Item = Key>) -> Choice {
        let mut choice = Choice {
            dimensions: group.len(),
            ..Choice::default()
        };
        for key in keys {
            let next = Number::at(choice.keys.len());
            if *choice.numbers.entry(key).or_insert(next) == next {
                choice.keys.push(key);
            }
        }
        choice
    }

    /// The same choice, but other keys are added up as [`REST`].
    pub fn with_rest(mut self) -> Choice {
        self.rest = Some(Number::at(self.keys.len()));
        self.keys.push(REST);
        self
    }

    /// The key of each number.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// True if the key has cells of its own.
    pub fn has(&self, key: Key) -> bool {
        self.numbers.contains_key(&key)
    }

    /// Renumbers pieces from `keys` to the chosen keys. Drops the pieces, with their ranges, whose
    /// key was not chosen. `keys` may have more dimensions than the group.
    pub fn apply(&self, keys: &[Key], ranges: &mut Vec<(u32, u32)>, numbers: &mut Vec<Number>) {
        let chosen = self.chosen(keys);
        for number in numbers.iter_mut() {
            *number = chosen[number.index()];
        }
        drop_others(&chosen, ranges, numbers);
    }

    /// Same as [`Choice::apply`], but takes the pieces' numbers in `keys` from `known`.
    pub fn apply_known(
        &self,
        keys: &[Key],
        known: &[u16],
        ranges: &mut Vec<(u32, u32)>,
        numbers: &mut Vec<Number>,
    ) {
        let chosen = self.chosen(keys);
        numbers.clear();
        numbers.extend(known.iter().map(|number| chosen[usize::from(*number)]));
        drop_others(&chosen, ranges, numbers);
    }

    /// The number of a key, which may have more dimensions than the group; [`Number::NONE`] if the
    /// key is left out.
    pub fn number(&self, key: Key) -> Number {
        let found = self.numbers.get(&beginning(key, self.dimensions));
        found.copied().or(self.rest).unwrap_or(Number::NONE)
    }

    /// The number of each key.
    fn chosen(&self, keys: &[Key]) -> Vec<Number> {
        keys.iter().map(|key| self.number(*key)).collect()
    }
}

/// Drops the pieces whose key was not chosen, and their ranges.
fn drop_others(chosen: &[Number], ranges: &mut Vec<(u32, u32)>, numbers: &mut Vec<Number>) {
    if !chosen.contains(&Number::NONE) {
        return;
    }
    let mut kept = 0;
    for piece in 0..numbers.len().min(ranges.len()) {
        let number = numbers[piece];
        if number != Number::NONE {
            (ranges[kept], numbers[kept]) = (ranges[piece], number);
            kept += 1;
        }
    }
    ranges.truncate(kept);
    numbers.truncate(kept);
}

/// The key reduced to the first dimensions.
fn beginning(key: Key, dimensions: usize) -> Key {
    match dimensions {
        0 => (NULL, NULL),
        1 => (key.0, NULL),
        _ => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::schema;

    #[test]
    fn keys_that_are_not_chosen_are_left_out_or_put_together() {
        let catalog = schema();
        let dimension = Dimension::find(&catalog, "dimension", "pid").unwrap();
        let key = |(a, b)| (Id::new(a), Id::new(b));
        let numbers = |all: [u32; 4]| all.map(Number::new).to_vec();
        let keys = [(5, 1), (6, 1), (5, 2), (7, 1)].map(key);
        let pieces = || (vec![(3, 4), (5, 9), (2, 6), (1, 2)], numbers([2, 1, 3, 0]));
        let applied = |choice: &Choice| {
            let (mut ranges, mut numbers) = pieces();
            choice.apply(&keys, &mut ranges, &mut numbers);
            let known: Vec<u16> = pieces()
                .1
                .iter()
                .map(|number| number.index() as u16)
                .collect();
            let (mut same, mut other) = (pieces().0, vec![Number::new(9)]);
            choice.apply_known(&keys, &known, &mut same, &mut other);
            assert_eq!((&same, &other), (&ranges, &numbers));
            (ranges, numbers)
        };
        let choice = Choice::of(&[&dimension, &dimension], [(6, 1), (5, 1)].map(key));
        assert_eq!(
            applied(&choice),
            (vec![(5, 9), (1, 2)], vec![Number::new(0), Number::new(1)])
        );
        let choice = Choice::of(&[&dimension], [(7, 0), (5, 0)].map(key)).with_rest();
        assert_eq!(choice.keys(), [key((7, 0)), key((5, 0)), REST]);
        assert_eq!(applied(&choice), (pieces().0, numbers([1, 2, 0, 1])));
        let choice = Choice::of(&[], [(NULL, NULL)]);
        assert_eq!(applied(&choice), (pieces().0, numbers([0; 4])));
    }
}
