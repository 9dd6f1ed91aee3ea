//! A question and its answer: the surroundings (`context.rs`), the arguments
//! (`request.rs`), the rows (`row.rs`), and the damage that an answer leaves out.

pub mod context;
pub mod damage;
pub mod request;
pub mod row;
