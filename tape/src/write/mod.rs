//! Changes to a directory: the writer, sealing, merging, thinning, retention, recovery, repair.
//! Uses `store/` and below; only programs call it.

pub mod background;
pub(crate) mod claim;
pub mod clock;
pub mod live_definitions;
pub(crate) mod markers;
pub mod marks;
pub mod merge;
#[cfg(test)]
pub(crate) mod merge_tests;
pub mod message;
pub(crate) mod pause;
pub mod recording;
pub mod recover;
pub mod removed;
pub mod repair;
#[cfg(test)]
mod repair_tests;
pub mod retention;
pub mod seal;
pub mod settings;
pub(crate) mod space;
pub(crate) mod texts;
#[cfg(test)]
mod texts_tests;
pub(crate) mod thin;
pub(crate) mod unshipped;
pub mod writer;
#[cfg(test)]
mod writer_tests;
