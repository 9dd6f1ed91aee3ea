//! Sources of answers, for the programs that show them. [`Question`] is made
//! from arguments that people and programs write; a [`Source`] answers it with
//! rows. Nothing here is async, prints, or knows who asks. The command line
//! takes arguments, times and JSON from here, so that all programs understand
//! and write the same.

pub mod arguments;
pub mod catalog;
pub mod encoding;
pub mod exchange;
mod failure;
pub mod json;
pub mod memory;
mod question;
pub mod report;
pub mod rows;
mod source;
pub mod stored;
mod tape;
pub mod time;
pub mod waits;

pub use failure::Failure;
pub use question::{Arguments, Question, number, whole};
pub use source::{Ask, Server, Source, State, pick_server};
pub use tape::{Tapes, expect_history, no_history, open, with_step};
