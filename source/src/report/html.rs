//! The report as one page: no script, no external resources, light or dark as
//! the reader prefers, fit for print and for a phone.

use super::chart::{chart, look, swatch};
use super::story::{sentences, who};
use super::{Report, named, or_nothing, query_name, two, whose};
use crate::escape;
use std::fmt::Write as _;
use tacho_tape::query::Numeric;
use tacho_tape::query::report::{
    Blocker, Change, Changes, Document, Gap, Key, Marker, Query, Text, Wait, Waiter,
};

const STYLE: &str = include_str!("page.css");

/// The page, as HTML.
pub fn page(report: &Report) -> String {
    let document = &report.document;
    let title = report.title();
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
    tiles(document, &mut html);
    picture(report, &mut html);
    waits(&document.waits, &mut html);
    queries(&document.queries, &mut html);
    blockers(&document.blockers, &mut html);
    tree(document, &mut html);
    changes(document, &mut html);
    people(document, &mut html);
    events(report, &mut html);
    gaps(report, &mut html);
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

fn tiles(document: &Document, html: &mut String) {
    let load = &document.load;
    let unknown = || "unknown".to_string();
    let tiles = [
        ("average load", two(load.avg_aas)),
        ("busiest minute", two(load.peak_aas)),
        (
            "most at once",
            load.peak_sessions.map_or_else(unknown, |n| n.to_string()),
        ),
        (
            "vCPUs",
            load.vcpus.map_or_else(unknown, |n| n.to_f64().to_string()),
        ),
        (
            "observed",
            format!("{} %", two(document.coverage.coverage_pct)),
        ),
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
    let timeline = &report.document.timeline;
    let mut sums: Vec<f64> = Vec::new();
    let mut observed: f64 = 0.0;
    for bucket in &timeline.buckets {
        sums.resize(bucket.by.len().max(sums.len()), 0.0);
        observed += f64::from(u8::from(bucket.avg_aas.is_some()));
        for (sum, load) in sums.iter_mut().zip(&bucket.by) {
            *sum += load.map_or(0.0, Numeric::to_f64);
        }
    }
    html.push_str("<section><h2>Load</h2><figure><div class=\"wide\">");
    html.push_str(&chart(report));
    html.push_str("</div><figcaption><ul class=\"legend\">");
    for (key, sum) in timeline.keys.iter().zip(sums) {
        let key = named(key);
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

/// A table with a heading; nothing without rows.
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

/// A bar for a share in percent, in the look of a wait class.
fn share(percent: Option<Numeric>, class: &str) -> String {
    let percent = percent.map_or(0.0, Numeric::to_f64);
    let width = percent.clamp(0.0, 100.0);
    format!(
        "<span class=\"share\"><svg width=\"100\" height=\"12\" aria-hidden=\"true\"><rect width=\"{width:.1}\" height=\"12\" fill=\"url(#p-{})\"/></svg> {percent:.1} %</span>",
        look(class)
    )
}

/// The class of a wait event.
fn class(event: &str) -> &str {
    event.split([':', '*']).next().unwrap_or(event)
}

/// Escapes a text; a missing text becomes empty.
fn shown(text: &Option<impl ToString>) -> String {
    escape(&or_nothing(text))
}

/// Markup of a statement.
fn statement(text: &Option<Text>) -> String {
    format!("<code>{}</code>", shown(text))
}

fn waits(waits: &[Key], html: &mut String) {
    let row = |wait: &Key| {
        let key = named(&wait.key);
        vec![
            escape(key),
            two(wait.avg_aas),
            two(wait.peak_aas),
            or_nothing(&wait.peak_sessions),
            share(wait.pct, class(key)),
        ]
    };
    let rows: Vec<_> = waits.iter().map(row).collect();
    let heads = ["wait", "load", "busiest minute", "most at once", "share"];
    table(html, "What sessions waited for", &heads, &rows);
}

fn queries(queries: &[Query], html: &mut String) {
    let wait = |wait: &Wait| {
        let key = named(&wait.key);
        let load = two(wait.avg_aas);
        format!("{}{} {load}", swatch(class(key)), escape(key))
    };
    let row = |query: &Query| {
        let id = escape(named(&query.key));
        let text = match &query.query_text {
            Some(text) => format!("<code>{}</code><small>{id}</small>", escape(text)),
            None => id,
        };
        let waits: Vec<String> = query.waits.iter().take(3).map(wait).collect();
        vec![
            text,
            two(query.avg_aas),
            two(query.peak_aas),
            format!("{} %", two(query.pct)),
            waits.join("<br>"),
        ]
    };
    let rows: Vec<_> = queries.iter().map(row).collect();
    let heads = ["query", "load", "busiest minute", "share", "waited for"];
    table(html, "Queries", &heads, &rows);
}

fn blockers(blockers: &[Blocker], html: &mut String) {
    let row = |blocker: &Blocker| {
        vec![
            escape(&who(blocker)),
            shown(&blocker.state),
            two(blocker.blocked_seconds),
            or_nothing(&blocker.waiters),
            shown(&blocker.object),
            shown(&blocker.xact_age),
            statement(&blocker.query_text),
        ]
    };
    let rows: Vec<_> = blockers.iter().map(row).collect();
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
}

fn tree(document: &Document, html: &mut String) {
    let row = |one: &Waiter| {
        let level = one.level.unwrap_or(0);
        let who = or_nothing(&one.tree);
        vec![
            format!(
                "<span style=\"padding-left:{level}em\">{}</span>",
                escape(who.trim())
            ),
            shown(&one.state),
            shown(&one.waited),
            shown(&one.object),
            statement(&one.query_text),
        ]
    };
    let mut rows: Vec<_> = document.tree.iter().flatten().map(row).collect();
    if document.tree_left_out > 0 {
        rows.push(vec![format!("and {} more", document.tree_left_out)]);
    }
    let heads = ["who waits for whom", "state", "waited", "object", "query"];
    table(html, "At that moment", &heads, &rows);
}

fn changes(document: &Document, html: &mut String) {
    let row = |change: &Change| {
        let name = query_name(&change.query_text, &change.key);
        let delta = change.avg_delta?.to_f64();
        Some(vec![
            format!("<code>{}</code>", escape(name)),
            shown(&change.change),
            format!("{delta:+.2}"),
            two(change.avg_aas_1),
            two(change.avg_aas_2),
        ])
    };
    let Changes {
        waits,
        queries,
        note,
    } = &document.changes;
    let rows: Vec<_> = waits.iter().chain(queries).filter_map(row).collect();
    let how = named(&document.period.before);
    let title = format!("What changed against {}", escape(how));
    table(
        html,
        &title,
        &["query", "change", "by", "before", "now"],
        &rows,
    );
    if let Some(note) = note {
        let _ = writeln!(
            html,
            "<p class=\"note\">Before (window 1) and now (window 2): {}.</p>",
            escape(note)
        );
    }
}

fn people(document: &Document, html: &mut String) {
    let row = |(kind, one): (&str, &Key)| {
        vec![
            kind.to_string(),
            escape(named(&one.key)),
            two(one.avg_aas),
            share(one.pct, "cpu"),
        ]
    };
    let rows: Vec<_> = whose(document).map(row).collect();
    table(
        html,
        "Whose load it was",
        &["kind", "name", "load", "share"],
        &rows,
    );
}

fn events(report: &Report, html: &mut String) {
    let start = report.document.period.period_start;
    let row = |marker: &Marker| {
        vec![
            escape(&report.clock(marker.marker_time, start)),
            shown(&marker.kind),
            shown(&marker.detail),
        ]
    };
    let rows: Vec<_> = report.document.markers.iter().map(row).collect();
    table(html, "Events", &["at", "what", "detail"], &rows);
}

fn gaps(report: &Report, html: &mut String) {
    let start = report.document.period.period_start;
    let row = |gap: &Gap| {
        vec![
            escape(&report.clock(gap.since, start)),
            escape(&report.clock(gap.until, start)),
            shown(&gap.cause),
        ]
    };
    let rows: Vec<_> = report.document.coverage.gaps.iter().map(row).collect();
    table(html, "Not observed", &["from", "to", "why"], &rows);
}
