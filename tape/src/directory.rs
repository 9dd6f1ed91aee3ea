//! Names of the files of a history directory, and the file `node`.

use crate::error::{self, Error, Result};
use crate::frame::crc32c;
use crate::storage::{Storage, read_all};
use std::io;

/// The lock file: the writer holds an exclusive flock on it.
pub const LOCK: &str = "lock";
/// The file that holds the node number.
pub const NODE: &str = "node";
const NODE_TEMPORARY: &str = "node.tmp";

/// What a file of the directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A sealed file.
    Sealed,
    /// A log.
    Log,
    /// A sealed file being written.
    Temporary,
}

const SUFFIXES: [(Kind, &str); 3] = [
    (Kind::Sealed, ".tape"),
    (Kind::Log, ".open"),
    (Kind::Temporary, ".tmp"),
];

/// The name of a log, or of the file made of it.
pub fn file_name(number: u64, kind: Kind) -> String {
    Numbers::one(number).name(kind)
}

/// The numbers of the logs whose rows a file holds. A file of several takes
/// the place of every other file with numbers among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Numbers {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl Numbers {
    /// Of one log.
    pub fn one(number: u64) -> Self {
        Numbers {
            first: number,
            last: number,
        }
    }

    /// More than one log.
    pub fn is_merged(self) -> bool {
        self.last > self.first
    }

    /// Takes the place of a file with these other numbers.
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

/// The file a name stands for; `None` for a foreign name.
pub fn parse_name(name: &str) -> Option<(Numbers, Kind)> {
    let (digits, kind) = SUFFIXES
        .iter()
        .find_map(|s| Some((name.strip_suffix(s.1)?, s.0)))?;
    let number = |digits: &str| -> Option<u64> {
        let plain = digits.len() >= 10 && digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse().ok().filter(|_| plain)
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

/// Begin of the name of a file that says since when recording is paused.
const MARK: &str = "paused-";

/// The name of an empty file: recording is paused since then, ms since 1970.
pub(crate) fn file_mark(since_ms: i64) -> String {
    format!("{MARK}{since_ms}")
}

/// What such a name says.
pub(crate) fn parse_mark(name: &str) -> Option<i64> {
    let since_ms = name.strip_prefix(MARK)?.parse().ok()?;
    (file_mark(since_ms) == name).then_some(since_ms)
}

/// A history file of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryFile {
    /// Its numbers.
    pub numbers: Numbers,
    /// What it is.
    pub kind: Kind,
    /// Its length.
    pub bytes: u64,
}

impl HistoryFile {
    /// Its name.
    pub fn name(&self) -> String {
        self.numbers.name(self.kind)
    }
}

/// The history files, by number and kind.
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

/// Numbers and kinds of the history files, in this order.
///
/// # Errors
/// The directory could not be read.
pub fn names(storage: &dyn Storage) -> Result<Vec<(Numbers, Kind)>> {
    let names = storage.names();
    let names = names.map_err(|e| Error::io("read directory", storage.directory(), e))?;
    let mut files: Vec<_> = names.iter().filter_map(|name| parse_name(name)).collect();
    files.sort_unstable();
    Ok(files)
}

/// What the file `node` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The node.
    pub node: u64,
    /// Device of its directory.
    pub device: u64,
    /// Inode of its directory.
    pub inode: u64,
}

impl Recorded {
    /// The bytes of the file.
    pub fn text(&self) -> String {
        let Recorded {
            node,
            device,
            inode,
        } = self;
        let text = format!("node {node:016x}\ndevice {device}\ninode {inode}\n");
        let crc = crc32c(text.as_bytes());
        format!("{text}crc {crc:08x}\n")
    }

    fn parse(bytes: &[u8]) -> Option<Recorded> {
        let text = std::str::from_utf8(bytes).ok()?;
        let field = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        };
        let recorded = Recorded {
            node: u64::from_str_radix(field("node")?, 16).ok()?,
            device: field("device")?.parse().ok()?,
            inode: field("inode")?.parse().ok()?,
        };
        (recorded.node != 0 && recorded.text() == text).then_some(recorded)
    }
}

/// The node of a directory, without asking whether it was copied. `None`
/// when it has none yet.
///
/// # Errors
/// The file `node` could not be read or is damaged.
pub fn recorded_node(storage: &dyn Storage) -> Result<Option<Recorded>> {
    let path = storage.directory().join(NODE);
    let file = match storage.open(NODE) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|e| Error::io("open file", &path, e))?,
    };
    let bytes = read_all(&*file).map_err(|e| Error::io("read file", &path, e))?;
    match Recorded::parse(&bytes) {
        Some(recorded) => Ok(Some(recorded)),
        None => Err(Error::damaged("damaged file").at(&path)),
    }
}

/// The node of a directory that a writer takes over: the recorded one while
/// the directory is still the same, else `random`, which is recorded. With it
/// the damage of the file that said so before.
///
/// # Errors
/// The file `node` could not be read or written.
pub fn claim_node(storage: &dyn Storage, random: u64) -> Result<(u64, Option<Error>)> {
    let path = storage.directory().join(NODE);
    let own = storage.device_inode();
    let (device, inode) = own.map_err(|e| Error::io("stat", storage.directory(), e))?;
    let damage = match recorded_node(storage) {
        Ok(Some(known)) if (known.device, known.inode) == (device, inode) => {
            return Ok((known.node, None));
        }
        Ok(_) => None,
        Err(error) if error.kind == error::Kind::Damaged => Some(error),
        Err(error) => return Err(error),
    };
    let node = random.max(1);
    let recorded = Recorded {
        node,
        device,
        inode,
    };
    let write = || {
        let _ = storage.remove(NODE_TEMPORARY);
        let mut file = storage.create(NODE_TEMPORARY)?;
        file.append(recorded.text().as_bytes())?;
        file.sync()?;
        storage.rename(NODE_TEMPORARY, NODE)?;
        storage.sync_directory()
    };
    write().map_err(|e| Error::io("write file", &path, e))?;
    Ok((node, damage))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStorage;

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

    /// The node, and what kind of damage was told.
    fn claim(storage: &MemoryStorage, random: u64) -> (u64, Option<error::Kind>) {
        let (node, damage) = claim_node(storage, random).unwrap();
        (node, damage.map(|d| d.kind))
    }

    #[test]
    fn a_directory_keeps_its_node_and_a_copy_gets_a_new_one() {
        let storage = MemoryStorage::new();
        assert_eq!(claim(&storage, 0xAB), (0xAB, None));
        assert_eq!(claim(&storage, 0xCD), (0xAB, None));
        let copy = storage.copied();
        assert_eq!(claim(&copy, 0xCD), (0xCD, None));
        assert_eq!(recorded_node(&storage).unwrap().unwrap().node, 0xAB);
    }

    #[test]
    fn any_damage_of_the_file_node_is_told_and_begins_a_new_node() {
        let storage = MemoryStorage::new();
        claim_node(&storage, 0xAB).unwrap();
        let whole = storage.bytes_of(NODE).unwrap();
        let check = |bytes: &[u8], what: String| {
            storage.put(NODE, bytes);
            let damaged = Some(error::Kind::Damaged);
            let error = recorded_node(&storage).unwrap_err();
            assert_eq!(Some(error.kind), damaged, "{what}");
            assert_eq!(claim(&storage, 0xCD), (0xCD, damaged), "{what}");
            assert_eq!(claim(&storage, 0xEF), (0xCD, None), "{what}");
        };
        for end in 0..whole.len() {
            check(&whole[..end], format!("end {end}"));
        }
        for bit in 0..whole.len() * 8 {
            let mut copy = whole.clone();
            copy[bit / 8] ^= 1 << (bit % 8);
            check(&copy, format!("bit {bit}"));
        }
    }

    #[test]
    fn a_crash_while_the_node_is_recorded_leaves_the_old_one_or_the_new() {
        use crate::memory::Crash;
        let first = MemoryStorage::new();
        claim_node(&first, 0xAB).unwrap();
        for (storage, was) in [(MemoryStorage::new(), None), (first.copied(), Some(0xAB))] {
            let probe = storage.after(Crash::Process);
            claim_node(&probe, 0xCD).unwrap();
            for operation in storage.operations()..=probe.operations() {
                for crash in [Crash::Process, Crash::Machine, Crash::MachineHalf] {
                    let crashed = storage.after(Crash::Process);
                    crashed.stop_at(operation);
                    let _ = claim_node(&crashed, 0xCD);
                    let after = crashed.after(crash);
                    let found = recorded_node(&after).unwrap().map(|r| r.node);
                    assert!(found == was || found == Some(0xCD), "{operation} {crash:?}");
                    let (node, damage) = claim(&after, 0xEF);
                    assert!([0xCD, 0xEF].contains(&node) && damage.is_none());
                }
            }
        }
    }
}
