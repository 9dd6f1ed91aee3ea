//! Where an import goes: a directory nobody records into, a node in it, and
//! the ticks that are there already.

use super::{ImportError, ImportResult};
use rustix::fs::{FlockOperation, flock};
use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use tacho_tape::block::FrameRange;
use tacho_tape::directory::{Kind, LOCK, Numbers, file_name, list};
use tacho_tape::seal::SealedFile;
use tacho_tape::storage::{OsStorage, open_regular};
use tacho_tape::{Identity, PartBuilder, Store};

/// Where files are written aside: this and the number of the process.
const ASIDE: &str = "import-";

/// A tape being imported into. Dropped before [`Target::finish`] it leaves
/// nothing.
pub struct Target {
    directory: PathBuf,
    aside: PathBuf,
    identity: Identity,
    first_number: u64,
    files: u64,
    storage: OsStorage,
    file: Option<SealedFile>,
    /// Last tick and its slot time in ms, when the node has history.
    pub last: Option<(u64, i64)>,
    _lock: File,
}

impl Target {
    /// Opens a directory; creates it if it is missing.
    pub fn open(directory: &Path, node: Option<u64>, append: bool) -> ImportResult<Target> {
        OsStorage::create_directory(directory)
            .map_err(|e| io("create directory", directory, &e))?;
        let lock = lock(directory)?;
        let store = Store::open(directory)?;
        let known = store.nodes();
        let chosen = match (node, append) {
            (Some(node), _) => known.iter().find(|n| n.id == node),
            (None, true) => known.first(),
            (None, false) => None,
        };
        if !append && (chosen.is_some() || (node.is_none() && !known.is_empty())) {
            return Err(ImportError::new(format!(
                "directory \"{}\" has history already",
                directory.display()
            ))
            .hint("Use --append to add later times, or --node for another recorder."));
        }
        let newest = chosen.and_then(|n| store.parts(n.id).last());
        let identity = newest.map(|part| part.info().identity.clone());
        let mut identity = identity.unwrap_or_default();
        if identity.node == 0 {
            identity.node = node.unwrap_or_else(random);
        }
        let files = list(&OsStorage::new(directory))?;
        remove_left_over(directory)?;
        let aside = directory.join(format!("{ASIDE}{}", std::process::id()));
        fs::create_dir(&aside).map_err(|e| io("create directory", &aside, &e))?;
        let storage = OsStorage::new(&aside);
        Ok(Target {
            directory: directory.to_path_buf(),
            aside,
            identity,
            first_number: files.iter().map(|f| f.numbers.last + 1).max().unwrap_or(1),
            files: 0,
            storage,
            file: None,
            last: chosen
                .zip(newest)
                .map(|(n, part)| (part.last_tick(), n.last_ms)),
            _lock: lock,
        })
    }

    /// Writes the rows of a part aside, as a group of the file at hand; the
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

    /// Ends the file at hand with the definitions of a part.
    pub fn end_file(&mut self, part: PartBuilder) -> ImportResult<()> {
        if let Some(file) = self.file.take() {
            file.finish(&self.storage, part)?;
            self.files += 1;
        }
        Ok(())
    }

    /// Makes the files visible: all or none.
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

/// Removes what killed imports have left: the lock is held, so no other one
/// is at work.
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

/// The lock a recorder holds.
fn lock(directory: &Path) -> ImportResult<File> {
    let path = directory.join(LOCK);
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
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

/// A number that nobody else has.
fn random() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish().max(1)
}

fn io(what: &str, path: &Path, error: &std::io::Error) -> ImportError {
    ImportError::new(format!("could not {what} \"{}\": {error}", path.display()))
}
