//! File operations of the writer and the store behind a trait, so that tests can use crash images
//! and failing operations. A storage is one flat directory; names are file names.

use crate::error::is_lost;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt, DirEntryExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// Name of the lock file. The writer holds an exclusive flock on it.
pub const LOCK: &str = "lock";
/// Name of the file with the node number.
pub const NODE: &str = "node";

/// A file of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// File name.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
}

/// A file of the directory by name and inode. Another file that takes this name has another inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// File name.
    pub name: String,
    /// Inode number.
    pub file: u64,
}

/// Stamp of a directory. While it is the same, no file was created, renamed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Device and inode of the directory.
    pub place: (u64, u64),
    /// Time of the last change of names in ns since 1970; a counter if there is no clock.
    pub changed_ns: i128,
}

/// Place and identity of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Device; each mount may give a file system another one.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Creation time of the inode in ns since 1970; 0 = the system does not report it. A copy and
    /// its original always differ in it.
    pub born_ns: u64,
    /// Name of the machine; empty = unknown.
    pub host: String,
    /// Path without symbolic links; empty = unknown.
    pub path: String,
}

/// If names changed less than this many ns ago, they may change again under the same stamp: the
/// clocks of file systems have steps of up to two seconds.
const SETTLED_NS: i128 = 2_000_000_000;

/// Space of the file system in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that this user may still write.
    pub free: u64,
    /// Size of the file system in bytes.
    pub total: u64,
}

/// A file for reading.
pub trait ReadFile: Send + Sync {
    /// Current length in bytes.
    ///
    /// # Errors
    /// The operating system refuses.
    fn bytes(&self) -> io::Result<u64>;

    /// Fills the buffer up to the end of the file; returns the number of bytes.
    ///
    /// # Errors
    /// The operating system refuses.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Inode number, as [`Name::file`].
    ///
    /// # Errors
    /// The operating system refuses.
    fn number(&self) -> io::Result<u64>;
}

/// Opens one file for reading, each time it is needed.
pub trait Opener: Send + Sync {
    /// Opens the file that has this name now.
    ///
    /// # Errors
    /// The operating system refuses, or the file is gone.
    fn open(&self) -> io::Result<Arc<dyn ReadFile>>;
}

/// A file that is written from start to end.
pub trait AppendFile: Send {
    /// Writes all bytes at the end.
    ///
    /// # Errors
    /// The operating system refuses; some of the bytes may be written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Syncs all appended bytes to disk. After a failure the state of the bytes is unknown, and
    /// another call could return a wrong success. Therefore callers stop using the file.
    ///
    /// # Errors
    /// The operating system refuses.
    fn sync(&mut self) -> io::Result<()>;
}

/// A directory of history files.
pub trait Storage: Send + Sync {
    /// Path of the directory, for messages.
    fn directory(&self) -> &Path;
    /// All files.
    ///
    /// # Errors
    /// The operating system refuses.
    fn list(&self) -> io::Result<Vec<Entry>>;
    /// The names of all files. This costs less than their lengths.
    ///
    /// # Errors
    /// The operating system refuses.
    fn names(&self) -> io::Result<Vec<Name>>;
    /// Stamp of the directory. Callers take it before they list the names. `None` if a later change
    /// of names may leave the stamp as it is.
    fn stamp(&self) -> Option<Stamp>;
    /// Opens a file for reading.
    ///
    /// # Errors
    /// The operating system refuses.
    fn open(&self, name: &str) -> io::Result<Arc<dyn ReadFile>>;
    /// An opener for a file that is read later. The file may be gone by then.
    fn opener(&self, name: &str) -> Box<dyn Opener>;
    /// Creates a file that does not exist.
    ///
    /// # Errors
    /// The operating system refuses.
    fn create(&self, name: &str) -> io::Result<Box<dyn AppendFile>>;
    /// Renames a file. It replaces a file that has the new name.
    ///
    /// # Errors
    /// The operating system refuses.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// The operating system refuses.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Syncs creations, renames and removals to disk.
    ///
    /// # Errors
    /// The operating system refuses.
    fn sync_directory(&self) -> io::Result<()>;
    /// Space of the file system.
    ///
    /// # Errors
    /// The operating system refuses.
    fn space(&self) -> io::Result<Space>;
    /// Place and identity of the directory.
    ///
    /// # Errors
    /// The operating system refuses.
    fn place(&self) -> io::Result<Place>;
    /// The directory at a path; `None` if there is none, or if it is this one.
    ///
    /// # Errors
    /// The operating system refuses, so that a directory may be there.
    fn other_at(&self, path: &str) -> io::Result<Option<Box<dyn Storage>>>;
    /// Sets the mode of files created from now on. With group bits, the group may also enter the
    /// directory.
    ///
    /// # Errors
    /// The operating system refuses.
    fn set_file_mode(&self, mode: u32) -> io::Result<()>;
}

/// A directory of the operating system.
pub struct OsStorage {
    directory: PathBuf,
    mode: AtomicU32,
}

impl OsStorage {
    /// Creates the storage of an existing directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        OsStorage {
            directory: directory.into(),
            mode: AtomicU32::new(0o600),
        }
    }

    /// Creates the directory with mode 0700 if it is missing.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn create_directory(directory: &Path) -> io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.mode(0o700);
        match builder.create(directory) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Ok(()) => {
                // A process that may not read the parent cannot sync it.
                let parent = directory.parent().map(File::open);
                let _ = parent.and_then(|p| p.ok()?.sync_all().ok());
                Ok(())
            }
            failed => failed,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// Opens a regular file and refuses all others. Opening never waits, as it would for the other end
/// of a FIFO.
///
/// # Errors
/// The operating system refuses, or it is no regular file.
pub fn open_regular(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let mut options = options.clone();
    // `NONBLOCK` has no effect on a regular file.
    options.custom_flags(OFlags::NONBLOCK.bits() as i32);
    let file = match options.open(path) {
        // The path is a FIFO or a socket without its other end.
        Err(e) if e.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            return Err(not_regular());
        }
        opened => opened?,
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(not_regular()),
    }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

fn open_to_read(path: &Path) -> io::Result<File> {
    open_regular(OpenOptions::new().read(true), path)
}

struct OsFile(File);

impl ReadFile for OsFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.0.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => (),
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn number(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.ino())
    }
}

/// Opens a file by its path.
struct OsOpener(PathBuf);

impl Opener for OsOpener {
    fn open(&self) -> io::Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(OsFile(open_to_read(&self.0)?)))
    }
}

impl AppendFile for OsFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut self.0, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}

impl Storage for OsStorage {
    fn directory(&self) -> &Path {
        &self.directory
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            // A file may be gone since the directory was read.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                let bytes = metadata.len();
                entries.push(Entry { name, bytes });
            }
        }
        Ok(entries)
    }

    fn names(&self) -> io::Result<Vec<Name>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            // A file may be gone since the directory was read.
            let is_file = entry.file_type().is_ok_and(|t| t.is_file());
            let name = entry.file_name().into_string().ok().filter(|_| is_file);
            let file = entry.ino();
            names.extend(name.map(|name| Name { name, file }));
        }
        Ok(names)
    }

    fn stamp(&self) -> Option<Stamp> {
        let metadata = std::fs::metadata(&self.directory).ok()?;
        let changed_ns =
            i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now_ns = i128::try_from(now.ok()?.as_nanos()).ok()?;
        (now_ns - changed_ns > SETTLED_NS).then_some(Stamp {
            place: (metadata.dev(), metadata.ino()),
            changed_ns,
        })
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn ReadFile>> {
        self.opener(name).open()
    }

    fn opener(&self, name: &str) -> Box<dyn Opener> {
        Box::new(OsOpener(self.path(name)))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn AppendFile>> {
        let mode = self.mode.load(Ordering::Relaxed);
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(mode);
        let file = options.open(self.path(name))?;
        if mode != 0o600 {
            // Sets the mode regardless of the umask.
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(Box::new(OsFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    fn space(&self) -> io::Result<Space> {
        let s = rustix::fs::statvfs(&self.directory)?;
        if s.f_blocks == 0 {
            let message = "the file system does not report its size";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        Ok(Space {
            free: s.f_bavail.saturating_mul(s.f_frsize),
            total: s.f_blocks.saturating_mul(s.f_frsize),
        })
    }

    fn place(&self) -> io::Result<Place> {
        let metadata = std::fs::metadata(&self.directory)?;
        let born = metadata.created().ok();
        let born = born.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let path = std::fs::canonicalize(&self.directory).ok();
        let path = path.and_then(|p| p.into_os_string().into_string().ok());
        let host = rustix::system::uname();
        // A host name or path that is not one line is not recorded.
        let line = |text: &str| match text.contains('\n') || text.trim() != text {
            true => String::new(),
            false => text.to_string(),
        };
        Ok(Place {
            device: metadata.dev(),
            inode: metadata.ino(),
            born_ns: born.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(0)),
            host: line(&host.nodename().to_string_lossy()),
            path: line(&path.unwrap_or_default()),
        })
    }

    fn other_at(&self, path: &str) -> io::Result<Option<Box<dyn Storage>>> {
        let which = |path: &Path| std::fs::metadata(path).map(|m| (m.dev(), m.ino()));
        let there = match which(Path::new(path)) {
            Ok(there) => there,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let is_this = which(&self.directory).is_ok_and(|own| own == there);
        Ok((!is_this).then(|| Box::new(OsStorage::new(path)) as Box<dyn Storage>))
    }

    fn set_file_mode(&self, mode: u32) -> io::Result<()> {
        let mode = (mode & 0o666) | 0o600;
        if self.mode.swap(mode, Ordering::Relaxed) == mode {
            return Ok(());
        }
        // Users that may read the files may enter the directory.
        let directory = mode | ((mode & 0o444) >> 2);
        let permissions = Permissions::from_mode(directory);
        std::fs::set_permissions(&self.directory, permissions)?;
        // Lock and node file were created before the server sent the mode.
        for name in [LOCK, NODE] {
            match std::fs::set_permissions(self.path(name), Permissions::from_mode(mode)) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => (),
                done => done?,
            }
        }
        Ok(())
    }
}

/// Reads a whole file.
///
/// # Errors
/// The operating system refuses.
pub fn read_all(file: &dyn ReadFile) -> io::Result<Vec<u8>> {
    let length = usize::try_from(file.bytes()?).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// A device loses bytes in units of a page of the kernel.
const PAGE_BYTES: usize = 1 << 12;

/// Reads a range of a file for callers that find damage by checksums: unreadable pages become
/// zeros.
///
/// # Errors
/// The operating system refuses, or no page can be read.
pub(crate) fn read_readable(file: &dyn ReadFile, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let wanted = usize::try_from(to.saturating_sub(from)).map_err(io::Error::other)?;
    let mut bytes = vec![0; wanted];
    let lost = match file.read_at(from, &mut bytes) {
        Ok(read) => {
            bytes.truncate(read);
            return Ok(bytes);
        }
        Err(error) if is_lost(&error) => error,
        Err(error) => return Err(error),
    };
    let (mut end, mut is_left) = (0, false);
    while end < wanted {
        let at = from + end as u64;
        let of_page = PAGE_BYTES - at as usize % PAGE_BYTES;
        let page = &mut bytes[end..wanted.min(end + of_page)];
        match file.read_at(at, page) {
            Ok(0) => break,
            Ok(read) => (end, is_left) = (end + read, true),
            Err(error) if is_lost(&error) => {
                page.fill(0);
                end += page.len();
            }
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(end);
    is_left.then_some(bytes).ok_or(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_private_unless_the_server_lets_the_group_read() {
        let directory = std::env::temp_dir().join(format!("tacho-mode-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        OsStorage::create_directory(&directory).unwrap();
        let storage = OsStorage::new(&directory);
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().mode() & 0o777;
        storage.create("a").unwrap().append(b"x").unwrap();
        storage.create(NODE).unwrap();
        assert_eq!(mode(storage.path("a")), 0o600);
        assert_eq!(mode(directory.clone()), 0o700);
        storage.set_file_mode(0o640).unwrap();
        storage.create("b").unwrap();
        assert_eq!(mode(storage.path("b")), 0o640);
        assert_eq!(mode(storage.path(NODE)), 0o640);
        assert_eq!(mode(directory.clone()), 0o750);
        assert!(storage.create("b").is_err());
        let mut names: Vec<Entry> = storage.list().unwrap();
        names.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(names.len(), 3);
        assert_eq!((names[0].name.as_str(), names[0].bytes), ("a", 1));
        std::fs::create_dir(storage.path("c")).unwrap();
        let names = storage.names().unwrap();
        let inode = std::fs::metadata(storage.path("a")).unwrap().ino();
        assert!(names.iter().any(|n| n.name == "a" && n.file == inode));
        let mut names: Vec<String> = names.into_iter().map(|n| n.name).collect();
        names.sort();
        assert_eq!(names, ["a", "b", NODE]);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_directory_tells_whether_names_changed_when_that_is_long_ago() {
        let directory = std::env::temp_dir().join(format!("tacho-stamp-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        OsStorage::create_directory(&directory).unwrap();
        let storage = OsStorage::new(&directory);
        let settle = || {
            let past = SystemTime::now() - std::time::Duration::from_secs(10);
            let opened = File::open(&directory).unwrap();
            opened.set_modified(past).unwrap();
        };
        settle();
        storage.create("a").unwrap();
        // Another file may be created under the same stamp.
        assert_eq!(storage.stamp(), None);
        settle();
        let before = storage.stamp();
        assert!(before.is_some());
        std::fs::write(storage.path("a"), "more").unwrap();
        assert_eq!(storage.stamp(), before);
        storage.rename("a", "b").unwrap();
        assert_ne!(storage.stamp(), before);
        settle();
        assert_ne!(storage.stamp(), before);
        // The clock was set back, so the last change lies in the future.
        let future = SystemTime::now() + std::time::Duration::from_secs(3_600);
        let opened = File::open(&directory).unwrap();
        opened.set_modified(future).unwrap();
        assert_eq!(storage.stamp(), None);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn files_that_are_not_regular_are_refused_without_waiting() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let directory = std::env::temp_dir().join(format!("tacho-odd-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        OsStorage::create_directory(&directory).unwrap();
        let storage = OsStorage::new(&directory);
        mknodat(CWD, storage.path(NODE), FileType::Fifo, Mode::RUSR, 0).unwrap();
        std::fs::create_dir(storage.path(LOCK)).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(storage.path("socket")).unwrap();
        for name in [NODE, LOCK, "socket"] {
            let expected = "it is not a regular file";
            let error = storage.open(name).err().unwrap();
            assert_eq!(error.to_string(), expected, "{name}");
            let error = storage.opener(name).open().err().unwrap();
            assert_eq!(error.to_string(), expected, "{name}");
        }
        let write = open_regular(OpenOptions::new().write(true), &storage.path(NODE));
        assert_eq!(write.unwrap_err().to_string(), "it is not a regular file");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
