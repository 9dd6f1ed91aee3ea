//! The rows of an answer, kept for a test.

use crate::query::{Field, QueryResult, Sink, Value};

/// The columns and rows that a function emitted.
#[derive(Debug, Default)]
pub struct Answer {
    /// Name of each column.
    pub fields: Vec<String>,
    /// Values of each row, in the order of `fields`.
    pub rows: Vec<Vec<Value>>,
}

impl Sink for Answer {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.fields = fields.iter().map(|field| field.0.to_string()).collect();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        assert_eq!(values.len(), self.fields.len());
        self.rows.push(values);
        Ok(())
    }
}

impl Answer {
    /// The value of a column in a row. Panics if the answer has no such column.
    pub fn get(&self, row: usize, column: &str) -> Value {
        self.rows[row][self.place(column)].clone()
    }

    /// These columns of all rows. Panics if the answer lacks one.
    pub fn columns<const N: usize>(&self, names: [&str; N]) -> Vec<[Value; N]> {
        let places = names.map(|name| self.place(name));
        let rows = self.rows.iter();
        rows.map(|row| places.map(|place| row[place].clone()))
            .collect()
    }

    /// The index of a column. Panics if the answer has no such column.
    pub fn place(&self, column: &str) -> usize {
        let found = self.fields.iter().position(|field| field == column);
        found.unwrap_or_else(|| panic!("the answer has no column \"{column}\""))
    }
}
