//! The lock of a directory, for callers that only check whether a writer holds it.

use crate::files::directory::LOCK;
use crate::files::storage::open_regular;
use std::fs::{OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// True if a writer holds the directory. This takes the lock for a moment, shared; a writer that
/// starts just then waits for it.
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
