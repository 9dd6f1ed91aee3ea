//! `plan`: the nodes of one plan, with the text of EXPLAIN and JSON for viewers of plans. Or the
//! nodes of two plans, with their differences.

mod absent;
mod actuals;
pub(super) mod advice;
mod branches;
mod differences;
mod explained;
pub(super) mod hint;
pub(super) mod inputs;
mod json;
mod tree;
mod trees;
pub(super) mod types;
mod words;

use self::actuals::Actuals;
use self::advice::Advice;
use self::differences::differences;
use self::hint::Hint;
use self::tree::{Node, Tree};
use self::trees::{Executed, Trees};
use self::words::{ALIAS, INDEX, NAME, RELATION, SCHEMA, TABLE_PAGES, TABLE_ROWS};
use super::common_columns::some_time;
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::{Numeric, row};
use crate::query::rows::parse::nodes;
use crate::query::value::bucket::DAY;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::filter::Filter;
use std::sync::Arc;

row! {
    /// A row of `plan`: a node.
    PlanRow of "plan": FIELDS {
        node_number: Int,
        depth: Int,
        node_type: Text,
        relation: Text,
        schema: Text,
        alias: Text,
        index_name: Text,
        condition: Text,
        rows: Int,
        width: Int,
        startup_cost: Numeric,
        total_cost: Numeric,
        explain: Text,
        plan_id: Id,
        query_id: Id,
        database: Text,
        username: Text,
        recorded_at: Time,
        differs: Text,
        other: Text,
        plan_json: Text,
        settings: Text,
        table_rows: Int,
        table_pages: Int,
        hint: Text,
        hint_lacks: Text,
        actual_rows: Numeric,
        actual_loops: Int,
        is_lower_bound: Bool,
        measured_at: Time,
        plan_type: Text,
        advice: Text,
        advice_lacks: Text,
        analyzed_at: Time,
    }
}

request! {
    /// The nodes of a plan, as EXPLAIN prints them, or of two plans with their differences
    Plan of plan: PlanRow {
        node,
        plan_id,
        diff,
        query_id,
        database,
        username,
    }
}

/// A recorded tree with its origin.
struct Recorded {
    time_ms: i64,
    plan_id: i64,
    executed: Executed,
    tree: Tree,
}

fn answer(asked: &Plan, run: Run, emit: Emit<PlanRow>) -> QueryResult<()> {
    let filters = filters(asked, run)?;
    let wanted = |name, given: &Option<String>| wanted_id(name, given.as_deref());
    let Some(plan_id) = wanted("plan_id", &asked.plan_id)? else {
        if run.explained.is_some() {
            let error =
                QueryError::invalid("function \"plan\" cannot be explained without a plan id");
            return Err(error.hint("Ask on the command line: tacho plan ID --explain."));
        }
        let notice = notice("no plan id was given").hint("Give the id of a plan.");
        run.damage.note_missing(notice);
        return Ok(());
    };
    let mut found = Vec::new();
    for id in [Some(plan_id), wanted("diff", &asked.diff)?]
        .into_iter()
        .flatten()
    {
        match newest(asked, run, id, &filters)? {
            Some(recorded) => found.push(recorded),
            None => {
                let why = absent::notice(run, asked.node.as_deref(), id, &filters)?;
                run.damage.note_missing(why);
            }
        }
    }
    match &found[..] {
        [plan, other] => {
            emit_plan(plan, Some(other), emit)?;
            emit_plan(other, Some(plan), emit)?;
        }
        plans => {
            for plan in plans {
                emit_plan(plan, None, emit)?;
            }
        }
    }
    Ok(())
}

/// The rows of a plan; `other`: the plan to compare it with.
fn emit_plan(found: &Recorded, other: Option<&Recorded>, emit: Emit<PlanRow>) -> QueryResult<()> {
    let texts = explained::texts(&found.tree);
    let differences = other.map(|other| differences(&found.tree, &other.tree));
    for (index, (node, text)) in found.tree.nodes.iter().zip(texts).enumerate() {
        let difference = differences.as_ref().map(|all| &all[index]);
        let row = PlanRow {
            differs: difference.map(|difference| difference.kind().into()),
            other: difference
                .and_then(|difference| difference.other())
                .map(Arc::from),
            ..row(found, index, node, text)
        };
        emit(match index {
            0 => first_row(found, row),
            _ => row,
        })?;
    }
    Ok(())
}

/// The row of the first node, with the columns about the whole plan.
fn first_row(found: &Recorded, row: PlanRow) -> PlanRow {
    let hint = Hint::of(&found.tree);
    let advice = Advice::of(&found.tree);
    PlanRow {
        plan_json: Some(json::whole(&found.tree).into()),
        settings: settings(&found.tree),
        hint: hint.text.as_deref().map(Arc::from),
        hint_lacks: hint.lacks().map(Arc::from),
        plan_type: found.tree.plan_type.map(Arc::from),
        advice: advice.commands(found.executed.query_id).map(Arc::from),
        advice_lacks: advice.lacks().map(Arc::from),
        ..row
    }
}

/// The planner's settings that were not the default, one a line.
fn settings(tree: &Tree) -> Option<Arc<str>> {
    let lines: Vec<String> = tree
        .settings()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n").into())
}

/// The id, or `None` if it is null.
fn wanted_id(name: &str, given: Option<&str>) -> QueryResult<Option<i64>> {
    let invalid = |text: &str| {
        QueryError::invalid(format!("invalid value \"{text}\" for argument \"{name}\""))
            .hint("Give one whole number.")
    };
    let parsed = given.map(|text| text.trim().parse().map_err(|_| invalid(text)));
    parsed.transpose()
}

impl Executed {
    /// True if the filters accept query id, database and role.
    fn is_accepted(&self, filters: &[Option<Filter>; 3]) -> bool {
        let keys = [
            Some(self.query_id.to_string()),
            self.database.clone(),
            self.username.clone(),
        ];
        let mut accepted = filters.iter().zip(&keys);
        accepted.all(|(filter, key)| filter.as_ref().is_none_or(|f| f.accepts(key.as_deref())))
    }
}

fn notice(message: impl Into<String>) -> QueryError {
    QueryError::new("00000", message)
}

/// The filters of a row's query id, database and role.
fn filters(asked: &Plan, run: Run) -> QueryResult<[Option<Filter>; 3]> {
    let parse = |name, text: &Option<String>| {
        let filter = text.as_deref().map(|text| Filter::parse(name, text));
        filter.transpose()
    };
    let username = match &run.owner {
        Some(owner) => Some(Filter {
            any: vec![Some(owner.clone())],
            none: Vec::new(),
        }),
        None => parse("username", &asked.username)?,
    };
    let query_id = parse("query_id", &asked.query_id)?;
    Ok([query_id, parse("database", &asked.database)?, username])
}

impl Recorded {
    /// True if this tree is shown instead of the other one: one whose rows were counted within the
    /// day before is shown first.
    fn is_before(&self, other: &Recorded) -> bool {
        let counted = (self.tree.has_actuals(), other.tree.has_actuals());
        match counted {
            (true, false) => self.time_ms >= other.time_ms - DAY / 1000,
            (false, true) => self.time_ms > other.time_ms + DAY / 1000,
            _ => self.time_ms >= other.time_ms,
        }
    }
}

/// The tree that was recorded last.
fn newest(
    asked: &Plan,
    run: Run,
    plan_id: i64,
    filters: &[Option<Filter>; 3],
) -> QueryResult<Option<Recorded>> {
    let mut newest: Option<Recorded> = None;
    if !run.texts {
        return Ok(None);
    }
    for node in nodes(run, asked.node.as_deref())? {
        let parts: Vec<&Part> = run.store.parts(node).collect();
        for part in parts.into_iter().rev() {
            run.check_cancel()?;
            if part.rows("plan_tree") == 0 {
                continue;
            }
            let since_ms = newest.as_ref().map(|known| known.time_ms - DAY / 1000);
            if since_ms.is_some_and(|since_ms| part.max_ms() < since_ms) {
                break;
            }
            let read = read_part(run, part, plan_id, filters);
            let Some(found) = run.damage.leave_out_part(part, read)?.flatten() else {
                continue;
            };
            let is_last = found.tree.has_actuals();
            if newest.as_ref().is_none_or(|known| found.is_before(known)) {
                newest = Some(found);
            }
            if is_last {
                break;
            }
        }
    }
    Ok(newest)
}

/// The last tree of the plan in a part.
fn read_part(
    run: Run,
    part: &Part,
    plan_id: i64,
    filters: &[Option<Filter>; 3],
) -> QueryResult<Option<Recorded>> {
    let trees = Trees::of(run, part)?;
    let mut found: Option<Recorded> = None;
    for row in trees.rows_of(plan_id) {
        let executed = trees.executed(row)?;
        if !executed.is_accepted(filters) {
            continue;
        }
        let Some(tree) = trees.tree(row)? else {
            continue;
        };
        let recorded = Recorded {
            time_ms: trees.time_ms(row)?,
            plan_id,
            executed,
            tree,
        };
        if found.as_ref().is_none_or(|known| recorded.is_before(known)) {
            found = Some(recorded);
        }
    }
    Ok(found)
}

/// A row without differences.
fn row(found: &Recorded, index: usize, node: &Node, explain: String) -> PlanRow {
    let text = |kind: u8| node.text(kind).map(Arc::from);
    let cost = |hundredths: u64| Some(Numeric(i128::from(hundredths) * 100));
    let count = |number: u64| i64::try_from(number).ok();
    let actuals = node.actuals();
    let lines: Vec<String> = node
        .lines()
        .map(|(label, value)| format!("{label}: {value}"))
        .collect();
    PlanRow {
        node_number: i64::try_from(index + 1).ok(),
        depth: i64::try_from(node.depth).ok(),
        node_type: Some(node.title().into()),
        relation: text(RELATION).or_else(|| text(NAME)),
        schema: text(SCHEMA),
        alias: text(ALIAS),
        index_name: text(INDEX),
        condition: (!lines.is_empty()).then(|| lines.join("\n").into()),
        rows: count(node.rows),
        width: count(node.width),
        startup_cost: cost(node.startup_cost),
        total_cost: cost(node.total_cost),
        explain: Some(explain.into()),
        plan_id: Some(found.plan_id),
        query_id: Some(found.executed.query_id),
        database: found.executed.database.as_deref().map(Arc::from),
        username: found.executed.username.as_deref().map(Arc::from),
        recorded_at: some_time(found.time_ms, 1000),
        differs: None,
        other: None,
        plan_json: None,
        settings: None,
        table_rows: node.number(TABLE_ROWS),
        table_pages: node.number(TABLE_PAGES),
        hint: None,
        hint_lacks: None,
        actual_rows: actuals.as_ref().and_then(Actuals::rows),
        actual_loops: actuals.as_ref().and_then(|actuals| count(actuals.loops)),
        is_lower_bound: actuals.as_ref().map(|actuals| actuals.is_lower_bound),
        measured_at: actuals.and(some_time(found.time_ms, 1000)),
        plan_type: None,
        advice: None,
        advice_lacks: None,
        analyzed_at: node.analyzed_us(),
    }
}
