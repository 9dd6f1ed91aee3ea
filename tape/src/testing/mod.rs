//! Test support, also for tests of other crates: random load, a storage in memory that fails on
//! demand, fuzzing.

mod answer;
mod arguments;
pub mod fuzz;
#[cfg(test)]
pub(crate) mod fuzz_tests;
mod generate;
pub mod memory;
#[cfg(test)]
mod proof_tests;
pub mod repeat;

pub use answer::Answer;
pub use arguments::{Arguments, run, run_now};
pub use generate::*;
