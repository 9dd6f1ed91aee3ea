//! The clocks of this machine, and random ids.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime};

/// The clocks in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Wall clock since 1970.
    pub wall_ms: i64,
    /// Monotonic clock.
    pub mono_ms: i64,
}

/// The clocks of this process.
pub fn now() -> Now {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let mono = BEGIN.get_or_init(Instant::now).elapsed();
    Now {
        wall_ms: wall.map_or(0, |d| d.as_millis() as i64),
        mono_ms: mono.as_millis() as i64,
    }
}

/// A random number, for ids that no other process has.
pub fn random() -> u64 {
    let mut bytes = [0; 8];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => now().wall_ms as u64 ^ (u64::from(std::process::id()) << 44),
    }
}
