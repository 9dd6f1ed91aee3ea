//! `tacho status`: contents of the history.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho status`.
pub type Args = ReaderArgs<Status>;

/// The function and its layout.
#[derive(Clone)]
pub struct Status;

impl Reader for Status {
    const FUNCTION: &'static str = "status";
    const LAYOUT: Layout = Layout::Columns(&[("metric", "metric"), ("value", "value")]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
