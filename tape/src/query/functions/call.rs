//! What a function is called with.

use crate::query::error::{QueryError, QueryResult};
use crate::query::spec::Spec;
use crate::store::snapshot::Snapshot;
use std::sync::atomic::Ordering;

/// A call of a function.
pub struct Call<'a> {
    /// The question.
    pub spec: &'a Spec<'a>,
    /// The history.
    pub store: &'a Snapshot,
}

impl Call<'_> {
    /// Ends the question when it shall end.
    pub fn check_cancel(&self) -> QueryResult<()> {
        match self.spec.cancel.load(Ordering::Relaxed) {
            true => Err(QueryError::canceled()),
            false => Ok(()),
        }
    }
}
