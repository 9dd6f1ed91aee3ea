//! The report as one page: no script, no external resources, light or dark as
//! the reader prefers, fit for print and for a phone. Macros of `maud` check the tags when the
//! program is compiled and escape every text.

use super::chart::{chart, fill, swatch};
use super::story::{sentences, who};
use super::{Report, explained, named, or_nothing, query_name, two, whose};
use crate::waits;
use maud::{Markup, PreEscaped, html};
use tacho_tape::query::report::{
    Blocker, Change, Changes, Document, Explanation, Gap, Key, Marker, Query, Text, Wait, Waiter,
};
use tacho_tape::query::{Numeric, plain_lines};

const STYLE: &str = include_str!("page.css");

/// The page, as HTML.
pub fn page(report: &Report) -> String {
    let document = &report.document;
    let title = plain_lines(&report.title());
    let page = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "tacho: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    header {
                        p.brand { "tacho report" }
                        h1 { "What was the database doing?" }
                        p.period { (title) }
                    }
                    (story(report))
                    (tiles(document))
                    (findings(report))
                    (picture(report))
                    (waited(&document.waits))
                    (queries(&document.queries))
                    (blockers(&document.blockers))
                    (tree(document))
                    (changes(document))
                    (people(document))
                    (events(report))
                    (gaps(report))
                    footer {
                        p {
                            "Load is the average number of active sessions: client sessions that were active and not "
                            "waiting for their client (Client:ClientRead). Hatched: not observed. Idle time counts as zero."
                        }
                    }
                }
            }
        }
    };
    page.into_string() + "\n"
}

fn story(report: &Report) -> Markup {
    html! {
        section.story aria-label="Summary" {
            @for sentence in sentences(report) {
                p { (plain_lines(&sentence)) }
            }
        }
    }
}

fn tiles(document: &Document) -> Markup {
    let load = &document.load;
    let unknown = || "unknown".to_string();
    let tiles = [
        ("average load", two(load.avg_aas)),
        ("busiest minute", two(load.peak_aas)),
        (
            "peak sessions",
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
    html! {
        dl.tiles {
            @for (name, value) in tiles {
                div { dt { (name) } dd { (value) } }
            }
        }
    }
}

/// Causes first, then the queries that changed.
fn findings(report: &Report) -> Markup {
    let document = &report.document;
    let start = document.period.period_start;
    let row = |found: &Explanation| {
        let share = found.pct.map(|pct| format!("{} %", two(Some(pct))));
        vec![
            text(&report.clock(found.started, start)),
            shown(&found.kind),
            shown(&found.rule),
            shown(&share),
            shown(&found.explanation),
        ]
    };
    let rows: Vec<_> = explained(document).iter().map(row).collect();
    let heads = ["at", "kind", "rule", "share", "finding"];
    html! {
        (table("What changed", &heads, &rows))
        @if let Some(first) = explained(document).first() {
            p.note {
                "Share of the difference to the load from "
                (report.clock(first.before_start, start)) " to " (report.clock(first.before_end, start)) "."
            }
        }
    }
}

fn picture(report: &Report) -> Markup {
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
    let average = |sum: f64| format!("{:.2}", sum / observed.max(1.0));
    html! {
        section {
            h2 { "Load" }
            figure {
                div.wide { (chart(report)) }
                figcaption {
                    ul.legend {
                        @for (key, sum) in timeline.keys.iter().zip(sums) {
                            li { (swatch(named(key))) (text(named(key))) " " b { (average(sum)) } }
                        }
                    }
                }
            }
        }
    }
}

/// A table with a heading; nothing without rows.
fn table(title: &str, heads: &[&str], rows: &[Vec<Markup>]) -> Markup {
    if rows.is_empty() {
        return Markup::default();
    }
    html! {
        section {
            h2 { (title) }
            div.wide {
                table {
                    thead {
                        tr { @for head in heads { th scope="col" { (head) } } }
                    }
                    tbody {
                        @for row in rows {
                            tr {
                                @for (head, cell) in heads.iter().zip(row) {
                                    td class=[class_of(head, cell)] { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The CSS class of a cell: a query, or a number; `None` for other texts.
fn class_of(head: &str, cell: &Markup) -> Option<&'static str> {
    let is_number = cell
        .0
        .starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+');
    match head {
        "query" => Some("sql"),
        _ => is_number.then_some("n"),
    }
}

/// A bar for a share in percent, in the look of a wait class.
fn share(percent: Option<Numeric>, class: &str) -> Markup {
    let percent = percent.map_or(0.0, Numeric::to_f64);
    let width = format!("{:.1}", percent.clamp(0.0, 100.0));
    html! {
        span.share {
            svg width="100" height="12" aria-hidden="true" {
                rect width=(width) height="12" fill=(fill(class)) {}
            }
            " " (format!("{percent:.1} %"))
        }
    }
}

/// The class of a wait event.
fn class(event: &str) -> &str {
    event.split([':', '*']).next().unwrap_or(event)
}

/// A text that others wrote, without characters that control output.
fn text(text: &str) -> Markup {
    html! { (plain_lines(text)) }
}

/// Same as [`text`]; a missing value becomes empty.
fn shown(value: &Option<impl ToString>) -> Markup {
    text(&or_nothing(value))
}

/// Markup of a statement.
fn statement(text: &Option<Text>) -> Markup {
    html! { code { (shown(text)) } }
}

fn waited(waits: &[Key]) -> Markup {
    let row = |wait: &Key| {
        let key = named(&wait.key);
        vec![
            text(key),
            text(&two(wait.avg_aas)),
            text(&two(wait.peak_aas)),
            shown(&wait.peak_sessions),
            share(wait.pct, class(key)),
            meaning(key),
        ]
    };
    let rows: Vec<_> = waits.iter().map(row).collect();
    let heads = [
        "wait",
        "load",
        "busiest minute",
        "peak sessions",
        "share",
        "meaning",
    ];
    table("Wait events", &heads, &rows)
}

/// The meaning of a wait event, and below it the next thing to look at.
fn meaning(key: &str) -> Markup {
    html! {
        @if let Some(explained) = waits::of_key(key) {
            (explained.wait.is)
            small { "Next: " (explained.wait.next_step()) }
        }
    }
}

fn queries(queries: &[Query]) -> Markup {
    let row = |query: &Query| {
        let id = text(named(&query.key));
        let query_text = html! {
            @match &query.query_text {
                Some(query_text) => { code { (text(query_text)) } small { (id) } }
                None => (id),
            }
        };
        vec![
            query_text,
            text(&two(query.avg_aas)),
            text(&two(query.peak_aas)),
            text(&format!("{} %", two(query.pct))),
            waits_of(query),
        ]
    };
    let rows: Vec<_> = queries.iter().map(row).collect();
    let heads = ["query", "load", "busiest minute", "share", "waited for"];
    table("Queries", &heads, &rows)
}

/// The three largest waits of a query, one a line.
fn waits_of(query: &Query) -> Markup {
    let wait = |wait: &Wait| {
        let key = named(&wait.key);
        html! { (swatch(class(key))) (text(key)) " " (two(wait.avg_aas)) }
    };
    html! {
        @for (i, one) in query.waits.iter().take(3).enumerate() {
            @if i > 0 { br; }
            (wait(one))
        }
    }
}

fn blockers(blockers: &[Blocker]) -> Markup {
    let row = |blocker: &Blocker| {
        vec![
            text(&who(blocker)),
            shown(&blocker.state),
            text(&two(blocker.blocked_seconds)),
            shown(&blocker.waiters),
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
    table("Root blockers", &heads, &rows)
}

fn tree(document: &Document) -> Markup {
    let row = |one: &Waiter| {
        let indent = format!("padding-left:{}em", one.level.unwrap_or(0));
        vec![
            html! { span style=(indent) { (text(or_nothing(&one.tree).trim())) } },
            shown(&one.state),
            shown(&one.waited),
            shown(&one.object),
            statement(&one.query_text),
        ]
    };
    let mut rows: Vec<_> = document.tree.iter().flatten().map(row).collect();
    if document.tree_left_out > 0 {
        rows.push(vec![html! { "and " (document.tree_left_out) " more" }]);
    }
    let heads = ["session, waiters", "state", "waited", "object", "query"];
    table("At that moment", &heads, &rows)
}

fn changes(document: &Document) -> Markup {
    let row = |change: &Change| {
        let name = query_name(&change.query_text, &change.key);
        let delta = change.avg_delta?.to_f64();
        Some(vec![
            html! { code { (text(name)) } },
            shown(&change.change),
            text(&format!("{delta:+.2}")),
            text(&two(change.avg_aas_1)),
            text(&two(change.avg_aas_2)),
        ])
    };
    let Changes {
        waits,
        queries,
        note,
    } = &document.changes;
    let rows: Vec<_> = waits.iter().chain(queries).filter_map(row).collect();
    let before = plain_lines(named(&document.period.before));
    let heads = ["query", "change", "by", "before", "now"];
    html! {
        (table(&format!("Changes against {before}"), &heads, &rows))
        @if let Some(note) = note {
            p.note { "Before (window 1) and now (window 2): " (text(note)) "." }
        }
    }
}

fn people(document: &Document) -> Markup {
    let row = |(kind, one): (&str, &Key)| {
        vec![
            text(kind),
            text(named(&one.key)),
            text(&two(one.avg_aas)),
            share(one.pct, "cpu"),
        ]
    };
    let rows: Vec<_> = whose(document).map(row).collect();
    let heads = ["kind", "name", "load", "share"];
    table("Load by database, user and application", &heads, &rows)
}

fn events(report: &Report) -> Markup {
    let start = report.document.period.period_start;
    let row = |marker: &Marker| {
        vec![
            text(&report.clock(marker.marker_time, start)),
            shown(&marker.kind),
            shown(&marker.detail),
        ]
    };
    let rows: Vec<_> = report.document.markers.iter().map(row).collect();
    table("Events", &["at", "what", "detail"], &rows)
}

fn gaps(report: &Report) -> Markup {
    let start = report.document.period.period_start;
    let row = |gap: &Gap| {
        vec![
            text(&report.clock(gap.since, start)),
            text(&report.clock(gap.until, start)),
            shown(&gap.cause),
        ]
    };
    let rows: Vec<_> = report.document.coverage.gaps.iter().map(row).collect();
    table("Not observed", &["from", "to", "why"], &rows)
}
