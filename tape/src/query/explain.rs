//! Prints the plan of a question (`explained.rs`) instead of its answer.

use super::ask::context::{Context, Explained};
use super::functions::{Function, find};
use super::pass::run::Question;
use super::value::error::{QueryError, QueryResult};
use super::value::sink::{Field, Sink, Type};
use crate::store::snapshot::Snapshot;

/// The functions whose answers are read by a plan.
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

/// Prints how a question would be answered, and reads nothing of its window
/// but indexes of files: of each window that it scans a row for consecutive
/// parts that are read alike, with
/// - `scan`: the number of the window, from 1 on,
/// - `plan`: `totals`, `one pass` over samples, `two passes`, or what the first
///   and the second pass read,
/// - `period_start`, `period_end`, `first_tick`, `last_tick`: of which slots,
/// - `files`: sealed files that are opened,
/// - `parts`: logs and groups of files that are read,
/// - `bytes`: what the columns that the plan names take in the files, each
///   once. A column that decides nothing is not read, nor is what is in a
///   cache. Indexes of files and texts of queries that are printed are beside
///   them; logs were read when the history was opened,
/// - `why`: the reason.
///
/// # Errors
/// As of [`Question::plan`], or `sink` failed.
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

/// The function with a name, when its answers are read by a plan.
///
/// # Errors
/// There is none, or it has no plan.
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
