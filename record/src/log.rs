//! Lines of the log, on standard error.

use std::collections::HashSet;
use std::io::Write;
use std::sync::{Arc, Mutex};
use tacho_tape::query::plain_text;
use tacho_tape::write::message::Message;

/// Maximum number of warnings that are remembered.
const MAX_REMEMBERED: usize = 1_000;

/// The log of one server.
#[derive(Clone, Default)]
pub struct Log {
    /// Prefix of each line, if there are several servers.
    server: String,
    logged: Arc<Mutex<HashSet<String>>>,
}

impl Log {
    /// Log of a server, with its name as prefix.
    pub fn of(name: &str) -> Log {
        Log {
            server: format!("server \"{name}\": "),
            ..Log::default()
        }
    }

    /// Prints a line.
    pub fn print(&self, message: &Message) {
        let _ = std::io::stderr().write_all(self.line(message).as_bytes());
    }

    /// Strips control characters: server names and messages must not control a
    /// terminal.
    fn line(&self, message: &Message) -> String {
        let (severity, text) = match message {
            Message::Log(text) => ("LOG", text),
            Message::Warning(text) => ("WARNING", text),
            Message::Error(text) | Message::Trouble(text) => ("ERROR", text),
        };
        format!("{severity}:  {}{}\n", self.server, plain_text(text))
    }

    /// Logs a normal event.
    pub fn info(&self, text: &str) {
        self.print(&Message::Log(text.to_string()));
    }

    /// Logs a problem that needs attention, as a warning.
    pub fn warning(&self, text: &str) {
        self.print(&Message::Warning(text.to_string()));
    }

    /// Logs an error.
    pub fn error(&self, text: &str) {
        self.print(&Message::Error(text.to_string()));
    }

    /// Logs a warning, unless the same one was logged before.
    pub fn warn_once(&self, text: &str) {
        let mut logged = self.logged.lock().unwrap_or_else(|e| e.into_inner());
        if logged.len() >= MAX_REMEMBERED {
            logged.clear();
        }
        if logged.insert(text.to_string()) {
            self.warning(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_server_is_one_plain_line() {
        let said = "could not connect\nDETAIL:  \x1b]0;owned\x07 \u{9b}31m";
        assert_eq!(
            Log::of("a").line(&Message::Warning(said.to_string())),
            "WARNING:  server \"a\": could not connect DETAIL:  \u{fffd}]0;owned\u{fffd} \u{fffd}31m\n"
        );
    }
}
