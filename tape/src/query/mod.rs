//! Answers questions about the history: one entry, [`run`], and a registry of
//! functions by name. A function checks its arguments (`plan.rs`), scans the
//! parts of its window (`scan.rs`) and hands rows to a [`Sink`].
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
mod coder;
mod cube;
mod dimension;
mod error;
pub mod filter;
mod finished;
mod functions;
pub mod json;
mod kept;
mod number;
mod plain;
mod plan;
mod register;
mod root;
mod runs;
mod scan;
mod select;
mod spec;
mod stats;
mod text;
mod ticks;
pub(crate) mod totals;
#[cfg(test)]
mod totals_tests;
pub(crate) mod totals_write;
pub(crate) mod vocabulary;

pub use bucket::Zone;
pub use dimension::names as dimension_names;
pub use error::{CANCELED, INSUFFICIENT_PRIVILEGE, QueryError, QueryResult};
pub use functions::{Argument, Function, STATEMENT_FILTERS, Said, find, list};
pub use plain::{plain_lines, plain_text};
pub use spec::{Field, Sink, Spec, Type, Value};
pub use text::{decode, without_nul};

use crate::store::Store;
use std::sync::atomic::AtomicBool;

/// Answers `spec` with the function `name`: rows go to `sink`. Setting
/// `cancel` ends the query soon.
///
/// # Errors
/// The function or an argument makes no sense, the history could not be read,
/// the sink failed, or the query was cancelled.
pub fn run(
    name: &str,
    spec: &Spec,
    store: &Store,
    cancel: &AtomicBool,
    sink: &mut dyn Sink,
) -> QueryResult<()> {
    plan::check_range(spec)?;
    let call = functions::Call {
        spec,
        store,
        cancel,
    };
    let function = find(name)?;
    let mut counted = Counted { sink, rows: false };
    (function.run)(&call, &mut counted)?;
    if !counted.rows
        && let Some(notice) = functions::notice(function, &call)?
    {
        sink.notice(notice);
    }
    Ok(())
}

/// Knows whether there were rows.
struct Counted<'a> {
    sink: &'a mut dyn Sink,
    rows: bool,
}

impl Sink for Counted<'_> {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.sink.begin(fields)
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.rows = true;
        self.sink.row(values)
    }
}
