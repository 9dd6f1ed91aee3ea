//! The keys of pg_ash's report, by its rules: classes CPU, IO, IPC, Lock and
//! LWLock, their sum as total; minutes; extremes of the total are those of the
//! summed minutes; events and queries are those of the extreme minutes.

use super::{Call, aas};
use crate::query::cells::Cells;
use crate::query::dimension::Dimension;
use crate::query::error::QueryResult;
use crate::query::json::{Object, array, quote, value};
use crate::query::number::{Ratio, percentile};
use crate::query::parse::{MAX_BUCKETS, Window, buckets};
use crate::query::read::{Scan, Scanned};
use crate::query::spec::Value;
use crate::query::vocabulary as pg;
use std::collections::BTreeMap;

/// Names in the report and classes of waits.
const CLASSES: [(&str, &str); 5] = [
    ("cpu", pg::CPU_CLASS),
    ("io", "IO"),
    ("ipc", "IPC"),
    ("lock", "Lock"),
    ("lwlock", "LWLock"),
];

/// Names of the extremes and their percentiles in thousandths.
const EXTREMES: [(&str, u128); 3] = [("worst1m", 1000), ("p99", 990), ("p999", 999)];

type Key = (Option<String>, Option<String>);
type Keys = Vec<(Key, Cells)>;

/// The part, or `null` when nothing was observed.
pub fn compat(call: &Call, window: Window) -> QueryResult<String> {
    let spec = call.spec;
    let find = |name| Dimension::find(spec.catalog, "dimension", name);
    let (class, event, query) = (
        find(pg::WAIT_TYPE)?,
        find(pg::WAIT_EVENT)?,
        find(pg::QUERY_ID)?,
    );
    let buckets = buckets(spec, window, aas::MINUTE, MAX_BUCKETS)?;
    let scan = Scan::new(spec, call.store, window)?;
    let mut scanned = scan.sums(buckets, &[vec![&class, &event], vec![&class, &query]])?;
    let mut cubes = std::mem::take(&mut scanned.cubes).into_iter();
    let text = |key| scan.register.text(key);
    let texts = |((class, key), cells)| ((text(class), text(key)), cells);
    let mut keys = || -> Keys {
        let cells = cubes.next().unwrap_or_default().into_cells();
        cells.map(texts).collect()
    };
    let (events, queries) = (keys(), keys());
    if scanned.observed.total().observed_ms == 0 {
        return Ok("null".to_string());
    }
    let oldest = scan.parts.iter().chain(&scan.others);
    let oldest = oldest
        .filter(|p| p.min_ms() <= p.max_ms())
        .map(|p| p.min_ms())
        .min();
    let most = spec
        .n
        .map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(0));
    let report = Compat {
        scanned,
        events,
        queries,
        most,
    };
    Ok(report.json(window, oldest))
}

struct Compat {
    scanned: Scanned,
    events: Keys,
    queries: Keys,
    /// Most events and queries of an extreme.
    most: usize,
}

/// A class, or all of them.
struct Series {
    name: &'static str,
    class: Option<&'static str>,
    cells: Cells,
}

impl Compat {
    fn json(&self, window: Window, oldest_ms: Option<i64>) -> String {
        let series = self.series();
        let mut report = Object::default();
        let total = self.scanned.observed.total();
        report.put("vcpus", &total.vcpus().map_or("null".to_string(), two));
        report.put(
            "aas_avg",
            &figures(&series, |s| {
                Ratio::new(s.cells.sum_ms().into(), total.observed_ms.into())
            }),
        );
        for (name, per_mille) in EXTREMES {
            let figure = |s: &Series| self.extreme(s, per_mille);
            report.put(&format!("aas_{name}"), &figures(&series, figure));
        }
        let mut available = false;
        for (name, per_mille) in EXTREMES {
            let (mut events, mut queries) = (Object::default(), Object::default());
            let mut any = false;
            for one in &series {
                let minutes = self.minutes(one, per_mille);
                let top = |keys: &Keys, show| array(self.top(keys, one, &minutes, show));
                if one.class.is_some() && one.name != "cpu" {
                    events.put(one.name, &top(&self.events, event_name));
                }
                if one.name != "cpu" && !minutes.is_empty() {
                    queries.put(one.name, &top(&self.queries, |key| key));
                    any = true;
                }
            }
            report.put(&format!("top_events_{name}"), &events.json());
            if any {
                report.put(&format!("top_queryids_{name}"), &queries.json());
            }
            available |= any;
        }
        report.put("top_queryids_available", &available.to_string());
        report.put("coverage", &self.coverage(window, oldest_ms));
        report.json()
    }

    fn coverage(&self, window: Window, oldest_ms: Option<i64>) -> String {
        let time = |us| value(&Value::Time(us));
        let mut coverage = Object::default();
        let oldest = oldest_ms.map_or("null".to_string(), |ms| time(ms.saturating_mul(1000)));
        coverage
            .put("from", &time(window.since))
            .put("to", &time(window.until))
            .put("source", "\"raw\"")
            .put("minutes_expected", &self.scanned.buckets.len().to_string())
            .put(
                "minutes_with_data",
                &self.scanned.observed.observed_buckets().to_string(),
            )
            .put("raw_retention_start", &oldest);
        coverage.json()
    }

    /// The total first, then the classes.
    fn series(&self) -> Vec<Series> {
        let of = |class: Option<&'static str>| {
            let same = self.events.iter().filter(|(key, _)| is_of(key, class));
            Cells::merged(same.map(|(_, cells)| cells))
        };
        let classes = CLASSES.iter().map(|(name, class)| (*name, Some(*class)));
        let all = std::iter::once(("total", None)).chain(classes);
        all.map(|(name, class)| Series {
            name,
            class,
            cells: of(class),
        })
        .collect()
    }

    fn extreme(&self, series: &Series, per_mille: u128) -> Option<Ratio> {
        let observed = &self.scanned.observed;
        percentile(
            series.cells.loads(observed),
            observed.observed_buckets(),
            per_mille,
            |load| load,
        )
    }

    /// The minutes that reach an extreme: of the worst the first one only.
    fn minutes(&self, series: &Series, per_mille: u128) -> Vec<u32> {
        let Some(least) = self.extreme(series, per_mille) else {
            return Vec::new();
        };
        let observed = &self.scanned.observed;
        let minutes = series.cells.rows.iter().filter(|cell| {
            let covered = observed.bucket(cell.bucket).observed_ms;
            let load = Ratio::new(cell.sum_ms.into(), covered.into()).unwrap_or(Ratio::ZERO);
            load >= least && load > Ratio::ZERO
        });
        let most = if per_mille == 1000 { 1 } else { usize::MAX };
        minutes.map(|cell| cell.bucket).take(most).collect()
    }

    /// `Key(aas)` of the largest keys in some minutes.
    fn top(
        &self,
        keys: &Keys,
        series: &Series,
        minutes: &[u32],
        show: fn(&str) -> &str,
    ) -> Vec<String> {
        let observed = &self.scanned.observed;
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
            quote(&format!("{}({}.{})", show(name), aas / 10, aas % 10))
        };
        largest.into_iter().map(line).collect()
    }
}

/// True when a key is of a class, or of any that the total has.
fn is_of(key: &Key, class: Option<&str>) -> bool {
    let has = |class: &str| key.0.as_deref() == Some(class);
    class.map_or_else(|| CLASSES.iter().any(|(_, class)| has(class)), has)
}

/// The name of an event without its class.
fn event_name(key: &str) -> &str {
    key.split_once(':').map_or(key, |(_, event)| event)
}

/// An object with a number for each series.
fn figures(series: &[Series], figure: impl Fn(&Series) -> Option<Ratio>) -> String {
    let mut figures = Object::default();
    for one in series {
        figures.put(one.name, &two(figure(one).unwrap_or(Ratio::ZERO)));
    }
    figures.json()
}

/// With two decimals.
fn two(ratio: Ratio) -> String {
    let n = ratio.rounded(100);
    format!("{}.{:02}", n / 100, n % 100)
}
