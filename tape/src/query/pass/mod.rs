//! Runs a question: `plan.rs` decides how the parts of its window are read, `read.rs`
//! reads them on several threads, `run.rs` starts again when a part is damaged.

pub mod batches;
pub mod explained;
pub mod first_pass;
pub mod plan;
pub mod read;
mod row_sums;
pub mod run;
