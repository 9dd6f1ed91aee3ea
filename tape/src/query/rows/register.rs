//! Gives the keys of a question ids. The engine looks up a dictionary entry once; after that it
//! compares and adds up numbers. Only printed keys become texts. Ties are broken in the order of
//! the texts.

use super::integers::{Id, NULL};
use crate::fast::FastMap;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A key as it stands in a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    /// No key.
    Null,
    /// A number, shown in decimal.
    Number(i64),
    /// The id of a text.
    Text(Id),
}

/// The keys of a question; threads share it.
#[derive(Clone, Default)]
pub struct Register(Arc<Mutex<Ids>>);

/// The key of each id, and the id of each key.
pub struct Ids {
    /// The number that is the key of each id; 0 for null and texts.
    values: Vec<i64>,
    small: Small,
    /// Ids of numbers outside `small`.
    numbers: FastMap<i64, Id>,
    texts: FastMap<Id, Arc<str>>,
    by_text: HashMap<Arc<str>, Id>,
    /// Bytes of all texts.
    text_bytes: usize,
}

impl Default for Ids {
    fn default() -> Ids {
        Ids {
            values: vec![0],
            small: Small::default(),
            numbers: FastMap::default(),
            texts: FastMap::default(),
            by_text: HashMap::new(),
            text_bytes: 0,
        }
    }
}

impl Register {
    /// Locks the ids: other threads wait until the guard is dropped.
    pub fn ids(&self) -> MutexGuard<'_, Ids> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of a text.
    pub fn atom(&self, text: Option<&str>) -> Atom {
        text.map_or(Atom::Null, |text| Atom::Text(self.ids().of_text(text)))
    }

    /// The text of a key.
    pub fn text(&self, id: Id) -> Option<String> {
        self.ids().text(id)
    }

    /// The text of a key. A number may not have an id yet.
    pub fn shown(&self, atom: Atom) -> Option<String> {
        match atom {
            Atom::Null => None,
            Atom::Number(number) => Some(number.to_string()),
            Atom::Text(id) => self.text(id),
        }
    }
}

impl Ids {
    /// The id of a key.
    #[inline]
    pub fn of(&mut self, atom: Atom) -> Id {
        match atom {
            Atom::Null => NULL,
            Atom::Text(id) => id,
            Atom::Number(number) => {
                let next = Id::at(self.values.len());
                let id = match self.small.id(number) {
                    Some(id) => id,
                    None => self.numbers.entry(number).or_insert(NULL),
                };
                if *id == NULL {
                    *id = next;
                    self.values.push(number);
                }
                *id
            }
        }
    }

    fn of_text(&mut self, text: &str) -> Id {
        if let Some(id) = self.by_text.get(text) {
            return *id;
        }
        let (id, text) = (Id::at(self.values.len()), Arc::<str>::from(text));
        self.values.push(0);
        self.text_bytes += text.len();
        self.texts.insert(id, text.clone());
        self.by_text.insert(text, id);
        id
    }

    /// Memory of the keys in bytes.
    pub fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<i64>()
            + self.small.bytes()
            + self.numbers.capacity() * size_of::<(i64, Id)>()
            + (self.texts.capacity() + self.by_text.capacity()) * size_of::<(Arc<str>, Id)>()
            + self.text_bytes
    }

    /// The text of a key.
    pub fn text(&self, id: Id) -> Option<String> {
        match self.texts.get(&id) {
            _ if id == NULL => None,
            Some(text) => Some(text.to_string()),
            None => Some(self.values[id.index()].to_string()),
        }
    }

    /// Order of two keys by their texts; null comes last.
    pub fn compare(&self, a: Id, b: Id) -> Ordering {
        let value = |id: Id| self.values[id.index()];
        if a == NULL || b == NULL {
            return (a == NULL).cmp(&(b == NULL));
        }
        if value(a) != 0 && value(b) != 0 {
            return compare_decimals(value(a), value(b));
        }
        match (self.texts.get(&a), self.texts.get(&b)) {
            (Some(a), Some(b)) => a.cmp(b),
            _ => self.text(a).cmp(&self.text(b)),
        }
    }
}

/// The ids of integer keys that are small enough to be process ids. A day may have a million of
/// these keys, mostly neighbours, so a table of pages takes less memory than a map. A page of 512
/// ids is allocated when one of its keys first occurs.
#[derive(Default)]
struct Small {
    pages: Vec<Box<[Id]>>,
    bytes: usize,
}

/// The table has the ids of numbers below this: process ids of Linux are not larger.
const SMALL: i64 = 1 << 22;
const PAGE: usize = 512;

impl Small {
    /// The element that holds a number's id, [`NULL`] until it is set. `None` for numbers outside
    /// the table.
    #[inline]
    fn id(&mut self, number: i64) -> Option<&mut Id> {
        let number = usize::try_from(number).ok().filter(|_| number < SMALL)?;
        let page = number / PAGE;
        if self.pages.get(page).is_none_or(|page| page.is_empty()) {
            self.add(page);
        }
        self.pages[page].get_mut(number % PAGE)
    }

    #[cold]
    fn add(&mut self, page: usize) {
        if page >= self.pages.len() {
            self.pages.resize(page + 1, Box::default());
        }
        self.pages[page] = vec![NULL; PAGE].into();
        self.bytes += PAGE * size_of::<Id>();
    }

    fn bytes(&self) -> usize {
        self.bytes + self.pages.capacity() * size_of::<Box<[Id]>>()
    }
}

/// Order of two numbers as texts.
fn compare_decimals(a: i64, b: i64) -> Ordering {
    if (a < 0) != (b < 0) {
        return a.cmp(&b);
    }
    let (a, b) = (a.unsigned_abs(), b.unsigned_abs());
    let digits = |size: u64| size.checked_ilog10().unwrap_or(0);
    let (a_digits, b_digits) = (digits(a), digits(b));
    // Pads the shorter number with zeros. If both are equal then, the shorter one comes first. No
    // number has more than 19 digits.
    match a_digits.cmp(&b_digits) {
        Ordering::Equal => a.cmp(&b),
        Ordering::Less => (a * 10_u64.pow(b_digits - a_digits))
            .cmp(&b)
            .then(Ordering::Less),
        Ordering::Greater => a
            .cmp(&(b * 10_u64.pow(a_digits - b_digits)))
            .then(Ordering::Greater),
    }
}

/// The first `n` items in `order`, sorted. No two items are equal. It holds at most `2 * n` items
/// (or 64, if that is more).
pub fn first_of<T: Copy>(
    all: impl Iterator<Item = T>,
    n: usize,
    order: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    let mut first: Vec<T> = Vec::new();
    let mut last: Option<T> = None;
    for one in all {
        if last.is_some_and(|last| order(&last, &one).is_le()) {
            continue;
        }
        first.push(one);
        if first.len() >= n.saturating_mul(2).max(64) {
            first.select_nth_unstable_by(n - 1, &order);
            first.truncate(n);
            last = first.last().copied();
        }
    }
    first.sort_unstable_by(&order);
    first.truncate(n);
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = i64> {
        let near = (0..19_u32, -3..=3_i64).prop_map(|(p, d)| 10_i64.pow(p) + d);
        let signed = (near, any::<bool>()).prop_map(|(n, minus)| if minus { -n } else { n });
        prop_oneof![any::<i64>(), -200..200_i64, signed]
    }

    fn key() -> impl Strategy<Value = Option<String>> {
        let word = prop::sample::select(vec!["?", "(cycle)", "", "12a", "é"]);
        let number = number().prop_map(|n| Some(n.to_string()));
        prop_oneof![4 => number, 1 => word.prop_map(|w| Some(w.into())), 1 => Just(None)]
    }

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_their_texts(keys in prop::collection::vec(key(), 1..40)) {
            let register = Register::default();
            let id = |key: &Option<String>| {
                let number = key.as_ref().and_then(|key| key.parse().ok());
                let atom = number.map_or_else(|| register.atom(key.as_deref()), Atom::Number);
                register.ids().of(atom)
            };
            let mut found: Vec<Id> = keys.iter().map(id).collect();
            let ids = register.ids();
            found.sort_by(|a, b| ids.compare(*a, *b));
            let mut expected = keys.clone();
            expected.sort_by_key(|key| (key.is_none(), key.clone()));
            let found: Vec<Option<String>> = found.iter().map(|id| ids.text(*id)).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn a_number_has_one_id_wherever_it_is_kept(
            numbers in prop::collection::vec(
                prop_oneof![number(), SMALL - 3..SMALL + 3, 0..2_000_i64],
                1..60,
            ),
        ) {
            let register = Register::default();
            let mut ids = register.ids();
            for number in &numbers {
                let id = ids.of(Atom::Number(*number));
                prop_assert_eq!(ids.text(id), Some(number.to_string()));
                prop_assert_eq!(ids.of(Atom::Number(*number)), id);
            }
            let different: std::collections::HashSet<i64> = numbers.iter().copied().collect();
            prop_assert_eq!(ids.values.len(), 1 + different.len());
        }

        #[test]
        fn the_first_items_equal_the_begin_of_all_sorted(
            mut all in prop::collection::hash_set(0..2_000_u32, 0..600),
            n in 1..40_usize,
        ) {
            let mut expected: Vec<u32> = all.iter().copied().collect();
            let found = first_of(all.drain(), n, |a, b| b.cmp(a));
            expected.sort_by(|a, b| b.cmp(a));
            expected.truncate(n);
            prop_assert_eq!(found, expected);
        }
    }
}
