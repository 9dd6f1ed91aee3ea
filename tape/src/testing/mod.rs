//! For tests, those of other crates too: load made up, a storage in memory that
//! fails, fuzzing.

pub mod fuzz;
#[cfg(test)]
pub(crate) mod fuzz_tests;
mod generate;
pub mod memory;
#[cfg(test)]
mod proof_tests;
pub mod repeat;

pub use generate::*;
