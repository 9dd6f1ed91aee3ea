//! The meaning of the bytes (`docs/format.md`): frames, logs, sealed files, schema, tables. Uses
//! `files/`. It does not know the files of a directory, nor who reads them.

pub(crate) mod bytes;
pub(crate) mod codec;
pub(crate) mod coding;
pub(crate) mod entry;
pub(crate) mod footer;
#[cfg(test)]
pub(crate) mod footer_tests;
pub mod frame;
pub(crate) mod frame_summary;
pub mod hello;
pub mod ingest;
pub(crate) mod last_calls;
pub mod log;
pub(crate) mod noting;
pub(crate) mod numbers;
pub(crate) mod packs;
pub(crate) mod pages;
pub mod part;
pub mod part_builder;
pub mod pipe;
pub mod runs;
pub mod schema;
pub mod sealed_write;
pub mod section;
pub(crate) mod starts;
pub(crate) mod sums;
pub(crate) mod table;
pub(crate) mod totals;
