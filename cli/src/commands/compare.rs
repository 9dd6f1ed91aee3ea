//! `tacho compare`: two windows side by side.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho compare`.
pub type Args = ReaderArgs<Compare>;

/// The function and its layout.
#[derive(Clone)]
pub struct Compare;

impl Reader for Compare {
    const FUNCTION: &'static str = "compare";
    const LAYOUT: Layout = Layout::Columns(&[
        ("key", "key"),
        ("change", "change"),
        ("avg_aas_1", "before"),
        ("avg_aas_2", "after"),
        ("avg_delta", "delta"),
        ("coverage_pct_1", "seen %"),
        ("coverage_pct_2", "seen %"),
        ("query_text", "query"),
        ("note", "note"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
