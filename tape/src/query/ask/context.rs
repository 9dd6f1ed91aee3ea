//! What a function answers from: the surroundings of a question and the history.

use super::damage::Damage;
use crate::format::schema::Schema;
use crate::query::value::bucket::Zone;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::sink::Value;
use crate::store::snapshot::Snapshot;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The surroundings of a question: everything except the arguments of its function.
#[derive(Clone)]
pub struct Context<'a> {
    /// The tables, columns and labels known (`catalog/samples.h`).
    pub catalog: &'a Schema,
    /// The present: default of `until`, and where a later one is cut. µs.
    pub now_us: i64,
    /// Aligns buckets to local midnights.
    pub zone: Option<&'a (dyn Zone + Sync)>,
    /// Set when the question shall end.
    pub cancel: &'a AtomicBool,
    /// Without `node`, the one the directory itself belongs to is meant, also
    /// when another was written later.
    pub at_home: bool,
    /// Only sessions of this role, and only texts it ran.
    pub owner: Option<String>,
    /// Texts of queries are answered; off where nobody shall read them.
    pub texts: bool,
    /// Totals of files are used where they answer; off to prove them.
    pub totals: bool,
    /// Keys of dictionaries of at most so many entries all get cells in one
    /// pass; of others those that are printed, in a second one.
    pub few_keys: usize,
    /// Bytes of memory the process may use.
    pub memory_bytes: Option<u64>,
    /// Called with the number of pieces that were read and that there are; by any
    /// thread.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
    /// Threads that read parts.
    pub threads: usize,
    /// Turns bytes in an encoding (PostgreSQL id) into text.
    pub decode: fn(i64, &[u8]) -> String,
}

/// The plans of a question as rows (`explained.rs` makes them).
#[derive(Default)]
pub struct Explained(Mutex<Plans>);

#[derive(Default)]
pub struct Plans {
    /// How many windows would be scanned.
    pub scans: i64,
    /// Rows of what [`crate::query::explain()`] prints.
    pub rows: Vec<Vec<Value>>,
}

impl Explained {
    /// The plans so far.
    pub fn state(&self) -> MutexGuard<'_, Plans> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The question is asked anew.
    pub fn forget(&self) {
        *self.state() = Plans::default();
    }

    /// The rows.
    pub fn into_rows(self) -> Vec<Vec<Value>> {
        let plans = self.0.into_inner();
        plans.unwrap_or_else(PoisonError::into_inner).rows
    }
}

/// Cells of so many keys are quicker than another pass.
const FEW_KEYS: usize = 256;

/// The flag of questions that nobody ends.
static NEVER: AtomicBool = AtomicBool::new(false);

impl<'a> Context<'a> {
    /// Surroundings with every default; nobody ends the question.
    pub fn new(catalog: &'a Schema, now_us: i64) -> Self {
        Context {
            catalog,
            now_us,
            zone: None,
            cancel: &NEVER,
            at_home: false,
            owner: None,
            texts: true,
            totals: true,
            few_keys: FEW_KEYS,
            memory_bytes: None,
            progress: None,
            threads: 1,
            decode: crate::query::value::plain::decode,
        }
    }
}

/// One attempt to answer a question. Every function takes a `Run` and its request.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The surroundings.
    pub context: &'a Context<'a>,
    /// The history.
    pub store: &'a Snapshot,
    /// The damage that was met.
    pub(crate) damage: &'a Damage,
    /// Takes the plans instead of reading the window.
    pub(crate) explained: Option<&'a Explained>,
}

impl Run<'_> {
    /// Ends the question when its flag is set.
    pub fn check_cancel(&self) -> QueryResult<()> {
        match self.cancel.load(Ordering::Relaxed) {
            true => Err(QueryError::canceled()),
            false => Ok(()),
        }
    }
}

impl<'a> Deref for Run<'a> {
    type Target = Context<'a>;

    fn deref(&self) -> &Context<'a> {
        self.context
    }
}
