//! Connections to PostgreSQL by libpq itself, so that connection strings,
//! environment, service files, password files, every `sslmode` and lists of
//! hosts mean what they mean to psql. Nothing here waits without an end: who
//! connects or asks says how long, and can be cancelled meanwhile.
#![deny(unsafe_code)]

mod connection;
mod error;
mod options;
mod password;
#[allow(unsafe_code)]
mod sys;

pub use connection::{Answer, Connection, Limit};
pub use error::{Error, Result};
pub use options::Options;
