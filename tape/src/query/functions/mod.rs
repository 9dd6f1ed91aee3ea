//! The functions by name, one file each.

mod aas;
mod blocking;
mod blocking_rows;
mod blocking_waits;
mod chart;
mod common_columns;
mod compare;
mod empty;
mod latency_history;
mod lifeline;
mod markers;
mod periods;
mod report;
mod report_compat;
mod samples;
mod server_history;
mod sessions;
mod statements_history;
mod status;
mod summary;
mod timeline;
mod top;

pub use aas::AasRow;
pub use blocking::BlockingRow;
pub use chart::ChartRow;
pub use common_columns::{civil, time_text};
pub use compare::CompareRow;
pub use empty::notice;
pub use latency_history::LatencyHistoryRow;
pub use markers::MarkersRow;
pub use markers::{REMOVED, Removal, removals};
pub use periods::PeriodsRow;
pub use report::ReportRow;
pub use samples::SamplesRow;
pub use server_history::ServerHistoryRow;
pub use sessions::SessionsRow;
pub use statements_history::FILTERS as STATEMENT_FILTERS;
pub use statements_history::StatementsHistoryRow;
pub use status::StatusRow;
pub use summary::SummaryRow;
pub use timeline::TimelineRow;
pub use top::TopRow;

use super::error::{QueryError, QueryResult};
use super::spec::{Field, Sink, Spec};
use super::statement_sums::counters;
use crate::format::schema::Schema;
use crate::store::open::Store;
use std::sync::atomic::{AtomicBool, Ordering};

/// A call of a function.
pub struct Call<'a> {
    /// The question.
    pub spec: &'a Spec<'a>,
    /// The history.
    pub store: &'a Store,
    /// Set when the query shall end.
    pub cancel: &'a AtomicBool,
}

impl Call<'_> {
    /// Ends the question when it shall end.
    pub fn check_cancel(&self) -> QueryResult<()> {
        match self.cancel.load(Ordering::Relaxed) {
            true => Err(QueryError::canceled()),
            false => Ok(()),
        }
    }
}

/// An argument a function takes beside `node`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Argument {
    Dimension,
    /// A moment instead of a window.
    At,
    Since,
    Until,
    /// `since_1`, `until_1`, `since_2`, `until_2`.
    Windows,
    Bucket,
    By,
    N,
    OrderBy,
    /// Filters `metric` and `object`.
    Metrics,
    Width,
    Color,
    Ascii,
    /// Every dimension, `scope` and `by_leader`.
    Filters,
    /// What statements are known by.
    StatementFilters,
    /// Time zone of buckets and of times shown.
    Zone,
}

/// What an argument of a function is to people, who may leave it out; the
/// server gives every argument.
pub struct Said {
    /// The argument; of the filters it is the scope.
    pub argument: Argument,
    /// What it is, for the help.
    pub help: &'static str,
    /// What is meant without it.
    pub default: Option<&'static str>,
}

impl Said {
    /// Of an argument.
    const fn new(argument: Argument, help: &'static str, default: Option<&'static str>) -> Said {
        Said {
            argument,
            help,
            default,
        }
    }
}

/// A function of the registry.
pub struct Function {
    /// Its name in SQL and on the command line.
    pub name: &'static str,
    /// What it answers, in one line.
    pub about: &'static str,
    /// The arguments it takes.
    pub arguments: &'static [Argument],
    /// What those are to people that mean something else in other functions.
    pub said: &'static [Said],
    /// Its columns; the sums of counters that the catalog has follow, see
    /// [`Function::columns`].
    pub fields: &'static [Field],
    /// Runs it.
    pub(super) run: fn(&Call, &mut dyn Sink) -> QueryResult<()>,
}

impl Function {
    /// All columns of its answers, by what the catalog has.
    pub fn columns(&self, catalog: &Schema) -> Vec<Field> {
        match self.name == statements_history::FUNCTION.name {
            true => statements_history::fields(&counters(catalog)),
            false => self.fields.to_vec(),
        }
    }

    /// What an argument is to people.
    pub fn said(&self, argument: Argument) -> Option<&'static Said> {
        self.said.iter().find(|said| said.argument == argument)
    }
}

static FUNCTIONS: [Function; 16] = [
    status::FUNCTION,
    periods::FUNCTION,
    aas::FUNCTION,
    timeline::FUNCTION,
    top::FUNCTION,
    compare::FUNCTION,
    samples::FUNCTION,
    sessions::FUNCTION,
    blocking::FUNCTION,
    chart::FUNCTION,
    summary::FUNCTION,
    report::FUNCTION,
    markers::FUNCTION,
    server_history::FUNCTION,
    statements_history::FUNCTION,
    latency_history::FUNCTION,
];

/// All functions.
pub fn list() -> &'static [Function] {
    &FUNCTIONS
}

/// The function with a name.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> QueryResult<&'static Function> {
    let found = FUNCTIONS.iter().find(|f| f.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = FUNCTIONS.iter().map(|f| f.name).collect();
        QueryError::undefined(format!("function \"{name}\" does not exist"))
            .hint(format!("Available are {}.", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of these arguments no other code knows what they are by default.
    #[test]
    fn every_function_says_what_its_own_arguments_are() {
        let own = [
            Argument::Dimension,
            Argument::At,
            Argument::N,
            Argument::OrderBy,
        ];
        for function in list() {
            let takes = |a: &Argument| function.arguments.contains(a);
            for argument in own.iter().filter(|a| takes(a)) {
                let said = function.said(*argument);
                assert!(said.is_some(), "{}: {argument:?}", function.name);
            }
            for said in function.said {
                assert!(takes(&said.argument), "{}: {}", function.name, said.help);
                let number = said.default.and_then(|d| d.parse::<i64>().ok());
                let is_number = said.argument == Argument::N;
                assert_eq!(number.is_some(), is_number, "{}", function.name);
            }
        }
    }
}
