//! Converts errors of a connection to errors of a question.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use tacho_tape::query::{CANCELED, QueryError};

/// SQLSTATE of a failure whose own code is invalid, or is one more than [`MOST`].
const INTERNAL: &str = "XX000";
/// SQLSTATE of a server that does not answer.
const UNREACHABLE: &str = "08001";
/// Maximum number of different SQLSTATEs that are kept; PostgreSQL has fewer than three hundred.
const MOST: usize = 1_000;

/// An error with the server's details.
pub fn to_query_error(error: tacho_dsn::Error) -> QueryError {
    let mut said = QueryError::new(sqlstate(&error.code), error.message);
    said.detail = error.detail;
    said.hint = error.hint;
    said
}

/// The error of a question. A question cancelled here gets the same error as in
/// other sources.
pub fn of_question(error: tacho_dsn::Error, is_canceled: bool) -> QueryError {
    match error.code == CANCELED && is_canceled {
        true => QueryError::canceled(),
        false => to_query_error(error),
    }
}

/// The error of an attempt to connect. If time is up here, the server does not
/// answer at all.
pub fn of_connection(error: tacho_dsn::Error, is_canceled: bool) -> QueryError {
    let mut error = of_question(error, is_canceled);
    if error.sqlstate == CANCELED && !is_canceled {
        error.sqlstate = UNREACHABLE;
    }
    error
}

/// The code as a text that lives as long as the program. Each code is kept once.
fn sqlstate(code: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(code) {
        return known;
    }
    let is_code = code.len() == 5 && code.bytes().all(|b| b.is_ascii_alphanumeric());
    if !is_code || known.len() >= MOST {
        return INTERNAL;
    }
    let kept: &'static str = Box::leak(code.to_string().into_boxed_str());
    known.insert(kept);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_sqlstate_of_the_server_is_kept() {
        assert_eq!(sqlstate("42P01"), "42P01");
        assert!(std::ptr::eq(sqlstate("42P01"), sqlstate("42P01")));
        assert_eq!(sqlstate("a\u{e9}bc"), INTERNAL);
        assert_eq!(sqlstate("42P011"), INTERNAL);
    }
}
