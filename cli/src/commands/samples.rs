//! `tacho samples`: the samples themselves, newest first.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho samples`.
pub type Args = ReaderArgs<Samples>;

/// The function and its layout.
#[derive(Clone)]
pub struct Samples;

impl Reader for Samples {
    const FUNCTION: &'static str = "samples";
    const LAYOUT: Layout = Layout::Columns(&[
        ("sample_time", "time"),
        ("pid", "pid"),
        ("username", "user"),
        ("state", "state"),
        ("wait_event_type", "class"),
        ("wait_event", "event"),
        ("query_text", "query"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
