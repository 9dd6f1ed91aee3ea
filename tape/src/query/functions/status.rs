//! `status`: contents of the history.

use super::markers::last_removal;
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::rows::parse::nodes;
use crate::query::rows::ticks::{Observed, Ticks};
use crate::query::value::bucket::{Buckets, HOUR};
use crate::query::value::civil::time_text;
use crate::query::value::error::QueryResult;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

row! {
    /// A row of `status`.
    StatusRow of "status": FIELDS {
        metric: Text,
        value: Text,
    }
}

request! {
    /// Contents of the history
    Status of status: StatusRow {
        node,
    }
}

fn answer(asked: &Status, run: Run, emit: Emit<StatusRow>) -> QueryResult<()> {
    let nodes = nodes(run, asked.node.as_deref())?;
    let parts: Vec<&Part> = nodes
        .iter()
        .flat_map(|node| run.store.parts(*node))
        .collect();
    let known = run.store.nodes();
    let mut rows: Vec<(&str, Option<String>)> = Vec::new();
    let shown: Vec<String> = nodes.iter().map(|id| format!("{id:016x}")).collect();
    rows.push(("node", (!shown.is_empty()).then(|| shown.join(", "))));
    rows.push(("nodes", Some(known.len().to_string())));
    let hidden = known.iter().filter(|n| !nodes.contains(&n.id));
    let hidden: Vec<String> = hidden.map(|n| format!("{:016x}", n.id)).collect();
    // The nodes that only the argument `node` would show.
    rows.push((
        "nodes_hidden",
        (!hidden.is_empty()).then(|| hidden.join(", ")),
    ));
    let newest = known.iter().find(|n| nodes.contains(&n.id));
    let id = newest.map(|n| n.system_identifier).filter(|id| *id != 0);
    rows.push(("system_identifier", id.map(|id| id.to_string())));
    let timeline = newest.map(|n| n.timeline).filter(|t| *t != 0);
    rows.push(("timeline", timeline.map(|t| t.to_string())));
    rows.extend(times(run, &parts)?);
    rows.extend(removed(run, &parts)?);
    rows.extend(files(&parts));
    rows.push(("last_tick_cost_us", last_cost(run, &parts)?));
    let lost: u64 = parts.iter().map(|p| p.lost_definitions()).sum();
    rows.push(("lost_definitions", Some(lost.to_string())));
    let damage = run.store.damage();
    rows.push(("damaged_places", Some(damage.len().to_string())));
    let bytes: u64 = damage.iter().map(|d| d.bytes).sum();
    rows.push(("damaged_bytes", Some(bytes.to_string())));
    rows.into_iter().try_for_each(|(metric, value)| {
        emit(StatusRow {
            metric: Some(metric.into()),
            value: value.map(Arc::from),
        })
    })
}

type Rows = Vec<(&'static str, Option<String>)>;

fn times(run: Run, parts: &[&Part]) -> QueryResult<Rows> {
    let with_ticks = || parts.iter().filter(|p| p.min_ms() <= p.max_ms());
    let first = with_ticks().map(|p| p.min_ms()).min();
    let last = with_ticks().map(|p| p.max_ms()).max();
    let now = run.now_us;
    let age = last.map(|ms| now.saturating_sub(ms * 1000) / 1_000_000);
    let hour = Buckets::new(now - HOUR, now, HOUR, None, 2)?;
    let mut observed = Observed::default();
    for part in with_ticks().filter(|p| p.max_ms() * 1000 >= now - HOUR) {
        run.check_cancel()?;
        let read = Ticks::read(part, &hour, &mut observed);
        run.damage.leave_out_part(part, read)?;
    }
    let percent = observed.total().percent(HOUR).map(|p| {
        let rounded = p.round4();
        format!("{}.{:04}", rounded / 10_000, rounded % 10_000)
    });
    Ok(vec![
        ("first_tick_time", first.map(|ms| time_text(ms * 1000))),
        ("last_tick_time", last.map(|ms| time_text(ms * 1000))),
        ("last_tick_age_s", age.map(|s| s.to_string())),
        (
            "last_tick",
            with_ticks()
                .map(|p| p.last_tick())
                .max()
                .map(|t| t.to_string()),
        ),
        ("coverage_last_hour_pct", percent),
    ])
}

/// CPU time of the last tick in µs, wrong by at most an eighth; `None` if it was not measured.
fn last_cost(run: Run, parts: &[&Part]) -> QueryResult<Option<String>> {
    let newest = parts.iter().filter(|p| p.rows("tick") > 0);
    let Some(part) = newest.max_by_key(|p| (p.max_ms(), p.last_tick())) else {
        return Ok(None);
    };
    run.check_cancel()?;
    let step = run
        .damage
        .leave_out_part(part, last_step(part))?
        .unwrap_or(0);
    let us = |step: i64| (2f64.powf(step as f64 / 4.0).round() as u64).to_string();
    Ok((1..=MOST_STEPS).contains(&step).then(|| us(step)))
}

/// Cost of the last tick in a part, in steps of a quarter octave.
fn last_step(part: &Part) -> QueryResult<i64> {
    let (numbers, steps) = (part.ints("tick", "tick")?, part.ints("tick", "cost_step")?);
    let last = numbers.iter().zip(steps.iter()).max();
    Ok(last.map_or(0, |(_, step)| *step))
}

/// Largest credible cost of a tick, in steps of a quarter octave: an hour.
const MOST_STEPS: i64 = 128;

/// A removal of history is shown for this time, in ms.
const MONTH_MS: i64 = 31 * 86_400_000;

/// Time and reason of the last removal of the oldest history, within a month.
fn removed(run: Run, parts: &[&Part]) -> QueryResult<Rows> {
    let since = (run.now_us / 1_000).saturating_sub(MONTH_MS);
    let (time, detail) = match last_removal(run, parts, since)? {
        Some(last) => (
            Some(time_text(last.time_ms.saturating_mul(1000))),
            last.detail,
        ),
        None => (None, None),
    };
    Ok(vec![
        ("history_removed_time", time),
        ("history_removed", detail),
    ])
}

fn files(parts: &[&Part]) -> Rows {
    let files: BTreeSet<&Path> = parts.iter().map(|p| p.info().file.as_path()).collect();
    let open: BTreeSet<&Path> = parts
        .iter()
        .filter(|p| p.info().open)
        .map(|p| p.info().file.as_path())
        .collect();
    let size = |file: &&Path| std::fs::metadata(file).map_or(0, |m| m.len());
    let bytes: u64 = files.iter().map(size).sum();
    vec![
        ("files", Some(files.len().to_string())),
        ("files_open", Some(open.len().to_string())),
        ("bytes", Some(bytes.to_string())),
    ]
}
