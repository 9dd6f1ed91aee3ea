//! `tacho plans`: calls, time, CPU time, rows and blocks of each plan of a statement.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho plans`.
pub type Args = ReaderArgs<Plans>;

/// The function and its layout.
#[derive(Clone)]
pub struct Plans;

impl Reader for Plans {
    const FUNCTION: &'static str = "plans";
    const LAYOUT: Layout = Layout::Columns(&[
        ("query_id", "query id"),
        ("plan_id", "plan id"),
        ("plan_type", "type"),
        ("first_seen", "first"),
        ("last_seen", "last"),
        ("calls", "calls"),
        ("pct", "pct"),
        ("mean_exec_time", "mean"),
        ("p95_exec_time", "p95"),
        ("max_exec_time", "max"),
        ("cpu_time", "cpu"),
        ("rows_per_call", "rows/call"),
        ("blocks_per_call", "blocks/call"),
        ("query_text", "query"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
