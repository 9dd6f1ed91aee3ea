//! `markers`: events that explain the history, and damage found while reading.

use super::{Argument, Call, Function};
use crate::query::dimension::View;
use crate::query::error::QueryResult;
use crate::query::plan::{Window, nodes};
use crate::query::spec::{Field, Sink, Type, Value};

const FIELDS: &[Field] = &[
    ("marker_time", Type::Time),
    ("kind", Type::Text),
    ("period_start", Type::Time),
    ("period_end", Type::Time),
    ("detail", Type::Text),
];

pub const FUNCTION: Function = Function {
    name: "markers",
    about: "Events that explain the history: starts, gaps, changes, damage",
    arguments: &[Argument::Since, Argument::Until, Argument::Zone],
    fields: FIELDS,
    run,
};

/// Kind of the markers of unobserved time.
const GAP: &str = "gap";

/// Times in ms; 0 is none.
struct Marker {
    time: i64,
    kind: String,
    since: i64,
    until: i64,
    detail: Option<String>,
}

fn run(call: &Call, sink: &mut dyn Sink) -> QueryResult<()> {
    let window = Window::of(call.spec)?;
    let mut markers = read(call)?;
    markers.extend(damage(call));
    markers.retain(|marker| marker.meets(window));
    markers.sort_by(|a, b| (a.time, &a.kind).cmp(&(b.time, &b.kind)));
    sink.begin(FIELDS)?;
    let time = |ms: i64| match ms {
        0 => Value::Null,
        ms => Value::Time(ms.saturating_mul(1000)),
    };
    for marker in markers {
        sink.row(vec![
            time(marker.time),
            Value::Text(marker.kind),
            time(marker.since),
            time(marker.until),
            Value::text(marker.detail),
        ])?;
    }
    Ok(())
}

/// The gaps that reach into the window, cut to it, and why they are there.
/// Times in µs; the longest first.
pub fn gaps(call: &Call, window: Window) -> QueryResult<Vec<(i64, i64, String)>> {
    let mut gaps: Vec<_> = read(call)?
        .into_iter()
        .filter(|marker| marker.kind == GAP && marker.meets(window))
        .map(|marker| {
            let since = marker.since.saturating_mul(1000).max(window.since);
            let until = marker.until.saturating_mul(1000).min(window.until);
            (since, until, marker.detail.unwrap_or_default())
        })
        .filter(|(since, until, _)| since < until)
        .collect();
    gaps.sort_by_key(|&(since, until, _)| (since - until, since));
    Ok(gaps)
}

impl Marker {
    /// It happened in the window, or explains a part of it.
    fn meets(&self, window: Window) -> bool {
        let inside = |ms: i64| {
            let us = ms.saturating_mul(1000);
            us >= window.since && us < window.until
        };
        let explains = self.since != 0
            && self.since.saturating_mul(1000) < window.until
            && self.until.saturating_mul(1000) > window.since;
        inside(self.time) || explains
    }
}

fn read(call: &Call) -> QueryResult<Vec<Marker>> {
    let mut markers = Vec::new();
    for node in nodes(call.spec, call.store)? {
        for part in call.store.parts(node) {
            if part.rows("marker") == 0 {
                continue;
            }
            let view = View::new(part, call.spec.decode);
            let column = |name: &str| part.ints("marker", name);
            let (time, kind) = (column("time")?, column("kind")?);
            let (since, until) = (column("since")?, column("until")?);
            let detail = column("detail")?;
            for row in 0..time.len() {
                markers.push(Marker {
                    time: time[row],
                    kind: view.key("marker", "kind", kind[row])?.unwrap_or_default(),
                    since: since[row],
                    until: until[row],
                    detail: view.name(detail[row])?,
                });
            }
        }
    }
    Ok(markers)
}

/// What could not be read, dated by the ticks around it.
fn damage(call: &Call) -> Vec<Marker> {
    let found = call.store.damage().iter().map(|damage| {
        let file = damage.file.file_name().unwrap_or(damage.file.as_os_str());
        let since = damage.since_ms.or(damage.until_ms).unwrap_or(0);
        let until = damage.until_ms.or(damage.since_ms).unwrap_or(0);
        Marker {
            time: until,
            kind: "damage".to_string(),
            since,
            until,
            detail: Some(format!(
                "{}, offset {}, {} bytes: {}",
                file.to_string_lossy(),
                damage.offset,
                damage.bytes,
                damage.reason
            )),
        }
    });
    found.collect()
}
