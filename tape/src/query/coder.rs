//! Numbers for the keys of a part's runs: small ones, so that tables by number
//! stay small however large the dictionaries are.

use super::cube::Cube;
use super::dimension::{Keys, View};
use super::error::QueryResult;
use super::select::Selected;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The keys of up to two dimensions.
pub type Key = (Option<String>, Option<String>);

/// Stands for the id of a key that was not asked for.
pub const UNWANTED: usize = usize::MAX;

/// Numbers the keys that occur in a part from 0 on, in the order they are
/// met. What keys they are is remembered for the file.
#[derive(Default)]
pub struct Coder {
    pairs: Pairs,
    /// Codes of the second dimension, while they are at hand.
    seconds: Vec<u32>,
    /// Number + 1 by code; 0 between parts.
    numbers: Vec<u32>,
    /// Code by number.
    codes: Vec<u32>,
    /// Id in the cube by code.
    ids: Vec<Option<usize>>,
}

impl Coder {
    /// The number of the key of each selected piece.
    pub fn numbers(
        &mut self,
        view: &View,
        selected: &Selected,
        dimensions: &[Rc<Keys>],
        numbers: &mut Vec<u32>,
    ) -> QueryResult<()> {
        let part = view.part;
        numbers.clear();
        let pieces = selected.pieces.as_deref();
        match dimensions {
            [] => {
                self.number(0);
                numbers.resize(selected.len(), 0);
            }
            [one] => {
                one.codes.of_pieces(part, &selected.runs, pieces, numbers)?;
                for number in numbers {
                    *number = self.number(*number);
                }
            }
            [first, second, ..] => {
                let mut seconds = std::mem::take(&mut self.seconds);
                let (own, runs) = (numbers, &selected.runs);
                first.codes.of_pieces(part, runs, pieces, own)?;
                view.check_cancel()?;
                second.codes.of_pieces(part, runs, pieces, &mut seconds)?;
                let width = second.keys.len();
                for (number, second) in own.iter_mut().zip(&seconds) {
                    let code = self.pairs.code(*number, *second, width);
                    *number = self.number(code);
                }
                self.seconds = seconds;
            }
        }
        Ok(())
    }

    #[inline]
    fn number(&mut self, code: u32) -> u32 {
        match self.numbers.get(code as usize) {
            Some(number) if *number != 0 => number - 1,
            _ => self.new_number(code),
        }
    }

    #[cold]
    fn new_number(&mut self, code: u32) -> u32 {
        let at = code as usize;
        if at >= self.numbers.len() {
            self.numbers.resize(at + 1, 0);
        }
        self.codes.push(code);
        self.numbers[at] = self.codes.len() as u32;
        self.numbers[at] - 1
    }

    /// The codes of the keys that occur, by number; forgets the numbers.
    pub fn take_codes(&mut self) -> Vec<u32> {
        let codes = std::mem::take(&mut self.codes);
        for code in &codes {
            self.numbers[*code as usize] = 0;
        }
        codes
    }

    /// The ids of the keys that occur, by number, or [`UNWANTED`]; forgets
    /// the numbers.
    pub fn ids(
        &mut self,
        cube: &mut Cube<Key>,
        dimensions: &[Rc<Keys>],
        wanted: Option<&HashSet<Key>>,
    ) -> Vec<usize> {
        let codes = self.take_codes();
        let mut ids = Vec::with_capacity(codes.len());
        for code in codes {
            let at = code as usize;
            if at >= self.ids.len() {
                self.ids.resize(at + 1, None);
            }
            let id = match self.ids[at] {
                Some(id) => id,
                None => match self.key(code, dimensions) {
                    key if wanted.is_none_or(|wanted| wanted.contains(&key)) => cube.id(key),
                    _ => UNWANTED,
                },
            };
            self.ids[at] = Some(id);
            ids.push(id);
        }
        ids
    }

    fn key(&self, code: u32, dimensions: &[Rc<Keys>]) -> Key {
        let key = |keys: &Rc<Keys>, code: u32| keys.keys[code as usize].clone();
        match dimensions {
            [] => (None, None),
            [one] => (key(one, code), None),
            [first, second, ..] => {
                let (a, b) = self.pairs.found[code as usize];
                (key(first, a), key(second, b))
            }
        }
    }
}

/// Codes of pairs of codes, in the order they are met.
#[derive(Default)]
struct Pairs {
    /// Code + 1 by pair, as long as there are not too many pairs.
    table: Vec<u32>,
    map: HashMap<(u32, u32), u32>,
    found: Vec<(u32, u32)>,
}

const MAX_TABLE: usize = 1 << 20;

impl Pairs {
    /// The second codes are below `width`.
    #[inline]
    fn code(&mut self, a: u32, b: u32, width: usize) -> u32 {
        let cell = a as usize * width + b as usize;
        match self.table.get(cell) {
            Some(known) if *known != 0 => known - 1,
            _ => self.find_code(a, b, cell),
        }
    }

    #[cold]
    fn find_code(&mut self, a: u32, b: u32, cell: usize) -> u32 {
        let next = self.found.len() as u32 + 1;
        if cell >= self.table.len() && cell < MAX_TABLE {
            self.table.resize((cell + 1).next_power_of_two(), 0);
        }
        let known = match self.table.get_mut(cell) {
            Some(known) => known,
            None => self.map.entry((a, b)).or_insert(0),
        };
        if *known == 0 {
            *known = next;
            self.found.push((a, b));
        }
        *known - 1
    }
}
