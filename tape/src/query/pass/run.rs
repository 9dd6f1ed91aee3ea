//! Entry point: runs a question. If groups turn out to be damaged, it runs the question again
//! without them, so that no answer has half of a group.

use crate::query::ask::context::{Context, Explained, Run};
use crate::query::ask::damage::{self, Damage};
use crate::query::ask::request::{Given, Request};
use crate::query::ask::row::{Answer, Row};
use crate::query::pass::explained;
use crate::query::rows::empty::{self, Period};
use crate::query::rows::hidden;
use crate::query::rows::parse;
use crate::query::value::error::{QueryError, QueryResult, UNDEFINED_FILE};
use crate::query::value::sink::{Field, Sink, Value};
use crate::store::snapshot::Snapshot;
use crate::store::tape::Tape;
use std::cell::Cell;

/// A question to any function, for a sink: its rows become values.
pub trait Question: Send + Sync {
    /// Answers; rows go to `sink`. Setting the flag of the context ends the question.
    ///
    /// # Errors
    /// The errors of [`Request::answer`]; or `sink` failed.
    fn run(&self, context: &Context, store: &Snapshot, sink: &mut dyn Sink) -> QueryResult<()>;

    /// Makes the plans without reading the window: columns are noted instead of decoded. Reads that
    /// depend on the data found are not in the plans.
    ///
    /// # Errors
    /// The errors of [`Request::answer`].
    fn plan(&self, context: &Context, store: &Snapshot, plans: &Explained) -> QueryResult<()>;
}

/// The question with these arguments.
pub(crate) fn question<R: Request + 'static>(given: &mut Given) -> QueryResult<Box<dyn Question>> {
    Ok(Box::new(R::of(given)?))
}

impl<R: Request> Question for R {
    fn run(&self, context: &Context, store: &Snapshot, sink: &mut dyn Sink) -> QueryResult<()> {
        let fields = R::Row::columns(context.catalog);
        // An answer begins with its first row, or at its end if it has none.
        let mut begun = false;
        let mut emit = |row: R::Row| {
            if !std::mem::replace(&mut begun, true) {
                sink.begin(&fields)?;
            }
            sink.row(row.values())
        };
        let notices = answer(self, context, store, None, &mut emit)?;
        if !begun {
            sink.begin(&fields)?;
        }
        notices.into_iter().for_each(|notice| sink.notice(notice));
        Ok(())
    }

    fn plan(&self, context: &Context, store: &Snapshot, plans: &Explained) -> QueryResult<()> {
        let (noting, parts) = store.noting();
        answer(self, context, &noting, Some(plans), &mut |_| Ok(()))?;
        explained::put_columns(plans, context, &parts)
    }
}

/// Answers a request and returns the notices of the answer. Before the first row it can start again
/// without damaged groups. After a cancel no row follows.
fn answer<R: Request>(
    request: &R,
    context: &Context,
    store: &Snapshot,
    explained: Option<&Explained>,
    emit: &mut dyn FnMut(R::Row) -> QueryResult<()>,
) -> QueryResult<Vec<QueryError>> {
    parse::check_range(request, context)?;
    let damage = Damage::default();
    let has_rows = Cell::new(false);
    let mut emit = |row| {
        context.check_cancel()?;
        has_rows.set(true);
        emit(row)
    };
    let mut without: Option<Snapshot> = None;
    loop {
        let run = Run {
            context,
            store: without.as_ref().unwrap_or(store),
            damage: &damage,
            explained,
        };
        let done = request.answer(run, &mut emit);
        let done = done.and_then(|()| damage.check());
        match done.and_then(|()| about_period(request, run, has_rows.get())) {
            Err(error) if error.place.is_some() && !has_rows.get() => {
                let _ = damage.note_and_continue::<()>(Err(error.clone()));
                explained.inspect(|explained| explained.forget());
                without = Some(damage.leave_out(run.store).ok_or(error)?);
            }
            Err(error) if error.sqlstate == UNDEFINED_FILE => return Err(outdated(error)),
            done => return Ok(notices(&damage, store, done?)),
        }
    }
}

/// Notices about the period of an answer.
fn about_period<R: Request>(request: &R, run: Run, has_rows: bool) -> QueryResult<Vec<QueryError>> {
    if run.explained.is_some() {
        return Ok(Vec::new());
    }
    let Some(period) = Period::of(request, run)? else {
        return Ok(Vec::new());
    };
    let mut notices = Vec::from_iter(hidden::warning(&period, run)?);
    if !has_rows {
        notices.push(empty::notice(&period, run)?);
    }
    Ok(notices)
}

/// All notices of an answer, damage first.
fn notices(damage: &Damage, store: &Snapshot, others: Vec<QueryError>) -> Vec<QueryError> {
    let mut notices = damage.warnings();
    notices.extend(damage::of_later_version(store));
    notices.extend(damage::of_whole_files(store));
    notices.extend(others);
    notices
}

/// Answers from the current history of a tape. If a file was merged or removed meanwhile and is no
/// longer open, the question runs again on a new snapshot.
///
/// # Errors
/// The errors of [`Question::run`].
pub fn run_now(
    question: &dyn Question,
    context: &Context,
    tape: &Tape,
    sink: &mut dyn Sink,
) -> QueryResult<()> {
    let mut begun = Begun { sink, rows: false };
    for _ in 1..ATTEMPTS {
        match question.run(context, &*tape.refresh()?, &mut begun) {
            Err(error) if error.sqlstate == UNDEFINED_FILE && !begun.rows => (),
            done => return done,
        }
    }
    question.run(context, &*tape.refresh()?, &mut begun)
}

/// Maximum number of attempts while files disappear.
const ATTEMPTS: usize = 5;

/// A sink that remembers whether an answer has begun.
struct Begun<'a> {
    sink: &'a mut dyn Sink,
    rows: bool,
}

impl Sink for Begun<'_> {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.rows = true;
        self.sink.begin(fields)
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.sink.row(values)
    }

    fn notice(&mut self, notice: QueryError) {
        self.sink.notice(notice);
    }
}

/// Adds a hint to the error about a missing file of a snapshot.
fn outdated(error: QueryError) -> QueryError {
    error.hint("The file was merged or removed after the history was opened. Repeat the query.")
}

impl Snapshot {
    /// Asks the function of this request.
    ///
    /// # Errors
    /// The errors of [`Request::answer`].
    pub fn ask<R: Request>(&self, request: &R, context: &Context) -> QueryResult<Answer<R::Row>> {
        let mut rows = Vec::new();
        let notices = answer(request, context, self, None, &mut |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(Answer { rows, notices })
    }
}
