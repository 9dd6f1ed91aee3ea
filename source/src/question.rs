//! Named arguments as text to a question of the engine.

use crate::{catalog, encoding, time};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use tacho_tape::query::{Argument, Function, QueryError, QueryResult, STATEMENT_FILTERS, Spec};

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
    /// The zone or `now` is not understood. The rest is looked at by
    /// [`Question::spec`].
    pub fn new(
        function: &'static Function,
        arguments: Arguments,
        zone: impl FnOnce() -> TimeZone,
        defaults: bool,
    ) -> QueryResult<Question> {
        let zone = match arguments.get("tz") {
            Some(name) => time::zone(name)?,
            None => zone(),
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

    /// The question, with the defaults of [`Spec`] for who may see what, and
    /// for threads and memory.
    ///
    /// # Errors
    /// A value is not understood.
    pub fn spec(&self) -> QueryResult<Spec<'_>> {
        let mut spec = Spec::new(catalog::schema(), self.now_us);
        spec.at_us = self.moment("at")?;
        let windows = self.function.arguments.contains(&Argument::Windows);
        let names = if windows {
            ["since_2", "until_2"]
        } else {
            ["since", "until"]
        };
        spec.since_us = self.moment(names[0])?;
        spec.until_us = self.moment(names[1])?;
        spec.before = (self.moment("since_1")?, self.moment("until_1")?);
        spec.bucket_us = self.text("bucket").map(time::interval).transpose()?;
        spec.zone = self.calendar.as_ref().map(|c| c as _);
        spec.node = self.owned("node");
        spec.metric = self.owned("metric");
        spec.object = self.owned("object");
        spec.scope = self.given("scope", Argument::Filters);
        spec.by_leader = self.switch("by_leader")?;
        spec.dimension = self.given("dimension", Argument::Dimension);
        spec.by = self.owned("by");
        spec.order_by = self.given("order_by", Argument::OrderBy);
        spec.n = match self.given("n", Argument::N).as_deref() {
            Some("all") => None,
            n => number("n", n)?,
        };
        spec.width = number("width", self.text("width"))?;
        spec.color = self.switch("color")?;
        spec.ascii = self.switch("ascii")?;
        spec.decode = encoding::decode;
        for name in self.filters() {
            if let Some(filter) = self.owned(name) {
                spec.filters.push((name.to_string(), filter));
            }
        }
        Ok(spec)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).map(String::as_str)
    }

    fn owned(&self, name: &str) -> Option<String> {
        self.arguments.get(name).cloned()
    }

    fn moment(&self, name: &str) -> QueryResult<Option<i64>> {
        let text = self.text(name);
        text.map(|text| time::moment(text, self.now_us, &self.zone))
            .transpose()
    }

    fn switch(&self, name: &str) -> QueryResult<bool> {
        match self.text(name) {
            Some("true") => Ok(true),
            Some("false") | None => Ok(false),
            Some(text) => Err(invalid(name, text).hint("Give true or false.")),
        }
    }

    /// An argument, or what its function means without it.
    fn given(&self, name: &str, argument: Argument) -> Option<String> {
        let said = self.function.said(argument).filter(|_| self.defaults);
        let default = || said.and_then(|said| said.default);
        self.text(name).or_else(default).map(str::to_string)
    }

    /// The filters that the function takes.
    fn filters(&self) -> Vec<&'static str> {
        let takes = |argument| self.function.arguments.contains(&argument);
        match (takes(Argument::Filters), takes(Argument::StatementFilters)) {
            (true, _) => catalog::dimension_names().to_vec(),
            (_, true) => STATEMENT_FILTERS.map(|(name, _)| name).to_vec(),
            _ => Vec::new(),
        }
    }
}

fn invalid(name: &str, text: &str) -> QueryError {
    QueryError::invalid(format!("invalid value \"{text}\" for {name}"))
}

/// A whole number, if it is given.
///
/// # Errors
/// It is none.
pub fn number(name: &str, text: Option<&str>) -> QueryResult<Option<i64>> {
    let parsed = text.map(|text| {
        let number = text.parse();
        number.map_err(|_| invalid(name, text).hint("Give a whole number."))
    });
    parsed.transpose()
}
