//! Reason why a program that shows answers ends.

use std::io;
use tacho_tape::query::{QueryError, plain_lines};

/// Reason why the program ends.
#[derive(Debug)]
pub struct Failure {
    message: String,
    hint: Option<String>,
    /// Exit code.
    pub code: u8,
}

impl Failure {
    /// An invalid command line.
    pub fn usage(message: String) -> Failure {
        let hint = None;
        Failure {
            message,
            hint,
            code: 2,
        }
    }

    /// A failure of the operating system to do `what`, such as "read a file".
    pub fn io(what: &str, error: &io::Error) -> Failure {
        let message = format!("could not {what}: {error}");
        Failure {
            code: 1,
            ..Failure::usage(message)
        }
    }

    /// An error that the query engine has answered to a question.
    pub fn query(error: QueryError) -> Failure {
        Failure {
            message: error.message,
            hint: error.hint,
            code: 2,
        }
    }

    /// A directory on the command line is missing or unreadable, or holds no history.
    pub fn place(error: QueryError) -> Failure {
        Failure {
            code: 1,
            ..Failure::query(error)
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Failure {
        self.hint = Some(hint.to_string());
        self
    }

    /// The message for people.
    pub fn lines(&self) -> String {
        self.lines_of("error")
    }

    /// The message as a warning of a program that does not end.
    pub fn warning(&self) -> String {
        self.lines_of("warning")
    }

    fn lines_of(&self, severity: &str) -> String {
        let mut lines = format!("{severity}: {}\n", plain_lines(&self.message));
        if let Some(hint) = &self.hint {
            lines.push_str(&format!("hint: {}\n", plain_lines(hint)));
        }
        lines
    }
}
