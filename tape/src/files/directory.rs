//! Names of the files of a history directory.

use crate::error::{Error, Result};
use crate::files::storage::{Name, Storage};

pub use crate::files::node::{Recorded, recorded_node};
pub use crate::files::storage::{LOCK, NODE};

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A sealed file.
    Sealed,
    /// A log.
    Log,
    /// A sealed file that is being written.
    Temporary,
}

const SUFFIXES: [(Kind, &str); 3] = [
    (Kind::Sealed, ".tape"),
    (Kind::Log, ".open"),
    (Kind::Temporary, ".tmp"),
];

/// Name of a log, or of the sealed file made of it.
pub fn file_name(number: u64, kind: Kind) -> String {
    Numbers::one(number).name(kind)
}

/// Numbers of the logs whose rows a file has. A file of several logs replaces every other file
/// whose numbers are among them. Example: `0000000001-0000000144.tape` replaces `0000000007.tape`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Numbers {
    /// Number of the first log.
    pub first: u64,
    /// Number of the last log.
    pub last: u64,
}

impl Numbers {
    /// Numbers of a file that has the rows of one log.
    pub fn one(number: u64) -> Self {
        Numbers {
            first: number,
            last: number,
        }
    }

    /// True if the file has the rows of more than one log.
    pub fn is_merged(self) -> bool {
        self.last > self.first
    }

    /// True if a file with these numbers replaces a file with the other ones.
    pub fn replaces(self, other: Numbers) -> bool {
        self != other && self.first <= other.first && other.last <= self.last
    }

    /// The name of a file with these numbers.
    pub fn name(self, kind: Kind) -> String {
        let suffix = SUFFIXES.iter().find(|s| s.0 == kind).map_or("", |s| s.1);
        match self.is_merged() {
            true => format!("{:010}-{:010}{suffix}", self.first, self.last),
            false => format!("{:010}{suffix}", self.first),
        }
    }
}

/// No writer reaches this number, so a file with such a name is foreign. Numbers after it must not
/// overflow.
const LARGEST_NUMBER: u64 = 1 << 53;

/// Numbers and kind from a name; `None` for a foreign name.
pub fn parse_name(name: &str) -> Option<(Numbers, Kind)> {
    let (digits, kind) = SUFFIXES
        .iter()
        .find_map(|s| Some((name.strip_suffix(s.1)?, s.0)))?;
    let number = |digits: &str| -> Option<u64> {
        let plain = digits.len() >= 10 && digits.bytes().all(|b| b.is_ascii_digit());
        let number = digits.parse().ok().filter(|_| plain)?;
        (number < LARGEST_NUMBER).then_some(number)
    };
    let numbers = match digits.split_once('-') {
        None => Numbers::one(number(digits)?),
        Some((first, last)) => Numbers {
            first: number(first)?,
            last: number(last)?,
        },
    };
    let valid = numbers.first <= numbers.last && numbers.name(kind) == name;
    valid.then_some((numbers, kind))
}

/// Prefix of the name of a file that notes a pause of recording.
const MARK: &str = "paused-";

/// Name of the empty file for a pause that began at this time, in ms since 1970.
pub(crate) fn file_mark(since_ms: i64) -> String {
    format!("{MARK}{since_ms}")
}

/// Start of a pause in ms since 1970, if this is the name of such a file.
pub fn parse_mark(name: &str) -> Option<i64> {
    let since_ms = name.strip_prefix(MARK)?.parse().ok()?;
    (file_mark(since_ms) == name).then_some(since_ms)
}

/// A history file of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryFile {
    /// Numbers of the logs whose rows the file has.
    pub numbers: Numbers,
    /// Kind of the file.
    pub kind: Kind,
    /// Length in bytes.
    pub bytes: u64,
}

impl HistoryFile {
    /// Name of the file.
    pub fn name(&self) -> String {
        self.numbers.name(self.kind)
    }
}

/// The history files, ordered by number and kind.
///
/// # Errors
/// The directory could not be read.
pub fn list(storage: &dyn Storage) -> Result<Vec<HistoryFile>> {
    let entries = storage.list();
    let entries = entries.map_err(|e| Error::io("read directory", storage.directory(), e))?;
    let mut files: Vec<HistoryFile> = entries
        .iter()
        .filter_map(|entry| {
            let (numbers, kind) = parse_name(&entry.name)?;
            let bytes = entry.bytes;
            Some(HistoryFile {
                numbers,
                kind,
                bytes,
            })
        })
        .collect();
    files.sort_by_key(|f| (f.numbers, f.kind));
    Ok(files)
}

/// A history file by its name and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Listed {
    pub(crate) numbers: Numbers,
    pub(crate) kind: Kind,
    /// Inode number, as [`Name::file`].
    pub(crate) file: u64,
}

/// The names of all files of a directory, in no order.
///
/// # Errors
/// The directory could not be read.
pub(crate) fn names(storage: &dyn Storage) -> Result<Vec<Name>> {
    let names = storage.names();
    names.map_err(|e| Error::io("read directory", storage.directory(), e))
}

/// The history files among these names, except temporary ones, ordered by number and kind.
pub(crate) fn listed(names: &[Name]) -> Vec<Listed> {
    let mut files: Vec<Listed> = names
        .iter()
        .filter_map(|found| {
            let (numbers, kind) = parse_name(&found.name)?;
            let file = found.file;
            Some(Listed {
                numbers,
                kind,
                file,
            })
        })
        .filter(|found| found.kind != Kind::Temporary)
        .collect();
    files.sort_unstable();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_foreign_ones_left_alone() {
        assert_eq!(file_name(7, Kind::Sealed), "0000000007.tape");
        for kind in [Kind::Sealed, Kind::Log, Kind::Temporary] {
            assert_eq!(
                parse_name(&file_name(12, kind)),
                Some((Numbers::one(12), kind))
            );
        }
        let day = Numbers {
            first: 1,
            last: 144,
        };
        assert_eq!(day.name(Kind::Sealed), "0000000001-0000000144.tape");
        assert_eq!(
            parse_name("0000000001-0000000144.tmp"),
            Some((day, Kind::Temporary))
        );
        assert!(day.replaces(Numbers::one(144)) && !day.replaces(day));
        assert!(!day.replaces(Numbers {
            first: 144,
            last: 145
        }));
        let strange = "0000000009-0000000008.tape";
        for name in [
            strange,
            "18446744073709551614.tape",
            "0000000007-0000000007.tape",
            "node",
            "7.tape",
            "00000000x7.tape",
            ".tape",
            "notes.open",
        ] {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }
}
