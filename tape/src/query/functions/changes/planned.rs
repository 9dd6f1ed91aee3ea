//! Inputs of the planner that differ between the old and the new plan of a query: settings (of the
//! server or of one session) and sizes of tables.

use super::effects::Effect;
use super::windows::Windows;
use crate::query::ask::context::Run;
use crate::query::ask::request::Request;
use crate::query::functions::common_columns::collected;
use crate::query::functions::structs::{PlanChanges, PlanChangesRow};
use crate::query::value::error::QueryResult;
use std::sync::Arc;

/// Another plan of a query, whose planner had other inputs.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Time of the first execution by the new plan, in µs since 1970.
    pub time: i64,
    pub query_id: i64,
    /// The role whose plan it is.
    pub username: Option<Arc<str>>,
    /// The inputs that differ: `setting random_page_cost: default -> 1`.
    pub inputs: String,
}

/// Turns to a slower plan with other inputs, of queries that got slower and did not have their plan
/// before.
pub fn planned(
    run: Run,
    node: Option<&str>,
    windows: &Windows,
    effects: &[Effect],
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
    Ok(rows.iter().filter_map(of).collect())
}

/// True if another plan can be the reason of the effect.
pub fn is_wanted(effect: &Effect) -> bool {
    effect.is_notable && effect.change.is_slower() && !effect.keeps_plan
}

fn of(row: &PlanChangesRow) -> Option<Planned> {
    let inputs = row.inputs.as_deref().filter(|inputs| !inputs.is_empty())?;
    let is_slower = row.time_lost.is_some_and(|lost| lost.0 > 0);
    is_slower.then_some(Planned {
        time: row.changed_at?,
        query_id: row.query_id?,
        username: row.username.clone(),
        inputs: inputs.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::ask::row::Numeric;

    #[test]
    fn a_turn_to_a_slower_plan_with_other_inputs_is_a_cause() {
        let kept = |time_lost, inputs: Option<&str>| {
            let row = PlanChangesRow {
                changed_at: Some(7),
                query_id: Some(81),
                time_lost: Some(Numeric(time_lost)),
                inputs: inputs.map(Into::into),
                ..PlanChangesRow::default()
            };
            of(&row).map(|planned| planned.inputs)
        };
        let both = "setting jit: on -> off; table public.t: 1 -> 9 rows";
        assert_eq!(kept(1, Some(both)).as_deref(), Some(both));
        assert_eq!(kept(-1, Some(both)), None, "a faster plan");
        assert_eq!([kept(1, Some("")), kept(1, None)], [None, None]);
    }
}
