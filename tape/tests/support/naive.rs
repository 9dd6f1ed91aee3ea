//! The same answers by definition: looks at every sample separately.

use crate::model::{self, Asked, Tape, Tick};
use std::collections::{BTreeMap, HashMap};
use tacho_tape::query::Value;
use tacho_tape::query::bucket::{HOUR, Zone};
use tacho_tape::testing::Answer;

/// An unreduced fraction, small enough for cross products.
pub type Fraction = (i128, i128);

/// Rounds half away from zero to four decimals. No value is negative.
pub fn fraction(value: Option<Fraction>) -> Value {
    let round = |(n, d): Fraction| (n * 20_000 + d) / (2 * d);
    value.map_or(Value::Null, |f| Value::Numeric(round(f)))
}

fn less(a: &Fraction, b: &Fraction) -> std::cmp::Ordering {
    (a.0 * b.1).cmp(&(b.0 * a.1))
}

/// A counting sample: tick time, tick, weight, keys by dimension.
struct Row {
    slot_us: i64,
    tick: i64,
    weight: i128,
    keys: HashMap<&'static str, Option<String>>,
}

/// The load of a key.
#[derive(Debug)]
pub struct Measures {
    pub key: Option<String>,
    pub avg: Option<Fraction>,
    pub peak: Option<Fraction>,
    pub p99: Option<Fraction>,
    pub seconds: Option<Fraction>,
    pub pct: Option<Fraction>,
    pub sessions: Option<i64>,
}

pub struct Bucket {
    pub start_us: i64,
    pub avg: Option<Fraction>,
    pub sessions: Option<i64>,
    pub observed: i64,
    pub failed: i64,
    pub expected: i64,
}

pub struct Naive {
    rows: Vec<Row>,
    /// The ticks of the tape.
    ticks: Vec<Tick>,
}

impl Naive {
    pub fn new(tape: &Tape, samples: &Answer, asked: &Asked) -> Naive {
        let mut blockers: HashMap<(i64, String), String> = HashMap::new();
        let mut rows = Vec::new();
        for i in 0..samples.rows.len() {
            let row = row(samples, i);
            if let Some(blocker) = &row.keys["blocked_by"] {
                let pid = row.keys["pid"].clone().unwrap();
                blockers.insert((row.tick, pid), blocker.clone());
            }
            rows.push(row);
        }
        for row in &mut rows {
            let root = root(row, &blockers);
            row.keys.insert("root_blocker", root);
        }
        rows.retain(|row| row.weight > 0 && counts(row, asked));
        let ticks = tape.ticks.clone();
        Naive { rows, ticks }
    }

    fn inside(&self, since: i64, until: i64) -> impl Iterator<Item = &Tick> {
        self.ticks
            .iter()
            .filter(move |t| (since..until).contains(&(t.slot_ms * 1000)))
    }

    fn observed(&self, since: i64, until: i64) -> i128 {
        let ticks = self.inside(since, until).filter(|t| !t.failed);
        ticks.map(|t| i128::from(t.interval_ms)).sum()
    }

    /// Begin of each bucket, and the part of it within the window.
    fn buckets(&self, asked: &Asked) -> Vec<(i64, i64, i64)> {
        let mut buckets = Vec::new();
        let mut at = asked.since_us;
        while at < asked.until_us {
            let (begin, end) = bucket(asked, at);
            buckets.push((begin, at, end.min(asked.until_us)));
            at = end;
        }
        buckets
    }

    fn measures(
        &self,
        asked: &Asked,
        key: Option<String>,
        rows: &[&Row],
        sessions: bool,
    ) -> Measures {
        let sum: i128 = rows.iter().map(|r| r.weight).sum();
        let all: i128 = self.rows.iter().map(|r| r.weight).sum();
        let observed = self.observed(asked.since_us, asked.until_us);
        let mut loads: Vec<Fraction> = Vec::new();
        for (_, since, until) in self.buckets(asked) {
            let observed = self.observed(since, until);
            let inside = rows.iter().filter(|r| (since..until).contains(&r.slot_us));
            if observed > 0 {
                loads.push((inside.map(|r| r.weight).sum(), observed));
            }
        }
        loads.sort_by(less);
        let mut per_tick: HashMap<i64, i64> = HashMap::new();
        rows.iter()
            .for_each(|r| *per_tick.entry(r.tick).or_default() += 1);
        let known = observed > 0;
        let most = per_tick.values().copied().max().unwrap_or(0);
        Measures {
            key,
            avg: known.then_some((sum, observed)),
            peak: loads.last().copied(),
            p99: percentile(&loads),
            seconds: known.then_some((sum, 1000)),
            pct: (all > 0).then_some((100 * sum, all)),
            sessions: (known && sessions).then_some(most),
        }
    }

    pub fn aas(&self, asked: &Asked) -> Measures {
        let rows: Vec<&Row> = self.rows.iter().collect();
        self.measures(asked, None, &rows, true)
    }

    pub fn timeline(&self, asked: &Asked) -> Vec<Bucket> {
        let buckets = self
            .buckets(asked)
            .into_iter()
            .map(|(start_us, since, until)| {
                let rows: Vec<&Row> = self
                    .rows
                    .iter()
                    .filter(|r| (since..until).contains(&r.slot_us))
                    .collect();
                let one = Asked {
                    since_us: since,
                    until_us: until,
                    ..asked.clone()
                };
                let measures = self.measures(&one, None, &rows, true);
                let failed = self.inside(since, until).filter(|t| t.failed).count() as i64;
                let all = self.inside(since, until).count() as i64;
                let weight: i64 = self
                    .inside(since, until)
                    .map(|t| t.interval_ms * 1000)
                    .sum();
                let before = self.ticks.iter().rfind(|t| t.slot_ms * 1000 < until);
                let interval = before.map_or(1_000_000, |t| t.interval_ms * 1000);
                Bucket {
                    start_us,
                    avg: measures.avg,
                    sessions: measures.sessions,
                    observed: all - failed,
                    failed,
                    expected: all + (until - since - weight).max(0) / interval,
                }
            });
        buckets.collect()
    }

    /// The keys of a dimension with their rows, the largest first, and the rows of the keys after
    /// the first n.
    fn ranked<'r>(
        &self,
        asked: &Asked,
        dimension: &str,
        rows: impl IntoIterator<Item = &'r Row>,
    ) -> (Vec<(Measures, Vec<&'r Row>)>, Vec<&'r Row>) {
        let mut groups: BTreeMap<(bool, Option<String>), Vec<&Row>> = BTreeMap::new();
        for row in rows {
            let key = row.keys[dimension].clone();
            groups.entry((key.is_none(), key)).or_default().push(row);
        }
        let mut all: Vec<(Measures, Vec<&Row>)> = groups
            .into_iter()
            .map(|((_, key), rows)| (self.measures(asked, key, &rows, true), rows))
            .collect();
        all.sort_by(|a, b| {
            let by = |m: &Measures| match asked.order_by {
                "avg" => m.avg.unwrap(),
                "peak" => m.peak.unwrap(),
                "p99" => m.p99.unwrap(),
                _ => (i128::from(m.sessions.unwrap()), 1),
            };
            less(&by(&b.0), &by(&a.0))
        });
        let n = (asked.n as usize).min(all.len());
        let rest = all.split_off(n).into_iter().flat_map(|(_, rows)| rows);
        let rest = rest.collect();
        for (line, _) in all.iter_mut().filter(|_| dimension == "query_id") {
            line.key.get_or_insert("(no query id)".into());
        }
        (all, rest)
    }

    fn other(&self, asked: &Asked, rest: &[&Row]) -> Option<Measures> {
        let other = || self.measures(asked, Some("(other)".into()), rest, false);
        (!rest.is_empty()).then(other)
    }

    pub fn top(&self, asked: &Asked) -> Vec<Measures> {
        let (keys, rest) = self.ranked(asked, asked.dimension, &self.rows);
        let lines = keys.into_iter().map(|(line, _)| line);
        lines.chain(self.other(asked, &rest)).collect()
    }

    /// The lines of a split: key, and its part.
    pub fn split(&self, asked: &Asked) -> Vec<(Option<String>, Measures)> {
        let (keys, rest) = self.ranked(asked, asked.dimension, &self.rows);
        let mut lines = Vec::new();
        for (key, rows) in keys {
            let (parts, left) = self.ranked(asked, asked.by, rows);
            let parts = parts.into_iter().map(|(line, _)| line);
            let parts = parts.chain(self.other(asked, &left));
            lines.extend(parts.map(|part| (key.key.clone(), part)));
        }
        let other = self.other(asked, &rest);
        lines.extend(other.map(|line| (line.key.clone(), line)));
        lines
    }
}

/// Begin and end of the bucket that contains an instant.
fn bucket(asked: &Asked, at: i64) -> (i64, i64) {
    let width = asked.bucket_us;
    let begin_from = |origin: i64| origin + (at - origin).div_euclid(width) * width;
    let Some(clocks) = &asked.clocks else {
        let begin = begin_from(0);
        return (begin, begin + width);
    };
    // Long buckets begin when the clock first shows a multiple or passes it. Others begin whenever
    // it shows one, and when it is changed.
    let change = clocks.next_change(i64::MIN).unwrap();
    let [before, after] = [change - 1, change].map(|at| clocks.offset(at));
    let near = [before, after].map(|offset| (at + offset).div_euclid(width));
    let multiples = near.into_iter().flat_map(|k| k - 2..=k + 2);
    let multiples = multiples.map(|k| k * width);
    let mut edges = Vec::new();
    for local in multiples {
        let (old, new) = (local - before, local - after);
        if width > HOUR {
            edges.push(if old < change { old } else { new.max(change) });
        } else {
            edges.extend([old].into_iter().filter(|old| *old < change));
            edges.extend([new].into_iter().filter(|new| *new >= change));
        }
    }
    if width <= HOUR && before != after {
        edges.push(change);
    }
    let begin = *edges.iter().filter(|edge| **edge <= at).max().unwrap();
    let end = *edges.iter().filter(|edge| **edge > at).min().unwrap();
    (begin, end)
}

fn percentile(sorted: &[Fraction]) -> Option<Fraction> {
    let last = sorted.len().checked_sub(1)?;
    let (low, rest) = (99 * last / 100, (99 * last % 100) as i128);
    let (a, b) = (sorted[low], sorted[(low + 1).min(last)]);
    Some((a.0 * b.1 * (100 - rest) + b.0 * a.1 * rest, 100 * a.1 * b.1))
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.to_string()),
        Value::Int(n) | Value::Id(n) => Some(n.to_string()),
        _ => None,
    }
}

fn int(value: Value) -> i64 {
    match value {
        Value::Int(n) | Value::Id(n) | Value::Time(n) => n,
        other => panic!("{other:?}"),
    }
}

fn row(samples: &Answer, i: usize) -> Row {
    let mut keys: HashMap<&'static str, Option<String>> = HashMap::new();
    let derived = model::derived();
    for dimension in model::dimensions() {
        if !derived.contains(dimension) {
            keys.insert(dimension, text(samples.get(i, dimension)));
        }
    }
    let cpu = keys["cpu"].clone();
    let event = match (&keys["wait_event_type"], &keys["wait_event"], &cpu) {
        (Some(class), Some(event), _) => Some(format!("{class}:{event}")),
        (_, _, Some(kind)) if kind == "CPU*" => Some("CPU*".to_string()),
        (_, _, Some(kind)) => Some(format!("CPU:{kind}")),
        _ => None,
    };
    keys.insert("wait_event", event);
    if keys["wait_event_type"].is_none() && cpu.is_some() {
        keys.insert("wait_event_type", Some("CPU".to_string()));
    }
    Row {
        slot_us: int(samples.get(i, "sample_time")),
        tick: int(samples.get(i, "tick")),
        weight: i128::from(int(samples.get(i, "weight_ms"))),
        keys,
    }
}

fn root(row: &Row, blockers: &HashMap<(i64, String), String>) -> Option<String> {
    let mut seen = vec![row.keys["pid"].clone()?];
    let mut current = row.keys["blocked_by"].clone()?;
    loop {
        if seen.contains(&current) {
            return Some("(cycle)".to_string());
        }
        match blockers.get(&(row.tick, current.clone())) {
            Some(next) => seen.push(std::mem::replace(&mut current, next.clone())),
            None => return Some(current),
        }
    }
}

fn counts(row: &Row, asked: &Asked) -> bool {
    let key = |name: &str| row.keys[name].as_deref();
    let foreground = key("category") == Some("foreground");
    let in_scope = match asked.scope {
        "load" => {
            let busy = matches!(key("state"), Some("active" | "fastpath function call"));
            foreground && busy && key("wait_event") != Some("Client:ClientRead")
        }
        "foreground" => foreground && key("state").is_some_and(|s| s != "idle"),
        _ => true,
    };
    let led = asked.by_leader && key("leader").is_some();
    in_scope
        && !led
        && asked
            .filters
            .iter()
            .all(|(name, text)| wanted(key(name), name, text))
}

fn wanted(key: Option<&str>, dimension: &str, text: &str) -> bool {
    let is = |item: &str| match item {
        "(null)" => key.is_none(),
        // The filter is an event without its class.
        "DataFileRead" | "WALSync" if dimension == "wait_event" => {
            key.is_some_and(|key| key.ends_with(&format!(":{item}")))
        }
        item => key == Some(item),
    };
    let (none, any): (Vec<&str>, Vec<&str>) = text.split(',').partition(|i| i.starts_with('!'));
    (any.is_empty() || any.into_iter().any(is)) && !none.into_iter().any(|i| is(&i[1..]))
}
