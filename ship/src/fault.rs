//! Errors of an hour: the caller goes on without a part of the tape that cannot be read.

use parquet::errors::ParquetError;

/// Reason why the objects of an hour could not be made.
#[derive(Debug)]
pub enum Fault {
    /// The tape is damaged or could not be read.
    Tape(tacho_tape::Error),
    /// Something else.
    Other(String),
}

impl From<tacho_tape::Error> for Fault {
    fn from(error: tacho_tape::Error) -> Self {
        Fault::Tape(error)
    }
}

impl From<ParquetError> for Fault {
    fn from(error: ParquetError) -> Self {
        Fault::Other(format!("could not encode Parquet file: {error}"))
    }
}
