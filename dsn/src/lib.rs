//! Connections to PostgreSQL through libpq itself. Connection strings,
//! environment, service files, password files, every `sslmode` and lists of
//! hosts therefore mean the same as in psql. No wait is endless: every caller
//! sets a time, and can cancel earlier.
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
