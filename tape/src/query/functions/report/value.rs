//! The document as a value. `report` makes it and writes it as JSON. Programs that show it parse
//! that JSON, which may come from a server of another version: unknown members are ignored, missing
//! ones are `None` or empty.

pub use super::alarms::{Alarm, METRICS, Severity, alarms, disk_name};
pub use super::compat::{Compat, Covered, Figures, Largest};
pub use super::exact::{Hundredths, Id, Interval, Text, Time};

use super::exact::{self, Exact};
use crate::query::ask::row::Numeric;
use crate::query::functions::structs::*;
use crate::query::value::error::{QueryError, QueryResult};
use serde::{Deserialize, Serialize};

/// Describes a part whose members are columns of a function, in order. Members of its own follow
/// after `and`.
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

/// The load of the database in a window, and its changes against an earlier window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Document {
    /// The windows of the report.
    pub period: Period,
    /// The load of the window.
    pub load: Load,
    /// The load of the earlier window.
    pub load_before: Load,
    /// The observed share of the window.
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
    /// The blockers of the whole server that made others wait longest.
    pub blockers: Vec<Blocker>,
    /// The tree of waiters at the requested point in time; `None` without one.
    pub tree: Option<Vec<Waiter>>,
    /// Number of rows missing from `tree`.
    pub tree_left_out: usize,
    /// Changes against the earlier window.
    pub changes: Changes,
    /// Causes of a changed load, and the queries that changed; empty with filters.
    pub findings: Vec<Explanation>,
    /// Measurements of the server that are bad, the most urgent first; empty with filters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<Alarming>,
    /// Markers of the whole server, which explain the history.
    pub markers: Vec<Marker>,
    /// The keys of pg_ash's report; `None` if nothing was observed.
    pub compat: Option<Compat>,
    /// Warnings about damaged history that was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
}

impl Document {
    /// The JSON that the SQL function returns.
    pub(super) fn json(&self) -> QueryResult<String> {
        let mut json = Vec::new();
        let mut to = serde_json::Serializer::with_formatter(&mut json, Exact);
        let broken =
            |e: String| QueryError::new("XX000", format!("could not write report as JSON: {e}"));
        self.serialize(&mut to).map_err(|e| broken(e.to_string()))?;
        String::from_utf8(json).map_err(|e| broken(e.to_string()))
    }

    /// Parses the JSON of a server.
    ///
    /// # Errors
    /// The text is not such a document.
    pub fn parse(json: &str) -> QueryResult<Document> {
        let broken = |e| QueryError::new("XX000", format!("could not parse report: {e}"));
        serde_json::from_str(json).map_err(broken)
    }
}

/// The window of a report and the earlier window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Period {
    /// The requested point in time.
    pub at: Option<Time>,
    /// Start of the window.
    pub period_start: Option<Time>,
    /// End of the window, exclusive.
    pub period_end: Option<Time>,
    /// Relation of the earlier window, such as "the same time the day before".
    pub before: Option<Text>,
    /// Start of the earlier window.
    pub before_start: Option<Time>,
    /// End of the earlier window, exclusive.
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
    /// The observed share of a window.
    Coverage of AasRow {
        ticks_expected: Int,
        ticks_observed: Int,
        ticks_failed: Int,
        coverage_pct: Numeric,
    } and {
        /// The gaps, longest first.
        gaps: Vec<Gap>,
    }
}

/// A time that was not observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gap {
    /// Start of the gap.
    pub since: Option<Time>,
    /// End of the gap.
    pub until: Option<Time>,
    /// Cause of the gap.
    pub cause: Option<Text>,
}

/// Load by class of waits. The keys are listed once; each bucket has one number for each key.
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
    /// A bucket of the window.
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
        /// The waits of the query.
        waits: Vec<Wait>,
    }
}

/// A wait of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wait {
    /// The event.
    pub key: Option<Text>,
    /// Load of the query in this wait event.
    pub avg_aas: Option<Numeric>,
}

part! {
    /// A session or prepared transaction that blocked others.
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
    /// A node of the tree: a waiter, or the head of a queue.
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

/// Changes against the earlier window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    /// The waits with the largest changes.
    pub waits: Vec<Change>,
    /// The queries with the largest changes.
    pub queries: Vec<Change>,
    /// The reason why the two windows are hard to compare, if there is one.
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
    /// A row of `changes`: a cause, a note, or the difference of a key.
    Explanation of ChangesRow {
        kind: Text,
        rule: Text,
        dimension: Text,
        key: Text,
        query_text: Text,
        started: Time,
        ended: Time,
        before: Numeric,
        after: Numeric,
        difference: Numeric,
        pct: Numeric,
        explains: Text,
        explanation: Text,
        next: Text,
        before_start: Time,
        before_end: Time,
        before_coverage_pct: Numeric,
    }
}

part! {
    /// A marker, which explains the history.
    Marker of MarkersRow {
        marker_time: Time,
        kind: Text,
        period_start: Time,
        period_end: Time,
        detail: Text,
    }
}

/// A measurement of the server that is bad.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Alarming {
    /// `critical` or `warning`.
    pub severity: Option<Text>,
    /// The metric of `server_history` that shows it.
    pub metric: Option<Text>,
    /// The sentence, with the figure, without a full stop.
    pub text: Option<Text>,
}

impl From<&Alarm> for Alarming {
    fn from(alarm: &Alarm) -> Alarming {
        Alarming {
            severity: Some(alarm.severity.name().into()),
            metric: Some(alarm.metric.into()),
            text: Some(alarm.text.as_str().into()),
        }
    }
}

/// A warning about damaged history that was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Damage {
    /// Primary line of the warning.
    pub message: Option<Text>,
    /// Damaged places.
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
