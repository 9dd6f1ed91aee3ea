//! Errors in the style of PostgreSQL messages: a primary line in lower case, and a detail in full
//! sentences if necessary.

use rustix::io::Errno;
use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Kind of error, for callers that react to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The operating system refused a file operation.
    Io,
    /// The bytes of a file or a frame are invalid.
    Damaged,
    /// The device or the file system cannot give the bytes of a file.
    Unreadable,
    /// The file was written by a later version of the format.
    Version,
    /// There is no space left.
    NoSpace,
    /// Another writer holds the directory.
    Locked,
    /// The caller asked for something that does not exist.
    NotFound,
}

/// An error of this crate.
#[derive(Debug)]
pub struct Error {
    /// Kind, for callers that react to it.
    pub kind: Kind,
    /// Primary line: lower case, no full stop.
    pub message: String,
    /// File that the error is about.
    pub path: Option<PathBuf>,
    /// Offset in the file in bytes.
    pub offset: Option<u64>,
    /// Error of the operating system.
    pub os: Option<io::Error>,
    /// Group of a damaged column in a sealed file; 0 if all groups share the column.
    pub(crate) group: Option<u32>,
}

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error without a file.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error {
            kind,
            message: message.into(),
            path: None,
            offset: None,
            os: None,
            group: None,
        }
    }

    /// An error about invalid bytes.
    pub fn damaged(message: impl Into<String>) -> Self {
        Error::new(Kind::Damaged, message)
    }

    /// A file operation that failed: `could not WHAT "PATH": REASON`.
    pub fn io(what: &str, path: &Path, error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => Kind::NotFound,
            _ if is_lost(&error) => Kind::Unreadable,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Kind::NoSpace,
            _ => Kind::Io,
        };
        Error {
            kind,
            message: format!("could not {what}"),
            path: Some(path.to_path_buf()),
            offset: None,
            os: Some(error),
            group: None,
        }
    }

    /// Adds the file, unless the error already has one.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        self.path.get_or_insert_with(|| path.to_path_buf());
        self
    }

    /// True if some bytes of a file are unreadable, although others may be readable.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self.kind, Kind::Damaged | Kind::Unreadable)
    }

    /// The cause, without file and offset.
    #[must_use]
    pub fn reason(&self) -> String {
        match &self.os {
            Some(os) => format!("{}: {os}", self.message),
            None => self.message.clone(),
        }
    }

    /// If the error is damage, adds the group of the damaged column, and its file.
    #[must_use]
    pub(crate) fn of_group(mut self, path: &Path, group: u32) -> Self {
        if self.is_damage() {
            self.group.get_or_insert(group);
            return self.at(path);
        }
        self
    }

    /// Adds the offset in the file, in bytes, unless the error already has one.
    #[must_use]
    pub fn offset(mut self, offset: u64) -> Self {
        self.offset.get_or_insert(offset);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let damaged = self.path.is_some() && self.kind == Kind::Damaged;
        f.write_str(if damaged {
            "damaged file"
        } else {
            &self.message
        })?;
        if let Some(path) = &self.path {
            write!(f, " \"{}\"", path.display())?;
        }
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset}")?;
        }
        if damaged {
            write!(f, ": {}", self.message)?;
        }
        if let Some(os) = &self.os {
            write!(f, ": {os}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.os.as_ref().map(|e| e as _)
    }
}

/// True if the device or the file system has lost the bytes. Other bytes of the file or the
/// directory may be readable. Linux returns these errors if a medium, a checksum, a storage target
/// or the link to it fails.
pub(crate) fn is_lost(error: &io::Error) -> bool {
    const LOST: [Errno; 7] = [
        Errno::IO,
        Errno::BADMSG,
        Errno::UCLEAN,
        Errno::NODATA,
        Errno::REMOTEIO,
        Errno::ILSEQ,
        Errno::NOLINK,
    ];
    Errno::from_io_error(error).is_some_and(|errno| LOST.contains(&errno))
}

/// Runs code that reads a file. A panic becomes damage of the file.
pub(crate) fn supervised<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // After a panic, nothing uses the state that the unfinished work left.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let reason = reason_of(&*panic);
        Err(Error::damaged(format!(
            "internal error, could not {what}: {reason}"
        )))
    })
}

fn reason_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("panic")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_error_reads_like_a_server_message() {
        let os = io::Error::from_raw_os_error(13);
        let error = Error::io("open file", Path::new("/x/node"), os).offset(7);
        assert_eq!(
            error.to_string(),
            "could not open file \"/x/node\" at offset 7: Permission denied (os error 13)"
        );
        let damaged = Error::damaged("chunk is too long").at(Path::new("/x/1.tape"));
        assert_eq!(
            damaged.offset(9).to_string(),
            "damaged file \"/x/1.tape\" at offset 9: chunk is too long"
        );
    }
}
