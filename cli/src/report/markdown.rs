//! The report as Markdown, for a ticket.

use super::story::{cut, sentences, who};
use super::{Part, Report};
use std::fmt::Write as _;

/// The text.
pub fn text(report: &Report) -> String {
    let part = report.part();
    let period = part.get("period");
    let mut out = format!(
        "# {} to {} {}\n\n",
        period.time("period_start"),
        period.clock("period_end", period.moment("period_start")),
        report.zone_name()
    );
    for sentence in sentences(report) {
        let _ = writeln!(out, "- {}", cell(&sentence));
    }
    let key = |part: &Part| part.shown("key");
    let load = |part: &Part| part.two("avg_aas");
    let percent = |part: &Part| format!("{} %", part.two("pct"));
    let query = |part: &Part| match part.text("query_text") {
        Some(text) => format!("{} `{}`", part.shown("key"), cut(&text, 200)),
        None => part.shown("key"),
    };
    let peak = |part: &Part| part.two("peak_aas");
    let rows = part.list("waits");
    table(
        &mut out,
        "Waits",
        &rows,
        &[
            ("wait", &key),
            ("load", &load),
            ("busiest minute", &peak),
            ("share", &percent),
        ],
    );
    let rows = part.list("queries");
    table(
        &mut out,
        "Queries",
        &rows,
        &[("query", &query), ("load", &load), ("share", &percent)],
    );
    let blocked = |part: &Part| part.two("blocked_seconds");
    let shown = |name: &'static str| move |part: &Part| part.text(name).unwrap_or_default();
    let person = |part: &Part| who(*part);
    let code = |part: &Part| {
        format!(
            "`{}`",
            cut(&part.text("query_text").unwrap_or_default(), 200)
        )
    };
    let rows = part.list("blockers");
    table(
        &mut out,
        "Blockers",
        &rows,
        &[
            ("who", &person),
            ("state", &shown("state")),
            ("blocked s", &blocked),
            ("waiters", &shown("waiters")),
            ("object", &shown("object")),
            ("query", &code),
        ],
    );
    let changes = part.get("changes");
    let rows = [changes.list("waits"), changes.list("queries")].concat();
    let before = |part: &Part| part.two("avg_aas_1");
    let after = |part: &Part| part.two("avg_aas_2");
    let title = format!("Changes against {}", period.shown("before"));
    let known = rows.iter().any(|row| row.number("avg_delta").is_some());
    if known {
        table(
            &mut out,
            &title,
            &rows,
            &[
                ("key", &query),
                ("change", &shown("change")),
                ("before", &before),
                ("now", &after),
            ],
        );
    }
    let rows = part.list("markers");
    let time = |part: &Part| part.time("marker_time");
    table(
        &mut out,
        "Events",
        &rows,
        &[
            ("at", &time),
            ("what", &shown("kind")),
            ("detail", &shown("detail")),
        ],
    );
    out
}

/// A heading and how a cell is made.
type Column<'a> = (&'a str, &'a dyn Fn(&Part) -> String);

fn table(out: &mut String, title: &str, rows: &[Part], columns: &[Column]) {
    if rows.is_empty() {
        return;
    }
    let heads: Vec<&str> = columns.iter().map(|column| column.0).collect();
    let _ = writeln!(
        out,
        "\n## {title}\n\n| {} |\n|{}",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for row in rows {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| cell(&(column.1)(row)))
            .collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

/// What ends neither a cell nor a line.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}
