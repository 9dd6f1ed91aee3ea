//! Answers that several panels of a page need at the same moment: one question answers all. The
//! headline needs the same load, events and queues as the panels below it.

use crate::lock::lock;
use crate::problem::Problem;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tacho_source::Ask;
use tacho_source::rows::Rows;

/// Functions whose answers are shared.
const FUNCTIONS: [&str; 5] = ["aas", "blocking", "changes", "markers", "plan_changes"];
/// An answer is shared for this time. It need not be longer, because the next window of a live page
/// is another question.
const FRESH: Duration = Duration::from_secs(1);
/// Maximum number of rows of an answer that is kept.
const MOST_ROWS: usize = 1000;

/// An answer and the time at which it came. Locked while its question runs, so that others with the
/// same question wait.
type Place = tokio::sync::Mutex<Option<(Instant, Arc<Rows>)>>;

/// The answers of the last moment.
#[derive(Default)]
pub struct Shared {
    places: Mutex<HashMap<String, Arc<Place>>>,
}

impl Shared {
    /// True if answers of this function are shared.
    pub fn has(function: &str) -> bool {
        FUNCTIONS.contains(&function)
    }

    /// Returns the rows of the same question, if it runs or has just been answered; otherwise it
    /// runs `answer`. If the client that asked has left, the next one asks.
    ///
    /// # Errors
    /// The errors of `answer`.
    pub async fn rows(
        &self,
        ask: &Ask,
        answer: impl Future<Output = Result<Rows, Problem>>,
    ) -> Result<Arc<Rows>, Problem> {
        let place = self.place(ask);
        let mut kept = place.lock().await;
        if let Some((_, rows)) = kept.as_ref().filter(is_fresh) {
            return Ok(Arc::clone(rows));
        }
        let rows = Arc::new(answer.await?);
        *kept = (rows.len() <= MOST_ROWS).then(|| (Instant::now(), Arc::clone(&rows)));
        Ok(rows)
    }

    /// The place of a question. Removes places without a question and without a fresh answer.
    fn place(&self, ask: &Ask) -> Arc<Place> {
        let key = format!("{:?} {} {:?}", ask.server, ask.function, ask.arguments);
        let mut places = lock(&self.places);
        places.retain(|_, place| match place.try_lock() {
            Ok(kept) => Arc::strong_count(place) > 1 || kept.as_ref().is_some_and(|k| is_fresh(&k)),
            Err(_) => true,
        });
        Arc::clone(places.entry(key).or_default())
    }
}

fn is_fresh(kept: &&(Instant, Arc<Rows>)) -> bool {
    kept.0.elapsed() < FRESH
}
