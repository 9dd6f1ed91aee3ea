//! Servers that one has a connection to as a [`tacho_source::Source`]: the
//! reader functions of the extension or of the SQL edition are asked through
//! libpq. With it stands what programs have on their command lines to say where
//! answers come from ([`Places`]). A crate of its own, because `tacho-source` is
//! part of the program that the server starts, which has no use for libpq.

mod address;
mod call;
mod edition;
mod error;
mod pool;
mod server;
mod sources;
mod value;

pub use server::Remote;
pub use sources::{Places, Sources};
