//! Markers that the writer itself puts into the history, in define frames.

use crate::format::frame::{DEFINE, FrameBuilder, Header};
use crate::format::schema::{ColumnType, Schema};
use crate::format::section::Values;
use crate::format::section::to_stored;
use crate::query::REMOVED;

/// Kind of the users' markers.
pub const MARK: &str = "mark";

/// First id of names that the writer defines itself.
const OWN_IDS: u64 = 1 << 63;
/// PostgreSQL's id of UTF-8.
const UTF8: u64 = 6;

/// A marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    kind: &'static str,
    time_ms: i64,
    since_ms: i64,
    until_ms: i64,
    detail: String,
}

impl Marker {
    pub(crate) fn gap(since_ms: i64, until_ms: i64, detail: String) -> Self {
        Marker {
            kind: "gap",
            time_ms: until_ms,
            since_ms,
            until_ms,
            detail,
        }
    }

    pub(crate) fn new_node(slot_ms: i64, why: String) -> Self {
        Marker {
            kind: "new node",
            time_ms: slot_ms,
            since_ms: slot_ms,
            until_ms: slot_ms,
            detail: why,
        }
    }

    pub(crate) fn clock_step(slot_ms: i64, step_ms: i64) -> Self {
        let seconds = step_ms.saturating_abs() / 1_000;
        let way = if step_ms > 0 { "forward" } else { "back" };
        Marker {
            kind: "clock step",
            time_ms: slot_ms,
            since_ms: slot_ms.saturating_sub(step_ms),
            until_ms: slot_ms,
            detail: format!("the clock was set {way} by {seconds} s"),
        }
    }

    /// The history of this time was removed.
    pub(crate) fn removed(time_ms: i64, (since_ms, until_ms): (i64, i64), detail: String) -> Self {
        Marker {
            kind: REMOVED,
            time_ms,
            since_ms,
            until_ms,
            detail,
        }
    }

    /// A marker that a user wrote.
    pub(crate) fn mark(time_ms: i64, text: String) -> Self {
        Marker {
            kind: MARK,
            time_ms,
            since_ms: 0,
            until_ms: 0,
            detail: text,
        }
    }

    pub(crate) fn pause(since_ms: i64, until_ms: i64, detail: &str) -> [Self; 2] {
        let marker = |kind, time_ms| Marker {
            kind,
            time_ms,
            since_ms,
            until_ms,
            detail: detail.into(),
        };
        [
            marker("recording paused", since_ms),
            marker("recording resumed", until_ms),
        ]
    }
}

/// A define frame with these markers. It is empty without markers, or if the schema lacks their
/// kind.
pub(crate) fn define_markers(schema: &Schema, markers: &[Marker], before: &Header) -> Vec<u8> {
    let known = |m: &&Marker| schema.value("marker", m.kind).is_some();
    let markers: Vec<&Marker> = markers.iter().filter(known).collect();
    let (Some(names), Some(table)) = (schema.table("name"), schema.table("marker")) else {
        return Vec::new();
    };
    if markers.is_empty() {
        return Vec::new();
    }
    // Details differ, so each is a name of its own. With the sequence of the frame, its id is used
    // only once in a life of the sampler.
    let id = |index: usize| OWN_IDS | (before.sequence << 8) | index as u64;
    let mut frame = FrameBuilder::new(DEFINE, before.incarnation, before.sequence, before.base_ms);
    let columns = names.columns.iter().map(|column| {
        let ints =
            |value: &dyn Fn(usize) -> u64| Values::Ints((0..markers.len()).map(value).collect());
        let values = match column.name.as_str() {
            "id" => ints(&|i| id(i)),
            "encoding" => ints(&|_| UTF8),
            "bytes" => Values::Bytes(markers.iter().map(|m| m.detail.clone().into()).collect()),
            _ => ints(&|_| 0),
        };
        (column.id, values)
    });
    let columns: Vec<(u8, Values)> = columns.collect();
    frame.section(names.id, markers.len(), &columns);
    let columns = table.columns.iter().map(|column| {
        let value = |(index, marker): (usize, &&Marker)| {
            let time = |ms| to_stored(ColumnType::Time, ms, before.base_ms);
            match column.name.as_str() {
                "time" => time(marker.time_ms),
                "since" => time(marker.since_ms),
                "until" => time(marker.until_ms),
                "kind" => schema.value("marker", marker.kind).unwrap_or(0) as u64,
                "detail" => id(index),
                _ => 0,
            }
        };
        (
            column.id,
            Values::Ints(markers.iter().enumerate().map(value).collect()),
        )
    });
    let columns: Vec<(u8, Values)> = columns.collect();
    frame.section(table.id, markers.len(), &columns);
    frame.finish()
}
