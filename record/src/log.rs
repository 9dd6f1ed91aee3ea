//! Lines of the log, on standard error.

use std::collections::HashSet;
use std::io::Write;
use std::sync::{Arc, Mutex};
use tacho_tape::writer::Message;

/// Warnings that are remembered.
const MOST_TOLD: usize = 1_000;

/// The log, as one server writes it.
#[derive(Clone, Default)]
pub struct Log {
    /// In front of each line, where there are several servers.
    server: String,
    told: Arc<Mutex<HashSet<String>>>,
}

impl Log {
    /// That of a server.
    pub fn of(name: &str) -> Log {
        Log {
            server: format!("server \"{name}\": "),
            ..Log::default()
        }
    }

    /// A line.
    pub fn print(&self, message: &Message) {
        let (severity, text) = match message {
            Message::Log(text) => ("LOG", text),
            Message::Warning(text) => ("WARNING", text),
            Message::Error(text) | Message::Trouble(text) => ("ERROR", text),
        };
        let text = text.replace('\n', " ");
        let line = format!("{severity}:  {}{text}\n", self.server);
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    /// What is as it should be.
    pub fn say(&self, text: &str) {
        self.print(&Message::Log(text.to_string()));
    }

    /// What somebody should look at.
    pub fn warning(&self, text: &str) {
        self.print(&Message::Warning(text.to_string()));
    }

    /// What went wrong.
    pub fn error(&self, text: &str) {
        self.print(&Message::Error(text.to_string()));
    }

    /// A warning that is said once.
    pub fn once(&self, text: &str) {
        let mut told = self.told.lock().unwrap_or_else(|e| e.into_inner());
        if told.len() >= MOST_TOLD {
            told.clear();
        }
        if told.insert(text.to_string()) {
            self.warning(text);
        }
    }
}
