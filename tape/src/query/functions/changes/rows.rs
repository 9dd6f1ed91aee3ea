//! The rows of the answer: causes, then the difference by each dimension.

use super::ChangesRow;
use super::autovacuum::Autovacuum;
use super::candidates::{Candidate, Event, What};
use super::causes::{Cause, unexplained};
use super::connections::Connections;
use super::effects::{Change, Effect};
use super::loads::{Line, Loads};
use super::rules::Rule;
use super::snapshots::Snapshot;
use super::windows::Windows;
use super::words;
use crate::query::ask::request::Emit;
use crate::query::ask::row::Numeric;
use crate::query::rows::integers::NULL;
use crate::query::rows::tags;
use crate::query::value::error::QueryResult;
use crate::query::value::filter;
use crate::query::value::vocabulary as pg;
use std::sync::Arc;

/// The findings.
pub struct Found<'a> {
    pub windows: &'a Windows,
    pub loads: &'a Loads,
    pub connections: &'a Connections,
    pub effects: &'a [Effect],
    pub causes: &'a [Cause<'a>],
    pub candidates: &'a [Candidate],
    /// Sentences about missing parts of the history.
    pub missing: &'a [String],
}

const SESSIONS: &str = "sessions";

fn text(text: impl Into<Arc<str>>) -> Option<Arc<str>> {
    Some(text.into())
}

impl Found<'_> {
    /// Emits the rows, numbered from 1 on.
    pub fn rows(&self, n: usize, emit: Emit<ChangesRow>) -> QueryResult<()> {
        let mut rows: Vec<ChangesRow> = Vec::new();
        rows.extend(self.causes.iter().take(n).map(|cause| self.cause(cause)));
        rows.extend(self.restarts());
        rows.extend(self.note());
        rows.extend(self.usual());
        for (at, name) in self.loads.dimensions.iter().enumerate() {
            if name != pg::ROOT_BLOCKER || self.loads.is_blocked() {
                let lines = self.loads.lines(at, n);
                rows.extend(lines.iter().map(|line| self.effect(name, line)));
            }
        }
        rows.extend(self.connections());
        let coverage = self.loads.coverage().map(|pct| pct.map(Numeric));
        rows.into_iter().zip(1..).try_for_each(|(row, rank)| {
            emit(ChangesRow {
                rank: Some(rank),
                period_start: Some(self.windows.after.since),
                period_end: Some(self.windows.after.until),
                before_start: Some(self.windows.before.since),
                before_end: Some(self.windows.before.until),
                before_coverage_pct: coverage[0],
                coverage_pct: coverage[1],
                ..row
            })
        })
    }

    /// This difference as a percentage of the whole difference.
    fn pct(&self, difference: i128) -> Option<Numeric> {
        let [before, after] = self.loads.whole();
        let whole = after - before;
        let pct =
            super::exact::apportioned(&[difference * 100 * whole.signum()], whole.abs(), 10_000);
        (whole != 0).then(|| Numeric(pct[0]))
    }

    fn cause(&self, cause: &Cause) -> ChangesRow {
        let keys: Vec<&str> = cause.effects.iter().map(|e| &*e.line.key).collect();
        let difference = Some(cause.difference()).filter(|_| cause.is_best);
        let row = ChangesRow {
            kind: text("cause"),
            rule: text(cause.rule.described().name),
            dimension: text(cause.candidate.what.name()),
            started: Some(cause.time()),
            difference: difference.map(Numeric),
            pct: difference.and_then(|difference| self.pct(difference)),
            unit: text(SESSIONS),
            explains: text(keys.join(", ")),
            explanation: text(words::cause(cause)),
            next: text(self.next_of_cause(cause)),
            ..ChangesRow::default()
        };
        match &cause.candidate.what {
            What::Event(event) => {
                let marker = &event.marker;
                ChangesRow {
                    key: marker.object_name.clone().or(marker.detail.clone()),
                    ended: marker.period_end,
                    database: marker.database.clone(),
                    username: marker.username.clone(),
                    application: marker.application.clone(),
                    client_addr: marker.client_addr.clone(),
                    ..row
                }
            }
            What::Holder(holder) => ChangesRow {
                key: holder.tree.clone(),
                query_text: holder.query_text.clone(),
                ended: holder.last_seen,
                database: holder.database.clone(),
                username: holder.username.clone(),
                application: holder.application.clone(),
                ..row
            },
            What::Work(work) => ChangesRow {
                key: Some(work.query_id.to_string().into()),
                query_text: Some(Arc::clone(&work.text)),
                ..row
            },
            What::Planned(planned) => ChangesRow {
                key: text(planned.inputs.as_str()),
                ..row
            },
            What::Scanned(scanned) => ChangesRow {
                key: text(scanned.table.as_str()),
                ended: Some(scanned.first.until),
                database: scanned.database.as_deref().map(Arc::from),
                ..row
            },
            What::Autovacuum(vacuum) => ChangesRow {
                key: text(vacuum.table.as_str()),
                ended: Some(vacuum.until),
                database: vacuum.database.as_deref().map(Arc::from),
                ..row
            },
            What::Connections { .. } | What::Host(_) => row,
            What::Replica(lost) => ChangesRow {
                key: Some(Arc::clone(&lost.name)),
                ..row
            },
            What::Snapshot(snapshot) => ChangesRow {
                key: text(snapshot.pid.to_string()),
                application: snapshot.application.clone(),
                ..row
            },
            What::Clients { query, .. } => ChangesRow {
                key: Some(Arc::clone(query)),
                query_text: cause.effects.first().and_then(|e| e.text.clone()),
                ended: cause.effects.first().and_then(|e| e.stretch).map(|s| s.1),
                ..row
            },
        }
    }

    /// Notes about restarts that are no cause but came after an effect may have begun: after a
    /// crash the load may be less.
    fn restarts(&self) -> Vec<ChangesRow> {
        let mut rows = Vec::new();
        for candidate in self.candidates {
            let is_cause = self
                .causes
                .iter()
                .any(|c| std::ptr::eq(c.candidate, candidate));
            let is_within = candidate.time >= self.windows.may_begin();
            match &candidate.what {
                What::Event(event) if event.is_restart() && is_within && !is_cause => {
                    rows.push(Self::restart(event));
                }
                _ => (),
            }
        }
        rows
    }

    fn restart(event: &Event) -> ChangesRow {
        ChangesRow {
            kind: text("note"),
            rule: text(Rule::ServerStarted.described().name),
            dimension: text(event.kind()),
            started: event.marker.marker_time,
            explanation: text(words::happened(event)),
            ..ChangesRow::default()
        }
    }

    /// A note about queries without a cause, or about the lack of any notable query.
    fn note(&self) -> Option<ChangesRow> {
        let open = unexplained(self.effects, self.causes);
        let [before, after] = self.loads.whole();
        let (rule, explanation) = match (open.is_empty(), self.causes.is_empty()) {
            (false, _) => ("unexplained", words::unexplained(&open, self.missing)),
            (true, false) => return None,
            (true, true) if self.usual().is_some() => return None,
            (true, true) => {
                let [from, to] = [before, after].map(words::sessions);
                let text =
                    format!("no query has notably more load: {from} sessions before, {to} now");
                ("unchanged", text)
            }
        };
        let keys: Vec<&str> = open.iter().map(|effect| &*effect.line.key).collect();
        let difference: i128 = open.iter().map(|effect| effect.line.difference()).sum();
        let difference = Some(difference).filter(|_| !open.is_empty());
        Some(ChangesRow {
            kind: text("note"),
            rule: text(rule),
            difference: difference.map(Numeric),
            pct: difference.and_then(|difference| self.pct(difference)),
            unit: text(SESSIONS),
            explains: (!keys.is_empty()).then(|| keys.join(", ").into()),
            explanation: text(explanation),
            ..ChangesRow::default()
        })
    }

    /// A note about queries that have this load on other days too.
    fn usual(&self) -> Option<ChangesRow> {
        let is_usual = |effect: &&Effect| effect.usual_since_days.is_some();
        let usual: Vec<&Effect> = self.effects.iter().filter(is_usual).collect();
        let keys: Vec<&str> = usual.iter().map(|effect| &*effect.line.key).collect();
        let difference: i128 = usual.iter().map(|effect| effect.line.difference()).sum();
        (!usual.is_empty()).then(|| ChangesRow {
            kind: text("note"),
            rule: text("usual"),
            difference: Some(Numeric(difference)),
            pct: self.pct(difference),
            unit: text(SESSIONS),
            explains: text(keys.join(", ")),
            explanation: text(words::usual(&usual)),
            ..ChangesRow::default()
        })
    }

    /// The mean number of client connections, if it was recorded.
    fn connections(&self) -> Option<ChangesRow> {
        let Connections { before, after, .. } = *self.connections;
        let [from, to] = [before, after].map(words::sessions);
        (before > 0 || after > 0).then(|| ChangesRow {
            kind: text("effect"),
            rule: text(if after > before {
                "more"
            } else if after < before {
                "less"
            } else {
                "same"
            }),
            dimension: text("connections"),
            started: self.connections.began,
            before: Some(Numeric(before)),
            after: Some(Numeric(after)),
            difference: Some(Numeric(after - before)),
            unit: text("connections"),
            explanation: text(format!("client connections: from {from} to {to}")),
            ..ChangesRow::default()
        })
    }

    /// A key of a dimension.
    fn effect(&self, dimension: &str, line: &Line) -> ChangesRow {
        let query = (dimension == pg::QUERY_ID && line.id.is_some())
            .then(|| self.effects.iter().find(|effect| effect.line.id == line.id))
            .flatten();
        let change = query.map_or(Change::of_load(line), |effect| effect.change);
        let stretch = query.and_then(|effect| effect.stretch);
        ChangesRow {
            kind: text("effect"),
            rule: text(change.name()),
            dimension: text(dimension),
            key: Some(Arc::clone(&line.key)),
            query_text: query.and_then(|effect| effect.text.clone()),
            started: stretch.map(|stretch| stretch.0),
            ended: stretch.map(|stretch| stretch.1),
            before: Some(Numeric(line.before)),
            after: Some(Numeric(line.after)),
            difference: Some(Numeric(line.difference())),
            pct: line.pct.map(Numeric),
            unit: text(SESSIONS),
            explanation: text(query.map_or_else(|| words::line(dimension, line), words::query)),
            next: self.next_of_line(dimension, line).map(Into::into),
            ..ChangesRow::default()
        }
    }

    /// Writes a window as options of a command: ` --since … --until …`.
    fn window(since: i64, until: i64) -> String {
        let (since, until) = (words::moment(since, false), words::moment(until, true));
        format!(" --since {since} --until {until}")
    }

    /// The options for the time from the begin of the normal window to the end of the requested
    /// one.
    fn both_windows(&self) -> String {
        Self::window(self.windows.before.since, self.windows.after.until)
    }

    /// The counters of a query, minute by minute.
    fn history_of(&self, query: impl std::fmt::Display) -> String {
        let window = self.both_windows();
        format!("tacho statements-history --query-id={query}{window} --bucket 1m")
    }

    fn next_of_cause(&self, cause: &Cause) -> String {
        let time = cause.time();
        let until = self.windows.after.until;
        match &cause.candidate.what {
            What::Event(_) => {
                let minute = 60_000_000;
                let around = Self::window(time.saturating_sub(minute), time.saturating_add(minute));
                format!("tacho markers{around}")
            }
            What::Holder(row) => {
                // The command shows a moment in the middle of the queue's time, because at its end
                // no session waits any more.
                let last = row.last_seen.unwrap_or(time);
                let middle = time + (last - time) / 2;
                match last - time >= 4_000_000 {
                    true => format!("tacho blocking --at {}", words::moment(middle, false)),
                    false => format!("tacho blocking{}", Self::window(time, last)),
                }
            }
            What::Work(work) => self.history_of(work.query_id),
            What::Planned(planned) => {
                let window = self.both_windows();
                format!("tacho plan-changes --query-id={}{window}", planned.query_id)
            }
            What::Scanned(_) => {
                let window = self.both_windows();
                format!("tacho tables-history{window}")
            }
            What::Replica(_) | What::Host(_) => {
                let window = Self::window(time.saturating_sub(60_000_000), until);
                format!("tacho server-history{window}")
            }
            What::Snapshot(Snapshot { pid, .. }) | What::Autovacuum(Autovacuum { pid, .. }) => {
                let window = Self::window(time, until);
                format!("tacho sessions --scope all --pid={pid}{window}")
            }
            What::Connections { .. } => {
                let window = Self::window(time, until);
                format!("tacho top application --scope all{window}")
            }
            What::Clients { query, .. } => {
                let window = Self::window(time, until);
                format!("tacho top application --query-id={}{window}", quoted(query))
            }
        }
    }

    fn next_of_line(&self, dimension: &str, line: &Line) -> Option<String> {
        let id = line.id?;
        let window = self.both_windows();
        if let Some(key) = dimension.strip_prefix(pg::TAG) {
            let filter = tags::filter_of(key, (id != NULL).then_some(&*line.key))?;
            let by = pg::QUERY_ID;
            return Some(format!("tacho top {by} --tags={}{window}", quoted(&filter)));
        }
        Some(match dimension {
            pg::QUERY_ID
                if line
                    .key
                    .starts_with(|c: char| c == '-' || c.is_ascii_digit()) =>
            {
                self.history_of(&line.key)
            }
            pg::ROOT_BLOCKER => format!("tacho blocking{window}"),
            _ => {
                let by = if dimension == pg::QUERY_ID {
                    pg::WAIT_EVENT
                } else {
                    pg::QUERY_ID
                };
                let option = dimension.replace('_', "-");
                let value = match id {
                    NULL => line.key.to_string(),
                    _ => filter::quoted(&line.key),
                };
                format!("tacho top {by} --{option}={}{window}", quoted(&value))
            }
        })
    }
}

/// A word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
