//! Finds rows: `parse.rs` checks the arguments, `scan.rs` collects the parts of the window,
//! `wait_names.rs` completes wait events by them, `select.rs` finds the runs that match, `group.rs` numbers their keys.

pub mod blockers;
pub mod derived;
pub mod dimension;
pub mod empty;
pub mod group;
pub mod hidden;
pub mod integers;
pub mod keys;
pub mod parse;
pub mod register;
pub mod relations;
pub mod root_blocker;
pub mod runs;
pub mod scan;
pub mod select;
pub mod text;
pub mod ticks;
pub mod wait_names;
pub mod waits;
