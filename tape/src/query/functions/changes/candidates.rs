//! Candidates for the cause of an effect: changes that have a marker, sessions that hold
//! locks, and clients that send other queries.

use super::autovacuum::{Autovacuum, autovacuums};
use super::connections::Connections;
use super::effects::{Change, Effect};
use super::host::Taken;
use super::loads::Loads;
use super::planned::{Planned, planned};
use super::replicas::{Lost, lost};
use super::scanned::{Scanned, scanned};
use super::snapshots::{Snapshot, snapshot};
use super::windows::Windows;
use super::work::{Work, works};
use crate::query::ask::context::Run;
use crate::query::ask::request::Request;
use crate::query::functions::common_columns::collected;
use crate::query::functions::structs::{Blocking, BlockingRow, Markers, MarkersRow};
use crate::query::rows::parse::Samples;
use crate::query::value::bucket::SECOND;
use crate::query::value::error::QueryResult;
use std::sync::Arc;

/// Maximum number of heads of lock queues that become candidates, those with the longest waits
/// behind them.
const HEADS: i64 = 20;

/// An event or state that could have caused an effect.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Time from which the candidate could have an effect, in µs since 1970.
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
    /// Many more client connections. Their mean number in the normal window and in the compared
    /// one, in ten-thousandths.
    Connections { before: i128, after: i128 },
    /// A replica that confirms nothing.
    Replica(Lost),
    /// A session that keeps an old snapshot.
    Snapshot(Snapshot),
    /// Other processes of the host that took CPUs from the server.
    Host(Taken),
    /// Another plan of a query, whose planner had other inputs.
    Planned(Planned),
    /// A table whose scans read many more rows than before.
    Scanned(Scanned),
    /// A command of an autovacuum worker.
    Autovacuum(Autovacuum),
    /// Clients that send a query for the first time, or more often than before.
    Clients { query: Arc<str>, change: Change },
}

/// A marker, and two facts that rules need beside it.
#[derive(Clone, Debug)]
pub struct Event {
    pub marker: MarkersRow,
    /// The table that a changed index, trigger, policy or rule belongs to.
    pub table: Option<Arc<str>>,
    /// True if sessions waited for a lock of the changed relation while the change ran.
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

    /// The names of the changed objects, which the marker separates by commas.
    pub fn objects(&self) -> impl Iterator<Item = &str> {
        let names = self.marker.object_name.as_deref().unwrap_or_default();
        names.split(", ").filter(|name| !name.is_empty())
    }

    /// Name of the changed setting, if the marker is a change of a server's setting.
    pub fn setting(&self) -> Option<&str> {
        let name = self.marker.object_name.as_deref();
        name.filter(|_| self.kind() == "settings changed")
    }

    /// True if the server crashed, was promoted, or started.
    pub fn is_restart(&self) -> bool {
        ["crash recovery", "promotion", "start"].contains(&self.kind())
    }

    /// Name of the setting that ALTER ROLE or ALTER DATABASE changed: `jit` after `ALTER ROLE web
    /// SET jit`.
    pub fn own_setting(&self) -> Option<&str> {
        let class = self.marker.object_class.as_deref()?;
        let detail = self.marker.detail.as_deref()?;
        let (_, rest) = detail.split_once(" SET ")?;
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        ["role", "database"]
            .contains(&class)
            .then_some(&rest[..end])
    }

    /// True if ALTER DATABASE changed a setting.
    fn is_setting_of_database(&self) -> bool {
        let class = self.marker.object_class.as_deref();
        class == Some("database") && self.own_setting().is_some()
    }
}

/// True if one of them is a changed setting of a database, whose effect is in this database alone.
pub fn has_setting_of_database(candidates: &[Candidate]) -> bool {
    let mut all = candidates.iter();
    all.any(|one| matches!(&one.what, What::Event(event) if event.is_setting_of_database()))
}

/// All candidates, in order of time. `all` has the [`events`].
pub fn candidates(
    run: Run,
    samples: Samples,
    windows: &Windows,
    (loads, connections): (&Loads, &Connections),
    effects: &[Effect],
    mut all: Vec<Candidate>,
) -> QueryResult<Vec<Candidate>> {
    let node = samples.node;
    all.extend(around(run, samples, windows, loads)?);
    all.extend(connections.storm().map(|time| Candidate {
        time,
        what: What::Connections {
            before: connections.before,
            after: connections.after,
        },
    }));
    let works = works(run, node, windows, effects)?.into_iter();
    all.extend(works.map(|work| Candidate {
        time: work.time,
        what: What::Work(work),
    }));
    let planned = planned(run, node, windows, effects)?.into_iter();
    all.extend(planned.map(|planned| Candidate {
        time: planned.time,
        what: What::Planned(planned),
    }));
    let scanned = scanned(run, node, windows, effects)?.into_iter();
    all.extend(scanned.map(|scanned| Candidate {
        time: scanned.since,
        what: What::Scanned(scanned),
    }));
    let vacuums = autovacuums(run, samples, windows, loads, effects)?.into_iter();
    all.extend(vacuums.map(|vacuum| Candidate {
        time: vacuum.since,
        what: What::Autovacuum(vacuum),
    }));
    // Rules use holders only for queries that wait for locks. A plan is made without effects.
    let is_locked = |effect: &Effect| effect.is_notable && effect.waits_for_locks();
    if run.explained.is_some() || effects.iter().any(is_locked) {
        let holders = holders(run, node, windows)?;
        all.iter_mut().for_each(|one| one.find_waits(&holders));
        all.extend(holders);
    }
    all.extend(effects.iter().filter_map(clients));
    all.sort_by_key(|candidate| candidate.time);
    Ok(all)
}

/// Candidates that are not in samples of sessions: processes of the host, replicas, and old
/// snapshots.
fn around(
    run: Run,
    samples: Samples,
    windows: &Windows,
    loads: &Loads,
) -> QueryResult<Vec<Candidate>> {
    let node = samples.node;
    let taken = Taken::read(run, node, windows, loads)?.into_iter();
    let taken = taken.map(|taken| (taken.began, What::Host(taken)));
    let lost = lost(run, node, windows)?.into_iter();
    let lost = lost.map(|lost| (lost.since, What::Replica(lost)));
    let snapshot = snapshot(run, samples, windows)?.into_iter();
    let snapshot = snapshot.map(|snapshot| (snapshot.since, What::Snapshot(snapshot)));
    let all = taken.chain(lost).chain(snapshot);
    Ok(all.map(|(time, what)| Candidate { time, what }).collect())
}

/// The markers of both windows as candidates. If the normal window began long ago, the search begins
/// later: one length of the window before the earliest begin of an effect.
pub fn events(run: Run, node: Option<&str>, windows: &Windows) -> QueryResult<Vec<Candidate>> {
    let earliest = windows.may_begin().saturating_sub(windows.after.length());
    let request = Markers {
        node: node.map(str::to_string),
        since: Some(windows.before.since.clamp(earliest, windows.after.since)),
        until: Some(windows.after.until),
    };
    let rows = collected(|emit| request.answer(run, emit))?;
    let mut events: Vec<Candidate> = Vec::new();
    for marker in rows {
        // The marker has the end of the change. If a change takes long, its locks hold others up
        // before that; see `Candidate::begin`.
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

/// The table of a changed index, trigger, policy or rule. The extension writes ` on app.orders`
/// behind the object's name.
fn table(marker: &MarkersRow) -> Option<&str> {
    let detail = marker.detail.as_deref()?;
    let words = [marker.command.as_deref()?, marker.object_name.as_deref()?];
    let rest = detail.strip_prefix(&words.join(" "))?;
    let table = rest.strip_prefix(" on ")?;
    let end = table.find([',', ' ']).unwrap_or(table.len());
    let classes = ["index", "trigger", "policy", "rule"];
    let class = marker.object_class.as_deref()?;
    classes.contains(&class).then_some(&table[..end])
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

/// The clients of a query as a candidate, if the query is new or called more often.
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
    /// For a change of the schema: notes whether sessions queued for a lock of its relation while
    /// it ran.
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

    /// Time in µs at which the candidate began. For a change it is the begin of the statement: if
    /// the statement waits for a lock, others wait behind it long before it ends. For a lock holder
    /// it is the begin of its transaction.
    pub fn begin(&self) -> i64 {
        let begin = match &self.what {
            What::Event(event) => event.marker.period_start,
            What::Holder(row) => {
                let age = row.xact_age.zip(row.last_seen);
                age.map(|(age, seen)| seen.saturating_sub(age))
            }
            What::Clients { .. }
            | What::Work(_)
            | What::Planned(_)
            | What::Scanned(_)
            | What::Autovacuum(_)
            | What::Connections { .. }
            | What::Replica(_)
            | What::Snapshot(_)
            | What::Host(_) => None,
        };
        begin.unwrap_or(self.time).min(self.time)
    }

    /// True if the candidate began early enough to cause an effect that began at `began`. It may
    /// begin two seconds later, because samples show an effect up to a tick late. It may also begin
    /// `slack` µs later, because the begin of an effect is known only to a bucket.
    pub fn precedes(&self, began: i64, slack: i64) -> bool {
        self.begin() <= began.saturating_add(slack.max(2 * SECOND))
    }
}
