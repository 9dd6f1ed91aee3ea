//! The history files of tacho: frames, logs, sealed files, recovery, and reading all of them. Only
//! `query/value/vocabulary.rs` and `locate.rs` know PostgreSQL. `docs/format.md` is the only
//! description of the bytes.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod crc;
pub mod error;
pub mod fast;
pub mod files;
pub mod format;
pub mod locate;
pub mod query;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod write;

pub use error::{Error, Result};
pub use format::part::{Identity, Part, PartInfo};
pub use format::part_builder::PartBuilder;
pub use format::schema::Schema;
pub use format::table::{BytesColumn, Column};
pub use store::cache::Shared;
pub use store::snapshot::{Damage, NodeInfo, Snapshot};
pub use store::tape::Tape;
