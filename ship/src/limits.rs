//! What ends an attempt to reach a place, and a wait.

use crate::place::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often somebody who waits looks whether to end.
pub const TURN: Duration = Duration::from_millis(100);
const TOLD: &str = "tacho ship was told to end";

/// Waits; false when it was told to end before.
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

/// When an attempt or a wait is ended.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Set when the program is told to end.
    pub stop: Arc<AtomicBool>,
    /// The longest that an attempt may take.
    pub most: Option<Duration>,
}

impl Limits {
    /// Is the program told to end?
    pub fn is_told(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Why an attempt that began then must not go on.
    pub fn over(&self, begin: Instant) -> Option<String> {
        let most = self.most.filter(|most| begin.elapsed() > *most);
        match self.is_told() {
            true => Some(TOLD.into()),
            false => most.map(|most| format!("it took longer than {} s", most.as_secs())),
        }
    }

    /// Waits.
    ///
    /// # Errors
    /// The program was told to end before.
    pub fn wait(&self, time: Duration) -> Result<()> {
        match wait(time, &|| !self.is_told()) {
            true => Ok(()),
            false => Err(TOLD.into()),
        }
    }
}
