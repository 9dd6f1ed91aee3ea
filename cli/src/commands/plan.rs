//! `tacho plan`: the nodes of a plan, as EXPLAIN prints them, or two plans with their differences.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho plan`.
pub type Args = ReaderArgs<Plan>;

/// The function and its layout.
#[derive(Clone)]
pub struct Plan;

impl Reader for Plan {
    const FUNCTION: &'static str = "plan";
    const LAYOUT: Layout = Layout::Plan;
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
