//! Sentences of findings, in plain English.

use super::candidates::{Event, What};
use super::causes::Cause;
use super::effects::{Change, Effect};
use super::loads::Line;
use super::series::Level;
use super::snapshots::Snapshot;
use crate::query::functions::structs::BlockingRow;
use crate::query::value::bucket::SECOND;
use crate::query::value::civil::write_civil;
use crate::query::value::number::Ratio;
use crate::query::value::vocabulary as pg;
use std::fmt::Write;

/// The load as text with two decimals, such as `3.10`, from ten-thousandths of
/// a session.
pub fn sessions(load: i128) -> String {
    decimals(load, 10_000, 2)
}

/// `num / den` as text with `places` decimals.
fn decimals(num: i128, den: i128, places: u32) -> String {
    let scale = 10_i128.pow(places);
    let rounded = Ratio::new(num, den).map_or(0, |ratio| ratio.rounded(scale));
    let sign = if rounded < 0 { "-" } else { "" };
    let (whole, part) = (rounded.abs() / scale, rounded.abs() % scale);
    match places {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{part:0>width$}", width = places as usize),
    }
}

/// A level as text with three digits: two decimals below 10, one below 100,
/// none above.
fn figure(level: Level) -> String {
    let places = match level.num / level.den {
        100.. => 0,
        10.. => 1,
        _ => 2,
    };
    decimals(level.num, level.den, places)
}

/// Writes a length of `us` µs for people: `41 s`, `2 min 10 s`, `3 h 5 min`.
pub fn length(us: i64) -> String {
    let seconds = us.saturating_add(SECOND / 2) / SECOND;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes, rest) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

/// Writes a time in whole seconds: `2026-11-21T03:12:07Z`. A begin is rounded
/// down, an end up.
pub fn moment(us: i64, is_end: bool) -> String {
    let us = if is_end {
        us.saturating_add(SECOND - 1)
    } else {
        us
    };
    let mut text = String::new();
    write_civil(&mut text, us.div_euclid(SECOND).saturating_mul(SECOND), 'T');
    text + "Z"
}

/// Verb for the change of a query.
fn verb(change: Change) -> &'static str {
    match change {
        Change::New => "first ran",
        Change::MoreCalls => "was called more often",
        Change::Slower => "got slower",
        Change::OtherPlan => "got another plan and slower",
        Change::More => "got more load",
        Change::Less => "got less load",
        Change::Gone => "ran no more",
        Change::Same => "has the load that it had",
    }
}

fn from_to(before: i128, after: i128) -> String {
    format!("from {} to {} sessions", sessions(before), sessions(after))
}

/// Sentence about a cause: the cause, and which effects followed when.
pub fn cause(cause: &Cause) -> String {
    let mut text = match &cause.candidate.what {
        What::Event(event) => happened(event),
        What::Holder(row) => holder(row),
        What::Work(work) => work.sentence(),
        What::Planned(planned) => format!("other inputs of the planner: {}", planned.inputs),
        What::Scanned(scanned) => scanned.sentence(),
        What::Autovacuum(vacuum) => vacuum.sentence(),
        What::Connections { before, after } => format!(
            "client connections rose from {} to {}",
            sessions(*before),
            sessions(*after)
        ),
        What::Replica(lost) => format!("replica {} stopped confirming the log", lost.name),
        What::Snapshot(snapshot) => old_snapshot(snapshot),
        What::Host(taken) => format!(
            "{} other processes of the host want CPUs instead of {}",
            sessions(taken.after),
            sessions(taken.before)
        ),
        What::Clients { query, change } => match change {
            Change::New => format!("clients began to run query {query}"),
            _ => format!("clients call query {query} more often"),
        },
    };
    let Some(first) = cause.effects.first() else {
        return text;
    };
    let when = match (cause.lead(), &cause.candidate.what) {
        (_, What::Clients { .. }) => String::new(),
        (_, What::Scanned(_)) => "while ".to_string(),
        (Some(lead), _) if lead >= SECOND => format!("{} before ", length(lead)),
        (Some(_), _) => "when ".to_string(),
        (None, _) => "before ".to_string(),
    };
    let follows = match (cause.effects.len(), &cause.candidate.what) {
        (_, What::Clients { .. }) => calls(first).unwrap_or_default(),
        (1, _) => format!("query {} {}", first.line.key, verb(first.change)),
        (n, _) => format!(
            "{n} queries changed, query {} most: it {}",
            first.line.key,
            verb(first.change)
        ),
    };
    if !follows.is_empty() {
        let _ = write!(text, ", {when}{follows}");
    }
    let line = &first.line;
    let _ = write!(text, ", {}", from_to(line.before, line.after));
    if !cause.is_best {
        text += "; something else fits better";
    }
    text
}

/// Words for a marker.
pub fn happened(event: &Event) -> String {
    let detail = event.marker.detail.as_deref().unwrap_or_default();
    match event.kind() {
        "schema changed" | "settings changed" => detail.to_string(),
        kind if detail.is_empty() => kind.to_string(),
        kind => format!("{kind}: {detail}"),
    }
}

fn old_snapshot(snapshot: &Snapshot) -> String {
    let application = snapshot.application.as_deref();
    let application = application.filter(|name| !name.is_empty());
    let application = application.map_or(String::new(), |name| format!(", application {name}"));
    format!(
        "session {}{application}, keeps a snapshot that is {} transactions old, so that vacuum \
         removes no row",
        snapshot.pid, snapshot.age
    )
}

fn holder(row: &BlockingRow) -> String {
    let mut text = match row.pid {
        Some(pid) => format!("session {pid}"),
        None => row.tree.as_deref().unwrap_or("a session").to_string(),
    };
    let named = [
        ("role", &row.username),
        ("database", &row.database),
        ("application", &row.application),
    ];
    for (label, name) in named {
        if let Some(name) = name.as_deref().filter(|name| !name.is_empty()) {
            let _ = write!(text, ", {label} {name}");
        }
    }
    let state = row.state.as_deref().unwrap_or("prepared");
    let _ = write!(text, ", {state}");
    if let Some(age) = row.xact_age {
        let _ = write!(text, " in a transaction of {}", length(age));
    }
    let held = row.mode_held.as_deref().unwrap_or("a lock");
    let waiters = row.waiters.unwrap_or_default();
    let _ = write!(text, ", holds {held}, {waiters} sessions wait behind it");
    text
}

/// How often a query is called and how long a call takes, now and before.
fn calls(effect: &Effect) -> Option<String> {
    let instead = |[before, after]: [Option<Level>; 2], unit: &str| {
        let (before, after) = (before?, after?);
        Some(format!(
            "{} {unit} instead of {}",
            figure(after),
            figure(before)
        ))
    };
    match effect.change {
        Change::MoreCalls => instead(effect.calls_a_second(), "calls a second"),
        Change::Slower | Change::OtherPlan => match effect.ms_a_call() {
            times @ [_, Some(after)] if after.num < after.den => {
                instead(times.map(|time| time.map(microseconds)), "µs a call")
            }
            times => instead(times, "ms a call"),
        },
        _ => None,
    }
}

/// A time in ms, converted to µs.
fn microseconds(ms: Level) -> Level {
    Level {
        num: ms.num.saturating_mul(1000),
        ..ms
    }
}

/// Sentence about a query and its change.
pub fn query(effect: &Effect) -> String {
    let line = &effect.line;
    let mut text = format!("query {} {}", line.key, verb(effect.change));
    if let Some(calls) = calls(effect) {
        let _ = write!(text, ", {calls}");
    }
    let _ = write!(text, ": {}", from_to(line.before, line.after));
    text
}

/// Sentence about a key of another dimension.
pub fn line(dimension: &str, line: &Line) -> String {
    let name = match dimension.strip_prefix(pg::TAG) {
        Some(key) => format!("tag {key}"),
        None => dimension.replace('_', " "),
    };
    let more = line.difference();
    let how = if more < 0 { "less" } else { "more" };
    let (many, from_to) = (sessions(more.abs()), from_to(line.before, line.after));
    format!("{name} {}: {many} sessions {how}, {from_to}", line.key)
}

/// Sentence about queries that have this load on other days too.
pub fn usual(effects: &[&Effect]) -> String {
    let days = effects.iter().filter_map(|effect| effect.usual_since_days);
    let day = match days.min() {
        Some(1) => "the day before",
        _ => "a week before",
    };
    match effects {
        [one] => format!(
            "query {} had this load at the same time {day}",
            one.line.key
        ),
        _ => format!(
            "{} queries had this load at the same time {day} or a week before",
            effects.len()
        ),
    }
}

/// Sentence for effects without a cause, with the data that was not recorded.
pub fn unexplained(effects: &[&Effect], missing: &[String]) -> String {
    let mut text = match effects {
        [] => "nothing recorded explains the difference".to_string(),
        [one] => format!(
            "nothing recorded explains that query {} {}",
            one.line.key,
            verb(one.change)
        ),
        [first, ..] => format!(
            "nothing recorded explains that {} queries changed, query {} most",
            effects.len(),
            first.line.key
        ),
    };
    if !missing.is_empty() {
        let _ = write!(text, "; {}", missing.join("; "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_as_exact_as_a_reader_needs() {
        assert_eq!(sessions(31_049), "3.10");
        assert_eq!(sessions(-250), "-0.03");
        assert_eq!(figure(Level { num: 1234, den: 10 }), "123");
        assert_eq!(figure(Level { num: 123, den: 10 }), "12.3");
        assert_eq!(figure(Level { num: 1, den: 8 }), "0.13");
    }

    #[test]
    fn lengths_have_two_units_at_most() {
        let of = |seconds: i64| length(seconds * SECOND);
        assert_eq!(of(41), "41 s");
        assert_eq!(of(120), "2 min");
        assert_eq!(of(130), "2 min 10 s");
        assert_eq!(of(3600), "1 h");
        assert_eq!(of(11_100), "3 h 5 min");
    }

    #[test]
    fn a_moment_is_rounded_outwards() {
        assert_eq!(moment(1_767_225_600_400_000, false), "2026-01-01T00:00:00Z");
        assert_eq!(moment(1_767_225_600_400_000, true), "2026-01-01T00:00:01Z");
    }
}
