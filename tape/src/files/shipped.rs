//! Notes from a shipping program for the writer that removes files: all files up to a number are
//! shipped. Each destination has a note of its own. Numbers only grow, even if a clock is set back.

use crate::files::storage::{Storage, read_all};
use std::fmt::Write as _;

/// Prefix of the names of notes.
const PREFIX: &str = "shipped-";
/// First line of a note.
const HEAD: &str = "tacho shipped 1";

/// Contents of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// A file is shipped if none of its numbers is above this one.
    pub until: u64,
    /// Address of the destination, for people who read the note.
    pub place: String,
}

/// Name of a destination's note; `place` is the destination's hash.
pub fn shipped_name(place: u64) -> String {
    format!("{PREFIX}{place:016x}")
}

/// True for the name of a note.
pub fn is_shipped_name(name: &str) -> bool {
    let place = name.strip_prefix(PREFIX);
    let place = place.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    place.is_some_and(|place| shipped_name(place) == name)
}

impl Shipped {
    /// The text of the note.
    pub fn text(&self) -> String {
        let place: String = self.place.chars().filter(|c| !c.is_control()).collect();
        let mut text = format!("{HEAD}\nuntil {}\n", self.until);
        let _ = writeln!(text, "place {place}");
        text
    }

    /// Parses a note; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Shipped> {
        let mut lines = text.lines();
        let is_known = lines.next() == Some(HEAD);
        let until = lines.next()?.strip_prefix("until ")?.parse().ok()?;
        let place = lines.next()?.strip_prefix("place ")?.to_string();
        is_known.then_some(Shipped { until, place })
    }
}

/// The number up to which all destinations have every file; 0 without a note, or if a note is
/// unreadable.
pub(crate) fn shipped_until(storage: &dyn Storage) -> u64 {
    let each = notes(storage).into_iter();
    each.map(|note| note.1.unwrap_or(0)).min().unwrap_or(0)
}

/// Name and number of each note; the number is `None` if the note is unreadable.
fn notes(storage: &dyn Storage) -> Vec<(String, Option<u64>)> {
    let until = |name: &str| {
        let bytes = read_all(&*storage.open(name).ok()?).ok()?;
        Some(Shipped::parse(std::str::from_utf8(&bytes).ok()?)?.until)
    };
    let names = storage.names().unwrap_or_default().into_iter();
    let names = names.map(|found| found.name).filter(|n| is_shipped_name(n));
    names.map(|name| (name.clone(), until(&name))).collect()
}

/// Removes notes whose number is `next_number` or higher. All files of the directory were removed;
/// new files get these numbers and are not shipped yet.
pub(crate) fn forget_unknown(storage: &dyn Storage, next_number: u64) {
    for (name, until) in notes(storage) {
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
        let note_until = |until| {
            let place = "s3://lake\n/x".to_string();
            Shipped { until, place }.text()
        };
        put(&storage, &shipped_name(0xAB), &note_until(12));
        put(&storage, "shipped-notes", "until 1");
        assert_eq!(shipped_until(&storage), 12);
        put(&storage, &shipped_name(u64::MAX), &note_until(7));
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
    fn numbers_without_a_file_are_ignored() {
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
