//! `tacho periods`: the load of the last minute, hour, day …

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho periods`.
pub type Args = ReaderArgs<Periods>;

/// The function and its layout.
#[derive(Clone)]
pub struct Periods;

impl Reader for Periods {
    const FUNCTION: &'static str = "periods";
    const LAYOUT: Layout = Layout::Columns(&[
        ("period", "period"),
        ("period_start", "since"),
        ("avg_aas", "avg_aas"),
        ("peak_aas", "peak_aas"),
        ("p99_aas", "p99_aas"),
        ("peak_sessions", "sess"),
        ("coverage_pct", "coverage"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
