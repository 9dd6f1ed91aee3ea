//! Named arguments as text to a question of the engine.

use crate::{catalog, encoding, time};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use tacho_tape::query::{
    self, Argument, Context, Function, Given, Kind, QueryError, QueryResult, Value,
};

/// Values by the name of SQL. Beside the arguments of the function, `now` is
/// the present.
pub type Arguments = BTreeMap<String, String>;

/// Parsed arguments of a function; the question of the engine borrows from
/// them.
pub struct Question {
    function: &'static Function,
    arguments: Arguments,
    /// Zone of times without an offset, of buckets, and of times shown.
    pub zone: TimeZone,
    calendar: Option<time::Calendar>,
    now_us: i64,
    defaults: bool,
}

impl Question {
    /// Takes arguments. Without `tz` the zone is `zone()`; with `defaults` a
    /// function's own arguments have the defaults that it says, else all are
    /// given that are meant.
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

    /// The surroundings: moment, zone and encodings are those of the question, the rest
    /// has the defaults of [`Context`].
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

    /// Switches an argument on that the function has and that was not given.
    pub fn switch_on(&mut self, name: &str) {
        if self.function.takes(name) {
            let given = self.arguments.entry(name.to_string());
            given.or_insert_with(|| "true".to_string());
        }
    }

    /// What is given of an argument, or what its function means without it.
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

    /// What is given of dimensions, in their order.
    fn filters(&self) -> Vec<(String, String)> {
        let is_dimension = |a: &Argument| a.kind == Kind::Filters;
        if !self.function.arguments.iter().any(is_dimension) {
            return Vec::new();
        }
        let given = |name: &&str| Some(((*name).to_string(), self.arguments.get(*name)?.clone()));
        catalog::dimension_names()
            .iter()
            .filter_map(given)
            .collect()
    }
}

fn invalid(name: &str, text: &str) -> QueryError {
    QueryError::invalid(format!("invalid value \"{text}\" for {name}"))
}

fn switch(name: &str, text: &str) -> QueryResult<bool> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(invalid(name, text).hint("Give true or false.")),
    }
}

/// The number that an argument is given; of most rows `all` is none.
///
/// # Errors
/// It is no number.
pub fn number(argument: &Argument, text: &str) -> QueryResult<Option<i64>> {
    match (argument.name, text) {
        ("n", "all") => Ok(None),
        (name, text) => whole(name, text).map(Some),
    }
}

/// A whole number.
///
/// # Errors
/// It is none.
pub fn whole(name: &str, text: &str) -> QueryResult<i64> {
    let number = text.parse();
    number.map_err(|_| invalid(name, text).hint("Give a whole number."))
}
