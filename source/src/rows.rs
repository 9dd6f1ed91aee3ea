//! Answers taken as values, for what a program makes of them itself.

use crate::{Arguments, Ask, Source, time};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use tacho_tape::query::json::value;
use tacho_tape::query::{Field, QueryError, QueryResult, Sink, Value};

/// What one question may take.
const MEMORY_BYTES: u64 = 64 << 20;

/// The rows of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows(pub Vec<Row>);

/// A row by its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Row(Vec<(&'static str, Value)>);

impl Rows {
    /// Asks a function of a server, on this thread.
    ///
    /// # Errors
    /// As [`Source::ask`].
    pub fn ask(
        source: &dyn Source,
        server: &str,
        function: &str,
        arguments: &[(&str, &str)],
    ) -> QueryResult<Rows> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_string(), (*value).to_string());
        let ask = Ask {
            server: Some(server.to_string()),
            function: function.to_string(),
            arguments: arguments.iter().map(owned).collect::<Arguments>(),
            texts: false,
            memory_bytes: MEMORY_BYTES,
            threads: 1,
        };
        Rows::answer(source, &ask, &AtomicBool::new(false)).map(|answer| answer.0)
    }

    /// Asks a question, on this thread. Beside the rows is what is to be known
    /// about the answer.
    ///
    /// # Errors
    /// As [`Source::ask`].
    pub fn answer(
        source: &dyn Source,
        ask: &Ask,
        cancel: &AtomicBool,
    ) -> QueryResult<(Rows, Vec<QueryError>)> {
        let mut taken = Taken::default();
        source.ask(ask, cancel, &mut taken)?;
        Ok((Rows(taken.rows), taken.notices))
    }

    /// The value of a metric, where each row is one.
    pub fn metric(&self, name: &str) -> Option<&str> {
        let row = self.0.iter().find(|row| row.text("metric") == Some(name));
        row?.text("value")
    }

    /// The same of a metric that is a time, µs since 1970.
    pub fn time(&self, name: &str) -> Option<i64> {
        time::moment(self.metric(name)?, 0, &jiff::tz::TimeZone::UTC).ok()
    }
}

impl Row {
    fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|column| column.0 == name);
        found.map(|column| &column.1)
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Any value as text; `None` of a null.
    pub fn shown(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::Null => None,
            Value::Text(text) => Some(text.clone()),
            other => Some(value(other).trim_matches('"').to_string()),
        }
    }

    /// A moment, µs since 1970.
    pub fn time(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Some(Value::Time(us)) => Some(*us),
            _ => None,
        }
    }

    /// Any number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name).and_then(|v| value(v).parse().ok())
    }

    /// Ten-thousandths; 0 where nothing is known.
    pub fn numeric(&self, name: &str) -> i128 {
        match self.get(name) {
            Some(Value::Numeric(n)) => *n,
            _ => 0,
        }
    }

    /// A count; 0 where nothing is known.
    pub fn count(&self, name: &str) -> u64 {
        let number = self.get(name).and_then(|v| value(v).parse().ok());
        number.unwrap_or(0)
    }

    /// The members of a JSON object.
    pub fn members(&self) -> BTreeMap<&'static str, String> {
        self.0.iter().map(|(name, v)| (*name, value(v))).collect()
    }
}

#[derive(Default)]
struct Taken {
    names: Vec<&'static str>,
    rows: Vec<Row>,
    notices: Vec<QueryError>,
}

impl Sink for Taken {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.names = fields.iter().map(|f| f.0).collect();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        let row = self.names.iter().copied().zip(values);
        self.rows.push(Row(row.collect()));
        Ok(())
    }

    fn notice(&mut self, notice: QueryError) {
        self.notices.push(notice);
    }
}
