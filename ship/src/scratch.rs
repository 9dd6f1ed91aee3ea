//! Files that are needed for a moment: what is put has one until it has its name.

use std::fs::{self, DirEntry, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tacho_tape::write::recording::random;

/// What names of such files begin and end with; between is a random number.
const ENDS: (&str, &str) = ("tacho-ship-", ".tmp");
/// One that is older was left by a crash: nothing takes so long.
const OLD: Duration = Duration::from_secs(24 * 3_600);

/// A file that is gone when it is not needed any more. Others cannot read it.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A file with some bytes, all of them on the disk, that was not there; its
    /// name says nothing. Those that crashes have left in the directory are removed.
    ///
    /// # Errors
    /// It could not be written.
    pub fn new(directory: &Path, bytes: &[u8]) -> io::Result<Scratch> {
        remove_old(directory);
        let (begin, end) = ENDS;
        let path = directory.join(format!("{begin}{:016x}{end}", random()));
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let scratch = Scratch(path);
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(scratch)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// What cannot be looked at or removed stays: it may be of another user.
fn remove_old(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(is_old) {
        let _ = fs::remove_file(entry.path());
    }
}

fn is_old(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_str().unwrap_or_default();
    let is_own = name.starts_with(ENDS.0) && name.ends_with(ENDS.1);
    let written = || entry.metadata().ok()?.modified().ok();
    is_own && written().is_some_and(|at| at.elapsed().is_ok_and(|age| age > OLD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::SystemTime;

    #[test]
    fn files_that_a_crash_has_left_are_removed_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let hour = Duration::from_secs(3_600);
        let left = [
            ("tacho-ship-0000000000000001.tmp", 25),
            ("tacho-ship-0000000000000002.tmp", 23),
            ("notes.tmp", 25),
            ("tacho-ship-notes", 25),
        ];
        for (name, age) in left {
            let file = File::create(root.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - age * hour).unwrap();
        }
        drop(Scratch::new(root.path(), b"x").unwrap());
        let is_there = left.map(|(name, _)| root.path().join(name).exists());
        assert_eq!(is_there, [false, true, true, true]);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
    }
}
