//! Two plans of a query beside each other, with their differences marked.
//!
//! The reader function `plan` finds the differences; a plan's tree comes after the other's.

use crate::table::{Item, Table};
use crate::text::line;
use jiff::tz::TimeZone;
use tacho_source::rows::Rows;
use tacho_source::time::table_time;
use tacho_tape::query::PlanRow;

/// The plans of the chosen row: both plans of a change, or the row's plan and the first other one
/// of the list.
pub fn chosen(table: &Table, row: usize) -> Vec<String> {
    let own = table.items.get(row).map_or(&[][..], |item| &item.plans);
    let [plan] = own else {
        return own.to_vec();
    };
    let all = table.items.iter().flat_map(|item| &item.plans);
    let other = all.into_iter().find(|other| *other != plan);
    [Some(plan), other].into_iter().flatten().cloned().collect()
}

/// A line of a plan.
struct Line {
    text: String,
    detail: String,
    copied: String,
}

/// The trees of `plans`, and the reasons why one is missing.
pub fn trees(
    rows: &Rows,
    plans: &[String],
    reasons: &[String],
    width: usize,
    zone: &TimeZone,
) -> Table {
    table(&rows.read::<PlanRow>(), plans, reasons, width, zone)
}

fn table(
    rows: &[PlanRow],
    plans: &[String],
    reasons: &[String],
    width: usize,
    zone: &TimeZone,
) -> Table {
    let half = width / 2;
    let sides = [0, 1].map(|side| lines(rows, plans.get(side), zone));
    let [first, second] = [0, 1].map(|side| head(rows, plans.get(side)));
    let reasons = reasons.iter().map(|reason| Item {
        left: line(reason),
        detail: line(reason),
        copied: line(reason),
        ..Item::default()
    });
    let count = sides.iter().map(Vec::len).max().unwrap_or(0);
    let beside = (0..count).map(|at| beside(sides[0].get(at), sides[1].get(at), half));
    Table {
        left: format!("{first:<half$.half$}"),
        bar: "",
        right: second,
        items: reasons.chain(beside).collect(),
    }
}

/// The rows of a plan, and the other rows.
fn split<'r>(rows: &'r [PlanRow], plan: Option<&String>) -> (Vec<&'r PlanRow>, Vec<&'r PlanRow>) {
    let is_own = |row: &&PlanRow| row.plan_id.map(|id| id.to_string()).as_ref() == plan;
    rows.iter().partition(is_own)
}

/// The head of a plan: its id, and its type if that is known.
fn head(rows: &[PlanRow], plan: Option<&String>) -> String {
    let own = split(rows, plan).0;
    let name = own.iter().find_map(|row| row.plan_type.as_deref());
    let name = name.map_or(String::new(), |name| format!(", {name}"));
    format!("plan {}{name}", plan.map_or("", String::as_str))
}

/// A row of the screen.
fn beside(left: Option<&Line>, right: Option<&Line>, half: usize) -> Item {
    let text = |line: Option<&Line>| line.map_or(String::new(), |line| line.text.clone());
    let details = [left, right].into_iter().flatten();
    let details: Vec<&str> = details.map(|line| line.detail.as_str()).collect();
    Item {
        left: format!("{:<half$.half$}", text(left)),
        right: text(right),
        detail: details.join("  |  "),
        copied: left.or(right).map_or(String::new(), |l| l.copied.clone()),
        ..Item::default()
    }
}

/// The lines of a plan, then the inputs of the planner, then the way back. A node or input that the
/// other plan has not, or has otherwise, is marked with "!".
fn lines(rows: &[PlanRow], plan: Option<&String>, zone: &TimeZone) -> Vec<Line> {
    let (own, other) = split(rows, plan);
    let (own_inputs, other_inputs) = (inputs(&own, zone), inputs(&other, zone));
    let inputs = own_inputs.into_iter().map(|(name, text)| {
        let is_same = other.is_empty() || other_inputs.contains(&(name, text.clone()));
        Line {
            text: format!("{} {name} {text}", if is_same { ' ' } else { '!' }),
            detail: format!("{name} {text}"),
            copied: text,
        }
    });
    let nodes = own.iter().flat_map(|row| node(row));
    nodes.chain(inputs).chain(way_back(&own)).collect()
}

/// The hint and the advice that bring the plan back, each followed by its lacks.
fn way_back(rows: &[&PlanRow]) -> Vec<Line> {
    let ways = rows.iter().flat_map(|row| {
        let hint = way(
            "hint",
            "no hint:",
            row.hint.as_deref(),
            row.hint_lacks.as_deref(),
        );
        let [text, lacks] = [&row.advice, &row.advice_lacks].map(Option::as_deref);
        hint.into_iter()
            .chain(way("advice", "no advice:", text, lacks))
    });
    ways.collect()
}

/// Lines with a way back to a plan and with its lacks. Each line of the way copies the whole way.
fn way(name: &str, none: &str, text: Option<&str>, lacks: Option<&str>) -> Vec<Line> {
    let of = |name: &str, shown: &str, copied: &str| Line {
        text: format!("  {name} {}", line(shown)),
        detail: format!("{name} {}", line(shown)),
        copied: copied.to_string(),
    };
    let (text, lacks) = (text.unwrap_or_default(), lacks.unwrap_or_default());
    let ways = text.lines().map(|shown| of(name, shown, text));
    let lacks = lacks.lines().map(|sentence| of(none, sentence, sentence));
    ways.chain(lacks).collect()
}

/// The settings of the planner that were not the default, and when each relation was analyzed last.
fn inputs(rows: &[&PlanRow], zone: &TimeZone) -> Vec<(&'static str, String)> {
    let texts = rows.iter().filter_map(|row| row.settings.as_deref());
    let settings = texts.flat_map(str::lines).map(str::to_string);
    let mut analyzed: Vec<String> = Vec::new();
    for row in rows {
        let name = [row.schema.as_deref(), row.relation.as_deref()];
        let name: Vec<String> = name.into_iter().flatten().map(line).collect();
        let at = row.analyzed_at.map(|at| table_time(at, zone));
        let text = at.map(|at| format!("{} {at}", name.join(".")));
        analyzed.extend(text.filter(|text| !analyzed.contains(text)));
    }
    let settings = settings.map(|text| ("setting", text));
    settings
        .chain(analyzed.into_iter().map(|text| ("analyzed", text)))
        .collect()
}

fn node(row: &PlanRow) -> Vec<Line> {
    let kind = row.differs.as_deref().unwrap_or("same");
    let mark = if kind == "same" { ' ' } else { '!' };
    let other = match (kind, row.other.as_deref()) {
        ("missing", _) => "  other plan: nothing like it".to_string(),
        (_, Some(other)) => format!("  other plan: {}", line(other)),
        _ => String::new(),
    };
    let explain = row.explain.as_deref().unwrap_or_default();
    let of = |text: &str| Line {
        // Half a screen has no room for estimates: the details have them.
        text: format!("{mark} {}", text.split("  (cost=").next().unwrap_or(text)),
        detail: format!("{}{other}", line(text)),
        copied: explain.to_string(),
    };
    explain.lines().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(plan: i64, explain: &str, differs: &str, other: Option<&str>) -> PlanRow {
        PlanRow {
            plan_id: Some(plan),
            explain: Some(explain.into()),
            differs: Some(differs.into()),
            other: other.map(Into::into),
            ..PlanRow::default()
        }
    }

    #[test]
    fn marked_nodes_of_both_plans_are_beside_each_other() {
        let index = "Index Scan using orders_c on orders  (cost=0.29..8.30 rows=1 width=4)";
        let mut rows = [
            row(
                1,
                "Aggregate  (cost=9.00..9.01 rows=1 width=8)",
                "same",
                None,
            ),
            row(
                1,
                "  ->  Seq Scan on orders  (cost=0.00..9.00 rows=1 width=4)\n        Filter: (c = ?)",
                "node",
                Some(index),
            ),
            row(
                2,
                "Aggregate  (cost=8.30..8.31 rows=1 width=8)",
                "same",
                None,
            ),
        ];
        rows[0].settings = Some("jit = off\nwork_mem = 64MB".into());
        for (row, at) in [(1, 1_764_385_841_000_000), (2, 1_764_385_842_000_000)] {
            rows[row].relation = Some("orders".into());
            rows[row].schema = Some("public".into());
            rows[row].analyzed_at = Some(at);
        }
        rows[2].settings = Some("jit = off".into());
        rows[2].hint = Some("/*+ IndexScan(orders) */".into());
        rows[2].hint_lacks = Some("Sort: no hint.".into());
        rows[2].plan_type = Some("generic".into());
        rows[2].advice = Some("SELECT 1;\nSET a = 'b';".into());
        rows[2].advice_lacks = Some("Sort: no advice.".into());
        let both = ["1".to_string(), "2".to_string()];
        let table = table(&rows, &both, &[], 90, &TimeZone::UTC);
        let shown = table
            .items
            .iter()
            .map(|item| format!("{}|{}", item.left, item.right));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                "  Aggregate                                  |  Aggregate",
                "!   ->  Seq Scan on orders                   |  setting jit = off",
                "!         Filter: (c = ?)                    |! analyzed public.orders 2025-11-29 03:10:42",
                "  setting jit = off                          |  hint /*+ IndexScan(orders) */",
                "! setting work_mem = 64MB                    |  no hint: Sort: no hint.",
                "! analyzed public.orders 2025-11-29 03:10:41 |  advice SELECT 1;",
                "                                             |  advice SET a = 'b';",
                "                                             |  no advice: Sort: no advice.",
            ]
        );
        assert_eq!(
            (table.left.trim(), table.right.as_str()),
            ("plan 1", "plan 2, generic")
        );
        let copied = table.items[6..].iter().map(|item| item.copied.as_str());
        assert_eq!(
            copied.collect::<Vec<_>>(),
            ["SELECT 1;\nSET a = 'b';", "Sort: no advice."]
        );
        assert!(
            table.items[1].detail.contains(index),
            "{:?}",
            table.items[1]
        );
    }
}
