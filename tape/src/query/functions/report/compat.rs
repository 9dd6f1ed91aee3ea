//! The keys of pg_ash's report, by its rules. Loads are per minute, for the classes CPU, IO, IPC,
//! Lock and LWLock; `total` is their sum in each minute. An extreme of `total` is an extreme of
//! these sums. Events and queries are listed for the extreme minutes only.

use super::exact::{Hundredths, Time};
use crate::query::ask::context::Run;
use crate::query::functions::aas;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::parse::{MAX_BUCKETS, Samples, Window, buckets};
use crate::query::rows::register::Register;
use crate::query::rows::scan::Scan;
use crate::query::rows::ticks::Observed;
use crate::query::sums::cells::Cells;
use crate::query::sums::measure::Cube;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::query::value::number::{Ratio, percentile};
use crate::query::value::vocabulary as pg;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The part for pg_ash. Extremes are the worst minute, and percentiles of the minutes.
#[allow(missing_docs)]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compat {
    pub vcpus: Option<Hundredths>,
    pub aas_avg: Figures,
    pub aas_worst1m: Figures,
    pub aas_p99: Figures,
    pub aas_p999: Figures,
    pub top_events_worst1m: Largest,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_queryids_worst1m: Option<Largest>,
    pub top_events_p99: Largest,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_queryids_p99: Option<Largest>,
    pub top_events_p999: Largest,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_queryids_p999: Option<Largest>,
    pub top_queryids_available: bool,
    pub coverage: Covered,
}

/// The load of each class of waits, and of all classes together.
#[allow(missing_docs)]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    pub total: Hundredths,
    pub cpu: Hundredths,
    pub io: Hundredths,
    pub ipc: Hundredths,
    pub lock: Hundredths,
    pub lwlock: Hundredths,
}

/// The largest events or queries of each class, as `Key(aas)`; `None` if no minute has the extreme.
#[allow(missing_docs)]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Largest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipc: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lwlock: Option<Vec<String>>,
}

/// The observed share of the window.
#[allow(missing_docs)]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Covered {
    pub from: Option<Time>,
    pub to: Option<Time>,
    pub source: Option<String>,
    pub minutes_expected: usize,
    pub minutes_with_data: usize,
    pub raw_retention_start: Option<Time>,
}

/// Classes of waits in the order of [`Figures`]; `None` is all of these together.
const CLASSES: [Option<&str>; 6] = [
    None,
    Some(pg::CPU_CLASS),
    Some("IO"),
    Some("IPC"),
    Some("Lock"),
    Some("LWLock"),
];

/// Percentiles in thousandths; `WORST` is the maximum of all minutes.
const WORST: u128 = 1000;
const P99: u128 = 990;
const P999: u128 = 999;

type Key = (Option<String>, Option<String>);
type Keys = Vec<(Key, Cells)>;

/// Computes the part; `None` if nothing was observed.
pub fn compat(
    run: Run,
    samples: Samples,
    window: Window,
    n: Option<i64>,
) -> QueryResult<Option<Compat>> {
    let find = |name| Dimension::find(run.catalog, "dimension", name);
    let (class, event, query) = (
        find(pg::WAIT_TYPE)?,
        find(pg::WAIT_EVENT)?,
        find(pg::QUERY_ID)?,
    );
    let buckets = buckets(run.context, window, aas::MINUTE, MAX_BUCKETS)?;
    let mut scan = Scan::new(run, samples, window)?;
    let scanned = scan.sums(buckets.clone(), &[vec![&class]])?;
    let mut minutes = Minutes {
        observed: scanned.observed,
        series: series(&scan.register, scanned.cubes),
        events: Keys::new(),
        queries: Keys::new(),
        most: n.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(0)),
    };
    if minutes.observed.total().observed_ms == 0 {
        return Ok(None);
    }
    scan.only_buckets = Some(minutes.all_extremes());
    let groups = [vec![&class, &event], vec![&class, &query]];
    let cubes = scan.sums(buckets.clone(), &groups)?.cubes;
    let text = |key| scan.register.text(key);
    let texts = |((class, key), cells)| ((text(class), text(key)), cells);
    let keys = |cube: Cube<Cells>| cube.into_cells().map(texts).collect();
    let mut keys = cubes.into_iter().map(keys);
    minutes.events = keys.next().unwrap_or_default();
    minutes.queries = keys.next().unwrap_or_default();
    drop(keys);
    let oldest = scan.parts.iter().chain(&scan.others);
    let oldest = oldest
        .filter(|p| p.min_ms() <= p.max_ms())
        .map(|p| p.min_ms())
        .min();
    let covered = minutes.covered(&buckets, oldest);
    Ok(Some(minutes.part(covered)))
}

/// Loads by minute.
struct Minutes {
    observed: Observed,
    series: [Series; 6],
    /// Events in the extreme minutes.
    events: Keys,
    /// Queries in the extreme minutes.
    queries: Keys,
    /// Maximum number of events and queries for an extreme.
    most: usize,
}

/// A class, or all classes together.
struct Series {
    class: Option<&'static str>,
    cells: Cells,
}

/// The series of each class, all classes together first.
fn series(register: &Register, cubes: Vec<Cube<Cells>>) -> [Series; 6] {
    let classes = cubes.into_iter().flat_map(Cube::into_cells);
    let classes = classes.map(|((class, _), cells)| ((register.text(class), None), cells));
    let classes: Keys = classes.collect();
    CLASSES.map(|class| {
        let same = classes.iter().filter(|(key, _)| is_of(key, class));
        let cells = Cells::merged(same.map(|(_, cells)| cells));
        Series { class, cells }
    })
}

impl Minutes {
    fn part(&self, coverage: Covered) -> Compat {
        let series = &self.series;
        let total = self.observed.total();
        let average = |one: &Series| {
            let sum_ms = one.cells.sum_ms();
            Ratio::new(sum_ms.into(), total.observed_ms.into())
        };
        let extremes = |per_mille| figures(series, |one| self.extreme(one, per_mille));
        let events = |per_mille| self.largest_events(per_mille);
        let queries = |per_mille| self.largest_queries(per_mille);
        let largest = [WORST, P99, P999].map(queries);
        let top_queryids_available = largest.iter().any(Option::is_some);
        let [worst1m, p99, p999] = largest;
        Compat {
            vcpus: total.vcpus().map(hundredths),
            aas_avg: figures(series, average),
            aas_worst1m: extremes(WORST),
            aas_p99: extremes(P99),
            aas_p999: extremes(P999),
            top_events_worst1m: events(WORST),
            top_queryids_worst1m: worst1m,
            top_events_p99: events(P99),
            top_queryids_p99: p99,
            top_events_p999: events(P999),
            top_queryids_p999: p999,
            top_queryids_available,
            coverage,
        }
    }

    fn largest_events(&self, per_mille: u128) -> Largest {
        let top = |one: &Series| {
            let minutes = self.minutes(one, per_mille);
            Some(self.top(&self.events, one, &minutes, event_name))
        };
        let [_, _, io, ipc, lock, lwlock] = self.series.each_ref().map(top);
        Largest {
            total: None,
            io,
            ipc,
            lock,
            lwlock,
        }
    }

    /// `None` if no minute reaches the extreme.
    fn largest_queries(&self, per_mille: u128) -> Option<Largest> {
        let top = |one: &Series| {
            let minutes = self.minutes(one, per_mille);
            (!minutes.is_empty()).then(|| self.top(&self.queries, one, &minutes, |key| key))
        };
        let [total, _, io, ipc, lock, lwlock] = self.series.each_ref().map(top);
        let largest = Largest {
            total,
            io,
            ipc,
            lock,
            lwlock,
        };
        (largest != Largest::default()).then_some(largest)
    }

    fn covered(&self, minutes: &Buckets, oldest_ms: Option<i64>) -> Covered {
        Covered {
            from: Some(Time(minutes.since())),
            to: Some(Time(minutes.until())),
            source: Some("raw".to_string()),
            minutes_expected: minutes.len(),
            minutes_with_data: self.observed.observed_buckets(),
            raw_retention_start: oldest_ms.map(|ms| Time(ms.saturating_mul(1000))),
        }
    }

    /// The minutes that reach an extreme of any series.
    fn all_extremes(&self) -> BTreeSet<u32> {
        let of = |one| [WORST, P99, P999].map(|per_mille| self.minutes(one, per_mille));
        self.series.iter().flat_map(of).flatten().collect()
    }

    /// The maximum or a percentile of the minutes' loads.
    fn extreme(&self, series: &Series, per_mille: u128) -> Option<Ratio> {
        let observed = &self.observed;
        percentile(
            series.cells.loads(observed),
            observed.observed_buckets(),
            per_mille,
            |load| load,
        )
    }

    /// The minutes that reach an extreme; for `WORST` only the first one.
    fn minutes(&self, series: &Series, per_mille: u128) -> Vec<u32> {
        let Some(least) = self.extreme(series, per_mille) else {
            return Vec::new();
        };
        let observed = &self.observed;
        let minutes = series.cells.rows.iter().filter(|cell| {
            let covered = observed.bucket(cell.bucket).observed_ms;
            let load = Ratio::new(cell.sum_ms.into(), covered.into()).unwrap_or(Ratio::ZERO);
            load >= least && load > Ratio::ZERO
        });
        let most = if per_mille == WORST { 1 } else { usize::MAX };
        minutes.map(|cell| cell.bucket).take(most).collect()
    }

    /// `Key(aas)` of the largest keys in these minutes.
    fn top(
        &self,
        keys: &Keys,
        series: &Series,
        minutes: &[u32],
        show: fn(&str) -> &str,
    ) -> Vec<String> {
        let observed = &self.observed;
        let length: i64 = minutes
            .iter()
            .map(|m| observed.bucket(*m).observed_ms)
            .sum();
        let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
        for (key, cells) in keys.iter().filter(|(key, _)| is_of(key, series.class)) {
            let Some(name) = &key.1 else { continue };
            let cells = minutes.iter().filter_map(|minute| cells.bucket(*minute));
            *sums.entry(name).or_default() += cells.map(|cell| cell.sum_ms).sum::<i64>();
        }
        let mut largest: Vec<(&str, i64)> = sums.into_iter().filter(|s| s.1 > 0).collect();
        largest.sort_by_key(|(_, sum)| -sum);
        largest.truncate(self.most);
        let line = |(name, sum): (&str, i64)| {
            let aas = Ratio::new(sum.into(), length.into()).map_or(0, |aas| aas.rounded(10));
            format!("{}({}.{})", show(name), aas / 10, aas % 10)
        };
        largest.into_iter().map(line).collect()
    }
}

/// True if the key belongs to the class; without a class, if it belongs to one of [`CLASSES`].
fn is_of(key: &Key, class: Option<&str>) -> bool {
    let has = |class: &str| key.0.as_deref() == Some(class);
    class.map_or_else(|| CLASSES.into_iter().flatten().any(has), has)
}

/// The name of an event without its class.
fn event_name(key: &str) -> &str {
    key.split_once(':').map_or(key, |(_, event)| event)
}

/// One number for each series.
fn figures(series: &[Series; 6], figure: impl Fn(&Series) -> Option<Ratio>) -> Figures {
    let figure = |one| hundredths(figure(one).unwrap_or(Ratio::ZERO));
    let [total, cpu, io, ipc, lock, lwlock] = series.each_ref().map(figure);
    Figures {
        total,
        cpu,
        io,
        ipc,
        lock,
        lwlock,
    }
}

fn hundredths(ratio: Ratio) -> Hundredths {
    Hundredths(ratio.rounded(100))
}
