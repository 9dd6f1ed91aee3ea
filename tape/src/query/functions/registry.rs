//! The functions by name: their arguments and columns, and how to run them.

use super::*;
use crate::format::schema::Schema;
use crate::query::ask::request::{Argument, Given, Request};
use crate::query::ask::row::Row;
use crate::query::pass::run::{Question, question};
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::sink::Field;

/// A function of the registry.
pub struct Function {
    /// Name of the function in SQL and on the command line.
    pub name: &'static str,
    /// Description of the answer in one line, for help.
    pub about: &'static str,
    /// Arguments of the function. Functions with a window also take a time zone.
    pub arguments: &'static [Argument],
    /// Columns of the answer, except the ones from the catalog.
    pub fields: &'static [Field<'static>],
    pub(in crate::query) columns: fn(&Schema) -> Vec<Field<'_>>,
    pub(in crate::query) question: fn(&mut Given) -> QueryResult<Box<dyn Question>>,
}

impl Function {
    /// The function that a request asks.
    const fn of<R: Request + 'static>() -> Function {
        Function {
            name: R::Row::FUNCTION,
            about: R::ABOUT,
            arguments: R::ARGUMENTS,
            fields: R::Row::FIELDS,
            columns: R::Row::columns,
            question: question::<R>,
        }
    }

    /// All columns of its answers, also the ones from the catalog (sums of counters).
    pub fn columns<'c>(&self, catalog: &'c Schema) -> Vec<Field<'c>> {
        (self.columns)(catalog)
    }

    /// The question with these arguments.
    ///
    /// # Errors
    /// A value is not understood.
    pub fn question(&self, given: &mut Given) -> QueryResult<Box<dyn Question>> {
        (self.question)(given)
    }

    /// True if it has an argument with this name.
    pub fn takes(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument.name == name)
    }

    /// True if the time zone changes the answer, not only the form of its times: the function has a
    /// window.
    pub fn takes_zone(&self) -> bool {
        self.takes("until") || self.takes("until_2")
    }
}

/// The registry: module, request and row of each function, in the order of the list.
macro_rules! registry {
    ($($module:ident: $request:ident, $row:ident;)*) => {
        /// Requests and rows.
        pub mod structs {
            $(pub use super::$module::{$request, $row};)*
        }

        static FUNCTIONS: &[Function] = &[$(Function::of::<structs::$request>(),)*];

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
    fn run<R: Request + PartialEq + std::fmt::Debug>(&mut self);
}

registry! {
    status: Status, StatusRow;
    periods: Periods, PeriodsRow;
    aas: Aas, AasRow;
    timeline: Timeline, TimelineRow;
    top: Top, TopRow;
    compare: Compare, CompareRow;
    changes: Changes, ChangesRow;
    samples: Samples, SamplesRow;
    sessions: Sessions, SessionsRow;
    blocking: Blocking, BlockingRow;
    chart: Chart, ChartRow;
    summary: Summary, SummaryRow;
    report: Report, ReportRow;
    markers: Markers, MarkersRow;
    server_history: ServerHistory, ServerHistoryRow;
    tables_history: TablesHistory, TablesHistoryRow;
    indexes_history: IndexesHistory, IndexesHistoryRow;
    statements_history: StatementsHistory, StatementsHistoryRow;
    errors_history: ErrorsHistory, ErrorsHistoryRow;
    queries: Queries, QueriesRow;
    latency_history: LatencyHistory, LatencyHistoryRow;
    plans: Plans, PlansRow;
    plan_changes: PlanChanges, PlanChangesRow;
    plan: Plan, PlanRow;
}

/// All functions.
pub fn list() -> &'static [Function] {
    FUNCTIONS
}

/// The function with this name.
///
/// # Errors
/// No function has this name.
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
    use crate::query::ask::request::Kind;
    use crate::query::value::sink::Value;

    /// If an argument differs from function to function, each function describes it.
    #[test]
    fn every_function_documents_its_own_arguments() {
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
