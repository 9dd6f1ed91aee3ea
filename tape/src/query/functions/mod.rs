//! The functions of SQL and the command line, one file each, listed in `registry.rs`. They use the
//! other folders of `query/`; `pass/run.rs` calls them.
//!
//! A new function follows one that reads the same rows. `top.rs` adds up load by key and bucket,
//! from totals where they suffice (`pass/`, `sums/`). `samples.rs` and `sessions.rs` read single
//! samples: a `Scan` finds the parts, `Selected` the rows of each part. A function with a fixed
//! filter of its own adds it to `scan.selection.filters`. `plan_changes.rs` reads executions of
//! statements, `server_history.rs` measurements, `markers.rs` events.

mod aas;
mod blocking;
mod blocking_rows;
mod blocking_waits;
mod changes;
mod chart;
mod common_columns;
mod compare;
mod errors_history;
mod indexes_history;
mod latency_history;
mod lifeline;
mod marker_change;
mod markers;
mod periods;
mod plan;
mod plan_changes;
mod plans;
mod queries;
mod registry;
pub mod report;
mod samples;
mod server_history;
mod sessions;
mod statements_history;
mod status;
mod summary;
mod tables_history;
mod timeline;
mod top;

pub use changes::{Described, LONGEST_WITH_CAUSES, RULES};
pub use markers::{REMOVED, Removal, removals};
pub use registry::{Function, find, list, structs};
#[cfg(test)]
pub(crate) use registry::{WithRequest, with_each};
