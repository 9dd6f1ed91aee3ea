//! `tacho tables-history`: activity of tables and indexes.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho tables-history`.
pub type Args = ReaderArgs<TablesHistory>;

/// The function and its layout.
#[derive(Clone)]
pub struct TablesHistory;

impl Reader for TablesHistory {
    const FUNCTION: &'static str = "tables_history";
    const LAYOUT: Layout = Layout::Columns(&[
        ("period_start", "since"),
        ("key", "table or index"),
        ("database", "database"),
        ("scans", "scans"),
        ("tuples_returned", "returned"),
        ("tuples_fetched", "fetched"),
        ("tuples_inserted", "inserted"),
        ("tuples_updated", "updated"),
        ("tuples_deleted", "deleted"),
        ("blks_read", "read"),
        ("blks_hit", "hit"),
        ("dead_tuples", "dead"),
        ("bytes", "bytes"),
        ("growth_bytes", "growth"),
        ("last_autovacuum", "autovacuum"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
