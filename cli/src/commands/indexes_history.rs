//! `tacho indexes-history`: size and use of indexes.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho indexes-history`.
pub type Args = ReaderArgs<IndexesHistory>;

/// The function and its layout.
#[derive(Clone)]
pub struct IndexesHistory;

impl Reader for IndexesHistory {
    const FUNCTION: &'static str = "indexes_history";
    const LAYOUT: Layout = Layout::Columns(&[
        ("period_start", "since"),
        ("key", "index"),
        ("kind", "kind"),
        ("table_name", "table"),
        ("database", "database"),
        ("scans", "scans"),
        ("tuples_returned", "returned"),
        ("bytes", "bytes"),
        ("growth_bytes", "growth"),
        ("last_scan", "last scan"),
        ("known_from", "known from"),
        ("known_until", "known until"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
