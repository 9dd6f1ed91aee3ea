//! The list of what changed, and the list of a query's plans.

use crate::table::{Item, Table, figure, number, percent, whole};
use crate::text::line;
use jiff::tz::TimeZone;
use tacho_source::rows::Rows;
use tacho_source::time::table_time;
use tacho_tape::query::{ChangesRow, PlanChangesRow, PlansRow};

/// The time of day; empty if unknown.
fn clock(at: Option<i64>, zone: &TimeZone) -> String {
    at.map_or(String::new(), |at| table_time(at, zone)[11..19].to_string())
}

/// The list of findings: causes first, then the load that changed. If the earlier window was not
/// recorded, the list only says so, because all load would look new.
pub fn findings(rows: &Rows, zone: &TimeZone) -> Table {
    let rows: Vec<ChangesRow> = rows.read();
    let items = match rows.first().filter(|row| row.has_normal_window()) {
        Some(_) => rows.iter().map(|row| finding(row, zone)).collect(),
        None => rows
            .first()
            .map(|row| unknown(row, zone))
            .into_iter()
            .collect(),
    };
    Table {
        left: format!("{:<8} {:<6} {:>6}", "since", "kind", "%"),
        bar: "",
        right: format!("{:<19} finding", "rule"),
        items,
    }
}

fn finding(row: &ChangesRow, zone: &TimeZone) -> Item {
    let text = |known: &Option<std::sync::Arc<str>>| line(known.as_deref().unwrap_or_default());
    let said = text(&row.explanation);
    let query = match row.query_text {
        Some(_) => format!("  {}", text(&row.query_text)),
        None => String::new(),
    };
    Item {
        key: query_of(row),
        left: format!(
            "{:<8} {:<6} {:>6}",
            clock(row.started, zone),
            text(&row.kind),
            percent(number(row.pct))
        ),
        right: format!("{:<19} {said}", text(&row.rule)),
        detail: format!("{said}{query}"),
        copied: row.next.as_deref().unwrap_or(&said).to_string(),
        ..Item::default()
    }
}

/// Id of the query that a finding is about, or of the first query that a cause explains.
fn query_of(row: &ChangesRow) -> Option<String> {
    let explained = row.explains.as_deref().unwrap_or_default().split(", ");
    let own = row.key.as_deref();
    let own = own.filter(|_| row.dimension.as_deref() == Some("query_id"));
    let is_number = |key: &&str| key.parse::<i64>().is_ok();
    own.into_iter()
        .chain(explained)
        .find(is_number)
        .map(str::to_string)
}

fn unknown(row: &ChangesRow, zone: &TimeZone) -> Item {
    let [since, until] = [row.before_start, row.before_end].map(|at| clock(at, zone));
    let said = format!("nothing to compare with: {since} to {until} was not recorded");
    Item {
        right: said.clone(),
        detail: said,
        ..Item::default()
    }
}

/// The plans of a query, and above them when it turned from one to another.
pub fn plans(rows: &Rows, changes: Option<&Rows>, zone: &TimeZone) -> Table {
    let changes: Vec<PlanChangesRow> = changes.map_or(Vec::new(), Rows::read);
    let plans: Vec<PlansRow> = rows.read();
    let turned = changes.iter().map(|row| turn(row, zone));
    let used = plans.iter().map(|row| plan(row, zone));
    Table {
        left: format!("{:<20} {:>5}", "plan", "%"),
        bar: "",
        right: format!(
            "{:<8} {:<8} {:>7} {:>7} {:>9}  {:<7}  {:>7} {:>7}  source",
            "first", "last", "calls", "mean ms", "rows/call", "type", "p95 ms", "cpu ms"
        ),
        items: turned.chain(used).collect(),
    }
}

fn turn(row: &PlanChangesRow, zone: &TimeZone) -> Item {
    let at = format!("changed {}", clock(row.changed_at, zone));
    let [old, new] = [row.old_mean_exec_time, row.new_mean_exec_time].map(|ms| figure(number(ms)));
    let text = format!("{old} ms to {new} ms, {} times", figure(number(row.ratio)));
    let [from, to] = [row.old_plan_id, row.new_plan_id].map(whole);
    let back = row.back_at.map(|at| clock(Some(at), zone));
    let back = back.map_or(String::new(), |at| {
        format!(", the old plan is back since {at}")
    });
    let detail = format!("plan {at}: {text}, from plan {from} to {to}{back}");
    Item {
        left: format!("{at:<20} {:>5}", ""),
        right: format!("{text}{back}"),
        copied: detail.clone(),
        plans: vec![from, to],
        detail,
        ..Item::default()
    }
}

/// Mean CPU time of an execution in ms.
fn cpu_per_call(row: &PlansRow) -> Option<f64> {
    let calls = row.calls.filter(|calls| *calls > 0)?;
    number(row.cpu_time).map(|ms| ms / calls as f64)
}

fn plan(row: &PlansRow, zone: &TimeZone) -> Item {
    let id = row
        .plan_id
        .map_or("(unknown)".to_string(), |id| id.to_string());
    let text = line(row.query_text.as_deref().unwrap_or_default());
    Item {
        left: format!("{id:<20} {:>5}", percent(number(row.pct))),
        right: format!(
            "{:<8} {:<8} {:>7} {:>7} {:>9}  {:<7}  {:>7} {:>7}  {}",
            clock(row.first_seen, zone),
            clock(row.last_seen, zone),
            whole(row.calls),
            figure(number(row.mean_exec_time)),
            figure(number(row.rows_per_call)),
            row.plan_type.as_deref().unwrap_or("-"),
            figure(number(row.p95_exec_time)),
            figure(cpu_per_call(row)),
            line(row.source.as_deref().unwrap_or_default())
        ),
        detail: text,
        copied: id,
        plans: row.plan_id.iter().map(i64::to_string).collect(),
        ..Item::default()
    }
}
