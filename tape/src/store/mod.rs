//! The files of a directory that count, and their contents: snapshots, tapes that follow a
//! directory, decoded columns. Uses `format/` and `files/`; `write/` and `query/` read through it.

pub mod cache;
pub(crate) mod chunks;
pub(crate) mod live;
pub(crate) mod nodes;
pub mod open;
pub mod sealed_read;
pub mod snapshot;
pub mod tape;
