//! Answers as JSON: one array of objects, one object per line.

use std::io::{self, Write};
use tacho_tape::query::{Field, QueryError, QueryResult, Sink, Value, json};

/// The error of an output that could not be written.
pub fn write_error(error: &io::Error) -> QueryError {
    QueryError::new(BROKEN_OUTPUT, format!("could not write output: {error}"))
}

/// SQLSTATE of an output that could not be written.
pub const BROKEN_OUTPUT: &str = "58030";

/// Writes one JSON array of objects, one object per line.
pub struct Json<W> {
    out: W,
    /// For each column the text before its value: comma, name, colon.
    names: Vec<String>,
    line: String,
    rows: usize,
    notices: Vec<QueryError>,
}

impl<W: Write> Json<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Json {
            out,
            names: Vec::new(),
            line: String::new(),
            rows: 0,
            notices: Vec::new(),
        }
    }

    /// The output that rows are written to.
    pub fn out(&self) -> &W {
        &self.out
    }

    /// Closes the array and returns the notices of the answer.
    ///
    /// # Errors
    /// The output could not be written.
    pub fn finish(self) -> io::Result<Vec<QueryError>> {
        self.into_parts().map(|(_, notices)| notices)
    }

    /// Closes the array and returns the output and the notices.
    ///
    /// # Errors
    /// The output could not be written.
    pub fn into_parts(mut self) -> io::Result<(W, Vec<QueryError>)> {
        let end: &[u8] = if self.rows == 0 { b"[]\n" } else { b"\n]\n" };
        self.out.write_all(end)?;
        self.out.flush()?;
        Ok((self.out, self.notices))
    }
}

impl<W: Write> Sink for Json<W> {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        let name = |(i, f): (usize, &Field)| match i {
            0 => format!("\"{}\": ", f.0),
            _ => format!(", \"{}\": ", f.0),
        };
        self.names = fields.iter().enumerate().map(name).collect();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.line.clear();
        let begin = if self.rows == 0 { "[\n{" } else { ",\n{" };
        self.line.push_str(begin);
        for (name, value) in self.names.iter().zip(&values) {
            self.line.push_str(name);
            json::write_value(&mut self.line, value);
        }
        self.line.push('}');
        self.rows += 1;
        let written = self.out.write_all(self.line.as_bytes());
        written.map_err(|e| write_error(&e))
    }

    /// Notices are kept: in the output they would break the array.
    fn notice(&mut self, notice: QueryError) {
        self.notices.push(notice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_tape::query::Type;

    const FIELDS: &[Field] = &[
        ("key", Type::Text),
        ("n", Type::Int),
        ("id", Type::Int),
        ("top", Type::Bool),
        ("aas", Type::Numeric),
        ("at", Type::Time),
    ];

    fn rows() -> Vec<Vec<Value>> {
        vec![
            vec![
                Value::Text("a\t\"b\\\nc".into()),
                Value::Int(-7),
                Value::Id(i64::MIN),
                Value::Bool(true),
                Value::Numeric(-12_345),
                Value::Time(0),
            ],
            vec![
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Bool(false),
                Value::Numeric(0),
                Value::Null,
            ],
        ]
    }

    #[test]
    fn json_is_one_array_of_objects() {
        let mut out = Vec::new();
        let mut sink = Json::new(&mut out);
        sink.begin(FIELDS).unwrap();
        for row in rows() {
            sink.row(row).unwrap();
        }
        sink.finish().unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "[\n\
             {\"key\": \"a\\t\\\"b\\\\\\nc\", \"n\": -7, \"id\": \"-9223372036854775808\", \"top\": true, \"aas\": -1.2345, \"at\": \"1970-01-01T00:00:00Z\"},\n\
             {\"key\": null, \"n\": null, \"id\": null, \"top\": false, \"aas\": 0.0000, \"at\": null}\n\
             ]\n"
        );
        let mut out = Vec::new();
        Json::new(&mut out).finish().unwrap();
        assert_eq!(out, b"[]\n");
    }
}
