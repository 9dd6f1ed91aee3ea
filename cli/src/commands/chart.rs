//! `tacho chart`: stacked load as text.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho chart`.
pub type Args = ReaderArgs<Chart>;

/// The function and its layout.
#[derive(Clone)]
pub struct Chart;

impl Reader for Chart {
    const FUNCTION: &'static str = "chart";
    const LAYOUT: Layout = Layout::Chart;
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
