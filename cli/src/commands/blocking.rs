//! `tacho blocking`: the sessions that blocked others.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho blocking`.
pub type Args = ReaderArgs<Blocking>;

/// The function and its layout.
#[derive(Clone)]
pub struct Blocking;

impl Reader for Blocking {
    const FUNCTION: &'static str = "blocking";
    const LAYOUT: Layout = Layout::Columns(&[
        ("tree", "who"),
        ("application", "application"),
        ("state", "state"),
        ("blocked_seconds", "blocked s"),
        ("waiters", "waiters"),
        ("object", "object"),
        ("query_text", "query"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
