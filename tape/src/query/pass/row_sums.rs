//! Sums of the weights by the rows of a dictionary. A part's pieces are added up once for all
//! dimensions that are columns of the same dictionary.
//!
//! Example: `application` and `username` are columns of table `session`. The sums by session answer
//! both.

use crate::query::rows::integers::{Code, Key, NULL, Number};
use crate::query::rows::keys::{Codes, Keys, View};
use crate::query::rows::select::Selected;
use crate::query::value::error::QueryResult;
use std::collections::HashMap;
use std::rc::Rc;

/// The sums of one part, by the column of `run` that refers to the dictionary.
#[derive(Default)]
pub(super) struct RowSums(HashMap<String, Vec<(Code, i64)>>);

impl RowSums {
    /// Forgets the sums of the last part.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The keys of a group with their sums; a key may occur several times. `None` unless the
    /// dimensions are columns of one dictionary. `sums` adds up the pieces by their numbers, which
    /// are below a width.
    pub fn of_group(
        &mut self,
        view: &View,
        selected: &Selected,
        dimensions: &[Rc<Keys>],
        numbers: &mut Vec<Number>,
        sums: impl FnOnce(&[Number], usize) -> Vec<(usize, i64)>,
    ) -> QueryResult<Option<Vec<(Key, i64)>>> {
        let Some((column, last)) = reference(dimensions) else {
            return Ok(None);
        };
        if !self.0.contains_key(column) {
            let pieces = selected.pieces.as_deref();
            let codes = &dimensions[0].codes;
            let number = |code: Code| Number::at(code.index());
            codes.of_pieces(view.part, &selected.runs, pieces, numbers, number)?;
            let found = sums(numbers, last.index() + 1).into_iter();
            let found = found.map(|(code, sum_ms)| (Code::at(code), sum_ms));
            self.0.insert(column.to_string(), found.collect());
        }
        let rows = &self.0[column];
        let codes: Vec<Code> = rows.iter().map(|(code, _)| *code).collect();
        let first = dimensions[0].ids(view, &codes)?;
        let second = match dimensions.get(1) {
            Some(second) => second.ids(view, &codes)?,
            None => vec![NULL; codes.len()],
        };
        let keys = first.into_iter().zip(second);
        let rows = rows.iter().map(|(_, sum_ms)| *sum_ms);
        Ok(Some(keys.zip(rows).collect()))
    }
}

/// The column of `run` that refers to the dictionary of all dimensions, and its last code.
fn reference(dimensions: &[Rc<Keys>]) -> Option<(&str, Code)> {
    let mut own = dimensions.iter().map(|keys| match &keys.codes {
        Codes::Reference { column, last } => Some((column.as_str(), *last)),
        _ => None,
    });
    let first = own.next()??;
    own.all(|other| other == Some(first)).then_some(first)
}
