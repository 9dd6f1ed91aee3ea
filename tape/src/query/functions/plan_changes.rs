//! `plan_changes`: statements that turned from one plan to another, and the time that
//! this cost.

use super::common_columns::numeric;
use super::plan::inputs;
use super::plans::{blocks, histories, mean, ms, per_call};
use super::statements_history::{statement_filters, text_of, texts};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::rows::parse::{Window, limit};
use crate::query::sums::counters::Counters;
use crate::query::sums::plan_sums::Which;
use crate::query::sums::plan_turns::{Turn, turns};
use crate::query::sums::statement_sums::{EntryKey, Stats};
use crate::query::value::error::QueryResult;
use crate::query::value::number::Ratio;
use std::cmp::Reverse;
use std::sync::Arc;

row! {
    /// A row of `plan_changes`.
    PlanChangesRow of "plan_changes": FIELDS {
        changed_at: Time,
        grain: Interval,
        time_lost: Numeric,
        ratio: Numeric,
        query_id: Id,
        database: Text,
        username: Text,
        toplevel: Bool,
        query_text: Text,
        old_plan_id: Id,
        new_plan_id: Id,
        old_calls: Int,
        new_calls: Int,
        old_mean_exec_time: Numeric,
        new_mean_exec_time: Numeric,
        old_rows_per_call: Numeric,
        new_rows_per_call: Numeric,
        old_blocks_per_call: Numeric,
        new_blocks_per_call: Numeric,
        inputs: Text,
        back_at: Time,
        old_hint: Text,
        old_hint_lacks: Text,
        old_advice: Text,
        old_advice_lacks: Text,
    }
}

request! {
    /// Statements that turned to another plan, and the time that this cost
    PlanChanges of plan_changes: PlanChangesRow {
        node,
        since,
        until,
        n("Most changes, or all", Some("10")),
        query_id,
        database,
        username,
        toplevel,
    }
}

fn answer(asked: &PlanChanges, run: Run, emit: Emit<PlanChangesRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let n = limit(asked.n)?;
    let node = asked.node.as_deref();
    let stats = Stats {
        run,
        window,
        counters: Counters::default(),
        filters: statement_filters!(asked, run)?,
    };
    let histories = histories(&stats, node, Which::Several)?;
    let mut found: Vec<Found> = Vec::new();
    for ((_, key), intervals) in histories {
        run.check_cancel()?;
        let own = turns(&intervals);
        let back: Vec<Option<i64>> = (0..own.len()).map(|at| back_at(&own[at..])).collect();
        let own = own.into_iter().zip(back);
        found.extend(own.map(|(turn, back_at)| Found {
            lost: lost(&turn),
            key: key.clone(),
            turn,
            back_at,
        }));
    }
    found.sort_by(|a, b| a.order().cmp(&b.order()));
    found.truncate(n);
    let keys: Vec<EntryKey> = found.iter().map(|found| found.key.clone()).collect();
    let texts = texts(run, node, window, &keys)?;
    let turns: Vec<(&EntryKey, &Turn)> = found.iter().map(|f| (&f.key, &f.turn)).collect();
    let known = inputs::of_turns(run, node, &turns)?;
    run.check_cancel()?;
    for (found, known) in found.iter().zip(known) {
        let hint = known.back.unwrap_or_default();
        let advice = known.advice.unwrap_or_default();
        let commands = found.key.query_id.and_then(|id| advice.commands(id));
        emit(PlanChangesRow {
            inputs: known.inputs.map(Arc::from),
            back_at: found.back_at,
            old_hint: hint.text.as_deref().map(Arc::from),
            old_hint_lacks: hint.lacks().map(Arc::from),
            old_advice: commands.map(Arc::from),
            old_advice_lacks: advice.lacks().map(Arc::from),
            ..row(&found.key, text_of(&texts, &found.key), &found.turn)
        })?;
    }
    Ok(())
}

/// A turn, with its statement.
struct Found {
    lost: i64,
    key: EntryKey,
    turn: Turn,
    back_at: Option<i64>,
}

impl Found {
    fn order(&self) -> (Reverse<i64>, &EntryKey, i64) {
        (Reverse(self.lost), &self.key, self.turn.at_us)
    }
}

/// The time since which the old plan of the first turn is back; `None` if the statement ended with
/// another plan.
fn back_at(turns: &[Turn]) -> Option<i64> {
    let old = turns.first()?.before.plan_id;
    let last = turns.last()?;
    (last.after.plan_id == old).then_some(last.at_us)
}

/// The time that executions by the new plan took more than the same number by the old
/// one, in 10 µs.
fn lost(turn: &Turn) -> i64 {
    let (old, new) = (&turn.before.cost, &turn.after.cost);
    let by_old = i128::from(old.time) * i128::from(new.calls) / i128::from(old.calls.max(1));
    let lost = i128::from(new.time) - by_old;
    lost.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The new mean divided by the old one.
fn ratio(turn: &Turn) -> Option<Ratio> {
    let (old, new) = (&turn.before.cost, &turn.after.cost);
    let num = i128::from(new.time) * i128::from(old.calls);
    let den = i128::from(old.time) * i128::from(new.calls);
    // Rounding multiplies both numbers by less than 2^16; without the shift the
    // products could overflow.
    let shift = 24_u32.saturating_sub(num.max(den).leading_zeros());
    Ratio::new(num >> shift, den >> shift)
}

/// A row without the trees of its plans.
fn row(key: &EntryKey, query_text: Option<Arc<str>>, turn: &Turn) -> PlanChangesRow {
    let (old, new) = (&turn.before.cost, &turn.after.cost);
    PlanChangesRow {
        changed_at: Some(turn.at_us),
        grain: turn.grain_us,
        time_lost: Some(ms(lost(turn))),
        ratio: numeric(ratio(turn)),
        query_id: key.query_id,
        database: key.database.as_deref().map(Arc::from),
        username: key.username.as_deref().map(Arc::from),
        toplevel: Some(key.toplevel),
        query_text,
        old_plan_id: Some(turn.before.plan_id),
        new_plan_id: Some(turn.after.plan_id),
        old_calls: Some(old.calls),
        new_calls: Some(new.calls),
        old_mean_exec_time: numeric(mean(old)),
        new_mean_exec_time: numeric(mean(new)),
        old_rows_per_call: per_call(old.rows.into(), old),
        new_rows_per_call: per_call(new.rows.into(), new),
        old_blocks_per_call: per_call(blocks(old), old),
        new_blocks_per_call: per_call(blocks(new), new),
        inputs: None,
        back_at: None,
        old_hint: None,
        old_hint_lacks: None,
        old_advice: None,
        old_advice_lacks: None,
    }
}
