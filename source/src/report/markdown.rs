//! The report as Markdown, for a ticket.

use super::story::{cut, sentences, who};
use super::{Report, explained, named, or_nothing, two, whose};
use crate::waits;
use std::fmt::Write as _;
use tacho_tape::query::report::{Blocker, Change, Document, Explanation, Key, Marker, Query, Text};
use tacho_tape::query::{Numeric, plain_text};

/// The report, as Markdown.
pub fn text(report: &Report) -> String {
    let document = &report.document;
    let mut out = format!("# {}\n\n", report.title());
    for sentence in sentences(report) {
        let _ = writeln!(out, "- {}", escape(&sentence));
    }
    findings(report, &mut out);
    waited(&document.waits, &mut out);
    queries(&document.queries, &mut out);
    blockers(&document.blockers, &mut out);
    changes(document, &mut out);
    people(document, &mut out);
    events(report, &mut out);
    gaps(report, &mut out);
    out
}

/// Causes first, then the queries that changed.
fn findings(report: &Report, out: &mut String) {
    let heads = ["at", "kind", "rule", "share", "finding"];
    let start = report.document.period.period_start;
    table(
        out,
        "What changed",
        heads,
        explained(&report.document),
        |row: &Explanation| {
            [
                report.clock(row.started, start),
                shown(&row.kind),
                shown(&row.rule),
                row.pct.map_or_else(String::new, |pct| percent(Some(pct))),
                shown(&row.explanation),
            ]
        },
    );
}

fn waited(waits: &[Key], out: &mut String) {
    let heads = ["wait", "load", "busiest minute", "share", "meaning"];
    table(out, "Waits", heads, waits, |wait| {
        let explained = waits::of_key(named(&wait.key));
        [
            escape(named(&wait.key)),
            two(wait.avg_aas),
            two(wait.peak_aas),
            percent(wait.pct),
            escape(explained.map_or("", |explained| explained.wait.is)),
        ]
    });
}

fn queries(queries: &[Query], out: &mut String) {
    let heads = ["query", "load", "share"];
    table(out, "Queries", heads, queries, |query| {
        [
            query_name(&query.key, &query.query_text),
            two(query.avg_aas),
            percent(query.pct),
        ]
    });
}

fn blockers(blockers: &[Blocker], out: &mut String) {
    let heads = ["who", "state", "blocked s", "waiters", "object", "query"];
    table(out, "Blockers", heads, blockers, |blocker| {
        [
            escape(&who(blocker)),
            shown(&blocker.state),
            two(blocker.blocked_seconds),
            or_nothing(&blocker.waiters),
            shown(&blocker.object),
            code(&or_nothing(&blocker.query_text)),
        ]
    });
}

fn changes(document: &Document, out: &mut String) {
    let changes = &document.changes;
    let rows = changes.waits.iter().chain(&changes.queries);
    if rows.clone().all(|row| row.avg_delta.is_none()) {
        return;
    }
    let title = format!("Changes against {}", escape(named(&document.period.before)));
    let heads = ["key", "change", "before", "now"];
    table(out, &title, heads, rows, |change: &Change| {
        [
            query_name(&change.key, &change.query_text),
            shown(&change.change),
            two(change.avg_aas_1),
            two(change.avg_aas_2),
        ]
    });
}

fn events(report: &Report, out: &mut String) {
    let heads = ["at", "what", "detail"];
    table(
        out,
        "Events",
        heads,
        &report.document.markers,
        |marker: &Marker| {
            [
                report.time(marker.marker_time),
                shown(&marker.kind),
                shown(&marker.detail),
            ]
        },
    );
}

fn people(document: &Document, out: &mut String) {
    let rows: Vec<_> = whose(document).collect();
    let heads = ["kind", "name", "load", "share"];
    table(
        out,
        "Load by database, user and application",
        heads,
        &rows,
        |(kind, one)| {
            [
                kind.to_string(),
                escape(named(&one.key)),
                two(one.avg_aas),
                percent(one.pct),
            ]
        },
    );
}

fn gaps(report: &Report, out: &mut String) {
    let start = report.document.period.period_start;
    let gaps = &report.document.coverage.gaps;
    table(out, "Not observed", ["from", "to", "why"], gaps, |gap| {
        [
            report.clock(gap.since, start),
            report.clock(gap.until, start),
            shown(&gap.cause),
        ]
    });
}

/// Escapes a text; a missing text becomes empty.
fn shown(text: &Option<Text>) -> String {
    escape(&or_nothing(text))
}

fn percent(share: Option<Numeric>) -> String {
    format!("{} %", two(share))
}

/// A key, and the statement's text if the key is a statement's.
fn query_name(key: &Option<Text>, text: &Option<Text>) -> String {
    let key = escape(named(key));
    match text {
        Some(text) => format!("{key} {}", code(text)),
        None => key,
    }
}

/// A table with a heading; nothing without rows.
fn table<'a, R: 'a, const N: usize>(
    out: &mut String,
    title: &str,
    heads: [&str; N],
    rows: impl IntoIterator<Item = &'a R>,
    cells: impl Fn(&R) -> [String; N],
) {
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = writeln!(
        out,
        "\n## {title}\n\n| {} |\n|{}",
        heads.join(" | "),
        "---|".repeat(N)
    );
    for row in rows {
        let _ = writeln!(out, "| {} |", cells(row).join(" | "));
    }
}

/// Escapes a text of the history for use within a line. The result has no
/// links, no markup, no HTML and no mentions of users (`@name`).
fn escape(text: &str) -> String {
    let line = plain_text(text);
    let mut out = String::with_capacity(line.len());
    for (at, c) in line.char_indices() {
        let (before, after) = (&line[..at], &line[at + c.len_utf8()..]);
        let within_word =
            before.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric);
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A tracker looks for "@" after all markup is processed.
            '@' => out.push_str("@\u{200b}"),
            '_' if within_word => out.push(c),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '$' => {
                out.push('\\');
                out.push(c);
            }
            ':' if after.starts_with("//") => out.push_str("&#58;"),
            '.' if is_www(before) => out.push_str("&#46;"),
            c => out.push(c),
        }
    }
    out
}

fn is_www(before: &str) -> bool {
    let begin = before.len().checked_sub(3);
    begin
        .and_then(|begin| before.get(begin..))
        .is_some_and(|word| word.eq_ignore_ascii_case("www"))
}

/// A statement as a code span. The fence is longer than any run of backticks in
/// it, with blanks between. A bar is escaped for the table.
fn code(text: &str) -> String {
    let text = cut(text, 200).replace('|', "\\|");
    if text.is_empty() {
        return text;
    }
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0) + 1);
    match text.starts_with('`') || text.ends_with('`') {
        true => format!("{fence} {text} {fence}"),
        false => format!("{fence}{text}{fence}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_span_ends_where_the_statement_ends() {
        assert_eq!(code("select 1"), "`select 1`");
        assert_eq!(code("select `<b>` "), "`` select `<b>` ``");
        assert_eq!(code("a ``` | b"), "````a ``` \\| b````");
        assert_eq!(code("a\x1b[31m\u{202e}b"), "`a�[31m�b`");
        assert_eq!(code(""), "");
    }

    #[test]
    fn a_text_is_no_markup() {
        assert_eq!(
            escape("<script>[x](https://e.example) ![i](//e) @all #1 `c` a|b *c* _d_ my_app"),
            "&lt;script&gt;\\[x\\](https&#58;//e.example) !\\[i\\](//e) @\u{200b}all \\#1 \\`c\\` a\\|b \\*c\\* \\_d\\_ my_app"
        );
        assert_eq!(escape("WWW.e.example\n# x"), "WWW&#46;e.example \\# x");
        assert_eq!(escape("Lock:transactionid"), "Lock:transactionid");
    }
}
