//! Temporary files: an object is written into one before it gets its name.

use std::fs::{self, DirEntry, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tacho_tape::write::clock::random;

/// Begin and end of a temporary file's name; a random number stands between them.
const NAME_ENDS: (&str, &str) = ("tacho-ship-", ".tmp");
/// A temporary file that is older than this was left by a crash: no put takes this long.
const OLD: Duration = Duration::from_secs(24 * 3_600);

/// A temporary file. It is removed when dropped, and readable by its owner only.
pub struct TempFile(PathBuf);

impl TempFile {
    /// Creates a file with `bytes` and a random name, and synchronises it.
    /// Removes files of the directory that crashes have left.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn new(directory: &Path, bytes: &[u8]) -> io::Result<TempFile> {
        remove_old(directory);
        let (begin, end) = NAME_ENDS;
        let path = directory.join(format!("{begin}{:016x}{end}", random()));
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let scratch = TempFile(path);
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(scratch)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Errors are ignored: the file may belong to another user.
fn remove_old(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(is_old) {
        let _ = fs::remove_file(entry.path());
    }
}

fn is_old(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_str().unwrap_or_default();
    let is_own = name.starts_with(NAME_ENDS.0) && name.ends_with(NAME_ENDS.1);
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
        drop(TempFile::new(root.path(), b"x").unwrap());
        let is_there = left.map(|(name, _)| root.path().join(name).exists());
        assert_eq!(is_there, [false, true, true, true]);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
    }
}
