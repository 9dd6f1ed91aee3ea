//! Answers as rows, for programs that process them further.

use crate::{Ask, Source, time};
use std::sync::atomic::AtomicBool;
use tacho_tape::query::{
    self, Field, Fields, QueryError, QueryResult, Request, Row, Sink, StatusRow, Taken, Value,
};

/// Asks a server, on this thread. Buckets are aligned to UTC.
///
/// # Errors
/// As [`Source::ask`].
pub fn ask<R: Request>(source: &dyn Source, server: &str, request: &R) -> QueryResult<Vec<R::Row>> {
    let mut ask = Ask::of(Some(server), request);
    ask.arguments.insert("tz".to_string(), "UTC".to_string());
    Taken::rows_of(|sink| source.ask(&ask, &AtomicBool::new(false), sink))
}

/// An answer of any function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    fields: Fields,
    values: Vec<Vec<Value>>,
    notices: Vec<QueryError>,
}

impl Rows {
    /// Asks a question, on this thread. Returns the rows and the notices.
    ///
    /// # Errors
    /// As [`Source::ask`].
    pub fn answer(
        source: &dyn Source,
        ask: &Ask,
        cancel: &AtomicBool,
    ) -> QueryResult<(Rows, Vec<QueryError>)> {
        let mut rows = Rows::default();
        source.ask(ask, cancel, &mut rows)?;
        let notices = std::mem::take(&mut rows.notices);
        Ok((rows, notices))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Puts the whole answer into a sink.
    ///
    /// # Errors
    /// The errors of the sink.
    pub fn put(&self, sink: &mut dyn Sink) -> QueryResult<()> {
        sink.begin(&self.fields.list())?;
        let mut rows = self.values.iter().cloned();
        rows.try_for_each(|row| sink.row(row))?;
        self.notices
            .iter()
            .cloned()
            .for_each(|one| sink.notice(one));
        Ok(())
    }

    /// The rows as structs of the function that answered.
    pub fn read<R: Row>(&self) -> Vec<R> {
        let mut taken = Taken::new(&self.fields.list());
        for values in &self.values {
            taken.add(values.clone());
        }
        taken.rows
    }
}

impl Sink for Rows {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.fields = Fields::of(fields);
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.values.push(values);
        Ok(())
    }

    fn notice(&mut self, notice: QueryError) {
        self.notices.push(notice);
    }
}

/// The answer of `status` about a server.
#[derive(Clone, Debug, Default)]
pub struct Status(Vec<StatusRow>);

impl Status {
    /// Asks a server, on this thread.
    ///
    /// # Errors
    /// As [`Source::ask`].
    pub fn ask(source: &dyn Source, server: &str) -> QueryResult<Status> {
        ask(source, server, &query::Status::default()).map(Status)
    }

    /// Reads an answer of `status`.
    pub fn of(rows: &Rows) -> Status {
        Status(rows.read())
    }

    /// The value of a metric.
    pub fn metric(&self, name: &str) -> Option<&str> {
        let row = self
            .0
            .iter()
            .find(|row| row.metric.as_deref() == Some(name));
        row?.value.as_deref()
    }

    /// A metric that is a time, µs since 1970.
    pub fn time(&self, name: &str) -> Option<i64> {
        time::moment(self.metric(name)?, 0, &jiff::tz::TimeZone::UTC).ok()
    }
}

/// A count; 0 if unknown.
pub fn count(known: Option<i64>) -> u64 {
    known.map_or(0, |count| u64::try_from(count).unwrap_or(0))
}
