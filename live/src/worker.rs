//! Asks questions on a thread of its own, one after the other, so that keys
//! stay quick. A new view cancels the questions of the previous one.

use crate::asked::{Asked, Slot};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tacho_source::rows::Rows;
use tacho_source::{Ask, Source};
use tacho_tape::query::{QueryError, QueryResult};

/// Rows and notices.
pub type Answered = QueryResult<(Rows, Vec<QueryError>)>;

/// An answer to a question.
pub struct Answer {
    pub asked: Asked,
    pub result: Answered,
    pub took: Duration,
}

/// The running question.
#[derive(Default)]
struct Running {
    /// Number of the newest view.
    view: AtomicU64,
    cancel: Mutex<Arc<AtomicBool>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks questions on a thread.
pub struct Worker {
    questions: Sender<(Asked, Ask)>,
    running: Arc<Running>,
}

/// Asks one question, on this thread.
pub fn answer(source: &dyn Source, asked: Asked, ask: &Ask, cancel: &AtomicBool) -> Answer {
    let begun = Instant::now();
    let result = Rows::answer(source, ask, cancel);
    let took = begun.elapsed();
    Answer {
        asked,
        result,
        took,
    }
}

impl Worker {
    /// Starts the thread. Answers go to `told`, which returns false once the
    /// receiver is gone.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(
        source: Arc<dyn Source>,
        told: impl Fn(Answer) -> bool + Send + 'static,
    ) -> std::io::Result<Worker> {
        let (questions, asked) = channel();
        let running = Arc::new(Running::default());
        let runs = Arc::clone(&running);
        thread::Builder::new()
            .name("questions".into())
            .spawn(move || work(&*source, &runs, &asked, told))?;
        Ok(Worker { questions, running })
    }

    /// Asks a question. A question of a newer view cancels the questions of older views.
    pub fn ask(&self, asked: Asked, ask: Ask) {
        let newest = self.running.view.fetch_max(asked.view, Ordering::SeqCst);
        if newest < asked.view {
            lock(&self.running.cancel).store(true, Ordering::SeqCst);
        }
        // Ignored: if the thread is gone, the program ends as well.
        let _ = self.questions.send((asked, ask));
    }
}

fn work(
    source: &dyn Source,
    running: &Running,
    asked: &Receiver<(Asked, Ask)>,
    told: impl Fn(Answer) -> bool,
) {
    while let Ok((asked, ask)) = asked.recv() {
        let cancel = Arc::new(AtomicBool::new(false));
        *lock(&running.cancel) = Arc::clone(&cancel);
        // A newer view came before the new flag was in place, so `ask` set the old one.
        if asked.view < running.view.load(Ordering::SeqCst) && asked.slot != Slot::Status {
            continue;
        }
        if !told(answer(source, asked, &ask, &cancel)) {
            return;
        }
    }
}
