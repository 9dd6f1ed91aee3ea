//! `tacho server-history`: measurements of the server as a whole.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho server-history`.
pub type Args = ReaderArgs<ServerHistory>;

/// The function and its layout.
#[derive(Clone)]
pub struct ServerHistory;

impl Reader for ServerHistory {
    const FUNCTION: &'static str = "server_history";
    const LAYOUT: Layout = Layout::Columns(&[
        ("period_start", "period_start"),
        ("metric", "metric"),
        ("object", "object"),
        ("avg", "avg"),
        ("max", "max"),
        ("total", "total"),
        ("unit", "unit"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
