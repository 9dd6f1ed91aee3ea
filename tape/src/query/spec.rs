//! What is asked, and where the answer goes.

use super::bucket::Zone;
use super::damage::Damage;
use super::error::{QueryError, QueryResult};
use crate::format::schema::Schema;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// In what surroundings a question is asked: all of it but what the function
/// takes as arguments.
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
    /// Told how many pieces of how many are read; by any thread.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
    /// Gets the plans, and nothing of the window is read.
    pub(crate) explained: Option<&'a Explained>,
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
    /// Rows of what [`super::explain()`] prints.
    pub rows: Vec<Vec<Value>>,
}

impl Explained {
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
            explained: None,
            threads: 1,
            decode: super::plain::decode,
        }
    }
}

/// A question as functions read it: what a request says (`request.rs`), and its
/// surroundings. Times and widths are µs; absent values take their defaults.
#[derive(Clone)]
pub struct Spec<'a> {
    /// The surroundings.
    pub context: Context<'a>,
    /// A moment, for a function that takes one instead of a window.
    pub at_us: Option<i64>,
    /// Begin of the window; default one hour before its end.
    pub since_us: Option<i64>,
    /// End of the window, exclusive.
    pub until_us: Option<i64>,
    /// Begin and end of the earlier one of two windows.
    pub before: (Option<i64>, Option<i64>),
    /// Width of a bucket.
    pub bucket_us: Option<i64>,
    /// `all`, a node id in hexadecimal, or the node last written.
    pub node: Option<String>,
    /// `load`, `foreground` or `all`.
    pub scope: Option<String>,
    /// Parallel workers are left out.
    pub by_leader: bool,
    /// Dimension and filter text.
    pub filters: Vec<(String, String)>,
    /// Filter of the metrics of `server_history`.
    pub metric: Option<String>,
    /// Filter of what they belong to: databases, replicas, slots, kinds of I/O.
    pub object: Option<String>,
    /// What `top` groups by.
    pub dimension: Option<String>,
    /// What is split.
    pub by: Option<String>,
    /// `avg`, `peak`, `p99` or `sessions`.
    pub order_by: Option<String>,
    /// Most keys or rows; `None` is all.
    pub n: Option<i64>,
    /// Columns of a chart's bars.
    pub width: Option<i64>,
    /// A chart with colours.
    pub color: bool,
    /// A chart without block characters.
    pub ascii: bool,
    /// What was found damaged; of each question anew.
    pub(crate) damage: Damage,
}

impl<'a> Spec<'a> {
    /// A question with every default.
    pub fn new(catalog: &'a Schema, now_us: i64) -> Self {
        Spec::of(Context::new(catalog, now_us))
    }

    /// A question that says nothing, in surroundings.
    pub fn of(context: Context<'a>) -> Self {
        Spec {
            context,
            at_us: None,
            since_us: None,
            until_us: None,
            before: (None, None),
            bucket_us: None,
            node: None,
            scope: None,
            by_leader: false,
            filters: Vec::new(),
            metric: None,
            object: None,
            dimension: None,
            by: None,
            order_by: None,
            n: None,
            width: None,
            color: false,
            ascii: false,
            damage: Damage::default(),
        }
    }
}

impl<'a> Deref for Spec<'a> {
    type Target = Context<'a>;

    fn deref(&self) -> &Context<'a> {
        &self.context
    }
}

impl DerefMut for Spec<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.context
    }
}

/// One field of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing is known.
    Null,
    /// Text in UTF-8 without NUL, shared by the rows that have it.
    Text(Arc<str>),
    /// A number.
    Int(i64),
    /// A number of 64 bits that names something: in JSON a text, because many
    /// readers of JSON keep 53 bits.
    Id(i64),
    /// True or false.
    Bool(bool),
    /// Ten-thousandths.
    Numeric(i128),
    /// µs since 1970 UTC.
    Time(i64),
    /// µs.
    Interval(i64),
}

impl Value {
    /// A text or null.
    pub fn text(text: Option<impl Into<Arc<str>>>) -> Value {
        text.map_or(Value::Null, |t| Value::Text(t.into()))
    }

    /// An identifier or null.
    pub fn id(number: Option<i64>) -> Value {
        number.map_or(Value::Null, Value::Id)
    }

    /// A number or null.
    pub fn int(number: Option<i64>) -> Value {
        number.map_or(Value::Null, Value::Int)
    }
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `text`
    Text,
    /// `bigint` or `int`
    Int,
    /// A `bigint` that names something, see [`Value::Id`].
    Id,
    /// `boolean`
    Bool,
    /// `numeric` with four decimals
    Numeric,
    /// `timestamptz`
    Time,
    /// `interval`
    Interval,
}

/// Name and type of a column of an answer.
pub type Field = (&'static str, Type);

/// Takes the rows of an answer, in order.
pub trait Sink {
    /// Called once, before the first row.
    ///
    /// # Errors
    /// The output could not be written.
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()>;

    /// One row, as many values as fields.
    ///
    /// # Errors
    /// The output could not be written.
    fn row(&mut self, values: Vec<Value>) -> QueryResult<()>;

    /// What is to be known about the answer, behind its last row.
    fn notice(&mut self, _notice: QueryError) {}
}
