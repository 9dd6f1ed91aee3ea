//! Numbers for the keys of a part's runs. Numbers are small, so that tables by number stay small
//! even if dictionaries are large.

use super::integers::{Code, Id, Key, NULL, Number};
use super::keys::{Keys, View};
use super::select::Selected;
use crate::fast::FastMap;
use crate::query::value::error::QueryResult;
use std::rc::Rc;

/// Numbers the keys of a part from 0 on, in order of their first run. It remembers for the whole
/// file which dictionary entries have the same key.
#[derive(Default)]
pub struct Coder {
    dimensions: [Numbering; 2],
    pairs: Pairs,
    /// Numbers in the second dimension, one for each piece; a reused buffer.
    seconds: Vec<Number>,
}

impl Coder {
    /// Sets `numbers` to the number of each selected piece's key; returns the keys by number.
    pub fn numbers(
        &mut self,
        view: &View,
        selected: &Selected,
        dimensions: &[Rc<Keys>],
        numbers: &mut Vec<Number>,
    ) -> QueryResult<Vec<Key>> {
        let [first, second] = &mut self.dimensions;
        match dimensions {
            [] => {
                numbers.clear();
                numbers.resize(selected.len(), Number::default());
                Ok(vec![(NULL, NULL)])
            }
            [one] => {
                let ids = first.numbers(view, selected, one, numbers)?;
                Ok(ids.into_iter().map(|id| (id, NULL)).collect())
            }
            [one, other, ..] => {
                let ids = first.numbers(view, selected, one, numbers)?;
                view.check_cancel()?;
                let others = second.numbers(view, selected, other, &mut self.seconds)?;
                let found = self
                    .pairs
                    .numbers(numbers, &self.seconds, (ids.len(), others.len()));
                let key = |(a, b): (Number, Number)| (ids[a.index()], others[b.index()]);
                Ok(found.into_iter().map(key).collect())
            }
        }
    }
}

/// Numbers the keys of one dimension.
#[derive(Default)]
struct Numbering {
    /// For each code the number of its key in this part, plus one; 0 = none. All are 0 between two
    /// parts.
    numbers: Vec<u32>,
    /// Codes that have a number in this part.
    numbered_codes: Vec<Code>,
    /// Code by number.
    codes: Vec<Code>,
    /// For each code of the file: 1 + the first code that had the same key; 0 if there is none.
    same: Vec<u32>,
    /// For each id the number of the key in this part, plus one; 0 = none. All are 0 between two
    /// parts.
    by_id: Vec<u32>,
}

impl Numbering {
    /// Sets `numbers` for the selected pieces; returns the ids by number.
    fn numbers(
        &mut self,
        view: &View,
        selected: &Selected,
        keys: &Keys,
        numbers: &mut Vec<Number>,
    ) -> QueryResult<Vec<Id>> {
        let pieces = selected.pieces.as_deref();
        keys.codes
            .of_pieces(view.part, &selected.runs, pieces, numbers, |code| {
                self.number(code)
            })?;
        for code in self.numbered_codes.drain(..) {
            self.numbers[code.index()] = 0;
        }
        let codes = std::mem::take(&mut self.codes);
        let ids = keys.ids(view, &codes)?;
        match keys.are_distinct() {
            true => Ok(ids),
            false => Ok(self.merge_equal_keys(&codes, ids, numbers)),
        }
    }

    #[inline]
    fn number(&mut self, code: Code) -> Number {
        match self.numbers.get(code.index()) {
            Some(number) if *number != 0 => Number::new(number - 1),
            _ => self.new_number(code),
        }
    }

    #[cold]
    fn new_number(&mut self, code: Code) -> Number {
        let at = code.index();
        if at >= self.numbers.len() {
            self.numbers.resize(at + 1, 0);
        }
        self.numbered_codes.push(code);
        let number = match self.same.get(at) {
            Some(same) if *same != 0 => self.number(Code::new(same - 1)),
            _ => {
                self.codes.push(code);
                Number::at(self.codes.len() - 1)
            }
        };
        self.numbers[at] = number.index() as u32 + 1;
        number
    }

    /// Gives codes with the same key one number; returns the ids by number.
    fn merge_equal_keys(
        &mut self,
        codes: &[Code],
        ids: Vec<Id>,
        numbers: &mut [Number],
    ) -> Vec<Id> {
        let mut kept: Vec<Id> = Vec::with_capacity(ids.len());
        let mut new = Vec::with_capacity(ids.len());
        // Code of each kept number.
        let mut first = Vec::with_capacity(ids.len());
        for (code, id) in codes.iter().zip(&ids) {
            let at = id.index();
            if at >= self.by_id.len() {
                self.by_id.resize(at + 1, 0);
            }
            if self.by_id[at] == 0 {
                kept.push(*id);
                first.push(*code);
                self.by_id[at] = kept.len() as u32;
            } else {
                self.remember_same(*code, first[self.by_id[at] as usize - 1]);
            }
            new.push(Number::new(self.by_id[at] - 1));
        }
        for id in &kept {
            self.by_id[id.index()] = 0;
        }
        if kept.len() < ids.len() {
            for number in numbers {
                *number = new[number.index()];
            }
        }
        kept
    }

    fn remember_same(&mut self, code: Code, first: Code) {
        let at = code.index();
        if at >= self.same.len() {
            self.same.resize(at + 1, 0);
        }
        self.same[at] = first.index() as u32 + 1;
    }
}

/// Numbers pairs of two dimensions' numbers.
#[derive(Default)]
struct Pairs {
    /// For each pair the number in this part, plus one; 0 = none. All are 0 between two parts.
    table: Vec<u32>,
    /// Same as `table`, for too many possible pairs.
    map: FastMap<(Number, Number), Number>,
    found: Vec<(Number, Number)>,
}

/// The table of pairs has at most this many entries for each piece, plus [`TABLE_LEAST`].
const TABLE_BY_PIECE: usize = 8;
const TABLE_LEAST: usize = 1 << 14;

impl Pairs {
    /// Replaces the numbers in `firsts` by the numbers of pairs. Numbers in `firsts` and `seconds`
    /// are below `widths`. Returns the pairs.
    fn numbers(
        &mut self,
        firsts: &mut [Number],
        seconds: &[Number],
        widths: (usize, usize),
    ) -> Vec<(Number, Number)> {
        let (most, width) = widths;
        let entries = most.saturating_mul(width);
        if entries <= TABLE_LEAST + TABLE_BY_PIECE * firsts.len() {
            self.by_table(entries, firsts, seconds, width);
        } else {
            self.by_map(firsts, seconds);
        }
        std::mem::take(&mut self.found)
    }

    fn by_table(
        &mut self,
        entries: usize,
        firsts: &mut [Number],
        seconds: &[Number],
        width: usize,
    ) {
        if self.table.len() < entries {
            self.table.resize(entries, 0);
        }
        let (table, found) = (&mut self.table[..entries], &mut self.found);
        for (first, second) in firsts.iter_mut().zip(seconds) {
            let number = &mut table[first.index() * width + second.index()];
            if *number == 0 {
                found.push((*first, *second));
                *number = found.len() as u32;
            }
            *first = Number::new(*number - 1);
        }
        for (first, second) in found.iter() {
            table[first.index() * width + second.index()] = 0;
        }
    }

    fn by_map(&mut self, firsts: &mut [Number], seconds: &[Number]) {
        let (map, found) = (&mut self.map, &mut self.found);
        for (first, second) in firsts.iter_mut().zip(seconds) {
            *first = *map.entry((*first, *second)).or_insert_with(|| {
                found.push((*first, *second));
                Number::at(found.len() - 1)
            });
        }
        map.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pairs_are_numbered_as_they_are_met(
            pieces in prop::collection::vec((0..40_u32, 0..40_u32), 0..200),
        ) {
            let numbered = |(a, b)| (Number::new(a), Number::new(b));
            let pieces: Vec<_> = pieces.into_iter().map(numbered).collect();
            let mut expected: Vec<(Number, Number)> = Vec::new();
            let number = |pair| {
                let known = expected.iter().position(|known| *known == pair);
                Number::at(known.unwrap_or_else(|| {
                    expected.push(pair);
                    expected.len() - 1
                }))
            };
            let numbers: Vec<Number> = pieces.iter().copied().map(number).collect();
            let (firsts, seconds): (Vec<Number>, Vec<Number>) = pieces.into_iter().unzip();
            let mut pairs = Pairs::default();
            for _ in 0..2 {
                let mut by_table = firsts.clone();
                prop_assert_eq!(&pairs.numbers(&mut by_table, &seconds, (40, 40)), &expected);
                prop_assert_eq!(&by_table, &numbers);
                let mut by_map = firsts.clone();
                pairs.by_map(&mut by_map, &seconds);
                prop_assert_eq!(&std::mem::take(&mut pairs.found), &expected);
                prop_assert_eq!(&by_map, &numbers);
            }
        }
    }
}
