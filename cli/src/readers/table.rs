//! Answers for people, as wide as the screen. Cut texts are marked.
//!
//! The first thousand rows decide the widths of the columns. Further rows are
//! printed as they come, so a long answer takes no memory and begins at once.
//! In further rows longer texts are cut; numbers, times and the row's name stay
//! whole and make the line longer. For an answer with further rows, no column
//! is left out because it is empty, and no period because all rows share it.

mod plan;

use super::progress::rows_begin;
use super::warn;
use jiff::tz::TimeZone;
use std::fmt::Write as _;
use std::io::{self, Write};
use tacho_source::json::write_error;
use tacho_source::time::{table_time, zone_name};
use tacho_tape::query::{Field, QueryError, QueryResult, Sink, Type, Value, json, plain_text};

/// Width of the screen in characters if the output is not a terminal.
const SCREEN: usize = 80;
/// Minimum width of a column of cut texts, in characters.
const LEAST: usize = 8;
/// A sentence goes on below its column if the column has at least this width in characters,
/// otherwise below the row.
const SENTENCE: usize = 40;
/// Indent of a sentence below its row, in characters.
const INDENT: usize = 6;
/// Columns that have sentences, which are never cut. They are the last of their layout.
const SENTENCES: [&str; 2] = ["explanation", "detail"];
/// Number of rows that decide the widths of columns.
const FIRST_ROWS: usize = 1_000;

/// Layout of an answer.
#[derive(Clone, Copy)]
pub enum Layout {
    /// Columns and their headings; texts are cut to the screen, sentences go on in further lines.
    Columns(&'static [(&'static str, &'static str)]),
    /// One line per value: column and value.
    Lines,
    /// The lines of EXPLAIN. If two plans are compared, nodes that differ have a mark.
    Plan,
    /// A legend, then time, load and bar.
    Chart,
}

/// Prints an answer. The first `FIRST_ROWS` rows are kept until the widths of the
/// columns are known.
pub struct Table<W> {
    out: W,
    layout: Layout,
    zone: TimeZone,
    zone_name: String,
    /// Width of the screen; `None` cuts nothing.
    screen: Option<usize>,
    fields: Vec<(String, Type)>,
    /// Rows that are not printed yet.
    rows: Vec<Vec<Value>>,
    /// True if rows were printed.
    begun: bool,
    columns: Vec<Column>,
    notice: Option<String>,
    /// The way back to the plan whose nodes are printed: it follows them.
    way_back: String,
}

/// A printed column.
struct Column {
    /// Index of the column in a row.
    place: usize,
    title: &'static str,
    width: usize,
    is_text: bool,
    is_sentence: bool,
    /// Longer texts, in characters, are cut.
    most: usize,
}

/// Width of the screen: `COLUMNS`, as in psql, otherwise the terminal's width,
/// otherwise 80.
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

impl<W: Write> Table<W> {
    /// A table with times in `zone`, for a screen of this width.
    pub fn new(out: W, layout: Layout, zone: TimeZone, screen: Option<usize>) -> Self {
        let zone_name = zone_name(&zone);
        Table {
            out,
            layout,
            zone,
            zone_name,
            screen,
            fields: Vec::new(),
            rows: Vec::new(),
            begun: false,
            columns: Vec::new(),
            notice: None,
            way_back: String::new(),
        }
    }

    /// Prints the rest of the answer.
    pub fn finish(mut self) -> io::Result<()> {
        if !self.begun {
            self.print(true)?;
        }
        self.out.write_all(self.way_back.as_bytes())?;
        self.out.flush()
    }

    /// Prints the waiting rows. `all` is true if no other rows follow.
    fn print(&mut self, all: bool) -> io::Result<()> {
        if !self.begun {
            rows_begin();
        }
        if let (false, Layout::Columns(columns)) = (self.begun, self.layout) {
            self.print_heading(columns, all)?;
        }
        let rows = std::mem::take(&mut self.rows);
        for row in &rows {
            if let (Layout::Plan, Some(way_back)) = (self.layout, self.way_back_of(row)) {
                let way_back = std::mem::replace(&mut self.way_back, way_back);
                self.out.write_all(way_back.as_bytes())?;
            }
            let line = match self.layout {
                Layout::Columns(_) => self.cells(row),
                Layout::Lines => self.lines(row),
                Layout::Plan => self.node(row),
                Layout::Chart => self.chart(row),
            };
            self.out.write_all(line.as_bytes())?;
            self.begun = true;
        }
        let says_nothing = matches!(self.layout, Layout::Columns(_) | Layout::Plan);
        if all && !self.begun && says_nothing {
            match &self.notice {
                Some(notice) => writeln!(self.out, "{notice}")?,
                None => writeln!(self.out, "(no rows)")?,
            }
        }
        Ok(())
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

    /// The heading of an answer: `2026-11-21 02:12:00 to 03:12:00 UTC, coverage 100.0000 %, 4.0000
    /// vCPUs`. `None` without rows, or if they have no period.
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

    /// Prints the heading and the titles of the columns.
    fn print_heading(&mut self, columns: &[(&str, &'static str)], all: bool) -> io::Result<()> {
        let own = columns.iter().any(|(name, _)| is_own_period(name));
        let listed = columns.iter().any(|(name, _)| *name == "period_start");
        // Further rows may have other periods.
        let one = self.one_period() && (all || !listed);
        let heading = match own || listed && !all {
            true => None,
            false => self.heading(),
        };
        let is_time = |(name, _): &(&str, &str)| {
            let column = self.position(name);
            column.is_some_and(|i| self.fields[i].1 == Type::Time)
        };
        match heading {
            Some(heading) => writeln!(self.out, "{heading}\n")?,
            None if !self.rows.is_empty() && columns.iter().any(is_time) => {
                writeln!(self.out, "times in {}\n", self.zone_name)?;
            }
            None => (),
        }
        let shown = columns
            .iter()
            .filter(|(name, _)| own || *name != "period_start" || !one)
            .filter_map(|(name, title)| Some((self.position(name)?, *title)))
            .filter(|(i, _)| self.fields[*i].1 != Type::Text || !all || self.any(*i));
        // Texts of further rows must be visible.
        let least = |place: usize| match self.fields[place].1 {
            Type::Text if !all => LEAST,
            _ => 0,
        };
        let mut columns: Vec<Column> = shown
            .map(|(place, title)| Column {
                place,
                title,
                width: self.widest(place, title, least(place)),
                is_text: self.fields[place].1 == Type::Text,
                is_sentence: SENTENCES.contains(&self.fields[place].0.as_str()),
                most: usize::MAX,
            })
            .collect();
        fit(&mut columns, self.screen.unwrap_or(usize::MAX));
        self.columns = columns;
        let titles = self.columns.iter().map(|c| c.title.to_string());
        let titles = self.line(titles);
        self.out.write_all(titles.as_bytes())
    }

    /// Width of the widest cell of a column, in characters.
    fn widest(&self, place: usize, title: &str, least: usize) -> usize {
        let cells = self.rows.iter();
        let cells = cells.map(|row| self.text(&row[place]).chars().count());
        let title = title.chars().count();
        cells.max().unwrap_or(0).max(title).max(least)
    }

    fn cells(&self, row: &[Value]) -> String {
        self.line(self.columns.iter().map(|c| self.text(&row[c.place])))
    }

    fn line(&self, cells: impl Iterator<Item = String>) -> String {
        let mut line = String::new();
        for (cell, column) in cells.zip(&self.columns) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            if column.is_sentence && cell.chars().count() > column.most {
                return wrapped(line, &cell, column.most, self.screen.unwrap_or(SCREEN));
            }
            let (cell, width) = (cut(&cell, column.most), column.width);
            line.push_str(&match column.is_text {
                true => format!("{cell:width$}"),
                false => format!("{cell:>width$}"),
            });
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }

    /// True if a column has a value in any row. The first column is always shown.
    fn any(&self, column: usize) -> bool {
        column == 0 || self.rows.iter().any(|row| row[column] != Value::Null)
    }

    /// True if all rows have the same period.
    fn one_period(&self) -> bool {
        self.position("period_start").is_some_and(|start| {
            let same = |row: &Vec<Value>| row[start] == self.rows[0][start];
            self.rows.iter().all(same)
        })
    }

    fn lines(&self, row: &[Value]) -> String {
        let names = self.fields.iter().map(|f| f.0.len());
        let width = names.max().unwrap_or(0);
        let mut lines = String::new();
        for ((name, _), value) in self.fields.iter().zip(row) {
            let zone = match value {
                Value::Time(_) => format!(" {}", self.zone_name),
                _ => String::new(),
            };
            let _ = writeln!(lines, "{name:width$}  {}{zone}", self.text(value));
        }
        lines
    }

    fn lines_of(&self, row: &[Value], column: &str) -> String {
        match self.position(column).map(|place| &row[place]) {
            Some(Value::Text(text)) => text
                .split('\n')
                .map(|line| format!("{}\n", plain_text(line)))
                .collect(),
            _ => String::new(),
        }
    }

    fn chart(&self, row: &[Value]) -> String {
        let [time, load, detail] = [0, 1, 2].map(|i| self.text(&row[i]));
        // The chart is the only text with escape sequences; keys in it are
        // plain already.
        match &row[3] {
            Value::Text(chart) if self.begun => format!("{time}  {load:>9}  {chart}\n"),
            Value::Text(chart) => format!("{chart}\n{detail}, times in {}\n\n", self.zone_name),
            _ => String::new(),
        }
    }
}

impl<W: Write> Sink for Table<W> {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.fields = fields.iter().map(|f| (f.0.to_string(), f.1)).collect();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        let mut printed = Ok(());
        if self.rows.len() == FIRST_ROWS {
            printed = self.print(false);
        }
        self.rows.push(values);
        if self.begun {
            printed = printed.and_then(|()| self.print(false));
        }
        printed.map_err(|e| write_error(&e))
    }

    fn notice(&mut self, notice: QueryError) {
        match notice.severity() {
            "WARNING" => warn(&notice),
            _ => {
                let hint = notice
                    .hint
                    .map_or(String::new(), |hint| format!("\nhint: {hint}"));
                self.notice = Some(format!("({}){hint}", notice.message));
            }
        }
    }
}

/// True for a column with the period of its row: no heading can name one period.
fn is_own_period(column: &str) -> bool {
    matches!(column, "period" | "period_end")
}

/// Prints the rest; a failure becomes an error of the query.
pub fn finish<W: Write>(table: Table<W>) -> QueryResult<()> {
    table.finish().map_err(|e| write_error(&e))
}

/// Widths of columns. Numbers, times and the first text, which names the row,
/// stay whole, unless they are wider than the screen. The other texts are cut
/// to fit, the last one first.
fn fit(columns: &mut [Column], screen: usize) {
    let mut widths: Vec<usize> = columns.iter().map(|c| c.width).collect();
    let mut texts = (0..widths.len()).filter(|i| columns[*i].is_text);
    let first = texts.next();
    if let Some(first) = first {
        widths[first] = widths[first].min(screen.max(LEAST));
    }
    let mut between: Vec<usize> = texts.collect();
    let last: Vec<usize> = between.pop().into_iter().collect();
    shrink(&mut widths, &last, screen);
    shrink(&mut widths, &between, screen);
    for (i, (column, width)) in columns.iter_mut().zip(widths).enumerate() {
        column.width = width;
        column.most = match column.is_text && screen < usize::MAX {
            true if Some(i) == first => screen.max(LEAST),
            true => width,
            false => usize::MAX,
        };
    }
}

/// Narrows the widest of `columns` until all columns fit.
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

/// Ends a line with a sentence that is longer than its column. Example: the column has 40
/// characters and begins at character 30. Then each further line has 30 blanks and at most 40
/// characters of the sentence.
fn wrapped(mut line: String, sentence: &str, column: usize, screen: usize) -> String {
    let (indent, width) = match column >= SENTENCE {
        true => (line.chars().count(), column),
        false => (INDENT, screen.saturating_sub(INDENT).max(SENTENCE)),
    };
    if column < SENTENCE {
        line.truncate(line.trim_end().len());
        line = format!("{line}\n{:indent$}", "");
    }
    let mut used = 0;
    for word in sentence.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            line = format!("{line}\n{:indent$}", "");
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    line.push('\n');
    line
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
    use std::cell::RefCell;
    use std::rc::Rc;

    /// A table whose output a test keeps.
    fn kept(layout: Layout, screen: Option<usize>) -> (Table<Kept>, Kept) {
        let kept = Kept::default();
        let table = Table::new(kept.clone(), layout, TimeZone::UTC, screen);
        (table, kept)
    }

    #[derive(Clone, Default)]
    struct Kept(Rc<RefCell<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn printed((table, kept): (Table<Kept>, Kept)) -> Vec<String> {
        table.finish().unwrap();
        lines(&kept)
    }

    fn lines(kept: &Kept) -> Vec<String> {
        let text = String::from_utf8(kept.0.borrow().clone()).unwrap();
        text.lines().map(str::to_string).collect()
    }

    #[test]
    fn texts_are_cut_so_that_a_line_has_80_columns() {
        let layout = Layout::Columns(&[("key", "key"), ("aas", "avg_aas"), ("text", "query")]);
        let mut table = kept(layout, Some(SCREEN));
        let fields = [
            ("key", Type::Text),
            ("aas", Type::Numeric),
            ("text", Type::Text),
        ];
        table.0.begin(&fields).unwrap();
        let long = "select a,\n\tb from t where x = ".repeat(5);
        let row = vec![
            Value::Text("IO:DataFileRead".into()),
            Value::Numeric(12_500),
            Value::Text(long.into()),
        ];
        table.0.row(row).unwrap();
        let lines = printed(table);
        assert_eq!(lines[0], "key              avg_aas  query");
        assert_eq!(
            lines[1],
            "IO:DataFileRead   1.2500  select a, b from t where x = select a, b from t where…"
        );
        assert_eq!(lines[1].chars().count(), SCREEN);
    }

    /// A row with a rank, a rule and a sentence, on a screen of this width.
    fn with_sentence(screen: usize) -> Vec<String> {
        let layout = Layout::Columns(&[
            ("rank", "rank"),
            ("rule", "rule"),
            ("explanation", "explanation"),
        ]);
        let mut table = kept(layout, Some(screen));
        let fields = [
            ("rank", Type::Int),
            ("rule", Type::Text),
            ("explanation", Type::Text),
        ];
        table.0.begin(&fields).unwrap();
        let sentence =
            "session 4711 (stock import) held a lock for 36 s; 24 sessions waited for it";
        let texts = ["idle in transaction", sentence].map(|text| Value::Text(text.into()));
        let row = [&[Value::Int(1)], &texts[..]].concat();
        table.0.row(row).unwrap();
        printed(table)
    }

    #[test]
    fn a_sentence_goes_on_below_its_column() {
        assert_eq!(
            with_sentence(SCREEN)[1..],
            [
                "   1  idle in transaction  session 4711 (stock import) held a lock for 36 s; 24",
                "                           sessions waited for it",
            ]
        );
    }

    #[test]
    fn a_sentence_goes_on_below_the_row_if_its_column_is_narrow() {
        assert_eq!(
            with_sentence(60)[1..],
            [
                "   1  idle in transaction",
                "      session 4711 (stock import) held a lock for 36 s; 24",
                "      sessions waited for it",
            ]
        );
    }

    #[test]
    fn a_wide_screen_shows_more_and_no_limit_shows_all() {
        let name = "n".repeat(300);
        for (screen, expected) in [(Some(120), [120, 120]), (None, [300, 501])] {
            let layout = Layout::Columns(&[("key", "key"), ("text", "query")]);
            let mut table = kept(layout, screen);
            let fields = [("key", Type::Text), ("text", Type::Text)];
            table.0.begin(&fields).unwrap();
            let key = Value::Text("12".into());
            let text = Value::Text("t".repeat(496).into());
            table.0.row(vec![key, text]).unwrap();
            let lines = printed(table);
            assert_eq!(lines[1].chars().count(), expected[1], "{screen:?}");
            let mut table = kept(layout, screen);
            table.0.begin(&fields[..1]).unwrap();
            table.0.row(vec![Value::Text(name.clone().into())]).unwrap();
            assert_eq!(printed(table)[1].chars().count(), expected[0]);
        }
    }

    #[test]
    fn an_empty_table_shows_the_observed_share() {
        let mut table = kept(Layout::Columns(&[("key", "key")]), None);
        table.0.begin(&[("key", Type::Text)]).unwrap();
        table
            .0
            .notice(QueryError::new("00000", "no rows: nothing was observed"));
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
        let mut table = kept(layout, Some(SCREEN));
        let fields = [
            ("period_start", Type::Time),
            ("period_end", Type::Time),
            ("coverage_pct", Type::Numeric),
            ("key", Type::Text),
            ("total", Type::Int),
            ("text", Type::Text),
        ];
        table.0.begin(&fields).unwrap();
        for start in starts {
            let row = vec![
                Value::Time(*start),
                Value::Time(start + 30_000_000),
                Value::Numeric(1_000_000),
                Value::Text(name.into()),
                Value::Int(1),
                Value::Text("select a from t where ".repeat(4).into()),
            ];
            table.0.row(row).unwrap();
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
        let mut table = kept(layout, Some(SCREEN));
        let fields = [
            ("kind", Type::Text),
            ("period_start", Type::Time),
            ("period_end", Type::Time),
        ];
        table.0.begin(&fields).unwrap();
        let start = vec![Value::Text("start".into()), Value::Null, Value::Null];
        table.0.row(start).unwrap();
        let gap = [Value::Time(0), Value::Time(60_000_000)];
        let gap = [&[Value::Text("gap".into())], &gap[..]].concat();
        table.0.row(gap).unwrap();
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

    #[test]
    fn many_rows_are_printed_as_they_come() {
        let layout = Layout::Columns(&[
            ("at", "time"),
            ("pid", "pid"),
            ("event", "event"),
            ("query", "query"),
            ("note", "note"),
        ]);
        let mut table = kept(layout, Some(60));
        let fields = [
            ("at", Type::Time),
            ("pid", Type::Int),
            ("event", Type::Text),
            ("query", Type::Text),
            ("note", Type::Text),
        ];
        table.0.begin(&fields).unwrap();
        let row = |pid: i64, event: &str, query: &str, note| {
            let texts = [event, query].map(|text| Value::Text(text.into()));
            [&[Value::Time(0), Value::Int(pid)], &texts[..], &[note]].concat()
        };
        for pid in 0..1_000 {
            table
                .0
                .row(row(pid, "Lock", "select 1", Value::Null))
                .unwrap();
        }
        assert_eq!(lines(&table.1).len(), 0);
        let note = Value::Text("long enough to be cut".into());
        let wide = row(12_345, "DataFileRead", "select 12", note);
        table.0.row(wide).unwrap();
        let shown = lines(&table.1);
        assert_eq!(shown[0], "times in UTC");
        assert_eq!(
            shown[2],
            "               time  pid  event     query     note"
        );
        assert_eq!(shown[3], "1970-01-01 00:00:00    0  Lock      select 1");
        assert_eq!(shown.len(), 2 + 1 + 1_001);
        assert_eq!(
            shown[1_003],
            "1970-01-01 00:00:00  12345  DataFileRead  select …  long en…"
        );
        assert_eq!(table.0.rows.len(), 0);
        assert_eq!(printed(table), shown);
    }

    #[test]
    fn rows_to_come_may_be_of_other_periods() {
        let layout = Layout::Columns(&[("period_start", "since"), ("key", "key")]);
        let mut table = kept(layout, None);
        let fields = [
            ("period_start", Type::Time),
            ("period_end", Type::Time),
            ("key", Type::Text),
        ];
        table.0.begin(&fields).unwrap();
        for n in 0..=1_001 {
            let start = n / 1_001 * 60_000_000;
            let times = [start, start + 60_000_000].map(Value::Time);
            let row = [&times[..], &[Value::Text("a".into())]].concat();
            table.0.row(row).unwrap();
        }
        let shown = printed(table);
        assert_eq!(shown[0], "times in UTC");
        assert_eq!(shown[3], "1970-01-01 00:00:00  a");
        assert_eq!(shown[1_004], "1970-01-01 00:01:00  a");
    }
}
