//! The codings of columns by number, and the code that several codings share: errors, row ranges and
//! buffers that are used again.

use crate::error::Error;
use crate::format::table::Column;
use pco::errors::PcoError;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// All rows have one number.
pub const CONSTANT: u8 = 1;
/// Numbers compressed with pco.
pub const PCO: u8 = 2;
/// Starts, stored relative to a base column (`docs/format.md`).
pub const STARTS: u8 = 3;
/// First ticks of runs, stored relative to the end of the session's run before.
pub const GAPS: u8 = 4;
/// Numbers stored as the difference to another column of the same row.
pub const OFFSET: u8 = 5;
/// Spans of rows with one number each.
pub const SPANS: u8 = 6;
/// A first number, and spans of rows with equal steps from row to row.
pub const STEPS: u8 = 7;
/// Numbers compressed with pco in pages that can be decoded one by one.
pub const PAGES: u8 = 8;
/// Numbers of variable length (`numbers.rs`).
pub const NUMBERS: u8 = 9;
/// Strings. Outside of packs they are compressed with zstd.
pub const STRINGS: u8 = 16;

pub(crate) fn broken(what: &str) -> Error {
    Error::damaged(format!("column has invalid {what}"))
}

pub(crate) fn not_packed(error: PcoError) -> Error {
    Error::damaged(error.to_string())
}

/// The wanted rows within a span or page that has `rows` rows from row `begin` on. They are counted
/// from its first row. Example: of 100 rows from row 300 on, the wanted rows 350..500 are 50..100.
pub(crate) fn overlap(begin: usize, rows: usize, wanted: &Range<usize>) -> Range<usize> {
    let first = wanted.start.saturating_sub(begin);
    first..wanted.end.saturating_sub(begin).min(rows).max(first)
}

/// Number of buffers kept for later columns. Fresh memory costs more than decoding into it.
const SPARE_BUFFERS: usize = 16;

thread_local! {
    static SPARE: RefCell<Vec<Vec<i64>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer for `rows` rows with arbitrary contents. It is the smallest kept buffer that is large
/// enough, so small columns leave the large buffers alone.
pub(crate) fn reused_buffer(rows: usize) -> Vec<i64> {
    SPARE.with_borrow_mut(|spare| {
        let sizes = spare.iter().map(Vec::capacity).enumerate();
        let best = sizes.min_by_key(|(_, room)| match room.checked_sub(rows) {
            Some(more) => more,
            None => usize::MAX - room,
        });
        best.map_or_else(Vec::new, |(at, _)| spare.swap_remove(at))
    })
}

/// Keeps the memory of a column without other users for the next column that this thread decodes.
pub(crate) fn recycle(column: Column) {
    if let Ok(values) = Arc::try_unwrap(column.0) {
        keep_buffer(values);
    }
}

pub(crate) fn keep_buffer(values: Vec<i64>) {
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < SPARE_BUFFERS {
            spare.push(values);
        }
    });
}
