//! The report as Markdown, for a ticket.

use super::story::{cut, sentences, who};
use super::{Part, Report};
use std::fmt::Write as _;
use tacho_tape::query::plain_text;

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
        let _ = writeln!(out, "- {}", escape(&sentence));
    }
    let key = |part: &Part| escape(&part.shown("key"));
    let load = |part: &Part| part.two("avg_aas");
    let percent = |part: &Part| format!("{} %", part.two("pct"));
    let query = |part: &Part| match part.text("query_text") {
        Some(text) => format!("{} {}", escape(&part.shown("key")), code(&text)),
        None => escape(&part.shown("key")),
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
    let shown =
        |name: &'static str| move |part: &Part| escape(&part.text(name).unwrap_or_default());
    let person = |part: &Part| escape(&who(*part));
    let statement = |part: &Part| code(&part.text("query_text").unwrap_or_default());
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
            ("query", &statement),
        ],
    );
    let changes = part.get("changes");
    let rows = [changes.list("waits"), changes.list("queries")].concat();
    let before = |part: &Part| part.two("avg_aas_1");
    let after = |part: &Part| part.two("avg_aas_2");
    let title = format!("Changes against {}", escape(&period.shown("before")));
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
        let cells: Vec<String> = columns.iter().map(|column| (column.1)(row)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

/// A text of the history within a line: no link, no markup, no HTML, nobody
/// mentioned, whatever it says.
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
            // What a tracker looks for when all markup is done.
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

/// A statement as a code span. The fence is longer than any run of backticks
/// in it, blanks part them; a bar is escaped as a table wants it.
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
