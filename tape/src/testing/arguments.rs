//! Arguments of any function by name. Tests that ask every function give all of them the same
//! arguments; each function takes the ones that it has.

use crate::format::schema::Schema;
use crate::query::{
    self, Argument, Context, Function, Given, Kind, QueryResult, Question, Sink, Value,
};
use crate::store::snapshot::Snapshot;
use crate::store::tape::Tape;
use std::ops::{Deref, DerefMut};

/// Arguments, and the surroundings of a question. Times and widths are in µs; absent values are
/// null.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct Arguments<'a> {
    pub context: Context<'a>,
    pub at_us: Option<i64>,
    /// `since_2` of a function with two windows.
    pub since_us: Option<i64>,
    pub until_us: Option<i64>,
    /// `since_1` and `until_1`.
    pub before: (Option<i64>, Option<i64>),
    pub bucket_us: Option<i64>,
    pub node: Option<String>,
    pub scope: Option<String>,
    pub by_leader: bool,
    /// Dimensions and their filters; for functions about statements, `query_id` and similar
    /// columns.
    pub filters: Vec<(String, String)>,
    pub metric: Option<String>,
    pub object: Option<String>,
    pub dimension: Option<String>,
    pub by: Option<String>,
    pub order_by: Option<String>,
    pub n: Option<i64>,
    pub width: Option<i64>,
    pub color: bool,
    pub ascii: bool,
}

impl<'a> Arguments<'a> {
    /// No arguments, with this current time.
    pub fn new(catalog: &'a Schema, now_us: i64) -> Arguments<'a> {
        Arguments {
            context: Context::new(catalog, now_us),
            at_us: None,
            since_us: None,
            until_us: None,
            before: (None, None),
            bucket_us: None,
            node: None,
            scope: None,
            by_leader: false,
            filters: Vec::new(),
            metric: None,
            object: None,
            dimension: None,
            by: None,
            order_by: None,
            n: None,
            width: None,
            color: false,
            ascii: false,
        }
    }

    /// The question to a function.
    ///
    /// # Errors
    /// A value is not understood.
    pub fn question(&self, function: &Function) -> QueryResult<Box<dyn Question>> {
        function.question(&mut Given {
            value: &|argument| Ok(self.value(argument)),
            filters: self.filters.clone(),
        })
    }

    fn value(&self, argument: &Argument) -> Value {
        let text = |text: &Option<String>| Value::text(text.as_deref());
        match argument.name {
            "at" => Value::int(self.at_us),
            "since" | "since_2" => Value::int(self.since_us),
            "until" | "until_2" => Value::int(self.until_us),
            "since_1" | "before_since" => Value::int(self.before.0),
            "until_1" | "before_until" => Value::int(self.before.1),
            "bucket" => Value::int(self.bucket_us),
            "n" => Value::int(self.n),
            "width" => Value::int(self.width),
            "by_leader" => Value::Bool(self.by_leader),
            "color" => Value::Bool(self.color),
            "ascii" => Value::Bool(self.ascii),
            "node" => text(&self.node),
            "scope" => text(&self.scope),
            "metric" => text(&self.metric),
            "object" => text(&self.object),
            "dimension" => text(&self.dimension),
            "by" => text(&self.by),
            "order_by" => text(&self.order_by),
            name if argument.kind == Kind::Filter || name == "plan_id" => {
                let filter = self.filters.iter().find(|(known, _)| known == name);
                Value::text(filter.map(|(_, text)| text.as_str()))
            }
            _ => Value::Null,
        }
    }
}

impl<'a> Deref for Arguments<'a> {
    type Target = Context<'a>;

    fn deref(&self) -> &Context<'a> {
        &self.context
    }
}

impl DerefMut for Arguments<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.context
    }
}

/// Asks the function with this name.
///
/// # Errors
/// There is no such function, or it failed.
pub fn run(
    name: &str,
    arguments: &Arguments,
    store: &Snapshot,
    sink: &mut dyn Sink,
) -> QueryResult<()> {
    let question = arguments.question(query::find(name)?)?;
    question.run(&arguments.context, store, sink)
}

/// Same as [`run`], on the current history of a tape.
///
/// # Errors
/// There is no such function, or it failed.
pub fn run_now(
    name: &str,
    arguments: &Arguments,
    tape: &Tape,
    sink: &mut dyn Sink,
) -> QueryResult<()> {
    let question = arguments.question(query::find(name)?)?;
    query::run_now(&*question, &arguments.context, tape, sink)
}
