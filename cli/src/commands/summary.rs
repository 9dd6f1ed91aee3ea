//! `tacho summary`: a window in a few lines.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho summary`.
pub type Args = ReaderArgs<Summary>;

/// The function and its layout.
#[derive(Clone)]
pub struct Summary;

impl Reader for Summary {
    const FUNCTION: &'static str = "summary";
    const LAYOUT: Layout = Layout::Columns(&[("metric", "metric"), ("value", "value")]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
