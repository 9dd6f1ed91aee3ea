//! `tacho markers`: events that explain the history.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho markers`.
pub type Args = ReaderArgs<Markers>;

/// The function and its layout.
#[derive(Clone)]
pub struct Markers;

impl Reader for Markers {
    const FUNCTION: &'static str = "markers";
    const LAYOUT: Layout = Layout::Columns(&[
        ("marker_time", "time"),
        ("kind", "kind"),
        ("period_start", "since"),
        ("period_end", "until"),
        ("detail", "detail"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
