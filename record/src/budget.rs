//! Limits of memory and file descriptors for all servers together. If memory
//! runs short, the recorder keeps recording samples and drops the rest.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::atomic::{AtomicU64, Ordering};
use tacho_source::memory;

/// Descriptors per server: connection, lock, log and files that are merged.
const DESCRIPTORS: u64 = 16;
/// Descriptors of the program itself.
const OWN_DESCRIPTORS: u64 = 64;

static BYTES: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets the memory limit, in bytes.
pub fn set(bytes: u64) {
    BYTES.store(bytes, Ordering::Relaxed);
}

/// The memory limit, in bytes.
pub fn bytes() -> u64 {
    BYTES.load(Ordering::Relaxed)
}

/// True if the program uses more memory than the limit.
pub fn is_exhausted() -> bool {
    memory::used() > bytes()
}

/// Raises the limit of file descriptors so that it is enough for `servers`.
///
/// # Errors
/// The limit cannot be raised that far; the message says how to raise it.
pub fn descriptors(servers: usize) -> Result<(), String> {
    let wanted = OWN_DESCRIPTORS + DESCRIPTORS * servers as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted))),
        ..limit
    };
    let is_raised = setrlimit(Resource::Nofile, raised).is_ok();
    if is_raised && limit.maximum.is_none_or(|maximum| maximum >= wanted) {
        return Ok(());
    }
    Err(format!(
        "{servers} servers may need {wanted} open files, the limit is lower: see LimitNOFILE or ulimit -n"
    ))
}
