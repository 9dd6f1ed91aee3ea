//! The entry: a question is asked of a function, and asked again without the
//! groups that turn out to be damaged, so that no answer has half of one.

use super::damage::{self, Damage};
use super::error::{QueryError, QueryResult, UNDEFINED_FILE};
use super::functions::{self, Function, find};
use super::parse;
use super::request::Request;
use super::row::{Row, Taken};
use super::spec::{Context, Field, Sink, Spec, Value};
use crate::store::snapshot::Snapshot;
use crate::store::tape::Tape;
use std::sync::atomic::{AtomicBool, Ordering};

/// Answers `spec` with the function `name`: rows go to `sink`. Setting the flag
/// of its context ends the query soon.
///
/// # Errors
/// The function or an argument makes no sense, the history could not be read,
/// the sink failed, or the query was cancelled.
pub fn run(name: &str, spec: &Spec, store: &Snapshot, sink: &mut dyn Sink) -> QueryResult<()> {
    parse::check_range(spec)?;
    let function = find(name)?;
    let spec = &Spec {
        damage: Damage::default(),
        ..spec.clone()
    };
    let mut rows = Deferred {
        sink,
        fields: Vec::new(),
        rows: false,
        cancel: spec.cancel,
    };
    let mut without: Option<Snapshot> = None;
    let notices = loop {
        let call = functions::Call {
            spec,
            store: without.as_ref().unwrap_or(store),
        };
        match attempt(function, &call, &mut rows) {
            Err(error) if error.place.is_some() && !rows.rows => {
                let _ = spec.damage.pass::<()>(Err(error.clone()));
                spec.explained.inspect(|explained| explained.forget());
                without = Some(spec.damage.leave_out(call.store).ok_or(error)?);
            }
            Err(error) if error.sqlstate == UNDEFINED_FILE => return Err(outdated(error)),
            done => break done?,
        }
    };
    rows.begin_now()?;
    spec.damage
        .warnings()
        .into_iter()
        .chain(damage::of_later_version(store))
        .chain(damage::of_whole_files(store))
        .chain(notices)
        .for_each(|notice| rows.sink.notice(notice));
    Ok(())
}

/// Answers of the history of a tape as it is now. When a file was merged or
/// removed meanwhile and is not open any more, the question is asked again of
/// what took its place.
///
/// # Errors
/// As of [`run`].
pub fn run_now(name: &str, spec: &Spec, tape: &Tape, sink: &mut dyn Sink) -> QueryResult<()> {
    let mut begun = Begun { sink, rows: false };
    for _ in 1..ATTEMPTS {
        match run(name, spec, &*tape.refresh()?, &mut begun) {
            Err(error) if error.sqlstate == UNDEFINED_FILE && !begun.rows => (),
            done => return done,
        }
    }
    run(name, spec, &*tape.refresh()?, &mut begun)
}

/// How often a question is asked whose files go.
const ATTEMPTS: usize = 5;

/// Whether an answer has begun.
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

/// A file that a snapshot has is gone.
fn outdated(error: QueryError) -> QueryError {
    error.hint("It was merged or removed since the history was opened: ask again.")
}

/// Runs a function; returns the notices about its answer.
fn attempt(
    function: &Function,
    call: &functions::Call,
    rows: &mut Deferred,
) -> QueryResult<Vec<QueryError>> {
    (function.run)(call, rows)?;
    call.spec.damage.check()?;
    if call.spec.explained.is_some() {
        return Ok(Vec::new());
    }
    let hidden = functions::hidden(function, call)?;
    let empty = match rows.rows {
        true => None,
        false => functions::notice(function, call)?,
    };
    Ok(hidden.into_iter().chain(empty).collect())
}

/// Begins an answer with its first row, or at its end: until then it can begin
/// again. Who has cancelled gets no other row.
struct Deferred<'a> {
    sink: &'a mut dyn Sink,
    fields: Vec<Field>,
    rows: bool,
    cancel: &'a AtomicBool,
}

impl Deferred<'_> {
    fn begin_now(&mut self) -> QueryResult<()> {
        match self.rows {
            true => Ok(()),
            false => self.sink.begin(&self.fields),
        }
    }
}

impl Sink for Deferred<'_> {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.fields = fields.to_vec();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(QueryError::canceled());
        }
        self.begin_now()?;
        self.rows = true;
        self.sink.row(values)
    }
}

impl Snapshot {
    /// Asks the function that a request is of.
    ///
    /// # Errors
    /// As of [`run`].
    pub fn ask<R: Request>(&self, request: &R, context: &Context) -> QueryResult<Taken<R::Row>> {
        let spec = Spec::asking(request, context.clone());
        let mut taken = Taken::default();
        run(R::Row::FUNCTION, &spec, self, &mut taken)?;
        Ok(taken)
    }
}
