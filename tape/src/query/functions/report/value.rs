//! The document as a value. `report` makes it and writes it as JSON; who shows it
//! reads that, also of a server of another version: a member that is not known is
//! left alone, one that is missing is absent.

pub use super::compat::{Compat, Covered, Figures, Largest};
pub use super::exact::{Hundredths, Id, Interval, Text, Time};

use super::exact::{self, Exact};
use crate::query::ask::row::Numeric;
use crate::query::functions::structs::*;
use crate::query::value::error::{QueryError, QueryResult};
use serde::{Deserialize, Serialize};

/// Describes a part whose members are columns of a function, in their order; what
/// it has beside them stands behind `and`.
macro_rules! part {
    (
        $(#[$doc:meta])* $part:ident of $row:ident { $($column:ident: $type:ident,)* }
        $(and { $($(#[$own_doc:meta])* $own:ident: $own_type:ty,)* })?
    ) => {
        $(#[$doc])*
        #[allow(missing_docs)]
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $part {
            $(pub $column: Option<exact::$type>,)*
            $($($(#[$own_doc])* pub $own: $own_type,)*)?
        }

        impl From<$row> for $part {
            fn from(row: $row) -> $part {
                $part {
                    $($column: row.$column.map(Into::into),)*
                    $($($own: Default::default(),)*)?
                }
            }
        }
    };
}

/// What the database was doing, and what had changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Document {
    /// What it is about.
    pub period: Period,
    /// The load of the window.
    pub load: Load,
    /// The load of the earlier window.
    pub load_before: Load,
    /// How much of the window was observed.
    pub coverage: Coverage,
    /// The load bucket by bucket.
    pub timeline: Timeline,
    /// The largest waits.
    pub waits: Vec<Key>,
    /// The largest queries.
    pub queries: Vec<Query>,
    /// The largest databases.
    pub databases: Vec<Key>,
    /// The largest users.
    pub users: Vec<Key>,
    /// The largest applications.
    pub applications: Vec<Key>,
    /// Who made others wait longest, of the whole server.
    pub blockers: Vec<Blocker>,
    /// Who waited for whom at the moment asked for; `None` without one.
    pub tree: Option<Vec<Waiter>>,
    /// Rows of that which are left out.
    pub tree_left_out: usize,
    /// What changed against the earlier window.
    pub changes: Changes,
    /// What explains the history, of the whole server.
    pub markers: Vec<Marker>,
    /// The keys of pg_ash's report; `None` when nothing was observed.
    pub compat: Option<Compat>,
    /// What is left out because it is damaged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
}

impl Document {
    /// The JSON that SQL has.
    pub(super) fn json(&self) -> QueryResult<String> {
        let mut json = Vec::new();
        let mut to = serde_json::Serializer::with_formatter(&mut json, Exact);
        let broken = |e: String| QueryError::new("XX000", format!("report is no JSON: {e}"));
        self.serialize(&mut to).map_err(|e| broken(e.to_string()))?;
        String::from_utf8(json).map_err(|e| broken(e.to_string()))
    }

    /// The value of the JSON of a server.
    ///
    /// # Errors
    /// It is no such document.
    pub fn parse(json: &str) -> QueryResult<Document> {
        let broken = |e| QueryError::new("XX000", format!("report is not JSON: {e}"));
        serde_json::from_str(json).map_err(broken)
    }
}

/// What a report is about, and what it is compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Period {
    /// The moment asked for.
    pub at: Option<Time>,
    /// Begin of the window.
    pub period_start: Option<Time>,
    /// Its end, exclusive.
    pub period_end: Option<Time>,
    /// What the earlier window is, in words.
    pub before: Option<Text>,
    /// Its begin.
    pub before_start: Option<Time>,
    /// Its end, exclusive.
    pub before_end: Option<Time>,
}

part! {
    /// The load of a window.
    Load of AasRow {
        source: Text,
        avg_aas: Numeric,
        peak_aas: Numeric,
        p99_aas: Numeric,
        peak_sessions: Int,
        backend_seconds: Numeric,
        vcpus: Numeric,
    }
}

part! {
    /// How much of a window was observed.
    Coverage of AasRow {
        ticks_expected: Int,
        ticks_observed: Int,
        ticks_failed: Int,
        coverage_pct: Numeric,
    } and {
        /// What was not, the longest first.
        gaps: Vec<Gap>,
    }
}

/// A time that was not observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gap {
    /// Its begin.
    pub since: Option<Time>,
    /// Its end.
    pub until: Option<Time>,
    /// Why.
    pub cause: Option<Text>,
}

/// Load by class of waits: keys once, then a number for each in a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timeline {
    /// Width of a bucket.
    pub bucket_seconds: Option<i64>,
    /// The largest classes.
    pub keys: Vec<Option<Text>>,
    /// The buckets of the window.
    pub buckets: Vec<Bucket>,
}

part! {
    /// A piece of the window.
    Bucket of TimelineRow {
        bucket_start: Time,
        avg_aas: Numeric,
        peak_sessions: Int,
        coverage_pct: Numeric,
    } and {
        /// The load of each key.
        by: Vec<Option<Numeric>>,
    }
}

part! {
    /// A wait, a database, a user or an application.
    Key of TopRow {
        key: Text,
        avg_aas: Numeric,
        peak_aas: Numeric,
        peak_sessions: Int,
        backend_seconds: Numeric,
        pct: Numeric,
    }
}

part! {
    /// A query.
    Query of TopRow {
        key: Text,
        query_text: Text,
        avg_aas: Numeric,
        peak_aas: Numeric,
        peak_sessions: Int,
        backend_seconds: Numeric,
        pct: Numeric,
    } and {
        /// What it waited for.
        waits: Vec<Wait>,
    }
}

/// A wait of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wait {
    /// The event.
    pub key: Option<Text>,
    /// Its load.
    pub avg_aas: Option<Numeric>,
}

part! {
    /// Who made others wait.
    Blocker of BlockingRow {
        kind: Text,
        pid: Int,
        backend_start: Time,
        prepared_gid: Text,
        database: Text,
        username: Text,
        application: Text,
        state: Text,
        xact_age: Interval,
        query_id: Id,
        query_text: Text,
        blocked_seconds: Numeric,
        waiters: Int,
        depth: Int,
        object: Text,
        lock_database: Int,
        lock_relation: Int,
        mode: Text,
        mode_held: Text,
        first_seen: Time,
        last_seen: Time,
    }
}

part! {
    /// Who waited, and for whom.
    Waiter of BlockingRow {
        tree: Text,
        level: Int,
        kind: Text,
        pid: Int,
        state: Text,
        xact_age: Interval,
        waited: Interval,
        via: Text,
        object: Text,
        lock_database: Int,
        lock_relation: Int,
        mode: Text,
        waiters: Int,
        query_text: Text,
    }
}

/// What changed against the earlier window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    /// The waits that did most.
    pub waits: Vec<Change>,
    /// The queries that did most.
    pub queries: Vec<Change>,
    /// Why the two cannot be compared without care.
    pub note: Option<Text>,
}

part! {
    /// A wait or a query in both windows.
    Change of CompareRow {
        key: Text,
        query_text: Text,
        change: Text,
        avg_delta: Numeric,
        avg_aas_1: Numeric,
        avg_aas_2: Numeric,
    }
}

part! {
    /// What explains the history.
    Marker of MarkersRow {
        marker_time: Time,
        kind: Text,
        period_start: Time,
        period_end: Time,
        detail: Text,
    }
}

/// What is left out because it is damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Damage {
    /// What it is.
    pub message: Option<Text>,
    /// Where.
    pub detail: Option<Text>,
}

impl From<&QueryError> for Damage {
    fn from(warning: &QueryError) -> Damage {
        Damage {
            message: Some(warning.message.as_str().into()),
            detail: Some(warning.detail.as_deref().unwrap_or_default().into()),
        }
    }
}
