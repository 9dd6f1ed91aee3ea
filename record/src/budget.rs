//! What all servers together may use: memory and descriptors. Where memory runs
//! short, the recorder goes on with samples and does without the rest.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::atomic::{AtomicU64, Ordering};
use tacho_source::memory;

/// Descriptors of a server: connection, lock, log and files that are merged.
const DESCRIPTORS: u64 = 16;
/// And of the program itself.
const OWN_DESCRIPTORS: u64 = 64;

static BYTES: AtomicU64 = AtomicU64::new(u64::MAX);

/// From now on so many bytes are enough.
pub fn set(bytes: u64) {
    BYTES.store(bytes, Ordering::Relaxed);
}

/// Bytes that may be used.
pub fn bytes() -> u64 {
    BYTES.load(Ordering::Relaxed)
}

/// More is used than there is.
pub fn is_exhausted() -> bool {
    memory::used() > bytes()
}

/// Makes sure of enough descriptors for so many servers.
///
/// # Errors
/// There are not enough; what to do about it.
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
