//! Values and columns of answers, and the sinks that take their rows.

use super::error::{QueryError, QueryResult};
use std::sync::Arc;

/// One field of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Nothing is known.
    Null,
    /// Text in UTF-8 without NUL, shared by the rows that have it.
    Text(Arc<str>),
    /// A number.
    Int(i64),
    /// A number of 64 bits that names something: in JSON a text, because many
    /// readers of JSON keep 53 bits.
    Id(i64),
    /// True or false.
    Bool(bool),
    /// Ten-thousandths.
    Numeric(i128),
    /// µs since 1970 UTC.
    Time(i64),
    /// µs.
    Interval(i64),
}

impl Value {
    /// A text or null.
    pub fn text(text: Option<impl Into<Arc<str>>>) -> Value {
        text.map_or(Value::Null, |t| Value::Text(t.into()))
    }

    /// An identifier or null.
    pub fn id(number: Option<i64>) -> Value {
        number.map_or(Value::Null, Value::Id)
    }

    /// A number or null.
    pub fn int(number: Option<i64>) -> Value {
        number.map_or(Value::Null, Value::Int)
    }
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `text`
    Text,
    /// `bigint` or `int`
    Int,
    /// A `bigint` that names something, see [`Value::Id`].
    Id,
    /// `boolean`
    Bool,
    /// `numeric` with four decimals
    Numeric,
    /// `timestamptz`
    Time,
    /// `interval`
    Interval,
}

/// Name and type of a column of an answer.
pub type Field = (&'static str, Type);

/// Takes the rows of an answer, in order.
pub trait Sink {
    /// Called once, before the first row.
    ///
    /// # Errors
    /// The output could not be written.
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()>;

    /// One row, as many values as fields.
    ///
    /// # Errors
    /// The output could not be written.
    fn row(&mut self, values: Vec<Value>) -> QueryResult<()>;

    /// What is to be known about the answer, behind its last row.
    fn notice(&mut self, _notice: QueryError) {}
}
