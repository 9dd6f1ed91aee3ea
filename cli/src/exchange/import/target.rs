//! The target of an import: a directory into which nothing is recorded now, a
//! node in it, and the ticks that it has already.

use super::lines::{Lines, Record};
use super::{ImportError, ImportResult};
use crate::exchange::export::{Failed, Window, export};
use rustix::fs::{FlockOperation, flock};
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::io::Cursor;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tacho_source::catalog;
use tacho_source::exchange;
use tacho_tape::files::directory::{Kind, LOCK, Numbers, file_name, list};
use tacho_tape::files::storage::{OsStorage, open_regular};
use tacho_tape::format::sealed_write::FrameRange;
use tacho_tape::write::seal::SealedFile;
use tacho_tape::{Identity, Part, PartBuilder, Snapshot};

/// Files are first written to a directory with this name and the PID.
const ASIDE: &str = "import-";

/// A tape during an import. Dropping it before [`Target::finish`] leaves
/// nothing behind.
pub struct Target {
    directory: PathBuf,
    aside: PathBuf,
    identity: Identity,
    first_number: u64,
    files: u64,
    storage: OsStorage,
    file: Option<SealedFile>,
    /// The number of the node's last tick, and its slot time in ms since 1970.
    /// `None` if the node has no ticks.
    pub last: Option<(u64, i64)>,
    /// The parts of the node.
    there: Vec<Part>,
    _lock: File,
}

impl Target {
    /// Opens a directory; creates it if it is missing.
    pub fn open(directory: &Path, node: Option<u64>, append: bool) -> ImportResult<Target> {
        OsStorage::create_directory(directory)
            .map_err(|e| io("create directory", directory, &e))?;
        let lock = lock(directory)?;
        let store = Snapshot::open(directory)?;
        let known = store.nodes();
        let chosen = match (node, append) {
            (Some(node), _) => known.iter().find(|n| n.id == node),
            (None, true) => known.first(),
            (None, false) => None,
        };
        if !append && (chosen.is_some() || (node.is_none() && !known.is_empty())) {
            return Err(ImportError::new(format!(
                "directory \"{}\" already contains history",
                directory.display()
            ))
            .hint("Use --append to add later times, or --node for another recorder."));
        }
        let there = chosen.map_or_else(Vec::new, |n| store.parts(n.id).cloned().collect());
        let identity = newest(&there).map(|part| part.info().identity.clone());
        let mut identity = identity.unwrap_or_default();
        if identity.node == 0 {
            identity.node = node.unwrap_or_else(random);
        }
        let files = list(&OsStorage::new(directory))?;
        remove_left_over(directory)?;
        let aside = directory.join(format!("{ASIDE}{}", std::process::id()));
        let made = fs::DirBuilder::new().mode(0o700).create(&aside);
        made.map_err(|e| io("create directory", &aside, &e))?;
        let storage = OsStorage::new(&aside);
        Ok(Target {
            directory: directory.to_path_buf(),
            aside,
            identity,
            first_number: files.iter().map(|f| f.numbers.last + 1).max().unwrap_or(1),
            files: 0,
            storage,
            file: None,
            last: last_tick(&there),
            there,
            _lock: lock,
        })
    }

    /// Sets the server of the history, which must not change.
    pub fn belongs_to(&mut self, system: u64) -> ImportResult<()> {
        match self.identity.system_identifier {
            known if known == system => Ok(()),
            0 if self.there.is_empty() => {
                self.identity.system_identifier = system;
                Ok(())
            }
            known => Err(ImportError::new(format!(
                "history belongs to system {known}, not {system}"
            ))
            .hint("Omit --system, or specify another --node.")),
        }
    }

    /// Newest time, in ms, of rows of a table with times of their own.
    pub fn newest(&self, table: &str) -> ImportResult<Option<i64>> {
        let mut newest = None;
        for part in self.there.iter().filter(|part| part.rows(table) > 0) {
            newest = newest.max(part.ints(table, "time")?.iter().copied().max());
            part.release();
        }
        Ok(newest)
    }

    /// Hashes of the texts in the history, by [`row_hash`].
    pub fn texts(&self) -> ImportResult<HashSet<u64>> {
        let mut written = Vec::new();
        let window = Window {
            since: i64::MIN,
            until: i64::MAX,
        };
        let parts: Vec<&Part> = self.there.iter().collect();
        let mut damage = Vec::new();
        let schema = catalog::schema().clone().with_runs();
        match export(
            exchange::TEXTS,
            &schema,
            &parts,
            window,
            &mut written,
            &mut damage,
        ) {
            Err(Failed::Output(error)) => return Err(ImportError::new(error.to_string())),
            // Parts of another kind of history have no such table.
            Err(Failed::Kind) | Ok(()) => (),
        }
        let mut lines = Lines::new(Box::new(Cursor::new(written)));
        let mut record = Record::default();
        let mut hashes = HashSet::new();
        if !lines.next(&mut record)? {
            return Ok(hashes);
        }
        let names = record
            .iter()
            .map(|n| String::from_utf8_lossy(n).into_owned());
        let names: Vec<String> = names.collect();
        while lines.next(&mut record)? {
            let fields = names.iter().map(String::as_str).zip(record.iter());
            hashes.insert(row_hash(fields));
        }
        Ok(hashes)
    }

    /// Writes the rows of a part as a group of the current file. The
    /// definitions stay in the part.
    pub fn group(&mut self, part: &mut PartBuilder) -> ImportResult<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                let numbers = Numbers::one(self.first_number + self.files);
                let identity = self.identity.clone();
                SealedFile::create(&self.storage, numbers, part.schema(), identity)?
            }
        };
        file.group(part, FrameRange::default())?;
        self.file = Some(file);
        Ok(())
    }

    /// True if there is a current file.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Ends the current file with the definitions of a part.
    pub fn end_file(&mut self, part: PartBuilder) -> ImportResult<()> {
        if let Some(file) = self.file.take() {
            file.finish(&self.storage, part)?;
            self.files += 1;
        }
        Ok(())
    }

    /// Makes all files visible, or none.
    pub fn finish(self) -> ImportResult<()> {
        for number in self.first_number..self.first_number + self.files {
            let name = file_name(number, Kind::Sealed);
            let (from, to) = (self.aside.join(&name), self.directory.join(&name));
            fs::rename(&from, &to).map_err(|e| {
                for visible in self.first_number..number {
                    let name = file_name(visible, Kind::Sealed);
                    let _ = fs::remove_file(self.directory.join(name));
                }
                io("rename file", &from, &e)
            })?;
        }
        let directory = File::open(&self.directory);
        directory
            .and_then(|d| d.sync_all())
            .map_err(|e| io("sync directory", &self.directory, &e))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.aside);
    }
}

/// The newest part with ticks, because a part without ticks has no times. If no
/// part has ticks, the newest one.
fn newest(parts: &[Part]) -> Option<&Part> {
    let with_ticks = parts.iter().rev().find(|part| has_ticks(part));
    with_ticks.or(parts.last())
}

/// The greatest tick and slot time; `None` without ticks.
fn last_tick(parts: &[Part]) -> Option<(u64, i64)> {
    let parts = || parts.iter().filter(|part| has_ticks(part));
    let tick = parts().map(Part::last_tick).max()?;
    Some((tick, parts().map(Part::max_ms).max()?))
}

fn has_ticks(part: &Part) -> bool {
    part.first_tick() <= part.last_tick()
}

/// Hash of a row's content: independent of the order of columns, and without
/// the time of its tick, which differs from file to file.
pub fn row_hash<'a>(fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> u64 {
    let said = fields.filter(|(name, text)| *name != "time" && !text.is_empty());
    said.fold(0, |sum, field| {
        let mut hasher = DefaultHasher::new();
        field.hash(&mut hasher);
        sum ^ hasher.finish()
    })
}

/// Removes files of killed imports. The lock is held, so no other import is
/// running.
fn remove_left_over(directory: &Path) -> ImportResult<()> {
    let entries = fs::read_dir(directory).map_err(|e| io("read directory", directory, &e))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(ASIDE));
        if number.is_some_and(|n| n.parse::<u32>().is_ok()) {
            let path = entry.path();
            fs::remove_dir_all(&path).map_err(|e| io("remove directory", &path, &e))?;
        }
    }
    Ok(())
}

/// Takes the lock of a recorder.
fn lock(directory: &Path) -> ImportResult<File> {
    let path = directory.join(LOCK);
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = open_regular(&options, &path).map_err(|e| io("open file", &path, &e))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        ImportError::new(format!(
            "directory \"{}\" is in use by another process",
            directory.display()
        ))
        .hint("Import into a directory that no server records into.")
    })?;
    Ok(file)
}

/// A random number for a new node.
fn random() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish().max(1)
}

fn io(what: &str, path: &Path, error: &std::io::Error) -> ImportError {
    ImportError::new(format!("could not {what} \"{}\": {error}", path.display()))
}
