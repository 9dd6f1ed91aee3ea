//! Adds rows up: `measure.rs` from samples, `totals.rs` from the totals of files,
//! `statement_sums.rs` from the counters of statements, `statements_running.rs` from the
//! samples of statements that have not ended.

pub mod cells;
pub mod choice;
pub mod closed_buckets;
pub mod measure;
pub mod statement_sums;
pub mod statements_running;
pub mod totals;
pub mod totals_write;
pub mod way;
