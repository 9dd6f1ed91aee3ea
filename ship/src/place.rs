//! The place that objects go to. A place takes a name once: the second put of a name
//! is refused.

use crate::scratch::TempFile;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The error is a message, with detail and hint on lines of their own.
pub type Result<T> = std::result::Result<T, String>;

/// Stores objects.
pub trait Place {
    /// Puts an object, unless there is one of the name. Returns whether it was put.
    ///
    /// # Errors
    /// The place could not be reached or written. The object may be there
    /// nevertheless.
    fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool>;

    /// Calls `each` with the last part of each object's name in a directory.
    ///
    /// # Errors
    /// The place could not be reached. `each` may have got some names.
    fn list(&self, directory: &str, each: &mut dyn FnMut(&str)) -> Result<()>;
}

/// Prefix of a directory's address.
const FILE: &str = "file://";
/// Directory for files that are still being written. No table has this name.
const TEMP_DIR: &str = ".tacho-ship";

/// A directory of a file system that has hard links. Its files are readable by their
/// owner only, as the tape's are.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// Opens the directory at an address, and creates it if necessary.
    ///
    /// # Errors
    /// The address is invalid, the directory could not be made or written, or its
    /// file system has no hard links.
    pub fn open(address: &str) -> Result<Directory> {
        let path = address.strip_prefix(FILE).unwrap_or(address);
        if !path.starts_with('/') {
            return Err(format!(
                "invalid address \"{address}\"\nHINT:  Use file:///DIRECTORY or s3://BUCKET/PREFIX, or specify --command."
            ));
        }
        let root = PathBuf::from(path);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
            .create(&root)
            .map_err(|e| format!("could not create directory \"{path}\": {e}"))?;
        let place = Directory { root };
        place.probe(|from, to| fs::hard_link(from, to))?;
        Ok(place)
    }

    fn written(&self) -> PathBuf {
        self.root.join(TEMP_DIR)
    }

    /// Tries all steps of a put with a temporary file.
    fn probe(&self, link: impl Fn(&Path, &Path) -> io::Result<()>) -> Result<()> {
        let root = self.root.display();
        let file = self
            .make(&self.written())
            .and_then(|()| TempFile::new(&self.written(), b""))
            .map_err(|e| format!("could not write to directory \"{root}\": {e}"))?;
        let linked = file.path().with_extension("link");
        let done = link(file.path(), &linked);
        let _ = fs::remove_file(&linked);
        done.map_err(|e| {
            format!(
                "could not create a hard link in directory \"{root}\": {e}\nDETAIL:  A hard link gives a complete object its name without overwriting another object.\nHINT:  Use a file system that supports hard links, or specify --command."
            )
        })
    }

    /// Makes a directory below the root, durably. A missing root is not created: its
    /// file system may have been unmounted.
    fn make(&self, directory: &Path) -> io::Result<()> {
        if directory.is_dir() {
            return Ok(());
        }
        let above = directory
            .parent()
            .filter(|above| above.starts_with(&self.root))
            .ok_or(ErrorKind::NotFound)?;
        self.make(above)?;
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => sync(above),
        }
    }

    /// Writes a file, which gets its name when all its bytes are on the disk. False if the name is
    /// taken.
    fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<bool> {
        let directory = path.parent().unwrap_or(&self.root);
        self.make(directory)?;
        self.make(&self.written())?;
        let file = TempFile::new(&self.written(), bytes)?;
        match fs::hard_link(file.path(), path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
            Ok(()) => {
                sync(directory)?;
                Ok(true)
            }
        }
    }
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

    fn list(&self, directory: &str, each: &mut dyn FnMut(&str)) -> Result<()> {
        let path = self.root.join(directory);
        let failed = |e| format!("could not list directory \"{}\": {e}", path.display());
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            if let Some(name) = entry.map_err(failed)?.file_name().to_str() {
                each(name);
            }
        }
        Ok(())
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
        let names = |directory| {
            let mut names = Vec::new();
            let listed = place.list(directory, &mut |name| names.push(name.to_string()));
            listed.map(|()| names)
        };
        assert_eq!(names(directory), Ok(vec!["03.parquet".to_string()]));
        assert_eq!(names("ticks/server=other"), Ok(vec![]));
    }

    #[test]
    fn a_file_of_another_process_of_this_number_is_not_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let place = Directory::open(root.path().to_str().unwrap()).unwrap();
        assert_eq!(place.put_new("a/x.parquet", b"first".to_vec()), Ok(true));
        let object = root.path().join("a/x.parquet");
        // A crash between the link and the removal of the temporary name leaves the
        // latter.
        for number in 0..100 {
            let left = format!("a/.y.parquet.{}-{number}", std::process::id());
            fs::hard_link(&object, root.path().join(left)).unwrap();
        }
        assert_eq!(place.put_new("a/y.parquet", b"second".to_vec()), Ok(true));
        assert_eq!(fs::read(&object).unwrap(), b"first");
    }

    #[test]
    fn a_directory_that_has_gone_is_an_error_and_not_made_again() {
        let root = tempfile::tempdir().unwrap();
        let landing = root.path().join("landing");
        let place = Directory::open(landing.to_str().unwrap()).unwrap();
        fs::remove_dir_all(&landing).unwrap();
        let error = place.put_new("a/x.parquet", b"x".to_vec()).unwrap_err();
        assert!(error.contains("entity not found"), "{error}");
        assert!(!landing.exists());
    }

    #[test]
    fn stored_objects_are_readable_by_their_owner_only() {
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
    fn a_file_system_without_hard_links_is_refused_at_once() {
        let root = tempfile::tempdir().unwrap();
        let place = Directory::open(root.path().to_str().unwrap()).unwrap();
        let refused = |_: &Path, _: &Path| Err(ErrorKind::PermissionDenied.into());
        let error = place.probe(refused).unwrap_err();
        let wanted = format!(
            "could not create a hard link in directory \"{}\": permission denied\nDETAIL:  A hard link",
            root.path().display()
        );
        assert!(error.starts_with(&wanted), "{error}");
        assert_eq!(fs::read_dir(place.written()).unwrap().count(), 0);
    }

    #[test]
    fn an_address_that_is_no_directory_is_refused() {
        let error = Directory::open("ftp://host/x").unwrap_err();
        let wanted = "invalid address \"ftp://host/x\"\nHINT:  Use file:///DIRECTORY or s3://BUCKET/PREFIX, or specify --command.";
        assert_eq!(error, wanted);
    }
}
