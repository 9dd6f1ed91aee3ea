//! Progress of a long query, on standard error if that is a terminal.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A query shows no progress before this time.
const SILENT_FOR: Duration = Duration::from_secs(1);
/// Time between two updates.
const PRINT_INTERVAL: Duration = Duration::from_millis(100);

/// True once rows are on the terminal.
static ROWS: AtomicBool = AtomicBool::new(false);

/// Called before the first row. On a terminal the rows replace the line.
pub fn rows_begin() {
    if stdout().is_terminal() && !ROWS.swap(true, Ordering::Relaxed) && stderr().is_terminal() {
        let _ = write!(stderr(), "\r\x1b[K");
    }
}

/// One line that is overwritten.
pub struct Progress {
    /// Time of the next update; `None` if standard error is not a terminal.
    next: Option<Mutex<Instant>>,
    begin: Instant,
}

impl Progress {
    /// Begins with a query.
    pub fn new() -> Progress {
        let begin = Instant::now();
        let seen = stderr().is_terminal();
        Progress {
            next: seen.then(|| Mutex::new(begin + SILENT_FOR)),
            begin,
        }
    }

    /// Shows the progress: `done` of `all` work items are done.
    pub fn show(&self, done: usize, all: usize) {
        if ROWS.load(Ordering::Relaxed) {
            return;
        }
        let now = Instant::now();
        let Some(Ok(mut next)) = self.next.as_ref().map(Mutex::try_lock) else {
            return;
        };
        if now >= *next {
            *next = now + PRINT_INTERVAL;
            let _ = write!(stderr(), "\r{}\x1b[K", line(done, all, now - self.begin));
        }
    }

    /// Removes the line.
    pub fn clear(&self) {
        if self.next.is_some() && self.begin.elapsed() >= SILENT_FOR {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// Writes the progress of a question: `read 45 % in 3 s`.
fn line(done: usize, all: usize, passed: Duration) -> String {
    let percent = 100 * done / all.max(1);
    format!("read {percent} % in {} s", passed.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_the_share_that_is_read() {
        let passed = Duration::from_millis(3_900);
        assert_eq!(line(164, 365, passed), "read 44 % in 3 s");
        assert_eq!(line(0, 0, passed), "read 0 % in 3 s");
    }
}
