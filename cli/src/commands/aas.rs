//! `tacho aas`: the load of a window.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho aas`.
pub type Args = ReaderArgs<Aas>;

/// The function and its layout.
#[derive(Clone)]
pub struct Aas;

impl Reader for Aas {
    const FUNCTION: &'static str = "aas";
    const LAYOUT: Layout = Layout::Lines;
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
