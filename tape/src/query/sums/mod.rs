//! Adds rows up: `measure.rs` from samples, `totals.rs` from the totals of files,
//! `statement_sums.rs` from the counters of statements (`counters.rs`; `executions.rs` has their
//! durations), `statements_running.rs` from the
//! samples of statements that have not ended, `plan_sums.rs` from the counters of plans,
//! `plans_seen.rs` from the samples of their executions and `plan_turns.rs` from both.
//! `intervals.rs` has the rules of their intervals.

pub mod cells;
pub mod choice;
pub mod closed_buckets;
pub mod counters;
pub mod executions;
pub mod intervals;
pub mod measure;
pub mod plan_sums;
pub mod plan_turns;
pub mod plans_seen;
pub mod statement_sums;
pub mod statements_running;
pub mod table_sums;
pub mod totals;
pub mod totals_write;
pub mod way;
