//! `tacho timeline`: the load bucket by bucket.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho timeline`.
pub type Args = ReaderArgs<Timeline>;

/// The function and its layout.
#[derive(Clone)]
pub struct Timeline;

impl Reader for Timeline {
    const FUNCTION: &'static str = "timeline";
    const LAYOUT: Layout = Layout::Columns(&[
        ("bucket_start", "bucket_start"),
        ("key", "key"),
        ("avg_aas", "avg_aas"),
        ("peak_sessions", "sess"),
        ("backend_seconds", "seconds"),
        ("coverage_pct", "coverage"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
