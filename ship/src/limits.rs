//! Limits that end a wait, or an attempt to reach a place.

use crate::place::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval at which a waiting thread checks whether to end.
pub const TURN: Duration = Duration::from_millis(100);
/// Why the program ends before its work is done.
pub const STOP_REQUESTED: &str = "tacho ship received a signal to stop";

/// Waits; false if `go_on` ended the wait early.
pub fn wait(time: Duration, go_on: &dyn Fn() -> bool) -> bool {
    let until = Instant::now() + time;
    while go_on() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(TURN.min(left));
    }
    false
}

/// Limits of an attempt or a wait.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Set to end the program.
    pub stop: Arc<AtomicBool>,
    /// Maximum time of an attempt; `None` = no limit.
    pub timeout: Option<Duration>,
}

impl Limits {
    /// True if the program has to end.
    pub fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Why an attempt that began at `begin` must end now, if it must.
    pub fn expired(&self, begin: Instant) -> Option<String> {
        let timeout = self.timeout.filter(|timeout| begin.elapsed() > *timeout);
        match self.must_stop() {
            true => Some(STOP_REQUESTED.into()),
            false => timeout.map(|timeout| format!("timed out after {} s", timeout.as_secs())),
        }
    }

    /// Waits for `time`.
    ///
    /// # Errors
    /// The program had to end first.
    pub fn wait(&self, time: Duration) -> Result<()> {
        match wait(time, &|| !self.must_stop()) {
            true => Ok(()),
            false => Err(STOP_REQUESTED.into()),
        }
    }
}
