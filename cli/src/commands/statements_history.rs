//! `tacho statements-history`: costs of statements over time.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho statements-history`.
pub type Args = ReaderArgs<StatementsHistory>;

/// The function and its layout.
#[derive(Clone)]
pub struct StatementsHistory;

impl Reader for StatementsHistory {
    const FUNCTION: &'static str = "statements_history";
    const LAYOUT: Layout = Layout::Columns(&[
        ("period_start", "since"),
        ("key", "key"),
        ("calls", "calls"),
        ("total_exec_time", "ms"),
        ("pct", "pct"),
        ("mean_exec_time", "mean"),
        ("p95_exec_time", "p95"),
        ("rows", "rows"),
        ("running", "running"),
        ("last_call", "last call"),
        ("query_text", "query"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
