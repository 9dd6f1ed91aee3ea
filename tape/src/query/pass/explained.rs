//! Plans as rows: chunks to be read, their ticks, and the reason for reading samples or columns.

use super::plan::{Plan, Step, last_group};
use crate::fast::FastSet;
use crate::format::noting::Noted;
use crate::format::part::{Chunk, Part};
use crate::format::schema::RUN;
use crate::query::ask::context::{Context, Explained};
use crate::query::rows::dimension::Dimension;
use crate::query::rows::scan::Scan;
use crate::query::rows::{select, ticks};
use crate::query::sums::totals::Totals;
use crate::query::sums::way::{NoTotalsReason, ReadFrom};
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
        let (plan, why) = (name(ways), why(ways).to_string());
        state.rows.push(row(number, &parts, (plan, why), bytes));
    }
    Ok(())
}

/// Adds the columns that functions read without such a plan. Consecutive parts of a node share a
/// row if the same columns of them are read.
pub fn put_columns(
    explained: &Explained,
    context: &Context,
    parts: &[(Part, Noted)],
) -> QueryResult<()> {
    let read = parts.iter().map(|(part, noted)| (part, named(part, noted)));
    let read: Vec<_> = read.filter(|(_, columns)| !columns.is_empty()).collect();
    let mut state = explained.state();
    let number = state.scans + 1;
    let mut seen = FastSet::default();
    for group in read.chunk_by(|a, b| (a.0.node(), &a.1) == (b.0.node(), &b.1)) {
        context.check_cancel()?;
        let (parts, columns) = (group.iter().map(|one| one.0), &group[0].1);
        let parts: Vec<&Part> = parts.collect();
        let mut bytes = 0;
        for part in &parts {
            for (table, column) in columns {
                // If the index is damaged, its chunks are unknown.
                for chunk in part.chunks(table, column).unwrap_or_default() {
                    let is_new = seen.insert((part.info().file.clone(), chunk));
                    bytes += if is_new { chunk.bytes } else { 0 };
                }
            }
        }
        let tables: BTreeSet<&str> = columns.iter().map(|(table, _)| table.as_str()).collect();
        let why = format!("reads {}", Vec::from_iter(tables).join(", "));
        state
            .rows
            .push(row(number, &parts, ("columns", why), bytes));
        state.scans = number;
    }
    Ok(())
}

/// Table and name of the columns that were noted.
fn named(part: &Part, noted: &Noted) -> Vec<(String, String)> {
    let tables = &part.schema().tables;
    let name = |(t, c): (usize, usize)| {
        let table = tables.get(t)?;
        Some((table.name.clone(), table.columns.get(c)?.name.clone()))
    };
    noted.columns().into_iter().filter_map(name).collect()
}

fn row(number: i64, parts: &[&Part], (plan, why): (&str, String), bytes: u64) -> Vec<Value> {
    let us = |ms: i64| Value::Time(ms.saturating_mul(1_000));
    let count = |n: usize| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
    let tick = |tick: Option<u64>| Value::int(tick.and_then(|tick| i64::try_from(tick).ok()));
    let infos = || parts.iter().map(|part| part.info());
    let sealed = infos().filter(|info| info.group != 0);
    let files: BTreeSet<&PathBuf> = sealed.map(|info| &*info.file).collect();
    vec![
        Value::Int(number),
        Value::Text(plan.into()),
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
        Value::Text(why.into()),
    ]
}

/// How parts are read, in a word or two.
fn name((first, last): (Option<ReadFrom>, ReadFrom)) -> &'static str {
    match (first.map(ReadFrom::is_by_totals), last.is_by_totals()) {
        (None | Some(true), true) => "totals",
        (None, false) => "one pass",
        (Some(false), false) => "two passes",
        (Some(true), false) => "totals, samples",
        (Some(false), true) => "samples, totals",
    }
}

fn why((first, last): (Option<ReadFrom>, ReadFrom)) -> &'static str {
    let ways = [Some(last), first].into_iter().flatten();
    let mut reasons = ways.filter_map(|way| match way {
        ReadFrom::Samples(why) => Some(why),
        _ => None,
    });
    match (reasons.next(), last) {
        (Some(NoTotalsReason::Off), _) => "totals are off",
        (Some(NoTotalsReason::Selection), _) => "totals have no filters",
        (Some(NoTotalsReason::Keys), _) => "no totals for these keys",
        (Some(NoTotalsReason::Rest), _) => "sums, then largest keys",
        (Some(NoTotalsReason::Log), _) => "a log has no totals",
        (Some(NoTotalsReason::NoTotals), _) => "file has no totals",
        (Some(NoTotalsReason::Cut), _) => "window cuts a minute or group",
        (None, ReadFrom::TotalsOfLargest) => "small keys need samples",
        (None, _) => "answered from totals",
    }
}

/// The chunks that these parts are read from.
fn chunks(
    scan: &Scan,
    plan: &Plan,
    parts: &[&Part],
    ways: (Option<ReadFrom>, ReadFrom),
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
