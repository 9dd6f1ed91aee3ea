//! Answers in the server's COPY format, and errors as lines of fields.

use std::fmt::Write as _;
use std::io::{self, Write};
use tacho_source::json::write_error;
use tacho_source::time::copy_time;
use tacho_tape::query::{
    Field, INSUFFICIENT_PRIVILEGE, QueryError, QueryResult, Sink, Value, json,
};

/// COPY text format: a line of column names, rows, `\.`.
pub struct Copy<W> {
    out: W,
    line: String,
}

impl<W: Write> Copy<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        let line = String::new();
        Copy { out, line }
    }

    /// Writes the end of data.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(b"\\.\n")?;
        self.out.flush()
    }

    fn put_line(&mut self) -> QueryResult<()> {
        self.line.push('\n');
        let written = self.out.write_all(self.line.as_bytes());
        self.line.clear();
        written.map_err(|e| write_error(&e))
    }
}

impl<W: Write> Sink for Copy<W> {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        let names: Vec<&str> = fields.iter().map(|f| f.0).collect();
        self.line.push_str(&names.join("\t"));
        self.put_line()
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        for (i, value) in values.iter().enumerate() {
            if i > 0 {
                self.line.push('\t');
            }
            match value {
                Value::Null => self.line.push_str("\\N"),
                Value::Text(text) => escape(text, &mut self.line),
                Value::Int(n) | Value::Id(n) => {
                    let _ = write!(self.line, "{n}");
                }
                Value::Bool(is) => self.line.push(if *is { 't' } else { 'f' }),
                Value::Numeric(n) => json::write_numeric(&mut self.line, *n),
                Value::Time(us) => self.line.push_str(&copy_time(*us)),
                Value::Interval(us) => self.line.push_str(&json::interval(*us)),
            }
        }
        self.put_line()
    }

    fn notice(&mut self, notice: QueryError) {
        let line = error_line(notice.severity(), &notice);
        let _ = io::stderr().write_all(line.as_bytes());
    }
}

/// Escapes as COPY text does.
pub fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
}

/// Writes an error as one line for the extension:
/// `ERROR<TAB>SQLSTATE<TAB>primary<TAB>detail<TAB>hint`.
pub fn error_line(severity: &str, error: &QueryError) -> String {
    let hint = match error.sqlstate {
        INSUFFICIENT_PRIVILEGE if error.hint.is_none() => {
            Some("The history files belong to the operating system user of the server.")
        }
        _ => error.hint.as_deref(),
    };
    let mut line = format!("{severity}\t{}", error.sqlstate);
    for field in [
        error.message.as_str(),
        error.detail.as_deref().unwrap_or(""),
        hint.unwrap_or(""),
    ] {
        line.push('\t');
        escape(field, &mut line);
    }
    line.push('\n');
    line
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
    fn an_error_is_one_line_of_fields() {
        let error = QueryError::invalid("n must be\tat least 1").hint("Use more.\nOr less.");
        assert_eq!(
            error_line("ERROR", &error),
            "ERROR\t22023\tn must be\\tat least 1\t\tUse more.\\nOr less.\n"
        );
    }

    #[test]
    fn copy_escapes_and_ends_the_data() {
        let mut out = Vec::new();
        let mut sink = Copy::new(&mut out);
        sink.begin(FIELDS).unwrap();
        for row in rows() {
            sink.row(row).unwrap();
        }
        sink.finish().unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "key\tn\tid\ttop\taas\tat\n\
             a\\t\"b\\\\\\nc\t-7\t-9223372036854775808\tt\t-1.2345\t1970-01-01 00:00:00.000000+00\n\
             \\N\t\\N\t\\N\tf\t0.0000\t\\N\n\
             \\.\n"
        );
    }
}
