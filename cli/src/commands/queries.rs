//! `tacho queries`: queries with their load and their cost.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho queries`.
pub type Args = ReaderArgs<Queries>;

/// The function and its layout.
#[derive(Clone)]
pub struct Queries;

impl Reader for Queries {
    const FUNCTION: &'static str = "queries";
    const LAYOUT: Layout = Layout::Columns(&[
        ("key", "query id"),
        ("avg_aas", "AAS"),
        ("pct", "%"),
        ("calls_per_second", "calls/s"),
        ("mean_exec_time", "mean ms"),
        ("p95_exec_time", "p95 ms"),
        ("errors", "errors"),
        ("running", "running"),
        ("last_call", "last call"),
        ("query_text", "query"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
