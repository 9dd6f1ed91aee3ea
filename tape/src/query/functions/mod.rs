//! The functions of SQL and the command line, one file each, listed in `registry.rs`. They use the
//! other folders of `query/`; `run.rs` calls them.

mod aas;
mod blocking;
mod blocking_rows;
mod blocking_waits;
mod changes;
mod chart;
mod common_columns;
mod compare;
mod latency_history;
mod lifeline;
mod marker_change;
mod markers;
mod periods;
mod plan_changes;
mod plans;
mod registry;
pub mod report;
mod samples;
mod server_history;
mod sessions;
mod statements_history;
mod status;
mod summary;
mod timeline;
mod top;

pub use changes::{Described, RULES};
pub use markers::{REMOVED, Removal, removals};
pub use registry::{Function, find, list, structs};
#[cfg(test)]
pub(crate) use registry::{WithRequest, with_each};
