//! Prints the plan of a question (`explained.rs`) instead of its answer.

use super::ask::context::{Context, Explained};
use super::functions::{Function, find};
use super::pass::run::Question;
use super::value::error::{QueryError, QueryResult};
use super::value::sink::{Field, Sink, Type};
use crate::store::snapshot::Snapshot;

/// The functions that read parts by a plan.
pub const EXPLAINED: [&str; 5] = ["aas", "timeline", "top", "compare", "chart"];

const FIELDS: &[Field] = &[
    ("scan", Type::Int),
    ("plan", Type::Text),
    ("period_start", Type::Time),
    ("period_end", Type::Time),
    ("first_tick", Type::Int),
    ("last_tick", Type::Int),
    ("files", Type::Int),
    ("parts", Type::Int),
    ("bytes", Type::Int),
    ("why", Type::Text),
];

/// Prints the plan of a question. Reads only the indexes of files, nothing of the window.
/// Consecutive parts of a window that are read the same way share a row with
/// - `scan`: number of the window, from 1 on,
/// - `plan`: `totals`, `one pass` over samples, `two passes`, or the sources of the first and the
///   second pass,
/// - `period_start`, `period_end`, `first_tick`, `last_tick`: the first and last slot,
/// - `files`: number of sealed files that are opened,
/// - `parts`: number of logs and groups of files that are read,
/// - `bytes`: size in the files of the columns in the plan, each counted once. A real run reads
///   less if a column decides nothing or is in a cache. Indexes of files and printed query texts
///   are not included; logs were read when the history was opened,
/// - `why`: the reason.
///
/// # Errors
/// The errors of [`Question::plan`], or `sink` failed.
pub fn explain(
    question: &dyn Question,
    context: &Context,
    store: &Snapshot,
    sink: &mut dyn Sink,
) -> QueryResult<()> {
    let plans = Explained::default();
    question.plan(context, store, &plans)?;
    sink.begin(FIELDS)?;
    let rows = plans.into_rows();
    rows.into_iter().try_for_each(|row| sink.row(row))
}

/// The function with this name, if it reads parts by a plan.
///
/// # Errors
/// There is no such function, or it has no plan.
pub fn find_explained(name: &str) -> QueryResult<&'static Function> {
    let function = find(name)?;
    if EXPLAINED.contains(&function.name) {
        return Ok(function);
    }
    let error = QueryError::invalid(format!("function \"{name}\" has no plan"));
    Err(error.hint(format!(
        "Functions with a plan are {}.",
        EXPLAINED.join(", ")
    )))
}
