//! The lists below the picture.

use crate::alarms;
use crate::chart;
use crate::found;
use crate::lanes;
use crate::paint::rank;
use crate::signal::Target;
use crate::table::{Item, Table, figure, number, percent, some, whole};
use crate::text::line;
use crate::trees;
use crate::view::{List, View, Window};
use std::collections::HashMap;
use std::sync::Arc;
use tacho_source::rows::Rows;
use tacho_source::{time, waits};
use tacho_tape::query::json::value;
use tacho_tape::query::{BlockingRow, CompareRow, Numeric, QueriesRow, SessionsRow, TopRow, Value};

/// Data of a list.
pub struct Made<'a> {
    pub view: &'a View,
    pub rows: &'a Rows,
    pub costs: Option<&'a Rows>,
    pub is_compared: bool,
    /// The reasons why the answer lacks something.
    pub reasons: &'a [String],
}

/// A key, for people and in a filter's form.
fn key_of(key: Option<&str>) -> (String, Option<String>) {
    match key {
        None => ("(null)".into(), Some("(null)".into())),
        Some("(other)") => ("(other)".into(), None),
        Some(key) => (line(key), Some(key.into())),
    }
}

/// An interval in the form that readers print.
fn interval(us: i64) -> String {
    value(&Value::Interval(us)).trim_matches('"').to_string()
}

impl Made<'_> {
    pub fn table(&self) -> Table {
        match self.view.list {
            _ if self.is_compared => self.compared(),
            List::Classes | List::Events | List::Tags => self.keys(),
            List::Queries => self.queries(),
            List::Sessions => self.sessions(),
            List::Spans => self.spans(),
            List::Locks => self.locks(),
            List::Findings => found::findings(self.rows, &self.view.zone),
            List::Alarms => alarms::table(self.rows, self.view),
            List::Plans => found::plans(self.rows, self.costs, &self.view.zone),
            List::Trees => {
                let width = self.view.columns() + usize::from(chart::AXIS);
                trees::trees(
                    self.rows,
                    &self.view.plans,
                    self.reasons,
                    width,
                    &self.view.zone,
                )
            }
        }
    }

    /// Keys with a bar each, largest first.
    fn keys(&self) -> Table {
        let rows: Vec<TopRow> = self.rows.read();
        let is_other = |row: &&TopRow| row.key.as_deref() == Some("(other)");
        let keys = rows.iter().filter(|row| !is_other(row));
        let most = keys.map(|row| some(row.avg_aas)).fold(0.0, f64::max);
        let item = |row: &TopRow| {
            let (shown, key) = key_of(row.key.as_deref());
            let load = some(row.avg_aas);
            let peak = whole(row.peak_sessions);
            Item {
                left: format!(
                    "{:>8} {:>6} {:>5}",
                    figure(Some(load)),
                    percent(number(row.pct)),
                    peak
                ),
                bar: match key {
                    Some(_) => vec![(shown.clone(), load / most.max(1e-9))],
                    None => Vec::new(),
                },
                right: shown.clone(),
                detail: self.explained(&shown),
                copied: shown,
                key,
                ..Item::default()
            }
        };
        Table {
            left: format!("{:>8} {:>6} {:>5}", "sessions", "%", "peak"),
            bar: "",
            right: key_name(self.view.list).into(),
            items: rows.iter().map(item).collect(),
        }
    }

    /// A key with the meaning of its wait event and the next thing to look at.
    fn explained(&self, shown: &str) -> String {
        let is_wait = matches!(self.view.list, List::Classes | List::Events);
        match is_wait.then(|| waits::of_key(shown)).flatten() {
            Some(explained) => {
                let wait = explained.wait;
                format!("{shown}  {} Next: {}", wait.is, wait.next_step())
            }
            None => shown.to_string(),
        }
    }

    /// Queries by load, with their waits and costs.
    fn queries(&self) -> Table {
        let rows: Vec<TopRow> = self.rows.read();
        let mut order: Vec<(&TopRow, String, Option<String>)> = Vec::new();
        let mut bars: HashMap<String, Vec<(String, f64)>> = HashMap::new();
        let mut percents: HashMap<String, f64> = HashMap::new();
        for row in &rows {
            let (shown, key) = key_of(row.key.as_deref());
            *percents.entry(shown.clone()).or_default() += some(row.pct);
            if !bars.contains_key(&shown) {
                order.push((row, shown.clone(), key));
            }
            let class = row.by_key.as_deref().unwrap_or("(null)").to_string();
            let part = (class, some(row.avg_aas));
            bars.entry(shown).or_default().push(part);
        }
        let sum = |shown: &str| bars[shown].iter().map(|part| part.1).sum::<f64>();
        // (other) is not a query, and would make all bars short.
        let keys = order.iter().filter(|row| row.2.is_some());
        let most = keys.map(|(_, shown, _)| sum(shown));
        let most = most.fold(0.0, f64::max).max(1e-9);
        // The rows of `queries` have the same keys.
        let costs: Vec<QueriesRow> = self.costs.map_or(Vec::new(), Rows::read);
        let item = |(row, shown, key): &(&TopRow, String, Option<String>)| {
            let mut bar: Vec<(String, f64)> = bars[shown]
                .iter()
                .filter(|_| key.is_some())
                .map(|(class, load)| (class.clone(), load / most))
                .collect();
            bar.sort_by_key(|part| rank(&part.0));
            let text = row.query_text.clone();
            let named = text.as_deref().map_or_else(|| shown.clone(), line);
            let is_its = |cost: &&QueriesRow| cost.key == row.key && cost.calls > Some(0);
            let cost = costs.iter().find(is_its).filter(|_| key.is_some());
            let of = |figure: fn(&QueriesRow) -> Option<Numeric>| cost.and_then(figure);
            let [calls, mean, p95] = [
                of(|cost| cost.calls_per_second),
                of(|cost| cost.mean_exec_time),
                of(|cost| cost.p95_exec_time),
            ]
            .map(|known| figure(number(known)));
            Item {
                key: key.clone(),
                left: format!(
                    "{:>8} {:>6}",
                    figure(Some(sum(shown))),
                    percent(percents.get(shown.as_str()).copied())
                ),
                bar,
                right: format!("{calls:>8} {mean:>8} {p95:>8}  {named}"),
                detail: known(&[Some(shown), text.is_some().then_some(&named)]),
                copied: text.as_deref().unwrap_or(shown).to_string(),
                ..Item::default()
            }
        };
        Table {
            left: format!("{:>8} {:>6}", "sessions", "%"),
            bar: "waits",
            right: format!("{:>8} {:>8} {:>8}  query", "calls/s", "mean ms", "p95 ms"),
            items: order.iter().map(item).collect(),
        }
    }

    fn compared(&self) -> Table {
        let item = |row: CompareRow| {
            let (shown, key) = key_of(row.key.as_deref());
            let text = row.query_text;
            let named = text.as_deref().map_or_else(|| shown.clone(), line);
            let change = row.change.unwrap_or_default();
            let delta = number(row.avg_delta);
            let sign = if delta.is_some_and(|d| d > 0.0) {
                "+"
            } else {
                ""
            };
            Item {
                key,
                left: format!(
                    "{:>9} {:>8} {:>8}",
                    format!("{sign}{}", figure(delta)),
                    figure(number(row.avg_aas_1)),
                    figure(number(row.avg_aas_2))
                ),
                right: format!("{change:<5} {named}"),
                detail: known(&[Some(&shown), text.is_some().then_some(&named)]),
                copied: text.as_deref().unwrap_or(&shown).to_string(),
                ..Item::default()
            }
        };
        Table {
            left: format!("{:>9} {:>8} {:>8}", "change", "before", "now"),
            bar: "",
            right: format!("      {}", key_name(self.view.list)),
            items: self.rows.read().into_iter().map(item).collect(),
        }
    }

    /// A lane per session, ordered by load.
    fn sessions(&self) -> Table {
        let window = self.view.selection();
        let mut items: Vec<(_, Item, f64)> = Vec::new();
        for row in &self.rows.read::<SessionsRow>() {
            let who = (row.pid, row.backend_start);
            if items.last().is_none_or(|last| last.0 != who) {
                items.push((who, session(row, window), 0.0));
            }
            let Some((_, item, seconds)) = items.last_mut() else {
                continue;
            };
            if let Some(lane) = &mut item.lane {
                lane.add(row);
            }
            if row.kind.as_deref() == Some("sampled") {
                *seconds += some(row.seconds);
            }
        }
        let item = |(_, item, seconds): (_, Item, f64)| Item {
            left: format!("{:>8} {}", figure(Some(seconds)), item.left),
            ..item
        };
        Table {
            left: format!("{:>8} {:>8}", "active s", "pid"),
            bar: "waits",
            right: "user database application client".into(),
            items: items.into_iter().map(item).collect(),
        }
    }

    fn spans(&self) -> Table {
        let zone = &self.view.zone;
        let item = |row: &SessionsRow| {
            let at = row.span_start.unwrap_or(0);
            let state = match row.kind.as_deref() {
                Some("sampled") => row.state.clone().unwrap_or_else(|| "-".into()),
                Some("gap") => "not recorded".into(),
                kind => kind.unwrap_or("-").into(),
            };
            let class = row.wait_event_type.as_deref().unwrap_or_default();
            let wait = match (row.wait_event.as_deref(), row.cpu.as_deref()) {
                (Some(event), _) => format!("{class}:{event}"),
                (None, Some(cpu)) => cpu.to_string(),
                (None, None) => "-".into(),
            };
            let by = row.blocked_by.map(|pid| format!("by {pid} "));
            let text = line(row.query_text.as_deref().unwrap_or_default());
            Item {
                key: row.blocked_by.map(|pid| pid.to_string()),
                left: format!(
                    "{} {:>9}",
                    &time::table_time(at, zone)[11..19],
                    figure(number(row.seconds))
                ),
                right: line(&format!(
                    "{state:<19} {wait:<20} {}{text}",
                    by.unwrap_or_default()
                )),
                detail: known(&[
                    row.query_id.map(|id| id.to_string()).as_deref(),
                    Some(&text),
                ]),
                copied: text,
                session: target(row.pid, row.backend_start),
                ..Item::default()
            }
        };
        Table {
            left: format!("{:>8} {:>9}", "from", "seconds"),
            bar: "",
            right: format!("{:<19} {:<20} query", "state", "wait"),
            items: self.rows.read().iter().map(item).collect(),
        }
    }

    fn locks(&self) -> Table {
        let item = |row: &BlockingRow| {
            let shown = |text: &Option<Arc<str>>| line(text.as_deref().unwrap_or_default());
            let tree = row.tree.clone().unwrap_or_default();
            let text = shown(&row.query_text);
            let names = [&row.mode, &row.object, &row.username, &row.application];
            let words = names.map(shown).into_iter();
            let waited = row.waited.map_or(String::new(), interval);
            let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
            Item {
                key: row.pid.map(|pid| pid.to_string()),
                left: format!("{tree:<14} {:>7} {waited:>8}", whole(row.waiters)),
                right: line(&format!(
                    "{:<19} {} {text}",
                    shown(&row.state),
                    words.join(" ")
                )),
                detail: holder(row, tree.trim(), &text),
                copied: row
                    .pid
                    .map_or_else(|| tree.to_string(), |pid| pid.to_string()),
                session: target(row.pid, row.backend_start),
                ..Item::default()
            }
        };
        Table {
            left: format!("{:<14} {:>7} {:>8}", "process", "waiters", "waits"),
            bar: "",
            right: format!("{:<19} lock, user, application, query", "state"),
            items: self.rows.read().iter().map(item).collect(),
        }
    }
}

/// Head of a column of keys.
fn key_name(list: List) -> &'static str {
    match list {
        List::Classes => "wait class",
        List::Events => "wait event",
        List::Tags => "tags",
        _ => "query",
    }
}

/// Joins the known parts.
fn known(parts: &[Option<&str>]) -> String {
    let parts: Vec<&str> = parts.iter().flatten().copied().collect();
    parts.join("  ")
}

/// Describes a process of a tree.
fn holder(row: &BlockingRow, tree: &str, text: &str) -> String {
    let held = row.mode_held.as_ref().map(|mode| format!(" holds {mode}"));
    let age = row.xact_age.map(interval);
    let age = age.map(|age| format!(" in a transaction of {age}"));
    let kind = row.kind.as_deref().unwrap_or_default();
    let known = [held, age].map(Option::unwrap_or_default).concat();
    format!("{kind} {tree}{known}  {text}")
}

/// The session of a row; `None` for a prepared transaction.
fn target(pid: Option<i64>, begin: Option<i64>) -> Option<Target> {
    let pid = pid.filter(|pid| *pid > 0)?;
    Some(Target { pid, begin })
}

/// The row of a session, before its spans are added.
fn session(row: &SessionsRow, window: Window) -> Item {
    let pid = whole(row.pid);
    let names = [
        &row.username,
        &row.database,
        &row.application,
        &row.client_addr,
    ];
    let names = names.map(|name| name.as_deref().unwrap_or("-"));
    let right = line(&names.join(" "));
    Item {
        left: format!("{pid:>8}"),
        detail: format!("{pid}  {right}"),
        copied: pid.clone(),
        key: Some(pid),
        lane: Some(lanes::Lane::of(window)),
        session: target(row.pid, row.backend_start),
        right,
        ..Item::default()
    }
}
