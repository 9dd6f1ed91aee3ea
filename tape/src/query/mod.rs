//! Answers questions about the history: [`run`] asks one of `functions/`, whose
//! steps stand in files of their names. `parse.rs` checks arguments, `plan.rs` says
//! how the parts of a window are read, `read.rs` reads them, `select.rs` finds the
//! rows that match, `group.rs` their keys, `measure.rs` adds them up; `totals.rs` is
//! another source of the same measures. Programs and `write/` call this folder, and
//! it uses `store/` and below. `tools/check-house.sh` has its files in an order in
//! which none names a later one.
//!
//! Nothing is approximated: sums are integers, and only what is printed is rounded.

mod blockers;
pub mod bucket;
#[cfg(test)]
mod cancel_tests;
mod cells;
mod choice;
mod civil;
mod closed_buckets;
mod context;
pub(crate) mod damage;
#[cfg(test)]
mod damage_tests;
mod dimension;
mod empty;
mod error;
mod explain;
#[cfg(test)]
mod explain_tests;
mod explained;
pub mod filter;
mod first_pass;
mod functions;
mod group;
mod hidden;
pub mod inspect;
pub mod json;
mod keys;
mod measure;
mod number;
mod parse;
mod plain;
mod plan;
mod read;
mod register;
pub(crate) mod request;
mod root_blocker;
mod row;
mod run;
mod runs;
mod scan;
mod select;
pub mod sizes;
mod statement_sums;
mod statements_running;
mod text;
mod ticks;
pub(crate) mod totals;
#[cfg(test)]
mod totals_tests;
pub(crate) mod totals_write;
mod value;
pub(crate) mod vocabulary;
mod way;

pub use bucket::Zone;
pub use context::{Context, Explained, Run};
pub use dimension::names as dimension_names;
pub use error::{CANCELED, INSUFFICIENT_PRIVILEGE, QueryError, QueryResult, UNDEFINED_FILE};
pub use explain::{EXPLAINED, explain, find_explained};
pub use functions::report::value as report;
pub use functions::structs::*;
pub use functions::{Function, Removal, find, list};
pub(crate) use functions::{REMOVED, removals};
pub use plain::{decode, plain_lines, plain_text, without_nul};
pub use request::{Argument, Emit, Given, Kind, Request};
pub use row::{Answer, Numeric, Row, Taken};
pub use run::{Question, run_now};
pub use statement_sums::middle_us;
pub use value::{Field, Sink, Type, Value};
pub use vocabulary::{
    LOAD_STATES, LOCK_MODES, NOT_COUNTED, Scope, cpu_key, wait_classes, wait_key,
};
