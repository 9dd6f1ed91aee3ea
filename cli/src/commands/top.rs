//! `tacho top`: the largest keys of a dimension.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho top`.
pub type Args = ReaderArgs<Top>;

/// The function and its layout.
#[derive(Clone)]
pub struct Top;

impl Reader for Top {
    const FUNCTION: &'static str = "top";
    const LAYOUT: Layout = Layout::Columns(&[
        ("key", "key"),
        ("by_key", "by"),
        ("avg_aas", "avg_aas"),
        ("peak_aas", "peak_aas"),
        ("p99_aas", "p99_aas"),
        ("peak_sessions", "sess"),
        ("pct", "pct"),
        ("query_text", "query"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
