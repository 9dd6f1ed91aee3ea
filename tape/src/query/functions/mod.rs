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
pub mod report;
mod samples;
mod server_history;
mod sessions;
mod statements_history;
mod status;
mod summary;
mod timeline;
mod top;

pub use common_columns::{civil_us, time_text, write_civil};
pub use empty::notice;
pub use markers::{REMOVED, Removal, removals};

use super::error::{QueryError, QueryResult};
use super::request::{Argument, Given};
use super::spec::{Field, Sink, Spec};
use super::statement_sums::counters;
use crate::format::schema::Schema;
use crate::store::snapshot::Snapshot;
use std::sync::atomic::Ordering;

/// A call of a function.
pub struct Call<'a> {
    /// The question.
    pub spec: &'a Spec<'a>,
    /// The history.
    pub store: &'a Snapshot,
}

impl Call<'_> {
    /// Ends the question when it shall end.
    pub fn check_cancel(&self) -> QueryResult<()> {
        match self.spec.cancel.load(Ordering::Relaxed) {
            true => Err(QueryError::canceled()),
            false => Ok(()),
        }
    }
}

/// A function of the registry.
pub struct Function {
    /// Its name in SQL and on the command line.
    pub name: &'static str,
    /// What it answers, in one line.
    pub about: &'static str,
    /// The arguments it takes, beside the time zone.
    pub arguments: &'static [Argument],
    /// Its columns; the sums of counters that the catalog has follow, see
    /// [`Function::columns`].
    pub fields: &'static [Field],
    /// Adds what is given of its arguments to a question.
    pub(super) asked: fn(&mut Given, &mut Spec) -> QueryResult<()>,
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

    /// It has an argument with a name.
    pub fn takes(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument.name == name)
    }

    /// Its answer depends on a zone, beside the times that are shown: it has a
    /// window.
    pub fn takes_zone(&self) -> bool {
        self.takes("until") || self.takes("until_2")
    }

    /// Adds what is given of its arguments to a question.
    ///
    /// # Errors
    /// A value is not understood.
    pub fn take(&self, given: &mut Given, spec: &mut Spec) -> QueryResult<()> {
        (self.asked)(given, spec)
    }
}

/// The registry: module, request and row of each function, in the order in which
/// they are listed.
macro_rules! registry {
    ($($module:ident: $request:ident, $row:ident;)*) => {
        /// Requests and rows.
        pub mod structs {
            $(pub use super::$module::{$request, $row};)*
        }

        static FUNCTIONS: &[Function] = &[$($module::FUNCTION,)*];

        /// Runs a test with each request.
        #[cfg(test)]
        pub(crate) fn with_each(test: &mut impl WithRequest) {
            $(test.run::<structs::$request>();)*
        }
    };
}

/// A test of any request.
#[cfg(test)]
pub(crate) trait WithRequest {
    fn run<R: super::Request + PartialEq + std::fmt::Debug>(&mut self);
}

registry! {
    status: Status, StatusRow;
    periods: Periods, PeriodsRow;
    aas: Aas, AasRow;
    timeline: Timeline, TimelineRow;
    top: Top, TopRow;
    compare: Compare, CompareRow;
    samples: Samples, SamplesRow;
    sessions: Sessions, SessionsRow;
    blocking: Blocking, BlockingRow;
    chart: Chart, ChartRow;
    summary: Summary, SummaryRow;
    report: Report, ReportRow;
    markers: Markers, MarkersRow;
    server_history: ServerHistory, ServerHistoryRow;
    statements_history: StatementsHistory, StatementsHistoryRow;
    latency_history: LatencyHistory, LatencyHistoryRow;
}

/// All functions.
pub fn list() -> &'static [Function] {
    FUNCTIONS
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
    use crate::query::{Kind, Value};

    /// What means something else in each function is said by each.
    #[test]
    fn every_function_says_what_its_own_arguments_are() {
        for function in list() {
            for argument in function.arguments {
                let (name, kind) = (argument.name, argument.kind);
                let is_said = !argument.help.is_empty() || kind == Kind::Filters;
                assert!(is_said, "{}: {name}", function.name);
                let default = argument.default_value();
                let is_number = matches!(default, Value::Int(_));
                assert_eq!(is_number, kind == Kind::Number, "{}: {name}", function.name);
            }
        }
    }
}
