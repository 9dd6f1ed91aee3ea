//! Answers for people: as wide as the screen, texts cut visibly.

use super::output::write_error;
use super::time::{table_time, zone_name};
use jiff::tz::TimeZone;
use std::io::{self, Write};
use tacho_tape::query::{Field, QueryError, QueryResult, Sink, Type, Value, json, plain_text};

/// Columns where there is no screen.
const SCREEN: usize = 80;
/// Least columns of a text that is cut.
const LEAST: usize = 8;

/// How an answer is laid out.
#[derive(Clone, Copy)]
pub enum Layout {
    /// The columns named, with their headings; texts are cut to the screen.
    Columns(&'static [(&'static str, &'static str)]),
    /// Every column of every row on a line of its own.
    Lines,
    /// A legend, then time, load and bar.
    Chart,
}

/// Collects rows and prints them when the answer is complete.
pub struct Table {
    layout: Layout,
    zone: TimeZone,
    zone_name: String,
    /// Columns of the screen; `None` cuts nothing.
    screen: Option<usize>,
    fields: Vec<Field>,
    rows: Vec<Vec<Value>>,
    notice: Option<String>,
}

/// Columns of the screen: `COLUMNS`, as psql has it, else what the terminal
/// says, else 80.
pub fn screen() -> usize {
    let given = std::env::var("COLUMNS").ok();
    let given = given.and_then(|columns| columns.parse().ok());
    let terminal = || {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col))
    };
    let known = given.or_else(terminal).filter(|columns| *columns > 0);
    known.unwrap_or(SCREEN)
}

impl Table {
    /// A table that shows times in a zone on a screen so wide.
    pub fn new(layout: Layout, zone: TimeZone, screen: Option<usize>) -> Self {
        let zone_name = zone_name(&zone);
        Table {
            layout,
            zone,
            zone_name,
            screen,
            fields: Vec::new(),
            rows: Vec::new(),
            notice: None,
        }
    }

    /// Prints the answer.
    pub fn finish(self, out: &mut dyn Write) -> io::Result<()> {
        match self.layout {
            Layout::Columns(columns) => self.columns(columns, out),
            Layout::Lines => self.lines(out),
            Layout::Chart => self.chart(out),
        }?;
        out.flush()
    }

    fn text(&self, value: &Value) -> String {
        match value {
            Value::Null => String::new(),
            Value::Text(text) => plain_text(text).into_owned(),
            Value::Int(n) | Value::Id(n) => n.to_string(),
            Value::Bool(is) => is.to_string(),
            Value::Numeric(n) => json::numeric(*n),
            Value::Time(us) => table_time(*us, &self.zone),
            Value::Interval(us) => json::interval(*us),
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.0 == name)
    }

    /// `2026-11-21 02:12:00 to 03:12:00 UTC, coverage 100.0000 %, 4.0000 vCPUs`
    fn heading(&self) -> Option<String> {
        let (first, last) = (self.rows.first()?, self.rows.last()?);
        let of = |row: &[Value], name: &str| self.position(name).map(|i| self.text(&row[i]));
        let get = |name: &str| of(first, name);
        let (start, end) = (get("period_start")?, of(last, "period_end")?);
        let end = match end.get(..10) == start.get(..10) {
            true => end[11..].to_string(),
            false => end,
        };
        let mut heading = format!("{start} to {end} {}", self.zone_name);
        if let Some(coverage) = get("coverage_pct").filter(|_| self.one_period()) {
            heading.push_str(&format!(", coverage {coverage} %"));
        }
        if let Some(vcpus) = get("vcpus").filter(|v| !v.is_empty()) {
            heading.push_str(&format!(", {vcpus} vCPUs"));
        }
        Some(heading)
    }

    fn columns(&self, columns: &[(&str, &str)], out: &mut dyn Write) -> io::Result<()> {
        let own = columns.iter().any(|(name, _)| is_own_period(name));
        let heading = if own { None } else { self.heading() };
        let is_time = |(name, _): &(&str, &str)| {
            let column = self.position(name);
            column.is_some_and(|i| self.fields[i].1 == Type::Time)
        };
        match heading {
            Some(heading) => writeln!(out, "{heading}\n")?,
            None if !self.rows.is_empty() && columns.iter().any(is_time) => {
                writeln!(out, "times in {}\n", self.zone_name)?;
            }
            None => (),
        }
        let columns: Vec<(usize, &str)> = columns
            .iter()
            .filter(|(name, _)| own || *name != "period_start" || !self.one_period())
            .filter_map(|(name, title)| Some((self.position(name)?, *title)))
            .filter(|(i, _)| self.fields[*i].1 != Type::Text || self.any(*i))
            .collect();
        let cells: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| columns.iter().map(|(i, _)| self.text(&row[*i])).collect())
            .collect();
        let is_text: Vec<bool> = columns
            .iter()
            .map(|(i, _)| self.fields[*i].1 == Type::Text)
            .collect();
        let titles: Vec<String> = columns.iter().map(|(_, title)| title.to_string()).collect();
        let widths = fit(&titles, &cells, &is_text, self.screen.unwrap_or(usize::MAX));
        for line in std::iter::once(&titles).chain(&cells) {
            print_line(line, &widths, &is_text, out)?;
        }
        if self.rows.is_empty() {
            match &self.notice {
                Some(notice) => writeln!(out, "({notice})")?,
                None => writeln!(out, "(no rows)")?,
            }
        }
        Ok(())
    }

    /// True when a column has a value in any row; the first is always shown.
    fn any(&self, column: usize) -> bool {
        column == 0 || self.rows.iter().any(|row| row[column] != Value::Null)
    }

    /// True when all rows are of the same period.
    fn one_period(&self) -> bool {
        self.position("period_start").is_some_and(|start| {
            let same = |row: &Vec<Value>| row[start] == self.rows[0][start];
            self.rows.iter().all(same)
        })
    }

    fn lines(&self, out: &mut dyn Write) -> io::Result<()> {
        let names = self.fields.iter().map(|f| f.0.len());
        let width = names.max().unwrap_or(0);
        for row in &self.rows {
            for ((name, _), value) in self.fields.iter().zip(row) {
                let zone = match value {
                    Value::Time(_) => format!(" {}", self.zone_name),
                    _ => String::new(),
                };
                writeln!(out, "{name:width$}  {}{zone}", self.text(value))?;
            }
        }
        Ok(())
    }

    fn chart(&self, out: &mut dyn Write) -> io::Result<()> {
        for (i, row) in self.rows.iter().enumerate() {
            let [time, load, detail] = [0, 1, 2].map(|i| self.text(&row[i]));
            // The only text with escape sequences; keys in it are plain already.
            let Value::Text(chart) = &row[3] else {
                continue;
            };
            if i == 0 {
                writeln!(out, "{chart}\n{detail}, times in {}\n", self.zone_name)?;
            } else {
                writeln!(out, "{time}  {load:>9}  {chart}")?;
            }
        }
        Ok(())
    }
}

impl Sink for Table {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.fields = fields.to_vec();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.rows.push(values);
        Ok(())
    }

    fn notice(&mut self, notice: QueryError) {
        self.notice = Some(notice.message);
    }
}

/// Columns of rows that are periods of their own, which no heading can name.
fn is_own_period(column: &str) -> bool {
    matches!(column, "period" | "period_end")
}

/// Prints to the end; a failure becomes an error of the query.
pub fn finish(table: Table, out: &mut dyn Write) -> QueryResult<()> {
    table.finish(out).map_err(|e| write_error(&e))
}

/// Widths of columns. Numbers, times and the first text, which names the row,
/// stay whole, unless that is wider than the screen; of the other texts the
/// last is cut first, so that all fit.
fn fit(titles: &[String], cells: &[Vec<String>], is_text: &[bool], screen: usize) -> Vec<usize> {
    let length = |text: &String| text.chars().count();
    let mut widths: Vec<usize> = titles.iter().map(length).collect();
    for row in cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(length(cell));
        }
    }
    let mut texts = (0..widths.len()).filter(|i| is_text[*i]);
    if let Some(first) = texts.next() {
        widths[first] = widths[first].min(screen.max(LEAST));
    }
    let mut between: Vec<usize> = texts.collect();
    let last: Vec<usize> = between.pop().into_iter().collect();
    shrink(&mut widths, &last, screen);
    shrink(&mut widths, &between, screen);
    widths
}

/// Takes from the widest of these columns until all columns fit.
fn shrink(widths: &mut [usize], columns: &[usize], screen: usize) {
    let gaps = 2 * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > screen {
        let wide = columns.iter().filter(|i| widths[**i] > LEAST);
        match wide.max_by_key(|i| widths[**i]) {
            Some(widest) => widths[*widest] -= 1,
            None => break,
        }
    }
}

fn print_line(
    line: &[String],
    widths: &[usize],
    is_text: &[bool],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut text = String::new();
    for ((cell, width), is_text) in line.iter().zip(widths).zip(is_text) {
        if !text.is_empty() {
            text.push_str("  ");
        }
        let cell = cut(cell, *width);
        text.push_str(&match is_text {
            true => format!("{cell:width$}"),
            false => format!("{cell:>width$}"),
        });
    }
    writeln!(out, "{}", text.trim_end())
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    let mut cut: String = text.chars().take(width - 1).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(table: Table) -> Vec<String> {
        let mut out = Vec::new();
        table.finish(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(str::to_string).collect()
    }

    #[test]
    fn texts_are_cut_so_that_a_line_has_80_columns() {
        let layout = Layout::Columns(&[("key", "key"), ("aas", "avg_aas"), ("text", "query")]);
        let mut table = Table::new(layout, TimeZone::UTC, Some(SCREEN));
        let fields = [
            ("key", Type::Text),
            ("aas", Type::Numeric),
            ("text", Type::Text),
        ];
        table.begin(&fields).unwrap();
        let long = "select a,\n\tb from t where x = ".repeat(5);
        let row = vec![
            Value::Text("IO:DataFileRead".into()),
            Value::Numeric(12_500),
            Value::Text(long),
        ];
        table.row(row).unwrap();
        let lines = printed(table);
        assert_eq!(lines[0], "key              avg_aas  query");
        assert_eq!(
            lines[1],
            "IO:DataFileRead   1.2500  select a, b from t where x = select a, b from t where…"
        );
        assert_eq!(lines[1].chars().count(), SCREEN);
    }

    #[test]
    fn a_wide_screen_shows_more_and_no_limit_shows_all() {
        let name = "n".repeat(300);
        for (screen, expected) in [(Some(120), [120, 120]), (None, [300, 501])] {
            let layout = Layout::Columns(&[("key", "key"), ("text", "query")]);
            let mut table = Table::new(layout, TimeZone::UTC, screen);
            let fields = [("key", Type::Text), ("text", Type::Text)];
            table.begin(&fields).unwrap();
            let key = Value::Text("12".into());
            let text = Value::Text("t".repeat(496));
            table.row(vec![key, text]).unwrap();
            let lines = printed(table);
            assert_eq!(lines[1].chars().count(), expected[1], "{screen:?}");
            let mut table = Table::new(layout, TimeZone::UTC, screen);
            table.begin(&fields[..1]).unwrap();
            table.row(vec![Value::Text(name.clone())]).unwrap();
            assert_eq!(printed(table)[1].chars().count(), expected[0]);
        }
    }

    #[test]
    fn an_empty_table_says_how_much_was_observed() {
        let mut table = Table::new(Layout::Columns(&[("key", "key")]), TimeZone::UTC, None);
        table.begin(&[("key", Type::Text)]).unwrap();
        table.notice(QueryError::new("00000", "no rows: nothing was observed"));
        assert_eq!(printed(table), ["key", "(no rows: nothing was observed)"]);
    }

    /// The lines of a table with a period, a name, a number and a text.
    fn lines_of(starts: &[i64], name: &str) -> Vec<String> {
        let layout = Layout::Columns(&[
            ("period_start", "since"),
            ("key", "key"),
            ("total", "ms"),
            ("text", "query"),
        ]);
        let mut table = Table::new(layout, TimeZone::UTC, Some(SCREEN));
        let fields = [
            ("period_start", Type::Time),
            ("period_end", Type::Time),
            ("coverage_pct", Type::Numeric),
            ("key", Type::Text),
            ("total", Type::Int),
            ("text", Type::Text),
        ];
        table.begin(&fields).unwrap();
        for start in starts {
            let row = vec![
                Value::Time(*start),
                Value::Time(start + 30_000_000),
                Value::Numeric(1_000_000),
                Value::Text(name.into()),
                Value::Int(1),
                Value::Text("select a from t where ".repeat(4)),
            ];
            table.row(row).unwrap();
        }
        printed(table)
    }

    #[test]
    fn the_name_of_a_row_stays_whole_and_the_last_text_yields() {
        let name = "a name that fills most of the screen, and may be asked for again";
        let lines = lines_of(&[0, 30_000_000], name);
        assert_eq!(lines[0], "1970-01-01 00:00:00 to 00:01:00 UTC");
        assert_eq!(
            lines[3],
            format!("1970-01-01 00:00:00  {name}   1  select …")
        );
    }

    #[test]
    fn a_period_that_the_heading_names_has_no_column() {
        let lines = lines_of(&[0, 0], "-5736284362818247");
        assert_eq!(
            lines[0],
            "1970-01-01 00:00:00 to 00:00:30 UTC, coverage 100.0000 %"
        );
        assert_eq!(
            lines[3],
            "-5736284362818247   1  select a from t where select a from t where select a fro…"
        );
    }

    #[test]
    fn events_have_times_of_their_own_or_none() {
        let layout = Layout::Columns(&[
            ("kind", "kind"),
            ("period_start", "since"),
            ("period_end", "until"),
        ]);
        let mut table = Table::new(layout, TimeZone::UTC, Some(SCREEN));
        let fields = [
            ("kind", Type::Text),
            ("period_start", Type::Time),
            ("period_end", Type::Time),
        ];
        table.begin(&fields).unwrap();
        let start = vec![Value::Text("start".into()), Value::Null, Value::Null];
        table.row(start).unwrap();
        let gap = [Value::Time(0), Value::Time(60_000_000)];
        let gap = [&[Value::Text("gap".into())], &gap[..]].concat();
        table.row(gap).unwrap();
        assert_eq!(
            printed(table),
            [
                "times in UTC",
                "",
                "kind                 since                until",
                "start",
                "gap    1970-01-01 00:00:00  1970-01-01 00:01:00",
            ]
        );
    }
}
