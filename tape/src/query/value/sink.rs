//! Values and columns of answers, and the sinks that take their rows.

use super::error::{QueryError, QueryResult};
use std::sync::Arc;

/// One field of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Unknown.
    Null,
    /// Text in UTF-8 without NUL, shared by the rows that have it.
    Text(Arc<str>),
    /// A count or a measure.
    Int(i64),
    /// A 64-bit id. JSON has it as a string, because many JSON readers keep only 53 bits.
    Id(i64),
    /// True or false.
    Bool(bool),
    /// Ten-thousandths.
    Numeric(i128),
    /// µs since 1970 UTC.
    Time(i64),
    /// A length of time in µs.
    Interval(i64),
}

impl Value {
    /// A text, or null for `None`.
    pub fn text(text: Option<impl Into<Arc<str>>>) -> Value {
        text.map_or(Value::Null, |t| Value::Text(t.into()))
    }

    /// An id, or null for `None`.
    pub fn id(number: Option<i64>) -> Value {
        number.map_or(Value::Null, Value::Id)
    }

    /// A number, or null for `None`.
    pub fn int(number: Option<i64>) -> Value {
        number.map_or(Value::Null, Value::Int)
    }
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A value of type `text`.
    Text,
    /// A value of type `bigint` or `int`.
    Int,
    /// A `bigint` that is an id, see [`Value::Id`].
    Id,
    /// A value of type `boolean`.
    Bool,
    /// A value of type `numeric`, with four decimals.
    Numeric,
    /// A value of type `timestamptz`.
    Time,
    /// A value of type `interval`.
    Interval,
}

/// Name and type of a column of an answer.
pub type Field<'n> = (&'n str, Type);

/// Names and types of the columns of an answer, for a sink that needs them after
/// [`Sink::begin`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(Box<str>, Type)>);

impl Fields {
    /// Copies the columns.
    pub fn of(fields: &[Field]) -> Fields {
        Fields(
            fields
                .iter()
                .map(|(name, ty)| ((*name).into(), *ty))
                .collect(),
        )
    }

    /// The columns in order.
    pub fn list(&self) -> Vec<Field<'_>> {
        self.0.iter().map(|(name, ty)| (&**name, *ty)).collect()
    }
}

/// Takes the rows of an answer in order.
pub trait Sink {
    /// Called once, before the first row.
    ///
    /// # Errors
    /// The output could not be written.
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()>;

    /// Takes one row: one value for each field.
    ///
    /// # Errors
    /// The output could not be written.
    fn row(&mut self, values: Vec<Value>) -> QueryResult<()>;

    /// Takes a notice about the answer, after its last row.
    fn notice(&mut self, _notice: QueryError) {}
}
