//! Errors in the style of PostgreSQL messages.

use std::fmt;

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why there is no connection, or no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// SQLSTATE, of the server or our own: `08001` (no connection), `08006`
    /// (connection lost), `57014` (time is up, or cancelled), `22023` (invalid
    /// options), `38000` (a password command failed).
    pub code: String,
    /// Primary line.
    pub message: String,
    /// More about the error, in sentences.
    pub detail: Option<String>,
    /// The step that may help.
    pub hint: Option<String>,
}

impl Error {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Error {
        Error {
            code: code.to_string(),
            message: message.into(),
            detail: None,
            hint: None,
        }
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Error {
        self.detail = Some(detail.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// The error on one line: message, then the first line of the detail.
    pub fn line(&self) -> String {
        let detail = self.detail.as_deref().and_then(|d| d.lines().next());
        match detail {
            Some(detail) => format!("{}: {detail}", self.message),
            None => self.message.clone(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(detail) = &self.detail {
            write!(f, "\nDETAIL:  {detail}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nHINT:  {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
