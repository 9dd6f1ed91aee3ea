//! The report as one page: no script, nothing loaded from elsewhere, light
//! and dark as the reader prefers, fit for print and for a phone.

use super::chart::{chart, look, swatch};
use super::story::{sentences, who};
use super::{Part, Report, numbers};
use crate::escape;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// The page.
pub fn page(report: &Report) -> String {
    let part = report.part();
    let period = part.get("period");
    let title = format!(
        "{} to {} {}",
        period.time("period_start"),
        period.clock("period_end", period.moment("period_start")),
        report.zone_name()
    );
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>tacho: {0}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header><p class=\"brand\">tacho report</p><h1>What was the database doing?</h1>\
         <p class=\"period\">{0}</p></header>\n",
        escape(&title)
    );
    story(report, &mut html);
    tiles(part, &mut html);
    picture(report, &mut html);
    waits(part, &mut html);
    queries(part, &mut html);
    blockers(part, &mut html);
    changes(part, &mut html);
    people(part, &mut html);
    events(part, &mut html);
    html.push_str(
        "<footer><p>Load is counted in average active sessions: client sessions that were \
         active and not waiting for data of their client (Client:ClientRead). Hatched time was not observed; an idle time \
         is zero.</p></footer>\n</main>\n</body>\n</html>\n",
    );
    html
}

fn story(report: &Report, html: &mut String) {
    html.push_str("<section class=\"story\" aria-label=\"Summary\">");
    for sentence in sentences(report) {
        let _ = write!(html, "<p>{}</p>", escape(&sentence));
    }
    html.push_str("</section>\n");
}

fn tiles(part: Part, html: &mut String) {
    let (load, coverage) = (part.get("load"), part.get("coverage"));
    let whole = |name: &str| load.text(name).unwrap_or_else(|| "unknown".to_string());
    let vcpus = load.number("vcpus");
    let tiles = [
        ("average load", load.two("avg_aas")),
        ("busiest minute", load.two("peak_aas")),
        ("most at once", whole("peak_sessions")),
        (
            "vCPUs",
            vcpus.map_or("unknown".to_string(), |n| n.to_string()),
        ),
        ("observed", format!("{} %", coverage.two("coverage_pct"))),
    ];
    html.push_str("<dl class=\"tiles\">");
    for (name, value) in tiles {
        let _ = write!(
            html,
            "<div><dt>{name}</dt><dd>{}</dd></div>",
            escape(&value)
        );
    }
    html.push_str("</dl>\n");
}

fn picture(report: &Report, html: &mut String) {
    let timeline = report.part().get("timeline");
    let mut sums: Vec<f64> = Vec::new();
    let mut observed: f64 = 0.0;
    for bucket in timeline.list("buckets") {
        let loads = numbers(bucket, "by");
        sums.resize(loads.len().max(sums.len()), 0.0);
        observed += f64::from(u8::from(bucket.number("avg_aas").is_some()));
        for (sum, load) in sums.iter_mut().zip(loads) {
            *sum += load.unwrap_or(0.0);
        }
    }
    html.push_str("<section><h2>Load</h2><figure><div class=\"wide\">");
    html.push_str(&chart(report));
    html.push_str("</div><figcaption><ul class=\"legend\">");
    let keys = timeline.value["keys"].as_array();
    for (key, sum) in keys.into_iter().flatten().zip(sums) {
        let key = key.as_str().unwrap_or("(none)");
        let _ = write!(
            html,
            "<li>{}{} <b>{:.2}</b></li>",
            swatch(key),
            escape(key),
            sum / observed.max(1.0)
        );
    }
    html.push_str("</ul></figcaption></figure></section>\n");
}

/// A table with a heading; nothing when there are no rows.
fn table(html: &mut String, title: &str, heads: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(
        html,
        "<section><h2>{title}</h2><div class=\"wide\"><table><thead><tr>"
    );
    for head in heads {
        let _ = write!(html, "<th scope=\"col\">{head}</th>");
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (head, cell) in heads.iter().zip(row) {
            let number = cell.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+');
            let class = match *head {
                "query" => " class=\"sql\"",
                _ if number => " class=\"n\"",
                _ => "",
            };
            let _ = write!(html, "<td{class}>{cell}</td>");
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div></section>\n");
}

/// A bar of a share in percent.
fn share(part: Part, key: &str) -> String {
    let percent = part.number("pct").unwrap_or(0.0);
    let width = percent.clamp(0.0, 100.0);
    format!(
        "<span class=\"share\"><svg width=\"100\" height=\"12\" aria-hidden=\"true\"><rect width=\"{width:.1}\" height=\"12\" fill=\"url(#p-{})\"/></svg> {percent:.1} %</span>",
        look(key.split([':', '*']).next().unwrap_or(key))
    )
}

fn waits(part: Part, html: &mut String) {
    let row = |wait: &Part| {
        let key = wait.shown("key");
        vec![
            escape(&key),
            wait.two("avg_aas"),
            wait.two("peak_aas"),
            wait.text("peak_sessions").unwrap_or_default(),
            share(*wait, &key),
        ]
    };
    let rows: Vec<_> = part.list("waits").iter().map(row).collect();
    let heads = ["wait", "load", "busiest minute", "most at once", "share"];
    table(html, "What sessions waited for", &heads, &rows);
}

fn queries(part: Part, html: &mut String) {
    let row = |query: &Part| {
        let waits = query.list("waits");
        let wait = |wait: &Part| {
            let key = wait.shown("key");
            let class = key.split([':', '*']).next().unwrap_or(&key).to_string();
            format!("{}{} {}", swatch(&class), escape(&key), wait.two("avg_aas"))
        };
        let waits: Vec<String> = waits.iter().take(3).map(wait).collect();
        let id = query.shown("key");
        let text = query.text("query_text");
        let text = match text {
            Some(text) => format!(
                "<code>{}</code><small>{}</small>",
                escape(&text),
                escape(&id)
            ),
            None => escape(&id),
        };
        vec![
            text,
            query.two("avg_aas"),
            query.two("peak_aas"),
            format!("{} %", query.two("pct")),
            waits.join("<br>"),
        ]
    };
    let rows: Vec<_> = part.list("queries").iter().map(row).collect();
    let heads = ["query", "load", "busiest minute", "share", "waited for"];
    table(html, "Queries", &heads, &rows);
}

fn blockers(part: Part, html: &mut String) {
    let text = |part: &Part, name| escape(&part.text(name).unwrap_or_default());
    let row = |blocker: &Part| {
        vec![
            escape(&who(*blocker)),
            text(blocker, "state"),
            blocker.two("blocked_seconds"),
            text(blocker, "waiters"),
            text(blocker, "object"),
            text(blocker, "xact_age"),
            format!("<code>{}</code>", text(blocker, "query_text")),
        ]
    };
    let rows: Vec<_> = part.list("blockers").iter().map(row).collect();
    let heads = [
        "who",
        "state",
        "blocked s",
        "waiters",
        "object",
        "transaction",
        "query",
    ];
    table(html, "Who made others wait", &heads, &rows);
    let row = |one: &Part| {
        let level = one.number("level").unwrap_or(0.0);
        let who = one.text("tree").unwrap_or_default();
        vec![
            format!(
                "<span style=\"padding-left:{level}em\">{}</span>",
                escape(who.trim())
            ),
            text(one, "state"),
            text(one, "waited"),
            text(one, "object"),
            format!("<code>{}</code>", text(one, "query_text")),
        ]
    };
    let mut rows: Vec<_> = part.list("tree").iter().map(row).collect();
    if let Some(left_out) = part.text("tree_left_out").filter(|n| n != "0") {
        rows.push(vec![format!("and {left_out} more")]);
    }
    let heads = ["who waits for whom", "state", "waited", "object", "query"];
    table(html, "At that moment", &heads, &rows);
}

fn changes(part: Part, html: &mut String) {
    let text = |part: &Part, name| escape(&part.text(name).unwrap_or_default());
    let changes = part.get("changes");
    let row = |change: &Part| {
        let name = change
            .text("query_text")
            .unwrap_or_else(|| change.shown("key"));
        vec![
            format!("<code>{}</code>", escape(&name)),
            text(change, "change"),
            change
                .number("avg_delta")
                .map_or(String::new(), |d| format!("{d:+.2}")),
            change.two("avg_aas_1"),
            change.two("avg_aas_2"),
        ]
    };
    let all = [changes.list("waits"), changes.list("queries")].concat();
    let known = |change: &&Part| change.number("avg_delta").is_some();
    let rows: Vec<_> = all.iter().filter(known).map(row).collect();
    let how = part.get("period").shown("before");
    let title = format!("What changed against {}", escape(&how));
    table(
        html,
        &title,
        &["query", "change", "by", "before", "now"],
        &rows,
    );
    if let Some(note) = changes.text("note") {
        let _ = writeln!(
            html,
            "<p class=\"note\">Before (window 1) and now (window 2): {}.</p>",
            escape(&note)
        );
    }
}

fn people(part: Part, html: &mut String) {
    let mut rows = Vec::new();
    for (kind, name) in [
        ("database", "databases"),
        ("user", "users"),
        ("application", "applications"),
    ] {
        for one in part.list(name) {
            rows.push(vec![
                kind.to_string(),
                escape(&one.shown("key")),
                one.two("avg_aas"),
                share(one, "cpu"),
            ]);
        }
    }
    table(
        html,
        "Whose load it was",
        &["kind", "name", "load", "share"],
        &rows,
    );
}

fn events(part: Part, html: &mut String) {
    let start = part.get("period").moment("period_start");
    let text = |part: &Part, name| escape(&part.text(name).unwrap_or_default());
    let row = |marker: &Part| {
        vec![
            escape(&marker.clock("marker_time", start)),
            text(marker, "kind"),
            text(marker, "detail"),
        ]
    };
    let rows: Vec<_> = part.list("markers").iter().map(row).collect();
    table(html, "Events", &["at", "what", "detail"], &rows);
    let row = |gap: &Part| {
        vec![
            escape(&gap.clock("since", start)),
            escape(&gap.clock("until", start)),
            text(gap, "cause"),
        ]
    };
    let rows: Vec<_> = part.get("coverage").list("gaps").iter().map(row).collect();
    table(html, "Not observed", &["from", "to", "why"], &rows);
}
