//! Signals that end a question.

use super::progress::Progress;
use super::report;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tacho_tape::query::QueryError;

/// Time in which a question should end after a signal. It checks the flag between
/// pieces of work, but not while it sorts many keys or waits for the reader of
/// its answer.
const PATIENCE: Duration = Duration::from_millis(50);

const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// The flag that a signal sets. If the question does not end within `PATIENCE`, a
/// thread ends the process, unless the system could not start one.
pub fn on_signal(progress: &Arc<Progress>) -> Arc<AtomicBool> {
    let cancel = Arc::new(AtomicBool::new(false));
    // If there is no handler, the signal ends the process, which serves as well.
    if let Ok(mut signals) = Signals::new(SIGNALS) {
        let (seen, progress) = (Arc::clone(&cancel), Arc::clone(progress));
        let started = thread::Builder::new().spawn(move || {
            if signals.forever().next().is_some() {
                seen.store(true, Ordering::Relaxed);
                thread::sleep(PATIENCE);
                progress.clear();
                report(&QueryError::canceled());
                exit(1);
            }
        });
        if started.is_err() {
            for signal in SIGNALS {
                let _ = flag::register(signal, Arc::clone(&cancel));
            }
        }
    }
    cancel
}
