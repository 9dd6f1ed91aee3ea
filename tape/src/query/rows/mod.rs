//! Finds rows. `parse.rs` checks the arguments, and `scan.rs` collects the parts of the window.
//! `wait_names.rs` completes the names of wait events in filters by these parts. `select.rs` finds
//! the runs that match, and `group.rs` numbers their keys.

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
pub mod tags;
pub mod text;
pub mod ticks;
pub mod wait_names;
pub mod waits;
