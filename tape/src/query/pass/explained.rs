//! Plans as rows: chunks to be read, their ticks, and the reason for reading samples.

use super::plan::{Plan, Step, last_group};
use crate::fast::FastSet;
use crate::format::part::{Chunk, Part};
use crate::format::schema::RUN;
use crate::query::ask::context::Explained;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::scan::Scan;
use crate::query::rows::{select, ticks};
use crate::query::sums::totals::Totals;
use crate::query::sums::way::{NoTotalsReason, Way};
use crate::query::value::error::QueryResult;
use crate::query::value::sink::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Adds the plan of a window.
pub fn put(explained: &Explained, scan: &Scan, plan: &Plan) -> QueryResult<()> {
    let mut state = explained.state();
    state.scans += 1;
    let number = state.scans;
    let mut seen = FastSet::default();
    let alike = |one: &Step, other: &Step| {
        (one.first, one.last, one.part.node()) == (other.first, other.last, other.part.node())
    };
    for steps in plan.steps.chunk_by(alike) {
        scan.check_cancel()?;
        let parts: Vec<&Part> = steps.iter().map(|step| step.part).collect();
        let ways = (steps[0].first, steps[0].last);
        let chunks = chunks(scan, plan, &parts, ways)?;
        let new = chunks
            .into_iter()
            .filter(|chunk| seen.insert(chunk.clone()));
        let bytes: u64 = new.map(|(_, chunk)| chunk.bytes).sum();
        state.rows.push(row(number, &parts, ways, bytes));
    }
    Ok(())
}

fn row(number: i64, parts: &[&Part], ways: (Option<Way>, Way), bytes: u64) -> Vec<Value> {
    let us = |ms: i64| Value::Time(ms.saturating_mul(1_000));
    let count = |n: usize| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
    let tick = |tick: Option<u64>| Value::int(tick.and_then(|tick| i64::try_from(tick).ok()));
    let infos = || parts.iter().map(|part| part.info());
    let sealed = infos().filter(|info| info.group != 0);
    let files: BTreeSet<&PathBuf> = sealed.map(|info| &*info.file).collect();
    vec![
        Value::Int(number),
        Value::Text(name(ways).into()),
        infos()
            .map(|info| info.min_ms)
            .min()
            .map_or(Value::Null, us),
        infos()
            .map(|info| info.max_ms)
            .max()
            .map_or(Value::Null, us),
        tick(infos().map(|info| info.first_tick).min()),
        tick(infos().map(|info| info.last_tick).max()),
        count(files.len()),
        count(parts.len()),
        Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX)),
        Value::Text(why(ways).into()),
    ]
}

/// How parts are read, in a word or two.
fn name((first, last): (Option<Way>, Way)) -> &'static str {
    match (first.map(Way::is_by_totals), last.is_by_totals()) {
        (None | Some(true), true) => "totals",
        (None, false) => "one pass",
        (Some(false), false) => "two passes",
        (Some(true), false) => "totals, samples",
        (Some(false), true) => "samples, totals",
    }
}

fn why((first, last): (Option<Way>, Way)) -> &'static str {
    let ways = [Some(last), first].into_iter().flatten();
    let mut reasons = ways.filter_map(|way| match way {
        Way::Samples(why) => Some(why),
        _ => None,
    });
    match (reasons.next(), last) {
        (Some(NoTotalsReason::Off), _) => "totals are off",
        (Some(NoTotalsReason::Selection), _) => "totals know no filter",
        (Some(NoTotalsReason::Keys), _) => "no totals by these keys",
        (Some(NoTotalsReason::Rest), _) => "sums, then largest keys",
        (Some(NoTotalsReason::Log), _) => "a log has no totals",
        (Some(NoTotalsReason::NoTotals), _) => "file has no totals",
        (Some(NoTotalsReason::Cut), _) => "cuts a minute or group",
        (None, Way::TotalsOfLargest) => "small keys need samples",
        (None, _) => "totals have all",
    }
}

/// The chunks that these parts are read from.
fn chunks(
    scan: &Scan,
    plan: &Plan,
    parts: &[&Part],
    ways: (Option<Way>, Way),
) -> QueryResult<BTreeSet<(Arc<PathBuf>, Chunk)>> {
    let mut chunks = BTreeSet::new();
    let whole = scan.whole();
    let passes = [
        ways.0.map(|way| {
            (
                way,
                Totals::new(&whole, last_group(plan.groups)).only_sums(),
            )
        }),
        Some((ways.1, Totals::new(&plan.buckets, plan.groups))),
    ];
    for (way, totals) in passes.into_iter().flatten() {
        for parts in parts.chunk_by(|one, other| one.is_of_same_file(other)) {
            let of_file = way.is_by_totals().then(|| totals.columns(parts));
            for part in parts {
                let columns = match &of_file {
                    Some(columns) => columns.clone(),
                    None => columns_of_samples(scan, plan.groups, part)?,
                };
                let file = &part.info().file;
                for (table, column) in columns {
                    // If the index is damaged, its chunks are unknown.
                    let found = part.chunks(&table, &column).unwrap_or_default();
                    chunks.extend(found.into_iter().map(|chunk| (file.clone(), chunk)));
                }
            }
        }
    }
    Ok(chunks)
}

/// The columns needed to add up the samples of a part.
fn columns_of_samples(
    scan: &Scan,
    groups: &[Vec<&Dimension>],
    part: &Part,
) -> QueryResult<Vec<(String, String)>> {
    let of = |table: &str, column: &str| (table.to_string(), column.to_string());
    let mut columns: Vec<_> = ticks::COLUMNS.map(|column| of("tick", column)).to_vec();
    if groups.is_empty() || part.rows(RUN) == 0 {
        return Ok(columns);
    }
    columns.extend(["session", "first_tick", "ticks"].map(|column| of(RUN, column)));
    columns.extend(select::columns(part, scan.run.catalog, &scan.selection)?);
    let dimensions = groups.iter().flatten();
    columns.extend(dimensions.flat_map(|dimension| dimension.columns(part)));
    Ok(columns)
}
