//! `tacho latency-history`: durations of executions of statements.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho latency-history`.
pub type Args = ReaderArgs<LatencyHistory>;

/// The function and its layout.
#[derive(Clone)]
pub struct LatencyHistory;

impl Reader for LatencyHistory {
    const FUNCTION: &'static str = "latency_history";
    const LAYOUT: Layout = Layout::Columns(&[
        ("period_start", "since"),
        ("exec_time_from", "from ms"),
        ("exec_time_to", "to ms"),
        ("calls", "calls"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
