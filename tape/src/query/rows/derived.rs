//! Derived dimensions: their keys are computed from several columns of a part. A new one implements
//! [`Derived`] and joins the lists in `dimension.rs` and `catalog/derived.h`. If a key follows from
//! an entry of a dictionary, all parts of a file share the keys. The codes are then a
//! `Codes::Lookup` by the column of `run` that refers to the entry. Example: `waits.rs`, whose
//! `Codes::Wait` has a second lookup by the kind of CPU activity. If a key changes from tick to
//! tick, the dimension cuts the runs and has a code for each piece (`root_blocker.rs`).

use super::keys::{Keys, View};
use super::runs::Runs;
use crate::format::part::Part;
use crate::query::value::error::QueryResult;
use std::fmt;

/// A dimension that is computed.
pub trait Derived: Sync {
    /// Name of the argument.
    fn name(&self) -> &'static str;

    /// True if keys are numbers.
    fn is_number(&self) -> bool;

    /// True if a text is a key although keys are numbers, such as `(cycle)`.
    fn is_named_key(&self, _text: &str) -> bool {
        false
    }

    /// True if all parts of a file share the keys.
    fn is_shared(&self) -> bool;

    /// Upper limit of the number of keys in a part, by the size of its dictionaries.
    fn rows(&self, part: &Part) -> usize;

    /// Table and name of the columns that determine the keys, except the texts of names.
    fn columns(&self) -> &'static [(&'static str, &'static str)];

    /// Cuts the pieces of a part's runs where the key changes within one. `None` if the key of a
    /// run never changes.
    ///
    /// # Errors
    /// A column could not be read.
    fn cut(&self, _view: &View, _runs: &Runs) -> QueryResult<Option<Runs>> {
        Ok(None)
    }

    /// The key of every piece of a part's runs.
    ///
    /// # Errors
    /// A column could not be read.
    fn keys(&self, view: &View, runs: &Runs) -> QueryResult<Keys>;
}

impl fmt::Debug for dyn Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for dyn Derived {
    fn eq(&self, other: &dyn Derived) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Derived {}
