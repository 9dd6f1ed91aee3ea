//! Where objects go. A place takes an object once: of two that put one of the
//! same name the second is told so.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Why something could not be done.
pub type Result<T> = std::result::Result<T, String>;

/// Where objects go.
pub trait Place {
    /// Puts an object unless there is one of the name; says whether it did.
    ///
    /// # Errors
    /// The place could not be reached or written; the object may be there.
    fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool>;

    /// The last parts of the names of the objects in a directory.
    ///
    /// # Errors
    /// The place could not be reached.
    fn list(&self, directory: &str) -> Result<Vec<String>>;
}

/// What begins the address of a directory.
const FILE: &str = "file://";

/// A directory of a file system that has hard links. What is put there is for its
/// owner alone, as the tape is.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// The directory at an address, made when it is not there.
    ///
    /// # Errors
    /// The address makes no sense, or the directory could not be made.
    pub fn open(address: &str) -> Result<Directory> {
        let path = address.strip_prefix(FILE).unwrap_or(address);
        if !path.starts_with('/') {
            return Err(format!(
                "address \"{address}\" is not understood\nHINT:  Write file:///DIRECTORY, or give --command."
            ));
        }
        let root = PathBuf::from(path);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
            .create(&root)
            .map_err(|e| format!("could not create directory \"{path}\": {e}"))?;
        Ok(Directory { root })
    }

    /// Makes a directory below the root, to stay after a crash.
    fn make(&self, directory: &Path) -> io::Result<()> {
        if directory.is_dir() {
            return Ok(());
        }
        let above = directory
            .parent()
            .filter(|above| above.starts_with(&self.root));
        let above = above.unwrap_or(&self.root);
        self.make(above)?;
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => sync(above),
        }
    }

    /// A file gets its name when all of it is on the disk. One that is left by a
    /// crash is hidden, and has another ending.
    fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<bool> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = path.parent().unwrap_or(&self.root);
        self.make(directory)?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let own = format!(".{name}.{}-{number}", std::process::id());
        let own = directory.join(own);
        let put = write(&own, bytes).and_then(|()| fs::hard_link(&own, path));
        let removed = fs::remove_file(&own);
        match put {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
            Ok(()) => {
                removed?;
                sync(directory)?;
                Ok(true)
            }
        }
    }
}

/// What another process of this number has left is written over.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

impl Place for Directory {
    fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        let path = self.root.join(name);
        let put = self.put(&path, &bytes);
        put.map_err(|e| format!("could not write file \"{}\": {e}", path.display()))
    }

    fn list(&self, directory: &str) -> Result<Vec<String>> {
        let path = self.root.join(directory);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries,
        };
        let names = entries.and_then(|entries| {
            let names = entries.map(|entry| entry.map(|e| e.file_name().into_string().ok()));
            names.collect::<io::Result<Vec<_>>>()
        });
        let names =
            names.map_err(|e| format!("could not list directory \"{}\": {e}", path.display()))?;
        Ok(names.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_takes_an_object_once_and_leaves_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let address = format!("file://{}/landing", root.path().display());
        let place = Directory::open(&address).unwrap();
        let name = "ticks/server=a%2Fb/day=2026-02-06/03.parquet";
        assert_eq!(place.put_new(name, b"first".to_vec()), Ok(true));
        assert_eq!(place.put_new(name, b"second".to_vec()), Ok(false));
        let file = root.path().join("landing").join(name);
        assert_eq!(fs::read(&file).unwrap(), b"first");
        let directory = "ticks/server=a%2Fb/day=2026-02-06";
        assert_eq!(place.list(directory), Ok(vec!["03.parquet".to_string()]));
        assert_eq!(place.list("ticks/server=other"), Ok(vec![]));
    }

    #[test]
    fn what_is_put_is_for_its_owner_alone() {
        let root = tempfile::tempdir().unwrap();
        let landing = root.path().join("landing");
        let place = Directory::open(landing.to_str().unwrap()).unwrap();
        place.put_new("texts/x.parquet", b"text".to_vec()).unwrap();
        let mode = |path: &str| {
            let found = fs::metadata(landing.join(path)).unwrap();
            found.permissions().mode() & 0o777
        };
        assert_eq!(mode(""), 0o700);
        assert_eq!(mode("texts"), 0o700);
        assert_eq!(mode("texts/x.parquet"), 0o600);
    }

    #[test]
    fn an_address_that_is_no_directory_is_refused() {
        let error = Directory::open("s3://bucket/x").unwrap_err();
        let wanted = "address \"s3://bucket/x\" is not understood\nHINT:  Write file:///DIRECTORY, or give --command.";
        assert_eq!(error, wanted);
    }
}
