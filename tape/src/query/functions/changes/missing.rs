//! Names what the history does not have for these windows, because the cause may be
//! there.

use super::loads::Loads;
use super::windows::Windows;
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::functions::markers;
use crate::query::rows::parse::nodes;
use crate::query::value::error::QueryResult;
use crate::query::value::number::Ratio;

/// A window with less than 99 % observed time is mentioned; the limit is in
/// ten-thousandths of a percent.
const WHOLE: i128 = 990_000;

/// Sentences, without a full stop.
pub fn missing(
    run: Run,
    node: Option<&str>,
    windows: &Windows,
    loads: &Loads,
) -> QueryResult<Vec<String>> {
    let mut missing = Vec::new();
    let [before, after] = loads.coverage();
    for (name, window, covered) in [
        ("the window", windows.after, after),
        ("the time before", windows.before, before),
    ] {
        let Some(covered) = covered.filter(|covered| *covered < WHOLE) else {
            continue;
        };
        let gaps = markers::gaps(run, node, window)?;
        let cause = gaps.into_iter().next().map(|gap| gap.2);
        let cause = cause.filter(|cause| !cause.is_empty());
        let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
        let shown = Ratio::new(covered, 10_000).map_or(0, |r| r.rounded(1));
        missing.push(format!("{shown} % of {name} was observed{cause}"));
    }
    if !has_schema_changes(run, node)? {
        missing.push(
            "this history has no change of the schema (only the extension on a primary sees them)"
                .to_string(),
        );
    }
    Ok(missing)
}

/// True if the history has a marker of a schema change. For most parts the bounds
/// of the column are enough to know.
fn has_schema_changes(run: Run, node: Option<&str>) -> QueryResult<bool> {
    let Some(kind) = run.catalog.value("marker", "schema changed") else {
        return Ok(false);
    };
    for node in nodes(run, node)? {
        for part in run.store.parts(node) {
            run.check_cancel()?;
            let has = run.damage.note_and_continue(has_kind(part, kind))?;
            if has == Some(true) {
                return Ok(true);
            }
        }
    }
    run.damage.check()?;
    Ok(false)
}

fn has_kind(part: &Part, kind: i64) -> QueryResult<bool> {
    let range = part.range("marker", "kind")?;
    match range.is_some_and(|(least, most)| (least..=most).contains(&kind)) {
        false => Ok(false),
        true => Ok(part.ints("marker", "kind")?.contains(&kind)),
    }
}
