//! Answers questions: a limited number at once, within one budget of memory, each on a
//! thread of its own. If its client leaves, a question ends soon.

use crate::lock::lock;
use crate::metrics::Counters;
use crate::problem::Problem;
use crate::shared::Shared;
use crate::texts::Texts;
use axum::http::{StatusCode, header};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tacho_source::json::Json;
use tacho_source::{Ask, Source, memory, rows as source_rows};
use tacho_tape::query::{
    CANCELED, Field, Fields, QueryError, QueryResult, Row, Sink, Taken, Value,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Interval of checks whether the questions stay within the budget of memory.
const LOOK: Duration = Duration::from_millis(10);
/// Interval between two rounds of tidying.
const TIDY: Duration = Duration::from_secs(5);
/// While no question runs, up to this many bytes stay in use for later questions. More is
/// freed after 12 rounds, a minute: a client that asks again before that finds it.
const KEPT: u64 = 96 << 20;
const ROUNDS: u32 = 12;
/// Divisor of the budget: one answer's text may take a quarter.
const ANSWER_SHARE: u64 = 4;

/// Answers questions.
pub struct Desk {
    source: Arc<dyn Source>,
    places: Arc<Semaphore>,
    /// Maximum number of questions at once.
    most: u64,
    /// Maximum memory for all questions together, in bytes.
    budget: u64,
    next: AtomicU64,
    /// Numbers of running questions, the youngest last.
    running: Arc<Mutex<BTreeSet<u64>>>,
    counters: Counters,
    shared: Shared,
}

/// Columns, rows and notices.
#[derive(Debug)]
pub struct Answer {
    /// Columns.
    pub fields: Fields,
    /// Rows: a JSON array of objects.
    pub rows: Vec<u8>,
    /// Notices about the answer.
    pub notices: Vec<QueryError>,
    /// The rows and columns of shortened texts, as JSON; `None` if texts are not shortened.
    pub shortened: Option<String>,
}

impl Desk {
    /// `questions` may run at once, and use `megabytes` together.
    pub fn new(
        source: Arc<dyn Source>,
        questions: u16,
        megabytes: u32,
        counters: Counters,
    ) -> Desk {
        Desk {
            source,
            places: Arc::new(Semaphore::new(questions.into())),
            most: questions.into(),
            budget: u64::from(megabytes) << 20,
            next: AtomicU64::new(0),
            running: Arc::default(),
            counters,
            shared: Shared::default(),
        }
    }

    /// The source of answers.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// Number of running questions. Abandoned ones count until they end.
    pub fn running(&self) -> usize {
        lock(&self.running).len()
    }

    /// Gives freed memory back to the system whenever no question runs. If much memory was in use
    /// for a minute, also frees the memory kept for later questions. Does not return.
    pub async fn tidy(&self) {
        let (mut tidied, mut rounds) = (0, 0);
        loop {
            sleep(TIDY).await;
            let asked = self.next.load(Ordering::Relaxed);
            let is_large = memory::used() > KEPT;
            rounds = if is_large { rounds + 1 } else { 0 };
            let forgets = rounds >= ROUNDS;
            if self.running() > 0 || (asked == tidied && !forgets) {
                continue;
            }
            tidied = asked;
            let forgetful = forgets.then(|| Arc::clone(&self.source));
            let tidy = move || {
                if let Some(source) = forgetful {
                    source.forget();
                }
                memory::trim();
            };
            let _ = tokio::task::spawn_blocking(tidy).await;
            if forgets {
                rounds = 0;
            }
        }
    }

    /// Answers a question. Dropping the future ends the question.
    ///
    /// # Errors
    /// Too many questions (429), too little memory (503), or an error of the source.
    pub async fn ask(&self, ask: Ask, texts: Texts) -> Result<Answer, Problem> {
        let mut written = self.rows(texts);
        if !Shared::has(&ask.function) {
            return self.ask_into(ask, written).await;
        }
        let answer = self.ask_into(ask.clone(), source_rows::Rows::default());
        let rows = self.shared.rows(&ask, answer).await?;
        let write = move || rows.put(&mut written).and_then(|()| written.finish());
        let task = tokio::task::spawn_blocking(write).await;
        task.unwrap_or_else(|_| Err(failed())).map_err(Problem::of)
    }

    /// Answers a question; `taking` gets the rows.
    ///
    /// # Errors
    /// As [`Desk::ask`].
    pub async fn ask_into<T: Taking>(&self, ask: Ask, taking: T) -> Result<T::Taken, Problem> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let function = self.counters.function(&ask.function);
            self.counters.ended(function, "refused");
            return Err(busy(self.most));
        };
        self.answer(ask, taking, place).await
    }

    /// Answers a question once there is a place. For requests that limit the number of
    /// their questions themselves.
    ///
    /// # Errors
    /// As [`Desk::ask`], except for too many questions.
    pub async fn ask_in_turn<R: Row + Send + 'static>(&self, ask: Ask) -> Result<Vec<R>, Problem> {
        self.take_in_turn(ask, Taken::default()).await
    }

    /// Answers from a question of another panel that runs or was answered within the last second;
    /// otherwise asks once there is a place.
    ///
    /// # Errors
    /// As [`Desk::ask_in_turn`].
    pub async fn share<R: Row>(&self, ask: Ask) -> Result<Vec<R>, Problem> {
        let answer = self.take_in_turn(ask.clone(), source_rows::Rows::default());
        Ok(self.shared.rows(&ask, answer).await?.read())
    }

    async fn take_in_turn<T: Taking>(&self, ask: Ask, taking: T) -> Result<T::Taken, Problem> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|_| Problem::of(failed()))?;
        self.answer(ask, taking, place).await
    }

    fn rows(&self, texts: Texts) -> Rows {
        let limit = usize::try_from(self.budget / ANSWER_SHARE);
        Rows::new(limit.unwrap_or(usize::MAX), texts)
    }

    async fn answer<T: Taking>(
        &self,
        ask: Ask,
        taking: T,
        place: OwnedSemaphorePermit,
    ) -> Result<T::Taken, Problem> {
        let function = self.counters.function(&ask.function);
        if self.is_over() {
            self.counters.ended(function, "refused");
            return Err(Problem::of(self.out_of_memory()));
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let cancel = CancelOnDrop(Arc::default());
        let presence = Presence::enter(&self.running, number, place);
        let mut task = self.start(ask, taking, presence, Arc::clone(&cancel.0));
        let mut over = false;
        let result = loop {
            match timeout(LOOK, &mut task).await {
                Ok(result) => break result,
                // The budget was exceeded, so the youngest question was cancelled.
                Err(_) if self.is_over() => {
                    if lock(&self.running).last() == Some(&number) {
                        over = true;
                        cancel.0.store(true, Ordering::Relaxed);
                    }
                }
                Err(_) => (),
            }
        };
        let result = result.unwrap_or_else(|_| Err(failed()));
        match result {
            Err(error) if over && error.sqlstate == CANCELED => {
                Err(Problem::of(self.out_of_memory()))
            }
            result => result.map_err(Problem::of),
        }
    }

    /// Runs a question on a thread. The question keeps its place until its thread has ended.
    fn start<T: Taking>(
        &self,
        mut ask: Ask,
        mut taking: T,
        presence: Presence,
        cancel: Arc<AtomicBool>,
    ) -> JoinHandle<QueryResult<T::Taken>> {
        let source = Arc::clone(&self.source);
        let counters = self.counters.clone();
        ask.memory_bytes = self.budget / self.most;
        tokio::task::spawn_blocking(move || {
            let result = source.ask(&ask, &cancel, &mut taking);
            let outcome = match &result {
                Ok(()) => "answered",
                Err(error) if error.sqlstate == CANCELED => "canceled",
                Err(_) => "failed",
            };
            drop(presence);
            counters.ended(counters.function(&ask.function), outcome);
            result.and_then(|()| taking.finish())
        })
    }

    /// True if the budget is exceeded even after everything kept for later questions is freed.
    fn is_over(&self) -> bool {
        if memory::used() > self.budget {
            self.source.forget();
        }
        memory::used() > self.budget
    }

    fn out_of_memory(&self) -> QueryError {
        let megabytes = self.budget >> 20;
        QueryError::new("53200", "out of memory for questions")
            .detail(format!("All running questions together may use {megabytes} MB."))
            .hint("Ask for a shorter window, a wider bucket, a filter or fewer rows, or allow more with --memory-limit-mb.")
    }
}

fn busy(most: u64) -> Problem {
    let error = QueryError::new("53300", "too many questions at once")
        .detail(format!("{most} questions are running."))
        .hint("Retry in a moment.");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, error).header(header::RETRY_AFTER, "1")
}

fn failed() -> QueryError {
    QueryError::new("XX000", "question was terminated without an answer")
}

/// Cancels a question when its future is dropped.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A running question: its number and its place. Both are given back at its end.
struct Presence {
    running: Arc<Mutex<BTreeSet<u64>>>,
    number: u64,
    _place: OwnedSemaphorePermit,
}

impl Presence {
    fn enter(
        running: &Arc<Mutex<BTreeSet<u64>>>,
        number: u64,
        place: OwnedSemaphorePermit,
    ) -> Presence {
        lock(running).insert(number);
        Presence {
            running: Arc::clone(running),
            number,
            _place: place,
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        lock(&self.running).remove(&self.number);
    }
}

/// Makes a result from the rows of an answer.
pub trait Taking: Sink + Send + 'static {
    /// The result.
    type Taken: Send + 'static;

    /// Called after the last row.
    ///
    /// # Errors
    /// The result could not be made.
    fn finish(self) -> QueryResult<Self::Taken>;
}

impl<R: Row + Send + 'static> Taking for Taken<R> {
    type Taken = Vec<R>;

    fn finish(self) -> QueryResult<Vec<R>> {
        Ok(self.rows)
    }
}

impl Taking for source_rows::Rows {
    type Taken = source_rows::Rows;

    fn finish(self) -> QueryResult<source_rows::Rows> {
        Ok(self)
    }
}

/// Takes an answer whose text stays within a limit.
struct Rows {
    fields: Fields,
    json: Json<Vec<u8>>,
    limit: usize,
    texts: Texts,
}

impl Rows {
    fn new(limit: usize, texts: Texts) -> Rows {
        Rows {
            fields: Fields::default(),
            json: Json::new(Vec::new()),
            limit,
            texts,
        }
    }
}

impl Taking for Rows {
    type Taken = Answer;

    fn finish(self) -> QueryResult<Answer> {
        let (rows, notices) = self
            .json
            .into_parts()
            .map_err(|e| tacho_source::json::write_error(&e))?;
        Ok(Answer {
            shortened: self.texts.told(&self.fields.list()),
            fields: self.fields,
            rows,
            notices,
        })
    }
}

impl Sink for Rows {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.fields = Fields::of(fields);
        self.json.begin(fields)
    }

    fn row(&mut self, mut values: Vec<Value>) -> QueryResult<()> {
        if self.json.out().len() > self.limit {
            let megabytes = self.limit >> 20;
            let error = QueryError::new("53200", "answer is too large");
            return Err(error
                .detail(format!("The limit is {megabytes} MB."))
                .hint("Ask for a shorter window, a filter or fewer rows (n)."));
        }
        self.texts.shorten(&mut values);
        self.json.row(values)
    }

    fn notice(&mut self, notice: QueryError) {
        self.json.notice(notice);
    }
}
