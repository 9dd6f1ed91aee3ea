//! Answers questions about the history: one entry, [`run`], and a registry of
//! functions by name. Each step stands in a file of its name, and none calls
//! back: a function (`functions/`) checks its arguments (`parse.rs`) and plans
//! how the parts of its window are read (`plan.rs`); these are read
//! (`read.rs`), their rows that match selected (`select.rs`), grouped by key
//! (`group.rs`) and measured (`measure.rs`); the function prints rows into a
//! [`Sink`]. Totals (`totals.rs`) are another source of the same measures.
//!
//! Nothing is approximated. Filters are evaluated on dictionary rows, once per
//! part; a run then costs a lookup; sums are integers, and only the output is
//! rounded. Parts outside the window and columns nobody asked for are not
//! decoded.

mod blockers;
pub mod bucket;
#[cfg(test)]
mod cancel_tests;
mod cells;
mod closed_buckets;
pub(crate) mod damage;
#[cfg(test)]
mod damage_tests;
mod dimension;
mod error;
mod explain;
#[cfg(test)]
mod explain_tests;
pub mod filter;
mod first_pass;
mod functions;
mod group;
pub mod inspect;
pub mod json;
mod measure;
mod number;
mod parse;
mod plain;
mod plan;
mod read;
mod register;
pub(crate) mod request;
mod root_blocker;
mod row;
mod runs;
mod select;
pub mod sizes;
mod spec;
mod statement_sums;
mod text;
mod ticks;
pub(crate) mod totals;
#[cfg(test)]
mod totals_tests;
pub(crate) mod totals_write;
pub(crate) mod vocabulary;

pub use bucket::Zone;
pub use dimension::names as dimension_names;
pub use error::{CANCELED, INSUFFICIENT_PRIVILEGE, QueryError, QueryResult, UNDEFINED_FILE};
pub use explain::{EXPLAINED, explain, find_explained};
pub use functions::report::value as report;
pub use functions::structs::*;
pub use functions::{Function, Removal, find, list};
pub(crate) use functions::{REMOVED, removals};
pub use plain::{plain_lines, plain_text};
pub use request::{Argument, Given, Kind, Request};
pub use row::{Numeric, Row, Taken};
pub use spec::{Context, Field, Sink, Spec, Type, Value};
pub use statement_sums::middle_us;
pub use text::{decode, without_nul};
pub use vocabulary::{LOCK_MODES, NOT_COUNTED, Scope, cpu_key, wait_key};

use crate::store::snapshot::Snapshot;
use crate::store::tape::Tape;
use damage::Damage;
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
    let notice = loop {
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
        .chain(notice)
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

/// Runs a function; returns what is said of an answer without rows.
fn attempt(
    function: &Function,
    call: &functions::Call,
    rows: &mut Deferred,
) -> QueryResult<Option<QueryError>> {
    (function.run)(call, rows)?;
    call.spec.damage.check()?;
    match rows.rows || call.spec.explained.is_some() {
        true => Ok(None),
        false => functions::notice(function, call),
    }
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
