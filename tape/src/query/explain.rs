//! Prints the plan of a question (`explained.rs`) instead of its answer.

use super::ask::context::{Context, Explained};
use super::pass::run::Question;
use super::value::error::QueryResult;
use super::value::sink::{Field, Sink, Type};
use crate::store::snapshot::Snapshot;

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
/// - `scan`: number of the window, from 1 on; the last one has the columns that are read without
///   adding up samples,
/// - `plan`: `totals`, `one pass` over samples, `two passes`, the sources of the first and the
///   second pass, or `columns`,
/// - `period_start`, `period_end`, `first_tick`, `last_tick`: the first and last slot,
/// - `files`: number of sealed files that are opened,
/// - `parts`: number of logs and groups of files that are read,
/// - `bytes`: size in the files of the columns in the plan, each counted once. A real run reads
///   less if a column decides nothing or is in a cache. Not included are indexes of files, printed
///   query texts, and reads that depend on the data found. Logs were read when the history was
///   opened,
/// - `why`: the reason, or the tables of the columns.
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
