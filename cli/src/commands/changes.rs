//! `tacho changes`: causes of a changed load, beside the effects that they can explain.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho changes`.
pub type Args = ReaderArgs<Changes>;

/// The function and its layout.
#[derive(Clone)]
pub struct Changes;

impl Reader for Changes {
    const FUNCTION: &'static str = "changes";
    const LAYOUT: Layout = Layout::Columns(&[
        ("rank", "rank"),
        ("kind", "kind"),
        ("rule", "rule"),
        ("started", "since"),
        ("pct", "%"),
        ("explanation", "explanation"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
