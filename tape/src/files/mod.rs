//! The directory of a tape and its files, as bytes: the storage behind a trait, names, the file
//! `node`, descriptors. Every module may use it; it uses only `error`.

pub mod directory;
pub mod lock;
pub mod node;
pub(crate) mod open_files;
pub mod shipped;
pub mod storage;
