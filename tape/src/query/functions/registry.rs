//! The functions by name: what each takes and answers, and how it is run.

use super::*;
use crate::format::schema::Schema;
use crate::query::ask::request::{Argument, Given, Request};
use crate::query::ask::row::Row;
use crate::query::pass::run::{Question, question};
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::sink::Field;

/// A function of the registry.
pub struct Function {
    /// Its name in SQL and on the command line.
    pub name: &'static str,
    /// What it answers, in one line.
    pub about: &'static str,
    /// The arguments it takes, beside the time zone.
    pub arguments: &'static [Argument],
    /// Its columns, except those that follow from the catalog.
    pub fields: &'static [Field],
    pub(in crate::query) columns: fn(&Schema) -> Vec<Field>,
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

    /// All columns of its answers. Some follow from the catalog: the sums of counters.
    pub fn columns(&self, catalog: &Schema) -> Vec<Field> {
        (self.columns)(catalog)
    }

    /// The question that arguments ask.
    ///
    /// # Errors
    /// A value is not understood.
    pub fn question(&self, given: &mut Given) -> QueryResult<Box<dyn Question>> {
        (self.question)(given)
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
}

/// The registry: module, request and row of each function, in the order in which
/// they are listed.
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
    use crate::query::ask::request::Kind;
    use crate::query::value::sink::Value;

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
