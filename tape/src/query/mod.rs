//! Answers questions about the history. [`run`] calls a function of `functions/`; the steps of a
//! question are folders. Each folder uses only the folders above it:
//! - `value/`: values, times, numbers, and the words of PostgreSQL;
//! - `ask/`: a request, its surroundings and its rows;
//! - `rows/`: checks the arguments, and finds the rows that match and their keys;
//! - `sums/`: adds rows up by key and bucket; totals are another source of the same sums;
//! - `pass/`: plans how parts are read, and reads them;
//! - `functions/`: one file for each function.
//!
//! Programs and `write/` call this folder, and it uses `store/` and below.
//! `tools/check-house.sh` checks the order of folders, and that the modules of a folder
//! form no circle.
//!
//! Nothing is approximated: sums are integers, and only printed numbers are rounded.

mod ask;
#[cfg(test)]
mod cancel_tests;
#[cfg(test)]
mod damage_tests;
mod explain;
#[cfg(test)]
mod explain_tests;
mod functions;
pub mod inspect;
mod pass;
mod rows;
pub mod sizes;
pub(crate) mod sums;
#[cfg(test)]
mod totals_tests;
pub(crate) mod value;
#[cfg(test)]
mod weights_tests;

pub use ask::context::{Context, Explained, Run};
pub use ask::request::{Argument, Emit, Given, Kind, Request};
pub use ask::row::{Answer, Numeric, Row, Taken};
pub use explain::explain;
pub use functions::report::value as report;
pub use functions::structs::*;
pub use functions::{Described as ChangeRule, LONGEST_WITH_CAUSES, RULES as CHANGE_RULES};
pub use functions::{Function, Removal, find, list};
pub(crate) use functions::{REMOVED, removals};
pub use pass::run::{Question, run_now};
pub use rows::dimension::names as dimension_names;
pub use rows::tags::{in_one_filter as tags_in_one_filter, key_of as tag_key};
pub use sums::intervals::middle_us;
pub use value::bucket::Zone;
pub use value::error::{CANCELED, INSUFFICIENT_PRIVILEGE, QueryError, QueryResult, UNDEFINED_FILE};
pub use value::plain::{decode, plain_lines, plain_text, without_nul};
pub use value::sink::{Field, Fields, Sink, Type, Value};
pub use value::vocabulary::{
    LOAD_STATES, LOCK_MODES, NOT_COUNTED, Scope, cpu_key, has_relation, wait_classes, wait_key,
};
pub use value::{bucket, filter, json};
