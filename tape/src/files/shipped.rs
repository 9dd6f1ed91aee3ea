//! What a program that ships a history tells who removes its files: up to which
//! number all files are shipped. It has a file of its own for each place that it
//! ships to; numbers only grow, whatever clocks do.

use crate::files::storage::{Storage, read_all};
use std::fmt::Write as _;

/// What the names of such files begin with.
const PREFIX: &str = "shipped-";
/// Their first line.
const HEAD: &str = "tacho shipped 1";

/// What one of them says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Files whose numbers are all up to this one need not stay.
    pub until: u64,
    /// Where to, for people.
    pub place: String,
}

/// The name of the file of a place, whose hash is given.
pub fn shipped_name(place: u64) -> String {
    format!("{PREFIX}{place:016x}")
}

/// Is this the name of such a file?
pub fn is_shipped_name(name: &str) -> bool {
    let place = name.strip_prefix(PREFIX);
    let place = place.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    place.is_some_and(|place| shipped_name(place) == name)
}

impl Shipped {
    /// As it is written.
    pub fn text(&self) -> String {
        let place: String = self.place.chars().filter(|c| !c.is_control()).collect();
        let mut text = format!("{HEAD}\nuntil {}\n", self.until);
        let _ = writeln!(text, "place {place}");
        text
    }

    /// What was written; `None` when it makes no sense.
    pub fn parse(text: &str) -> Option<Shipped> {
        let mut lines = text.lines();
        let is_known = lines.next() == Some(HEAD);
        let until = lines.next()?.strip_prefix("until ")?.parse().ok()?;
        let place = lines.next()?.strip_prefix("place ")?.to_string();
        is_known.then_some(Shipped { until, place })
    }
}

/// Up to which number all places have what is to be shipped: 0 when there is none,
/// or when one of them cannot be read.
pub(crate) fn shipped_until(storage: &dyn Storage) -> u64 {
    let each = told(storage).into_iter();
    each.map(|told| told.1.unwrap_or(0)).min().unwrap_or(0)
}

/// What each of the files says, by name; `None` when it cannot be read.
fn told(storage: &dyn Storage) -> Vec<(String, Option<u64>)> {
    let until = |name: &str| {
        let bytes = read_all(&*storage.open(name).ok()?).ok()?;
        Some(Shipped::parse(std::str::from_utf8(&bytes).ok()?)?.until)
    };
    let names = storage.names().unwrap_or_default().into_iter();
    let names = names.map(|found| found.name).filter(|n| is_shipped_name(n));
    names.map(|name| (name.clone(), until(&name))).collect()
}

/// Removes what is said of numbers that no file has had: all files of the directory
/// have gone, and others get their numbers.
pub(crate) fn forget_unknown(storage: &dyn Storage, next_number: u64) {
    for (name, until) in told(storage) {
        if until.is_some_and(|until| until >= next_number) {
            let _ = storage.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::memory::MemoryStorage;

    fn put(storage: &MemoryStorage, name: &str, text: &str) {
        let mut file = storage.create(name).unwrap();
        file.append(text.as_bytes()).unwrap();
    }

    #[test]
    fn the_slowest_place_counts_and_what_makes_no_sense_holds_all() {
        let storage = MemoryStorage::new();
        assert_eq!(shipped_until(&storage), 0);
        let said = |until| {
            let place = "s3://lake\n/x".to_string();
            Shipped { until, place }.text()
        };
        put(&storage, &shipped_name(0xAB), &said(12));
        put(&storage, "shipped-notes", "until 1");
        assert_eq!(shipped_until(&storage), 12);
        put(&storage, &shipped_name(u64::MAX), &said(7));
        assert_eq!(shipped_until(&storage), 7);
        for damaged in [
            "",
            "tacho shipped 1\nuntil 99\n",
            "tacho shipped 2\nuntil 9\nplace x\n",
        ] {
            assert_eq!(Shipped::parse(damaged), None);
        }
        put(
            &storage,
            &shipped_name(3),
            "tacho shipped 1\nuntil -9\nplace x\n",
        );
        assert_eq!(shipped_until(&storage), 0);
    }

    #[test]
    fn numbers_that_no_file_has_had_say_nothing() {
        let storage = MemoryStorage::new();
        let place = "x".to_string();
        put(
            &storage,
            &shipped_name(1),
            &Shipped { until: 9, place }.text(),
        );
        forget_unknown(&storage, 10);
        assert_eq!(shipped_until(&storage), 9);
        forget_unknown(&storage, 9);
        assert_eq!(shipped_until(&storage), 0);
        assert!(storage.names().unwrap().is_empty());
    }
}
