//! Adds rows up:
//! - `measure.rs` adds up samples, `totals.rs` the totals of files (`totals_by_group.rs`: of
//!   dimensions with many keys).
//! - `statement_sums.rs` adds up the counters of statements (`counters.rs`; `executions.rs` has
//!   their durations).
//! - `statements_running.rs` adds up the samples of statements that have not ended.
//! - `plan_sums.rs` adds up the counters of plans. `plans_seen.rs` finds plans in the samples of
//!   executions, and `plan_turns.rs` uses both.
//! - `table_sums.rs` adds up the counters of tables and indexes.
//! - `relation_states.rs` has sizes and counters of tables and indexes.
//! - `error_sums.rs` adds up the errors of statements by SQLSTATE.
//! - `intervals.rs` has the rules of the intervals of counters.

pub mod cells;
pub mod choice;
pub mod closed_buckets;
pub mod counters;
pub mod error_sums;
pub mod executions;
pub mod intervals;
pub mod measure;
pub mod plan_sums;
pub mod plan_turns;
pub mod plans_seen;
pub mod relation_states;
pub mod statement_sums;
pub mod statements_running;
pub mod table_sums;
pub mod totals;
pub mod totals_by_group;
pub mod totals_read;
pub mod totals_write;
pub mod way;
