//! `markers`: events that explain the history, and damage found while reading it.

use super::common_columns::{nonzero, some_time};
use super::marker_change::{Change, ChangeColumns};
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::View;
use crate::query::rows::parse::{Window, nodes};
use crate::query::value::error::QueryResult;

row! {
    /// A row of `markers`.
    MarkersRow of "markers": FIELDS {
        marker_time: Time,
        kind: Text,
        period_start: Time,
        period_end: Time,
        detail: Text,
        command: Text,
        object_class: Text,
        object_oid: Int,
        object_name: Text,
        database: Text,
        username: Text,
        application: Text,
        client_addr: Text,
        old_value: Text,
        new_value: Text,
        outcome: Text,
        left_out: Int,
    }
}

request! {
    /// Events: starts, gaps, changed settings and marks: starts, gaps, changes, damage
    Markers of markers: MarkersRow {
        node,
        since,
        until,
    }
}

/// Kind of the markers of unobserved time.
const GAP: &str = "gap";
/// Kind of the markers of history that the writer removed.
pub const REMOVED: &str = "history removed";

/// A marker. Times are in ms; 0 means none.
struct Marker {
    time: i64,
    kind: String,
    since: i64,
    until: i64,
    detail: Option<String>,
    change: Change,
}

fn answer(asked: &Markers, run: Run, emit: Emit<MarkersRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let mut markers = read(run, asked.node.as_deref(), window)?;
    markers.extend(damage(run).into_iter().filter(|m| m.overlaps(window)));
    markers.sort_by(|a, b| (a.time, &a.kind).cmp(&(b.time, &b.kind)));
    markers
        .into_iter()
        .try_for_each(|marker| emit(marker.into_row()))
}

/// The gaps in the window, cut to it, with their causes. Times are in µs; the longest gap comes
/// first.
pub fn gaps(run: Run, node: Option<&str>, window: Window) -> QueryResult<Vec<(i64, i64, String)>> {
    let mut gaps: Vec<_> = read(run, node, window)?
        .into_iter()
        .filter(|marker| marker.kind == GAP)
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
    fn into_row(self) -> MarkersRow {
        let change = self.change;
        MarkersRow {
            marker_time: some_time(self.time, 1000),
            kind: Some(self.kind.into()),
            period_start: some_time(self.since, 1000),
            period_end: some_time(self.until, 1000),
            detail: self.detail.map(Into::into),
            command: change.command,
            object_class: change.object_class,
            object_oid: nonzero(change.object_oid),
            object_name: change.object_name,
            database: change.database,
            username: change.username,
            application: change.application,
            client_addr: change.client_addr,
            old_value: change.old_value,
            new_value: change.new_value,
            outcome: change.outcome,
            left_out: nonzero(change.left_out),
        }
    }

    fn overlaps(&self, window: Window) -> bool {
        let times = [self.time, self.since, self.until];
        overlaps(window, times.map(|ms| (ms, ms)))
    }
}

/// True if a marker happened in the window, or if its period overlaps the window. Each time is a
/// pair (least, greatest), so bounds of many markers can be tested: then the result is whether one
/// of them may match.
fn overlaps(window: Window, [time, since, until]: [(i64, i64); 3]) -> bool {
    let us = |ms: i64| ms.saturating_mul(1000);
    let happened = us(time.1) >= window.since && us(time.0) < window.until;
    let has_period = since != (0, 0);
    let explains = us(since.0) < window.until && us(until.1) > window.since;
    happened || (has_period && explains)
}

/// True if a part may have markers for the window. The bounds of its columns show this without
/// decoding.
fn may_have(part: &Part, window: Window) -> bool {
    let bounds = ["time", "since", "until"].map(|column| part.bounds("marker", column));
    match bounds {
        _ if part.rows("marker") == 0 => false,
        [Some(time), Some(since), Some(until)] => overlaps(window, [time, since, until]),
        _ => true,
    }
}

/// The markers for the window.
fn read(run: Run, node: Option<&str>, window: Window) -> QueryResult<Vec<Marker>> {
    let mut markers = Vec::new();
    for node in nodes(run, node)? {
        let parts = run.store.parts(node);
        for part in parts.filter(|part| may_have(part, window)) {
            run.check_cancel()?;
            let read = read_part(run, part, window, &mut markers);
            run.damage.note_and_continue(read)?;
        }
    }
    run.damage.check()?;
    Ok(markers)
}

fn read_part(run: Run, part: &Part, window: Window, markers: &mut Vec<Marker>) -> QueryResult<()> {
    let view = View::new(part, run.decode);
    let column = |name: &str| part.ints("marker", name);
    let (time, kind) = (column("time")?, column("kind")?);
    let (since, until) = (column("since")?, column("until")?);
    let detail = column("detail")?;
    let changes = ChangeColumns::read(part)?;
    for row in 0..time.len() {
        let mut marker = Marker {
            time: time[row],
            kind: String::new(),
            since: since[row],
            until: until[row],
            detail: None,
            change: Change::default(),
        };
        if marker.overlaps(window) {
            marker.kind = view.key("marker", "kind", kind[row])?.unwrap_or_default();
            marker.change = changes.of(row, &view)?.shown_to(run.owner.as_deref());
            let lasted_ms = marker.until.saturating_sub(marker.since);
            let rest = view.name(Reference(detail[row]))?;
            marker.detail = marker.change.described(rest, lasted_ms);
            markers.push(marker);
        }
    }
    Ok(())
}

/// The last removal of history recorded since `since_ms`. Bounds show which parts have such
/// markers; the newest of these is read.
pub fn last_removal(run: Run, parts: &[&Part], since_ms: i64) -> QueryResult<Option<Removal>> {
    let Some(kind) = run.catalog.value("marker", REMOVED) else {
        return Ok(None);
    };
    let may = |part: &&Part| {
        part.rows("marker") > 0
            && part.max_ms() >= since_ms
            && part.bounds("marker", "kind").is_none_or(|b| b.1 >= kind)
    };
    let mut newest: Vec<&Part> = parts.iter().copied().filter(may).collect();
    newest.sort_by_key(|part| std::cmp::Reverse(part.max_ms()));
    for part in newest {
        run.check_cancel()?;
        // Skips a damaged part; other parts may have an earlier marker.
        let removals = removals(part, kind, run.decode).unwrap_or_default();
        let last = removals.into_iter().max_by_key(|removal| removal.time_ms);
        if last.is_some() {
            return Ok(last);
        }
    }
    Ok(None)
}

/// A marker of the kind "history removed". Times are in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Time of the removal.
    pub time_ms: i64,
    /// First slot time of the removed history.
    pub since_ms: i64,
    /// Last slot time of the removed history.
    pub until_ms: i64,
    /// Amount and reason.
    pub detail: Option<String>,
}

/// The removals that a part's markers record. `kind` is the number of the kind "history removed" in
/// this part.
pub fn removals(
    part: &Part,
    kind: i64,
    decode: fn(i64, &[u8]) -> String,
) -> QueryResult<Vec<Removal>> {
    let names = ["time", "kind", "since", "until", "detail"];
    let [time, kinds, since, until, detail] = names.map(|name| part.ints("marker", name));
    let (time, kinds, since, until, detail) = (time?, kinds?, since?, until?, detail?);
    let view = View::new(part, decode);
    let rows = (0..time.len()).filter(|&row| kinds[row] == kind);
    let removal = |row: usize| {
        Ok(Removal {
            time_ms: time[row],
            since_ms: since[row],
            until_ms: until[row],
            detail: view.name(Reference(detail[row]))?,
        })
    };
    rows.map(removal).collect()
}

/// Markers for damaged places, dated by the ticks around them.
fn damage(run: Run) -> Vec<Marker> {
    let found = run.store.damage().iter().map(|damage| {
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
            change: Change::default(),
        }
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::part::{PartInfo, Source};
    use crate::format::table::{BytesColumn, Column};
    use crate::testing::schema;
    use std::sync::Arc;

    /// Three markers. Only their bounds may be read.
    struct Bounds([(i64, i64); 3]);

    impl Source for Bounds {
        fn rows(&self, _: usize) -> usize {
            3
        }

        fn ints(&self, _: usize, _: usize) -> crate::Result<Option<Column>> {
            panic!("a column was decoded")
        }

        fn bytes(&self, _: usize, _: usize) -> crate::Result<Option<BytesColumn>> {
            panic!("a column was decoded")
        }

        fn bounds(&self, table: usize, column: usize) -> Option<(i64, i64)> {
            let names = ["time", "since", "until"];
            let schema = schema();
            let places = names.map(|name| schema.column("marker", name));
            let at = places.iter().position(|p| *p == Some((table, column)));
            at.map(|at| self.0[at])
        }
    }

    #[test]
    fn markers_of_other_times_are_not_decoded() {
        let asks = |bounds, since_s: i64, until_s: i64| {
            let source = Arc::new(Bounds(bounds));
            let part = Part::new(PartInfo::default(), Arc::new(schema()), source);
            let window = Window {
                since: since_s * 1_000_000,
                until: until_s * 1_000_000,
            };
            may_have(&part, window)
        };
        let events = [(10_000, 20_000), (0, 0), (0, 0)];
        assert!(!asks(events, 0, 10));
        assert!(asks(events, 0, 11));
        assert!(asks(events, 20, 30));
        assert!(!asks(events, 21, 30));
        // A gap that began long before and was recorded at its end.
        let gap = [(90_000, 90_000), (5_000, 5_000), (90_000, 90_000)];
        assert!(asks(gap, 6, 7));
        assert!(!asks(gap, 0, 5));
        assert!(!asks(gap, 91, 99));
    }
}
