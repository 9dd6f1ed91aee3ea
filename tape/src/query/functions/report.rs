//! `report`: what the database was doing at a moment or in a window, in one
//! document. Every part is the answer of another function to the same window,
//! so its figures are theirs to the last digit.

use super::common_columns::source;
use super::report_compat::compat;
use super::{Call, aas, find, markers, timeline};
use crate::query::bucket::{DAY, HOUR, SECOND};
use crate::query::error::{QueryError, QueryResult};
use crate::query::json::{Object, array, quote, value};
use crate::query::parse::{Window, moment};
use crate::query::request::request;
use crate::query::row::row;
use crate::query::spec::{Field, Sink, Spec, Value};
use crate::query::ticks::Coverage;
use crate::query::vocabulary as pg;

row! {
    /// A row of `report`.
    ReportRow of "report": FIELDS {
        period_start: Time,
        period_end: Time,
        report: Text,
    }
}

request! {
    /// What the database was doing, and what had changed, in one document
    Report of report: ReportRow {
        node,
        at("A moment, such as 03:12: half an hour around it", None),
        since,
        until,
        n("Most waits, queries, blockers, …, or all", Some("5")),
        scope,
        by_leader,
        filters,
    }
}

/// How far the window of a moment reaches to each side.
const AROUND: i64 = 15 * aas::MINUTE;
/// Most bars of the picture.
const BARS: i64 = 120;
/// Widths of a bar.
const WIDTHS: [i64; 10] = [
    SECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    aas::MINUTE,
    5 * aas::MINUTE,
    15 * aas::MINUTE,
    HOUR,
    6 * HOUR,
    DAY,
];
/// Classes of waits in the picture.
const CLASSES: i64 = 8;
/// Most rows of the tree.
const TREE_ROWS: usize = 50;

fn run(call: &Call, sink: &mut dyn Sink) -> QueryResult<()> {
    let at = moment(call.spec)?;
    let window = match at {
        None => Window::of(call.spec)?,
        Some(at) => Window::of(&Spec {
            since_us: Some(at.saturating_sub(AROUND)),
            until_us: Some(at.saturating_add(AROUND)),
            ..call.spec.clone()
        })?,
    };
    let report = Document { call, window, at }.json()?;
    sink.begin(FIELDS)?;
    sink.row(vec![
        Value::Time(window.since),
        Value::Time(window.until),
        Value::Text(report.into()),
    ])
}

struct Document<'a> {
    call: &'a Call<'a>,
    window: Window,
    at: Option<i64>,
}

/// The answer of a function.
#[derive(Default)]
struct Rows {
    fields: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
}

impl Sink for Rows {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.fields = fields.iter().map(|field| field.0).collect();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.rows.push(values);
        Ok(())
    }
}

impl Rows {
    fn get<'r>(&self, row: &'r [Value], column: &str) -> &'r Value {
        let place = self.fields.iter().position(|field| *field == column);
        place.and_then(|i| row.get(i)).unwrap_or(&Value::Null)
    }

    /// Columns of a row, all for an empty list.
    fn object(&self, row: &[Value], columns: &[&str]) -> Object {
        let mut object = Object::default();
        let all: &[&str] = if columns.is_empty() {
            &self.fields
        } else {
            columns
        };
        for column in all {
            object.put(column, &value(self.get(row, column)));
        }
        object
    }

    fn json(&self, columns: &[&str]) -> String {
        array(self.rows.iter().map(|row| self.object(row, columns).json()))
    }

    /// The only row.
    fn one(&self) -> &[Value] {
        self.rows.first().map_or(&[], Vec::as_slice)
    }
}

/// What is left out because it is damaged.
fn warning(warning: &QueryError) -> String {
    let mut object = Object::default();
    object.put("message", &quote(&warning.message)).put(
        "detail",
        &quote(warning.detail.as_deref().unwrap_or_default()),
    );
    object.json()
}

impl Document<'_> {
    /// Asks a function about a window; `change` adds its arguments.
    fn ask(&self, name: &str, window: Window, change: impl FnOnce(&mut Spec)) -> QueryResult<Rows> {
        self.ask_with(find(name)?.run, window, change)
    }

    fn ask_with(
        &self,
        run: fn(&Call, &mut dyn Sink) -> QueryResult<()>,
        window: Window,
        change: impl FnOnce(&mut Spec),
    ) -> QueryResult<Rows> {
        let mut spec = Spec {
            at_us: None,
            since_us: Some(window.since),
            until_us: Some(window.until),
            ..self.call.spec.clone()
        };
        change(&mut spec);
        let call = Call {
            spec: &spec,
            store: self.call.store,
        };
        let mut rows = Rows::default();
        run(&call, &mut rows)?;
        Ok(rows)
    }

    /// The same of the whole server: who blocks those that filters let through
    /// may be left out by them.
    fn ask_all(
        &self,
        name: &str,
        window: Window,
        change: impl FnOnce(&mut Spec),
    ) -> QueryResult<Rows> {
        self.ask(name, window, |spec| {
            spec.filters.clear();
            (spec.scope, spec.by_leader) = (None, false);
            change(spec);
        })
    }

    fn top(&self, dimension: &str, by: Option<&str>) -> QueryResult<Rows> {
        self.ask("top", self.window, |spec| {
            spec.dimension = Some(dimension.to_string());
            spec.by = by.map(str::to_string);
        })
    }

    fn json(&self) -> QueryResult<String> {
        let load = self.ask("aas", self.window, |spec| spec.n = None)?;
        let (before, how, load_before) = self.before()?;
        let mut period = Object::default();
        let time = |us| value(&Value::Time(us));
        period
            .put("at", &self.at.map_or("null".to_string(), time))
            .put("period_start", &time(self.window.since))
            .put("period_end", &time(self.window.until))
            .put("before", &quote(how))
            .put("before_start", &time(before.since))
            .put("before_end", &time(before.until));
        let figures = [
            "source",
            "avg_aas",
            "peak_aas",
            "p99_aas",
            "peak_sessions",
            "backend_seconds",
            "vcpus",
        ];
        let covered = [
            "ticks_expected",
            "ticks_observed",
            "ticks_failed",
            "coverage_pct",
        ];
        let mut coverage = load.object(load.one(), &covered);
        coverage.put("gaps", &self.gaps()?);
        let mut report = Object::default();
        report
            .put("period", &period.json())
            .put("load", &load.object(load.one(), &figures).json())
            .put(
                "load_before",
                &load_before.object(load_before.one(), &figures).json(),
            )
            .put("coverage", &coverage.json())
            .put("timeline", &self.timeline(&load)?)
            .put("waits", &self.keys(pg::WAIT_EVENT)?)
            .put("queries", &self.queries()?);
        for (name, dimension) in [
            ("databases", "database"),
            ("users", pg::USERNAME),
            ("applications", "application"),
        ] {
            report.put(name, &self.keys(dimension)?);
        }
        let (tree, left_out) = self.tree()?;
        let markers = self.ask_all("markers", self.window, |_| ())?;
        report
            .put("blockers", &self.blockers()?)
            .put("tree", &tree)
            .put("tree_left_out", &left_out.to_string())
            .put("changes", &self.changes(before)?)
            .put("markers", &markers.json(&[]))
            .put("compat", &compat(self.call, self.window)?);
        let warnings = self.call.spec.damage.warnings();
        if !warnings.is_empty() {
            report.put("damage", &array(warnings.iter().map(warning)));
        }
        Ok(report.json())
    }

    /// What the window is compared with: the same time the day before, or the
    /// time just before when that was not observed.
    fn before(&self) -> QueryResult<(Window, &'static str, Rows)> {
        let earlier = |by: i64| Window {
            since: self.window.since.saturating_sub(by),
            until: self.window.until.saturating_sub(by),
        };
        let day = earlier(DAY);
        let load = self.ask("aas", day, |_| ())?;
        let nothing = source(&Coverage::default());
        if *load.get(load.one(), "source") != nothing {
            return Ok((day, "the same time the day before", load));
        }
        let just = earlier(self.window.length());
        let load = self.ask("aas", just, |_| ())?;
        Ok((just, "the time just before", load))
    }

    fn gaps(&self) -> QueryResult<String> {
        let gaps = markers::gaps(self.call, self.window)?;
        Ok(array(gaps.into_iter().map(|(since, until, cause)| {
            let mut gap = Object::default();
            gap.put("since", &value(&Value::Time(since)))
                .put("until", &value(&Value::Time(until)))
                .put("cause", &quote(&cause));
            gap.json()
        })))
    }

    /// Load by class of waits: keys once, then a number for each in a bucket.
    fn timeline(&self, load: &Rows) -> QueryResult<String> {
        let bucket = self.bucket(load);
        let whole = self.ask_with(timeline::of_report, self.window, |spec| {
            spec.bucket_us = Some(bucket);
        })?;
        let split = self.ask_with(timeline::of_report, self.window, |spec| {
            spec.bucket_us = Some(bucket);
            spec.by = Some(pg::WAIT_TYPE.to_string());
            spec.n = Some(CLASSES);
        })?;
        let keys = split.rows.len() / whole.rows.len().max(1);
        let cell = |row: &Vec<Value>, column| value(split.get(row, column));
        let first = split.rows.iter().take(keys);
        let mut timeline = Object::default();
        timeline
            .put("bucket_seconds", &(bucket / SECOND).to_string())
            .put("keys", &array(first.map(|row| cell(row, "key"))));
        let columns = ["bucket_start", "avg_aas", "peak_sessions", "coverage_pct"];
        let buckets = whole.rows.iter().enumerate().map(|(i, row)| {
            let parts = split.rows.iter().skip(i * keys).take(keys);
            let mut bucket = whole.object(row, &columns);
            bucket.put("by", &array(parts.map(|row| cell(row, "avg_aas"))));
            bucket.json()
        });
        timeline.put("buckets", &array(buckets));
        Ok(timeline.json())
    }

    fn keys(&self, dimension: &str) -> QueryResult<String> {
        let columns = [
            "key",
            "avg_aas",
            "peak_aas",
            "peak_sessions",
            "backend_seconds",
            "pct",
        ];
        Ok(self.top(dimension, None)?.json(&columns))
    }

    /// The largest queries, each with its largest waits.
    fn queries(&self) -> QueryResult<String> {
        let queries = self.top(pg::QUERY_ID, None)?;
        let waits = self.top(pg::QUERY_ID, Some(pg::WAIT_EVENT))?;
        let columns = [
            "key",
            "query_text",
            "avg_aas",
            "peak_aas",
            "peak_sessions",
            "backend_seconds",
            "pct",
        ];
        Ok(array(queries.rows.iter().map(|row| {
            let key = queries.get(row, "key");
            let same = |part: &&Vec<Value>| waits.get(part, "key") == key;
            let parts = waits.rows.iter().filter(same).map(|part| {
                let mut wait = Object::default();
                wait.put("key", &value(waits.get(part, "by_key")))
                    .put("avg_aas", &value(waits.get(part, "avg_aas")));
                wait.json()
            });
            let mut query = queries.object(row, &columns);
            query.put("waits", &array(parts));
            query.json()
        })))
    }

    fn blockers(&self) -> QueryResult<String> {
        let blockers = self.ask_all("blocking", self.window, |_| ())?;
        Ok(blockers.json(&[
            "kind",
            "pid",
            "backend_start",
            "prepared_gid",
            "database",
            "username",
            "application",
            "state",
            "xact_age",
            "query_id",
            "query_text",
            "blocked_seconds",
            "waiters",
            "depth",
            "object",
            "lock_database",
            "lock_relation",
            "mode",
            "mode_held",
            "first_seen",
            "last_seen",
        ]))
    }

    /// Who waited for whom at the moment asked for, and how many rows of that
    /// are left out.
    fn tree(&self) -> QueryResult<(String, usize)> {
        let Some(at) = self.at else {
            return Ok(("null".to_string(), 0));
        };
        let mut tree = self.ask_all("blocking", self.window, |spec| {
            (spec.since_us, spec.until_us) = (None, None);
            spec.at_us = Some(at);
        })?;
        let left_out = tree.rows.len().saturating_sub(TREE_ROWS);
        tree.rows.truncate(TREE_ROWS);
        let json = tree.json(&[
            "tree",
            "level",
            "kind",
            "pid",
            "state",
            "xact_age",
            "waited",
            "via",
            "object",
            "lock_database",
            "lock_relation",
            "mode",
            "waiters",
            "query_text",
        ]);
        Ok((json, left_out))
    }

    fn changes(&self, before: Window) -> QueryResult<String> {
        let mut changes = Object::default();
        let columns = [
            "key",
            "query_text",
            "change",
            "avg_delta",
            "avg_aas_1",
            "avg_aas_2",
        ];
        let mut note = Value::Null;
        for (name, dimension) in [("waits", pg::WAIT_EVENT), ("queries", pg::QUERY_ID)] {
            let rows = self.ask("compare", self.window, |spec| {
                spec.dimension = Some(dimension.to_string());
                spec.before = (Some(before.since), Some(before.until));
            })?;
            if let Some(row) = rows.rows.first() {
                note = rows.get(row, "note").clone();
            }
            changes.put(name, &rows.json(&columns));
        }
        changes.put("note", &value(&note));
        Ok(changes.json())
    }

    /// Width of a bar: the least that holds a tick and leaves not too many.
    fn bucket(&self, load: &Rows) -> i64 {
        let length = self.window.length();
        let interval = match ["ticks_observed", "coverage_pct"].map(|c| load.get(load.one(), c)) {
            [Value::Int(ticks), Value::Numeric(percent)] if *ticks > 0 => {
                i128::from(length) * percent / 1_000_000 / i128::from(*ticks)
            }
            _ => 0,
        };
        let fits =
            |width: &&i64| length / **width <= BARS && i128::from(**width) * 100 >= interval * 99;
        WIDTHS.iter().find(fits).copied().unwrap_or(7 * DAY)
    }
}
