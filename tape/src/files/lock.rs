//! The lock of a directory, for who only wants to know whether somebody records.

use crate::files::directory::LOCK;
use crate::files::storage::open_regular;
use std::fs::{OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// Whether a writer holds a directory. The lock is taken for a moment, shared; a writer
/// that starts then waits that long.
///
/// # Errors
/// The lock file could not be opened. There may be none, as in a copy of the files.
pub fn is_held(directory: &Path) -> io::Result<bool> {
    let file = open_regular(OpenOptions::new().read(true), &directory.join(LOCK))?;
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
