//! Turns named arguments in text form into a question for the engine.

use crate::{catalog, encoding, time};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use tacho_tape::query::{
    self, Argument, Context, Function, Given, Kind, QueryError, QueryResult, Value,
};

/// Values of arguments by SQL name. Every function also takes `now`, the time that counts as the
/// present.
pub type Arguments = BTreeMap<String, String>;

/// Parsed arguments of a function. The engine's question borrows from them.
pub struct Question {
    function: &'static Function,
    arguments: Arguments,
    /// Time zone of times without an offset, of buckets, and of displayed times.
    pub zone: TimeZone,
    calendar: Option<time::Calendar>,
    now_us: i64,
    defaults: bool,
}

impl Question {
    /// Takes arguments. Without `tz` the zone is `zone()`. If `defaults`, arguments that are not
    /// given have the function's defaults; otherwise they are null.
    ///
    /// # Errors
    /// The zone or `now` is not understood. [`Question::question`] reads the rest.
    pub fn new(
        function: &'static Function,
        arguments: Arguments,
        zone: impl FnOnce() -> QueryResult<TimeZone>,
        defaults: bool,
    ) -> QueryResult<Question> {
        let zone = match arguments.get("tz") {
            Some(name) => time::zone(name)?,
            None => zone()?,
        };
        let clock = jiff::Timestamp::now().as_microsecond();
        let now = arguments.get("now");
        let now = now.map(|now| time::moment(now, clock, &TimeZone::UTC));
        Ok(Question {
            function,
            now_us: now.transpose()?.unwrap_or(clock),
            calendar: (!time::is_utc(&zone)).then(|| time::Calendar(zone.clone())),
            zone,
            arguments,
            defaults,
        })
    }

    /// The context of the question: its moment, zone and encodings, and otherwise the
    /// defaults of [`Context`].
    pub fn context(&self) -> Context<'_> {
        let mut context = Context::new(catalog::schema(), self.now_us);
        context.zone = self.calendar.as_ref().map(|c| c as _);
        context.decode = encoding::decode;
        context
    }

    /// The question.
    ///
    /// # Errors
    /// A value is not understood.
    pub fn question(&self) -> QueryResult<Box<dyn query::Question>> {
        self.function.question(&mut Given {
            value: &|argument| self.value(argument),
            filters: self.filters(),
        })
    }

    /// Switches an argument on, if the function has it and it was not given.
    pub fn switch_on(&mut self, name: &str) {
        if self.function.takes(name) {
            let given = self.arguments.entry(name.to_string());
            given.or_insert_with(|| "true".to_string());
        }
    }

    /// The value of an argument: as given, or its default.
    fn value(&self, argument: &Argument) -> QueryResult<Value> {
        let name = argument.name;
        let Some(text) = self.arguments.get(name) else {
            return Ok(match self.defaults {
                true => argument.default_value(),
                false => Value::Null,
            });
        };
        Ok(match argument.kind {
            Kind::Time => Value::Time(time::moment(text, self.now_us, &self.zone)?),
            Kind::Interval => Value::Interval(time::interval(text)?),
            Kind::Number => number(argument, text)?.map_or(Value::Null, Value::Int),
            Kind::Switch => Value::Bool(switch(name, text)?),
            _ => Value::Text(text.as_str().into()),
        })
    }

    /// The given filters by dimension, in the order of the dimensions. Filters of tags stand last.
    fn filters(&self) -> Vec<(String, String)> {
        let is_dimension = |a: &Argument| a.kind == Kind::Filters;
        if !self.function.arguments.iter().any(is_dimension) {
            return Vec::new();
        }
        let given = |name: &&str| Some(((*name).to_string(), self.arguments.get(*name)?.clone()));
        let tags = self.arguments.keys().map(String::as_str);
        let tags = tags.filter(|name| query::tag_key(name).is_some());
        let names: Vec<&str> = tags.collect();
        let names = catalog::dimension_names().iter().chain(&names);
        names.filter_map(given).collect()
    }
}

fn invalid(name: &str, text: &str) -> QueryError {
    QueryError::invalid(format!("invalid value \"{text}\" for {name}"))
}

fn switch(name: &str, text: &str) -> QueryResult<bool> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(invalid(name, text).hint("Use true or false.")),
    }
}

/// The number in an argument; `None` for `n` = `all`.
///
/// # Errors
/// The value is not a number.
pub fn number(argument: &Argument, text: &str) -> QueryResult<Option<i64>> {
    match (argument.name, text) {
        ("n", "all") => Ok(None),
        (name, text) => whole(name, text).map(Some),
    }
}

/// A whole number.
///
/// # Errors
/// The value is not a whole number.
pub fn whole(name: &str, text: &str) -> QueryResult<i64> {
    let number = text.parse();
    number.map_err(|_| invalid(name, text).hint("Give a whole number."))
}
