//! Why a plan has no tree: the recorded reason, or what follows from the rest of the history.

use super::trees::Trees;
use crate::format::part::Part;
use crate::format::schema::RUN;
use crate::query::ask::context::Run;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::{View, field};
use crate::query::rows::parse::nodes;
use crate::query::value::civil::time_text;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::filter::Filter;
use crate::query::value::vocabulary as pg;

/// The table of the recorded reasons.
const LEFT_OUT: &str = "tree_left_out";

/// Facts about a plan from the whole history.
#[derive(Default)]
struct Facts {
    /// The newest recorded reason: its time in ms since 1970, and its label.
    reason: Option<(i64, String)>,
    /// True if a sample or a counter has the plan; for a reader who sees one role, of that role.
    is_seen: bool,
    /// True if it was seen where the schema has trees.
    with_trees: bool,
    /// True if it was seen where the schema has reasons.
    with_reasons: bool,
    /// True if any sample has a plan.
    any_plan: bool,
    /// True if another query, database or role has a tree of the plan.
    of_another: bool,
    /// When the newest tree that the filters accept was recorded, in ms since 1970. Its bytes are no
    /// tree, or it would be shown.
    unreadable: Option<i64>,
    /// True if a part of the history is damaged, which may have a tree of the plan.
    is_damaged: bool,
}

/// The notice for a plan without a tree.
pub(super) fn notice(
    run: Run,
    node: Option<&str>,
    plan_id: i64,
    filters: &[Option<Filter>; 3],
) -> QueryResult<QueryError> {
    let message = |why: &str| format!("plan {plan_id} has no tree in the history: {why}");
    let notice = |why: &str| QueryError::new("00000", message(why));
    if !run.texts {
        return Ok(notice("you may not read the texts of queries")
            .hint("Only roles that may read the texts of queries see trees of plans."));
    }
    let facts = facts(run, node, plan_id, filters)?;
    let found = notice(&facts.why());
    let found = match run.owner {
        Some(_) => found.detail("Trees of plans that other roles executed are not shown to you."),
        None => found,
    };
    Ok(match facts.advice() {
        Some(hint) => found.hint(hint),
        None => found,
    })
}

impl Facts {
    fn why(&self) -> String {
        if let Some(time_ms) = self.unreadable {
            return format!(
                "its tree of {} cannot be read: it is damaged, or of a later version",
                time_text(time_ms.saturating_mul(1000))
            );
        }
        if self.of_another {
            return "it has one of another query, database or role than you ask for".into();
        }
        if let Some((time_ms, label)) = &self.reason {
            return format!(
                "{} ({})",
                because(label),
                time_text(time_ms.saturating_mul(1000))
            );
        }
        let why = match self {
            Facts {
                is_damaged: true, ..
            } => "a part of the history that may have it is damaged",
            Facts {
                any_plan: false, ..
            } => {
                "no sample and no counter of it has a plan, as in histories of \"tacho record\" and of the SQL edition"
            }
            Facts { is_seen: false, .. } => "no sample and no counter of it has this plan",
            Facts {
                with_trees: false, ..
            } => "it was executed before an update, by a version that recorded no trees",
            Facts {
                with_reasons: false,
                ..
            } => "not recorded by a version that did not record the reason",
            _ => "not recorded for an unknown reason",
        };
        why.to_string()
    }

    /// Advice for reasons that a setting or an execution removes.
    fn advice(&self) -> Option<&'static str> {
        if self.unreadable.is_some() {
            return Some("The next execution on another day records it once more.");
        }
        if self.of_another {
            return Some("Ask without query_id, database and username.");
        }
        match self.reason.as_ref()?.1.as_str() {
            "off" => Some("Switch tacho.plan_text on. The next execution is recorded."),
            "limit of the database" | "limit of the server" => {
                Some("The next execution tries again. The limit is tacho.plan_text_rate.")
            }
            "share of the day" => Some("The limit is tacho.text_limit. It begins again each day."),
            _ => Some("The next execution tries again."),
        }
    }
}

/// The sentence for a label of the enumeration `left_out`.
fn because(label: &str) -> &str {
    match label {
        "off" => "tacho.plan_text was off",
        "limit of the database" => "its database had used up its part of tacho.plan_text_rate",
        "limit of the server" => "the server had used up tacho.plan_text_rate",
        "share of the day" => "its role had used up its share of tacho.text_limit for that day",
        "no room" => "the memory for texts was full or busy",
        "no memory" => "the process had no memory for it",
        other => other,
    }
}

fn facts(
    run: Run,
    node: Option<&str>,
    plan_id: i64,
    filters: &[Option<Filter>; 3],
) -> QueryResult<Facts> {
    let mut facts = Facts::default();
    for node in nodes(run, node)? {
        for part in run.store.parts(node) {
            run.check_cancel()?;
            let read = look(run, part, plan_id, filters, &mut facts);
            facts.is_damaged |= run.damage.leave_out_part(part, read)?.is_none();
            part.release();
        }
    }
    if run.owner.is_some() && !facts.is_seen {
        facts.reason = None;
    }
    Ok(facts)
}

fn look(
    run: Run,
    part: &Part,
    plan_id: i64,
    filters: &[Option<Filter>; 3],
    facts: &mut Facts,
) -> QueryResult<()> {
    let plans = part.ints("statement", "plan_id")?;
    facts.any_plan |= plans.iter().any(|id| *id != 0) || part.rows("plan_stats") > 0;
    if is_sampled(run, part, plan_id)? || is_counted(run, part, plan_id)? {
        facts.is_seen = true;
        facts.with_trees |= part.schema().table("plan_tree").is_some();
        facts.with_reasons |= part.schema().table(LEFT_OUT).is_some();
    }
    look_at_trees(run, part, plan_id, filters, facts)?;
    let ids = part.ints(LEFT_OUT, "plan_id")?;
    let times = part.ints(LEFT_OUT, "time")?;
    let reasons = part.ints(LEFT_OUT, "reason")?;
    for row in (0..ids.len()).filter(|row| ids[*row] == plan_id) {
        let label = part.schema().label("left_out", reasons[row]);
        let newest = facts
            .reason
            .as_ref()
            .is_none_or(|(at, _)| *at <= times[row]);
        if let (true, Some(label)) = (newest, label) {
            facts.reason = Some((times[row], label.to_string()));
        }
    }
    Ok(())
}

/// A tree that the filters accept has bytes that are no tree, or it would have been shown.
fn look_at_trees(
    run: Run,
    part: &Part,
    plan_id: i64,
    filters: &[Option<Filter>; 3],
    facts: &mut Facts,
) -> QueryResult<()> {
    if part.rows("plan_tree") == 0 {
        return Ok(());
    }
    let trees = Trees::of(run, part)?;
    for row in trees.rows_of(plan_id) {
        if trees.executed(row)?.is_accepted(filters) {
            facts.unreadable = facts.unreadable.max(Some(trees.time_ms(row)?));
        } else {
            facts.of_another |= run.owner.is_none();
        }
    }
    Ok(())
}

/// True if a sample has the plan.
fn is_sampled(run: Run, part: &Part, plan_id: i64) -> QueryResult<bool> {
    let plans = part.ints("statement", "plan_id")?;
    if !plans.contains(&plan_id) {
        return Ok(false);
    }
    let Some(owner) = &run.owner else {
        return Ok(true);
    };
    let view = View::new(part, run.decode);
    let statements = part.ints(RUN, "statement")?;
    let sessions = part.ints(RUN, "session")?;
    let names = part.ints("session", pg::USERNAME)?;
    for (statement, session) in statements.iter().zip(sessions.iter()) {
        if field(&plans, Reference(*statement)) == plan_id
            && view
                .name(Reference(field(&names, Reference(*session))))?
                .as_ref()
                == Some(owner)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True if a counter has the plan.
fn is_counted(run: Run, part: &Part, plan_id: i64) -> QueryResult<bool> {
    let plans = part.ints("plan_stats", "plan_id")?;
    let entries = part.ints("plan_stats", "entry")?;
    let names = part.ints("entry", pg::USERNAME)?;
    let view = View::new(part, run.decode);
    for (plan, entry) in plans.iter().zip(entries.iter()) {
        if *plan != plan_id {
            continue;
        }
        let name = view.name(Reference(field(&names, Reference(*entry))))?;
        if run.owner.is_none() || run.owner == name {
            return Ok(true);
        }
    }
    Ok(false)
}
