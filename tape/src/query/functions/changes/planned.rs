//! Inputs of the planner that differ between the old and the new plan of a query: settings (of the
//! server or of one session) and sizes of tables.

use super::effects::Effect;
use super::windows::Windows;
use crate::query::ask::context::Run;
use crate::query::ask::request::Request;
use crate::query::functions::common_columns::collected;
use crate::query::functions::structs::{PlanChanges, PlanChangesRow};
use crate::query::value::error::QueryResult;

/// Another plan of a query, whose planner had other inputs.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Time of the first execution by the new plan, in µs since 1970.
    pub time: i64,
    pub query_id: i64,
    /// The inputs that differ: `setting random_page_cost: default -> 1`.
    pub inputs: String,
}

/// Changes of plans with other inputs, of queries that got slower and did not have their plan before.
/// Settings that a marker names are left out: the marker knows who changed them.
pub fn planned(
    run: Run,
    node: Option<&str>,
    windows: &Windows,
    effects: &[Effect],
    is_marked: impl Fn(&str) -> bool,
) -> QueryResult<Vec<Planned>> {
    let wanted = effects.iter().filter(|effect| is_wanted(effect));
    let ids: Vec<String> = wanted
        .filter_map(|effect| Some(effect.query_id?.to_string()))
        .collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let earliest = windows.may_begin().saturating_sub(windows.after.length());
    let request = PlanChanges {
        node: node.map(str::to_string),
        since: Some(windows.before.since.clamp(earliest, windows.after.since)),
        until: Some(windows.after.until),
        n: Some(i64::MAX),
        query_id: Some(ids.join(",")),
        ..PlanChanges::default()
    };
    let rows = collected(|emit| request.answer(run, emit))?;
    Ok(rows.iter().filter_map(|row| of(row, &is_marked)).collect())
}

/// True if another plan can be the reason of the effect.
pub fn is_wanted(effect: &Effect) -> bool {
    effect.is_notable && effect.change.is_slower() && !effect.keeps_plan
}

fn of(row: &PlanChangesRow, is_marked: &impl Fn(&str) -> bool) -> Option<Planned> {
    let inputs = row.inputs.as_deref()?.split("; ");
    let is_known = |input: &&str| {
        let setting = input.strip_prefix("setting ")?.split(':').next()?;
        Some(is_marked(setting))
    };
    let inputs: Vec<&str> = inputs
        .filter(|input| !input.is_empty() && !is_known(input).unwrap_or(false))
        .collect();
    (!inputs.is_empty()).then_some(Planned {
        time: row.changed_at?,
        query_id: row.query_id?,
        inputs: inputs.join("; "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_with_a_marker_is_no_input() {
        let kept = |inputs: Option<&str>| {
            let row = PlanChangesRow {
                changed_at: Some(7),
                query_id: Some(81),
                inputs: inputs.map(Into::into),
                ..PlanChangesRow::default()
            };
            of(&row, &|name: &str| name == "jit").map(|planned| planned.inputs)
        };
        let both = "setting jit: on -> off; table public.t: 1 -> 9 rows";
        assert_eq!(
            kept(Some(both)).as_deref(),
            Some("table public.t: 1 -> 9 rows")
        );
        assert_eq!(kept(Some("setting jit: on -> off")), None);
        let geqo = "setting geqo: default -> off";
        assert_eq!(kept(Some(geqo)).as_deref(), Some(geqo));
        assert_eq!([kept(Some("")), kept(None)], [None, None]);
    }
}
