//! The history files of tacho: frames, log, sealed files, recovery, and the
//! reading of all of them. Knows no PostgreSQL. `docs/format.md` is the only
//! description of the bytes.
#![forbid(unsafe_code)]

pub mod background;
pub mod block;
pub mod block_read;
pub mod build;
pub mod cache;
pub mod carry;
mod codec;
pub mod error;
pub mod fast;
pub mod files;
mod footer;
#[cfg(test)]
mod footer_tests;
pub mod frame;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
#[cfg(test)]
mod fuzz_tests;
pub mod hello;
mod incoming;
pub mod ingest;
pub mod inspect;
mod live;
pub mod locate;
pub mod log;
mod markers;
pub mod marks;
#[cfg(any(test, feature = "testing"))]
pub mod memory;
pub mod merge;
#[cfg(test)]
mod merge_tests;
mod nodes;
mod numbers;
mod packs;
mod pages;
pub mod part;
mod pause;
pub mod pipe;
#[cfg(test)]
mod proof_tests;
pub mod query;
pub mod recording;
pub mod recover;
mod removed;
pub mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(any(test, feature = "testing"))]
pub mod repeat;
pub mod retention;
pub mod runs;
pub mod schema;
pub mod seal;
pub mod section;
pub mod settings;
pub mod sizes;
pub mod snapshot;
mod space;
mod starts;
pub mod store;
mod sums;
mod table;
pub mod tape;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod texts;
#[cfg(test)]
mod texts_tests;
mod thin;
pub mod writer;
#[cfg(test)]
mod writer_tests;

pub use build::PartBuilder;
pub use cache::Shared;
pub use error::{Error, Result};
pub use part::{Identity, Part, PartInfo};
pub use schema::Schema;
pub use snapshot::{Damage, NodeInfo, Snapshot, Snapshot as Store};
pub use table::{BytesColumn, Column};
pub use tape::Tape;
