//! Candidates for the cause of an effect: changes that have a marker, sessions that hold
//! locks, and clients that send other queries.

use super::connections::Connections;
use super::effects::{Change, Effect};
use super::windows::Windows;
use super::work::{Work, works};
use crate::query::ask::context::Run;
use crate::query::ask::request::Request;
use crate::query::functions::common_columns::collected;
use crate::query::functions::structs::{Blocking, BlockingRow, Markers, MarkersRow};
use crate::query::value::bucket::SECOND;
use crate::query::value::error::QueryResult;
use std::sync::Arc;

/// Most heads of lock queues that are candidates.
const HEADS: i64 = 20;

/// Something that could have caused an effect.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// When it began to have an effect, µs.
    pub time: i64,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    /// An event of the history.
    Event(Event),
    /// The head of a lock queue.
    Holder(BlockingRow),
    /// A statement that changed many rows, or the statistics of a table.
    Work(Work),
    /// Many more connections, before and after, in ten-thousandths.
    Connections { before: i128, after: i128 },
    /// The clients, who send a query that they did not send before, or more often.
    Clients { query: Arc<str>, change: Change },
}

/// A marker, with what rules ask for.
#[derive(Clone, Debug)]
pub struct Event {
    pub marker: MarkersRow,
    /// The table that a changed index belongs to.
    pub table: Option<Arc<str>>,
    /// Sessions waited for a lock of its relation while it ran.
    pub is_waited_for: bool,
}

impl Event {
    pub fn kind(&self) -> &str {
        self.marker.kind.as_deref().unwrap_or_default()
    }

    /// First words of the command: `DROP INDEX`.
    pub fn command(&self) -> &str {
        self.marker.command.as_deref().unwrap_or_default()
    }

    /// The objects it names, which stand with commas between them.
    pub fn objects(&self) -> impl Iterator<Item = &str> {
        let names = self.marker.object_name.as_deref().unwrap_or_default();
        names.split(", ").filter(|name| !name.is_empty())
    }

    /// It changed the value of this setting.
    pub fn setting(&self) -> Option<&str> {
        let name = self.marker.object_name.as_deref();
        name.filter(|_| self.kind() == "settings changed")
    }
}

/// Everything that could have caused an effect, by time.
pub fn candidates(
    run: Run,
    node: Option<&str>,
    windows: &Windows,
    connections: &Connections,
    effects: &[Effect],
) -> QueryResult<Vec<Candidate>> {
    let mut all = events(run, node, windows)?;
    all.extend(connections.storm().map(|time| Candidate {
        time,
        what: What::Connections {
            before: connections.before,
            after: connections.after,
        },
    }));
    let works = works(run, node, windows)?.into_iter();
    all.extend(works.map(|work| Candidate {
        time: work.time,
        what: What::Work(work),
    }));
    let holders = holders(run, node, windows)?;
    all.iter_mut().for_each(|one| one.find_waits(&holders));
    all.extend(holders);
    all.extend(effects.iter().filter_map(clients));
    all.sort_by_key(|candidate| candidate.time);
    Ok(all)
}

/// The markers from the begin of what was normal on. If that is long ago, from a
/// length before the window on.
fn events(run: Run, node: Option<&str>, windows: &Windows) -> QueryResult<Vec<Candidate>> {
    let earliest = windows.may_begin().saturating_sub(windows.after.length());
    let request = Markers {
        node: node.map(str::to_string),
        since: Some(windows.before.since.clamp(earliest, windows.after.since)),
        until: Some(windows.after.until),
    };
    let rows = collected(|emit| request.answer(run, emit))?;
    let mut events: Vec<Candidate> = Vec::new();
    for marker in rows {
        // A lock of a change that takes long holds others up before its end.
        let time = marker.marker_time.unwrap_or_default();
        let table = table(&marker).map(Arc::from);
        let what = What::Event(Event {
            marker,
            table,
            is_waited_for: false,
        });
        events.push(Candidate { time, what });
    }
    Ok(events)
}

/// The table of an index: the extension says `on app.orders` behind the index.
fn table(marker: &MarkersRow) -> Option<&str> {
    let detail = marker.detail.as_deref()?;
    let words = [marker.command.as_deref()?, marker.object_name.as_deref()?];
    let rest = detail.strip_prefix(&words.join(" "))?;
    let table = rest.strip_prefix(" on ")?;
    let end = table.find([',', ' ']).unwrap_or(table.len());
    (marker.object_class.as_deref() == Some("index")).then_some(&table[..end])
}

fn holders(run: Run, node: Option<&str>, windows: &Windows) -> QueryResult<Vec<Candidate>> {
    let request = Blocking {
        node: node.map(str::to_string),
        at: None,
        since: Some(windows.may_begin()),
        until: Some(windows.after.until),
        n: Some(HEADS),
    };
    let rows = collected(|emit| request.answer(run, emit))?;
    let holder = |row: BlockingRow| Candidate {
        time: row.first_seen.unwrap_or_default(),
        what: What::Holder(row),
    };
    let known = rows
        .into_iter()
        .filter(|row| row.pid.is_some() || row.prepared_xid.is_some());
    Ok(known.map(holder).collect())
}

/// A query that is new, or called more often, is what its clients do.
fn clients(effect: &Effect) -> Option<Candidate> {
    let is_theirs = matches!(effect.change, Change::New | Change::MoreCalls);
    let (since, _) = effect.stretch?;
    (is_theirs && effect.is_notable).then(|| Candidate {
        time: since,
        what: What::Clients {
            query: Arc::clone(&effect.line.key),
            change: effect.change,
        },
    })
}

impl Candidate {
    /// Notes whether some queue was one for the relation of a change.
    fn find_waits(&mut self, holders: &[Candidate]) {
        let (begin, end) = (self.begin(), self.time);
        let What::Event(event) = &mut self.what else {
            return;
        };
        let relation = event.marker.object_oid;
        event.is_waited_for = holders.iter().any(|holder| match &holder.what {
            What::Holder(row) => {
                let is_same = relation.is_some() && row.lock_relation == relation;
                let [first, last] = [row.first_seen, row.last_seen].map(Option::unwrap_or_default);
                is_same && first <= end && last >= begin
            }
            _ => false,
        });
    }

    /// Its begin: a statement that waits for its lock ends long after its effect begins.
    pub fn begin(&self) -> i64 {
        let begin = match &self.what {
            What::Event(event) => event.marker.period_start,
            What::Holder(row) => {
                let age = row.xact_age.zip(row.last_seen);
                age.map(|(age, seen)| seen.saturating_sub(age))
            }
            What::Clients { .. } | What::Work(_) | What::Connections { .. } => None,
        };
        begin.unwrap_or(self.time).min(self.time)
    }

    /// It can have caused what began then: an effect is seen a tick late at most, and
    /// its begin is known to a bucket.
    pub fn precedes(&self, began: i64, slack: i64) -> bool {
        self.begin() <= began.saturating_add(slack.max(2 * SECOND))
    }
}
