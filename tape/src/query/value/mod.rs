//! Values and how they are written: errors, times, buckets, exact numbers, texts, filters,
//! JSON, and the words of PostgreSQL.

pub mod bucket;
pub mod civil;
pub mod error;
pub mod filter;
pub mod json;
pub mod number;
pub mod plain;
pub mod sink;
pub mod sqlstate;
pub mod vocabulary;
