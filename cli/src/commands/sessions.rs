//! `tacho sessions`: the activities of sessions with their begins and ends.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho sessions`.
pub type Args = ReaderArgs<Sessions>;

/// The function and its layout.
#[derive(Clone)]
pub struct Sessions;

impl Reader for Sessions {
    const FUNCTION: &'static str = "sessions";
    const LAYOUT: Layout = Layout::Columns(&[
        ("pid", "pid"),
        ("span_start", "from"),
        ("seconds", "seconds"),
        ("kind", "kind"),
        ("state", "state"),
        ("wait_event", "wait"),
        ("cpu", "cpu"),
        ("blocked_by", "by"),
        ("query_text", "query"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
