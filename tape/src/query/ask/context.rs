//! The surroundings of a question and the history that answers it.

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
    /// The known tables, columns and labels (`catalog/samples.h`).
    pub catalog: &'a Schema,
    /// The current time in µs since 1970: default of `until`, and the latest `until` that is used.
    pub now_us: i64,
    /// Aligns buckets to this zone's midnights.
    pub zone: Option<&'a (dyn Zone + Sync)>,
    /// Set to end the question.
    pub cancel: &'a AtomicBool,
    /// If true, a question without `node` is about the node that the directory belongs to, even if
    /// another node wrote later.
    pub at_home: bool,
    /// If set: only sessions of this role, and only query texts that it ran.
    pub owner: Option<String>,
    /// True if answers contain query texts. Off if the caller may not read them.
    pub texts: bool,
    /// True if the totals in files are used where they suffice. Off in tests that compare both
    /// ways.
    pub totals: bool,
    /// If a dictionary has at most this many entries, one pass makes cells for all its keys. For a
    /// larger one, a second pass makes cells only for the printed keys.
    pub few_keys: usize,
    /// Memory limit of the process in bytes.
    pub memory_bytes: Option<u64>,
    /// Called by any thread with the number of work items done so far and the number of all work
    /// items. A work item is a part, or the totals of a file; in two passes it counts twice.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
    /// Number of threads that read parts.
    pub threads: usize,
    /// Turns bytes in an encoding (PostgreSQL's id) into text.
    pub decode: fn(i64, &[u8]) -> String,
}

/// The plans of a question as rows; `explained.rs` makes them.
#[derive(Default)]
pub struct Explained(Mutex<Plans>);

#[derive(Default)]
pub struct Plans {
    /// Number of windows that a real run would scan.
    pub scans: i64,
    /// Rows that [`crate::query::explain()`] prints.
    pub rows: Vec<Vec<Value>>,
}

impl Explained {
    /// The plans so far.
    pub fn state(&self) -> MutexGuard<'_, Plans> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the plans because the question starts again.
    pub fn forget(&self) {
        *self.state() = Plans::default();
    }

    /// The rows of the plans.
    pub fn into_rows(self) -> Vec<Vec<Value>> {
        let plans = self.0.into_inner();
        plans.unwrap_or_else(PoisonError::into_inner).rows
    }
}

/// Up to this many keys, cells for all keys are faster than a second pass.
const FEW_KEYS: usize = 256;

/// Cancel flag for questions that have none of their own.
static NEVER: AtomicBool = AtomicBool::new(false);

impl<'a> Context<'a> {
    /// Surroundings with every default and a cancel flag that is never set.
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

    /// Fails if the cancel flag is set.
    pub fn check_cancel(&self) -> QueryResult<()> {
        match self.cancel.load(Ordering::Relaxed) {
            true => Err(QueryError::canceled()),
            false => Ok(()),
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
    /// The damage found so far.
    pub(crate) damage: &'a Damage,
    /// If set: takes the plans, and nothing reads the window.
    pub(crate) explained: Option<&'a Explained>,
}

impl<'a> Deref for Run<'a> {
    type Target = Context<'a>;

    fn deref(&self) -> &Context<'a> {
        self.context
    }
}
