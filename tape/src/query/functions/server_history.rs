//! `server_history`: measurements of the server as a whole. The file itself describes which
//! measurements it has: columns marked as counters or gauges.

use super::common_columns::numeric;
use crate::format::part::Part;
use crate::format::schema::{Role, Schema, TableDef};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::View;
use crate::query::rows::parse::{MAX_ROWS, Window, buckets, nodes};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::filter::Filter;
use crate::query::value::number::Ratio;
use crate::query::value::vocabulary as pg;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

row! {
    /// A row of `server_history`.
    ServerHistoryRow of "server_history": FIELDS {
        period_start: Time,
        period_end: Time,
        metric: Text,
        object: Text,
        unit: Text,
        avg: Numeric,
        min: Numeric,
        max: Numeric,
        total: Numeric,
        readings: Int,
    }
}

request! {
    /// Measurements of the server: load, pressure, databases, log, replicas
    ServerHistory of server_history: ServerHistoryRow {
        node,
        since,
        until,
        bucket,
        metric,
        object,
    }
}

/// Columns of ticks that are measurements of the server, too.
const OF_TICKS: [&str; 2] = ["connections", "max_connections"];
/// Connections of clients by state, from the counts of ticks. Its objects are states.
const BY_STATE: &str = "connections_by_state";
/// Object of client connections without a state.
const NO_STATE: &str = "not known";
/// The table that has a row for every reading.
const READINGS: &str = "server";
/// The time of a reading and the slot time of its tick differ by at most this, in ms.
const SLACK_MS: i64 = 3_600_000;
/// Unit of numbers that are stored multiplied by 100.
const HUNDREDTHS: &str = "hundredths";

/// Index of a metric in the order of the catalog, and its object; null last.
type Key = (usize, (bool, Option<String>));

struct Metric {
    name: String,
    unit: String,
    counter: bool,
}

/// Sums of one metric and object in one bucket.
#[derive(Default)]
struct Sums {
    total: i128,
    rows: i64,
    low: Option<Ratio>,
    high: Option<Ratio>,
}

/// The readings of the server in one bucket: their number, and the time between them in ms. The
/// first reading of a sampler's life has no predecessor, so it adds no time and counters have no
/// increase at it.
#[derive(Clone, Default)]
struct Observed {
    readings: i64,
    elapsed_ms: i128,
    intervals: i64,
    /// Ticks with counts of backends.
    counted: i64,
}

struct History<'a> {
    run: Run<'a>,
    window: Window,
    buckets: Option<Buckets>,
    metrics: Vec<Metric>,
    wanted: Option<Filter>,
    objects: Option<Filter>,
    observed: Vec<Observed>,
    sums: BTreeMap<(usize, Key), Sums>,
}

fn answer(asked: &ServerHistory, run: Run, emit: Emit<ServerHistoryRow>) -> QueryResult<()> {
    let mut history = History::new(asked, run)?;
    for node in nodes(run, asked.node.as_deref())? {
        for part in run.store.parts(node) {
            run.check_cancel()?;
            if history.may_have(part) {
                run.damage.note_and_continue(history.read(part))?;
                part.release();
            }
        }
    }
    run.damage.check()?;
    let rows = std::mem::take(&mut history.sums);
    rows.iter()
        .try_for_each(|(key, sums)| emit(history.row(key, sums)))
}

/// The tables of measurements, in the order of the catalog.
fn tables(schema: &Schema) -> impl Iterator<Item = &TableDef> {
    let measures = |t: &&TableDef| {
        let role = |r: Role| t.columns.iter().any(|c| c.role == r);
        role(Role::Counter) || role(Role::Gauge)
    };
    schema.tables.iter().filter(measures)
}

fn filter(name: &str, text: &Option<String>) -> QueryResult<Option<Filter>> {
    let text = text.as_deref();
    text.map(|text| Filter::parse(name, text)).transpose()
}

impl<'a> History<'a> {
    fn new(asked: &ServerHistory, run: Run<'a>) -> QueryResult<Self> {
        let window = Window::of(run.context, asked.since, asked.until)?;
        let width = asked.bucket;
        let buckets = width
            .map(|width| buckets(run.context, window, width, MAX_ROWS))
            .transpose()?;
        let count = buckets.as_ref().map_or(1, Buckets::len);
        let mut history = History {
            run,
            window,
            buckets,
            metrics: Vec::new(),
            wanted: filter("metric", &asked.metric)?,
            objects: filter("object", &asked.object)?,
            observed: vec![Observed::default(); count],
            sums: BTreeMap::new(),
        };
        history.learn(run.catalog);
        history.check_wanted()?;
        Ok(history)
    }

    /// Adds the metrics of a schema that are not known yet.
    fn learn(&mut self, schema: &Schema) {
        for column in tables(schema).flat_map(|t| &t.columns) {
            let measured = matches!(column.role, Role::Counter | Role::Gauge);
            if measured && self.place(&column.name).is_none() {
                self.metrics.push(Metric {
                    name: column.name.clone(),
                    unit: column.target.clone(),
                    counter: column.role == Role::Counter,
                });
            }
        }
        let ticks = schema.tables.iter().find(|table| table.name == "tick");
        let counts = schema.tables.iter().any(|table| table.name == "count");
        let of_ticks = OF_TICKS.map(|name| {
            let known = ticks.is_some_and(|table| table.index(name).is_some());
            (name, known)
        });
        for (name, known) in of_ticks.into_iter().chain([(BY_STATE, counts)]) {
            if known && self.place(name).is_none() {
                self.metrics.push(Metric {
                    name: name.to_string(),
                    unit: "count".to_string(),
                    counter: false,
                });
            }
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.metrics.iter().position(|m| m.name == name)
    }

    fn check_wanted(&mut self) -> QueryResult<()> {
        let Some(mut wanted) = self.wanted.take() else {
            return Ok(());
        };
        for item in wanted.items_mut() {
            let name = item.as_deref().unwrap_or("(null)");
            if self.place(name).is_none() {
                let names: Vec<&str> = self.metrics.iter().map(|m| m.name.as_str()).collect();
                return Err(
                    QueryError::undefined(format!("metric \"{name}\" does not exist"))
                        .hint(format!("Available are {}.", names.join(", "))),
                );
            }
        }
        self.wanted = Some(wanted);
        Ok(())
    }

    fn bucket(&self, time_ms: i64) -> Option<usize> {
        let us = time_ms.saturating_mul(1000);
        match &self.buckets {
            Some(buckets) => buckets.index(us),
            None => (us >= self.window.since && us < self.window.until).then_some(0),
        }
    }

    fn period(&self, bucket: usize) -> (i64, i64) {
        match &self.buckets {
            Some(buckets) => buckets.clipped(bucket),
            None => (self.window.since, self.window.until),
        }
    }

    fn may_have(&self, part: &Part) -> bool {
        let known = part.min_ms() <= part.max_ms();
        let before = part.min_ms().saturating_sub(SLACK_MS).saturating_mul(1000);
        let after = part.max_ms().saturating_add(SLACK_MS).saturating_mul(1000);
        part.rows(READINGS) > 0
            && (!known || before < self.window.until && after >= self.window.since)
    }

    fn read(&mut self, part: &Part) -> QueryResult<()> {
        self.learn(part.schema());
        let elapsed = self.readings(part)?;
        let schema = part.schema().clone();
        let view = View::new(part, self.run.decode).canceled_by(self.run.cancel);
        for table in tables(&schema) {
            self.table(&view, table, &elapsed)?;
        }
        self.ticks(&view)?;
        self.states(&view)
    }

    /// Adds the client connections of each tick by state. A tick without a row for a state has none.
    fn states(&mut self, view: &View) -> QueryResult<()> {
        let Some(place) = self.wanted_place(BY_STATE, Role::Gauge) else {
            return Ok(());
        };
        let column = |name: &str| view.part.ints("count", name);
        let (at, category) = (column("at")?, column("category")?);
        let (state, backends) = (column("state")?, column("backends")?);
        let ticks = view.part.ints("tick", "tick")?;
        let times = view.part.ints("tick", "slot_time")?;
        let times: HashMap<i64, i64> = ticks.iter().copied().zip(times.iter().copied()).collect();
        let schema = view.part.schema();
        let mut counted = HashSet::new();
        for row in 0..at.len() {
            let time = times.get(&at[row]).copied();
            let Some(bucket) = time.and_then(|time| self.bucket(time)) else {
                continue;
            };
            self.observed[bucket].counted += i64::from(counted.insert(at[row]));
            if schema.label(pg::CATEGORY, category[row]) != Some(pg::FOREGROUND) {
                continue;
            }
            let state = schema.label("state", state[row]).unwrap_or(NO_STATE);
            if self.accepts_object(Some(state)) {
                let key = (place, (false, Some(state.to_string())));
                let sums = self.sums.entry((bucket, key)).or_default();
                sums.add(backends[row], &self.metrics[place], 0);
            }
        }
        Ok(())
    }

    /// Adds what each tick has seen of the server; 0 is not known.
    fn ticks(&mut self, view: &View) -> QueryResult<()> {
        if self.objects.as_ref().is_some_and(|o| !o.accepts(None)) {
            return Ok(());
        }
        for name in OF_TICKS {
            let Some(place) = self.wanted_place(name, Role::Gauge) else {
                continue;
            };
            view.check_cancel()?;
            let times = view.part.ints("tick", "slot_time")?;
            let values = view.part.ints("tick", name)?;
            for (&time, &value) in times.iter().zip(values.iter()) {
                if let (Some(bucket), true) = (self.bucket(time), value > 0) {
                    let sums = self.sums.entry((bucket, (place, (true, None))));
                    sums.or_default().add(value, &self.metrics[place], 0);
                }
            }
        }
        Ok(())
    }

    /// Counts the readings in the window. Returns the time of each reading (ms since 1970) with the
    /// ms that it covers.
    fn readings(&mut self, part: &Part) -> QueryResult<HashMap<i64, i64>> {
        let times = part.ints(READINGS, "time")?;
        let elapsed = part.ints(READINGS, "elapsed_ms")?;
        for (&time, &ms) in times.iter().zip(elapsed.iter()) {
            if let Some(bucket) = self.bucket(time) {
                let observed = &mut self.observed[bucket];
                observed.readings += 1;
                observed.intervals += i64::from(ms > 0);
                observed.elapsed_ms += i128::from(ms.max(0));
            }
        }
        Ok(times.iter().copied().zip(elapsed.iter().copied()).collect())
    }

    fn table(
        &mut self,
        view: &View,
        table: &TableDef,
        elapsed: &HashMap<i64, i64>,
    ) -> QueryResult<()> {
        let times = view.part.ints(&table.name, "time")?;
        let objects = view.part.ints(&table.name, "object")?;
        let mut names: HashMap<i64, Option<String>> = HashMap::new();
        for &object in objects.iter() {
            if let Entry::Vacant(entry) = names.entry(object) {
                entry.insert(view.name(Reference(object))?);
            }
        }
        for column in &table.columns {
            let Some(place) = self.wanted_place(&column.name, column.role) else {
                continue;
            };
            view.check_cancel()?;
            let values = view.part.ints(&table.name, &column.name)?;
            for (row, &stored) in values.iter().enumerate() {
                let name = names.get(&objects[row]).cloned().flatten();
                let (Some(bucket), true) = (self.bucket(times[row]), stored > 0) else {
                    continue;
                };
                if self.accepts_object(name.as_deref()) {
                    let ms = elapsed.get(&times[row]).copied().unwrap_or(0);
                    let sums = self.sums.entry((bucket, (place, (name.is_none(), name))));
                    let sums = sums.or_default();
                    sums.add(stored - 1, &self.metrics[place], ms);
                }
            }
        }
        Ok(())
    }

    fn wanted_place(&self, name: &str, role: Role) -> Option<usize> {
        let measured = matches!(role, Role::Counter | Role::Gauge);
        let wanted = self.wanted.as_ref().is_none_or(|w| w.accepts(Some(name)));
        self.place(name).filter(|_| measured && wanted)
    }

    fn accepts_object(&self, name: Option<&str>) -> bool {
        self.objects.as_ref().is_none_or(|o| o.accepts(name))
    }

    fn row(&self, key: &(usize, Key), sums: &Sums) -> ServerHistoryRow {
        let (bucket, (place, (_, object))) = key;
        let metric = &self.metrics[*place];
        let observed = &self.observed[*bucket];
        let (since, until) = self.period(*bucket);
        // A reading without a row for a counter means an increase of zero.
        let by_state = metric.name == BY_STATE;
        let idle = match by_state {
            true => sums.rows < observed.counted,
            false => metric.counter && sums.rows < observed.intervals,
        };
        let rows = if by_state {
            observed.counted
        } else {
            sums.rows
        };
        let low = if idle { Some(Ratio::ZERO) } else { sums.low };
        let average = match metric.counter {
            true => Ratio::new(sums.total * 1000, observed.elapsed_ms),
            false => Ratio::new(sums.total, i128::from(rows) * metric.divisor()),
        };
        let total = metric.counter.then(|| Ratio::new(sums.total, 1)).flatten();
        ServerHistoryRow {
            period_start: Some(since),
            period_end: Some(until),
            metric: Some(metric.name.as_str().into()),
            object: object.as_deref().map(Into::into),
            unit: Some(metric.shown_unit().into()),
            avg: numeric(average),
            min: numeric(low),
            max: numeric(sums.high),
            total: numeric(total),
            readings: Some(observed.readings),
        }
    }
}

impl Metric {
    fn divisor(&self) -> i128 {
        if self.unit == HUNDREDTHS { 100 } else { 1 }
    }

    fn shown_unit(&self) -> &str {
        match self.unit.as_str() {
            HUNDREDTHS => "count",
            unit => unit,
        }
    }
}

impl Sums {
    /// Adds a value. An increase also has the time that it took.
    fn add(&mut self, value: i64, metric: &Metric, elapsed_ms: i64) {
        let value = i128::from(value);
        self.total += value;
        self.rows += 1;
        let each = match metric.counter {
            true => Ratio::new(value * 1000, elapsed_ms.into()),
            false => Ratio::new(value, metric.divisor()),
        };
        self.low = self.low.into_iter().chain(each).min();
        self.high = self.high.into_iter().chain(each).max();
    }
}
