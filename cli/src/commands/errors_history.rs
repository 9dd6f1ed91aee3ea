//! `tacho errors-history`: errors of statements by SQLSTATE.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho errors-history`.
pub type Args = ReaderArgs<ErrorsHistory>;

/// The function and its layout.
#[derive(Clone)]
pub struct ErrorsHistory;

impl Reader for ErrorsHistory {
    const FUNCTION: &'static str = "errors_history";
    const LAYOUT: Layout = Layout::Columns(&[
        ("period_start", "since"),
        ("errors", "errors"),
        ("errors_per_second", "a second"),
        ("sqlstate", "SQLSTATE"),
        ("condition", "condition"),
        ("key", "query id"),
        ("username", "user"),
        ("database", "database"),
        ("query_text", "query"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
