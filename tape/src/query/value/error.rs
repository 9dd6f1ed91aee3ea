//! Errors of a query: SQLSTATE, primary line, detail and hint, so that a backend can report them as
//! its own errors.

use crate::error::Kind;
use std::fmt;
use std::path::PathBuf;

/// SQLSTATE of an invalid argument.
pub const INVALID_PARAMETER: &str = "22023";
/// SQLSTATE of a name that does not exist.
pub const UNDEFINED_OBJECT: &str = "42704";
/// SQLSTATE of a query ended on request.
pub const CANCELED: &str = "57014";
/// SQLSTATE of an answer that exceeds the memory limit.
pub const OUT_OF_MEMORY: &str = "53200";
/// SQLSTATE of a missing file.
pub const UNDEFINED_FILE: &str = "58P01";
/// SQLSTATE of a file that the process may not open.
pub const INSUFFICIENT_PRIVILEGE: &str = "42501";
/// SQLSTATE of a damaged file.
pub const DATA_CORRUPTED: &str = "XX001";

/// A damaged place in a file. Warnings name places in the order of these fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The group of the damaged column; 0 if all groups of the file share it.
    pub group: u32,
    /// Offset in the file in bytes, if known.
    pub offset: Option<u64>,
    /// The damage, in words.
    pub reason: String,
}

/// Why a query failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// Five characters, as in PostgreSQL.
    pub sqlstate: &'static str,
    /// Primary line: lower case, no full stop.
    pub message: String,
    /// Facts, in full sentences.
    pub detail: Option<String>,
    /// Advice, in a full sentence.
    pub hint: Option<String>,
    /// Damaged place, if the question can be answered without it.
    pub(crate) place: Option<Box<Place>>,
}

/// Result with [`QueryError`].
pub type QueryResult<T> = Result<T, QueryError>;

impl QueryError {
    /// An error with its SQLSTATE.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        QueryError {
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            place: None,
        }
    }

    /// Severity with which the server reports this error beside an answer.
    pub fn severity(&self) -> &'static str {
        match self.sqlstate.starts_with("00") {
            true => "NOTICE",
            false => "WARNING",
        }
    }

    /// Invalid argument.
    pub fn invalid(message: impl Into<String>) -> Self {
        QueryError::new(INVALID_PARAMETER, message)
    }

    /// Unknown name.
    pub fn undefined(message: impl Into<String>) -> Self {
        QueryError::new(UNDEFINED_OBJECT, message)
    }

    /// The keys and buckets of the answer exceed the memory limit.
    pub fn out_of_memory(limit_bytes: u64) -> Self {
        QueryError::new(OUT_OF_MEMORY, "answer exceeds the memory limit of a query")
            .detail(format!("The limit is {} MB.", limit_bytes >> 20))
            .hint("Use a shorter window, a wider bucket or a filter, or ask on the command line.")
    }

    /// The user cancelled the query.
    pub fn canceled() -> Self {
        QueryError::new(CANCELED, "canceling query due to user request")
    }

    /// The same error with a detail.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The same error with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<crate::Error> for QueryError {
    fn from(error: crate::Error) -> Self {
        let refused = error
            .os
            .as_ref()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied);
        let sqlstate = match error.kind {
            _ if refused => INSUFFICIENT_PRIVILEGE,
            Kind::Damaged => DATA_CORRUPTED,
            Kind::Version => "0A000",
            Kind::NotFound => UNDEFINED_FILE,
            Kind::NoSpace => "53100",
            _ => "58030",
        };
        let place = error.path.as_ref().zip(error.group);
        let place = place.map(|(file, group)| Place {
            file: file.clone(),
            group,
            offset: error.offset,
            reason: error.reason(),
        });
        QueryError {
            place: place.map(Box::new),
            ..QueryError::new(sqlstate, error.to_string())
        }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for QueryError {}
