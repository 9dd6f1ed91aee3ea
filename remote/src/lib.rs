//! Servers behind connections as a [`tacho_source::Source`]: libpq calls the
//! reader functions of the extension or the SQL edition. [`SourceOptions`] has the
//! command line options that name sources. This is a crate of its own, because
//! `tacho-source` is part of the program that the server starts, which does not
//! need libpq.

mod address;
mod call;
mod edition;
mod error;
mod pool;
mod server;
mod sources;
mod value;

pub use server::Remote;
pub use sources::{SourceOptions, Sources};
