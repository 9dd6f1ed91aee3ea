//! Imports history from text. Files are written in a directory of their own
//! within the tape, and renamed when everything is read: a bad line leaves
//! nothing behind.

mod lines;
mod met;
mod others;
mod part;
mod plan;
mod sessions;
pub mod target;
mod value;

pub use sessions::Imported;

use lines::{Lines, Record};
use others::OtherRows;
use sessions::Importer;
use std::fmt;
use std::io::Read;
use std::sync::Arc;
use tacho_source::catalog;
use tacho_source::exchange;
use tacho_tape::Schema;
use target::Target;
use value::Header;

/// A file of rows of one kind.
pub struct Input {
    /// Name of the kind, such as `locks`.
    pub kind: String,
    /// Name of the file in messages; empty for the first.
    pub file: String,
    /// Content of the file.
    pub read: Box<dyn Read>,
}

/// Imports files. Ticks come from kind `sessions`, and weigh `interval_ms`
/// unless the file has an interval.
pub fn import(inputs: Vec<Input>, target: Target, interval_ms: i64) -> ImportResult<Imported> {
    let schema = Arc::new(catalog::schema().clone().with_runs());
    import_as(schema, inputs, target, interval_ms)
}

/// Imports with a given schema, which has runs.
pub fn import_as(
    schema: Arc<Schema>,
    inputs: Vec<Input>,
    mut target: Target,
    interval_ms: i64,
) -> ImportResult<Imported> {
    let has_sessions = inputs.iter().any(|i| i.kind == exchange::SESSIONS);
    let mut others = Vec::new();
    let mut sessions: Option<Input> = None;
    for input in inputs {
        if input.kind != exchange::SESSIONS {
            others.push(OtherRows::open(input, &schema, &target)?);
        } else if sessions.replace(input).is_some() {
            return Err(ImportError::new("sessions were specified more than once"));
        }
    }
    let sessions = sessions.unwrap_or_else(|| Input {
        kind: exchange::SESSIONS.to_string(),
        file: String::new(),
        read: Box::new(&b"time\n"[..]),
    });
    let Input { file, read, .. } = sessions;
    let mut lines = Lines::new(read);
    let mut record = Record::default();
    read_header(&mut lines, &mut record).map_err(|e| e.file(&file))?;
    let run = schema.table("run");
    let known = run.map_or_else(Vec::new, |run| exchange::fields(&schema, run));
    let header = Header::parse(&record, &known, sessions::QUERY_TEXT);
    let header = header.map_err(|e| e.at(1).file(&file))?;
    let mut importer = Importer::new(header, others, schema, &mut target, interval_ms)?;
    while lines.next(&mut record).map_err(|e| e.file(&file))? {
        let taken = importer.line(&record);
        taken.map_err(|e| e.at(record.line).file(&file))?;
    }
    let mut imported = importer.end()?;
    imported.has_sessions = has_sessions;
    target.finish()?;
    Ok(imported)
}

/// Reads the first line.
fn read_header(lines: &mut Lines, record: &mut Record) -> ImportResult<()> {
    match lines.next(record)? {
        true => Ok(()),
        false => Err(ImportError::new("the input is empty")
            .hint("The first line names the columns, such as time,pid,wait_event.")),
    }
}

/// Reason why an import failed.
#[derive(Debug)]
pub struct ImportError {
    /// The file, if there are several.
    pub file: Option<String>,
    /// Number of the line in the input, from 1.
    pub line: Option<u64>,
    /// Primary line.
    pub message: String,
    /// The step that may help.
    pub hint: Option<String>,
    /// True if the command line is wrong, not the input.
    pub is_usage: bool,
}

/// Result with [`ImportError`].
pub type ImportResult<T> = Result<T, ImportError>;

impl ImportError {
    /// An error without a line.
    pub fn new(message: impl Into<String>) -> Self {
        ImportError {
            file: None,
            line: None,
            message: message.into(),
            hint: None,
            is_usage: false,
        }
    }

    /// An error of the command line.
    pub fn usage(message: impl Into<String>) -> Self {
        ImportError {
            is_usage: true,
            ..ImportError::new(message)
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the line, unless the error has one.
    #[must_use]
    pub fn at(mut self, line: u64) -> Self {
        self.line.get_or_insert(line);
        self
    }

    /// Adds the file, unless the error has one.
    #[must_use]
    pub fn file(mut self, file: &str) -> Self {
        if !file.is_empty() {
            self.file.get_or_insert_with(|| file.to_string());
        }
        self
    }
}

impl From<tacho_tape::Error> for ImportError {
    fn from(error: tacho_tape::Error) -> Self {
        ImportError::new(error.to_string())
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}, ")?;
        }
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ImportError {}
