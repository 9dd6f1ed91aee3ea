//! Evaluates runs: medians, ratios to the baseline of the same round, the mean
//! wait profile.

use super::metric::{Better, Metric};
use super::plan::{Point, points};
use super::stats::{Estimate, Verdict, estimate, median};
use super::store::{CUT_OFF, Results, Run};
use super::waits::Profile;
use std::collections::BTreeMap;

/// Measurements of one variant at one point.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Version of the server.
    pub version: String,
    /// Name of the variant.
    pub variant: String,
    /// The point of the scenario.
    pub point: Point,
    /// Number of runs.
    pub runs: usize,
    /// Median and interval of each metric.
    pub values: BTreeMap<String, Estimate>,
    /// Ratios to the baseline; empty for the baseline itself.
    pub ratios: BTreeMap<String, Estimate>,
    /// Mean load by wait event.
    pub waits: Profile,
}

/// Denominator of the ratios.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Baseline {
    /// The first variant, at the same point.
    Variant(String),
    /// The first point, for the same variant.
    Point(String),
}

impl Cell {
    /// True if the median is of a run whose answer took longer than the time limit.
    pub fn cut_off(&self) -> bool {
        let limit = self.values.get(CUT_OFF).map(|e| e.median);
        let ms = self.values.get("ms").map(|e| e.median);
        limit.zip(ms).is_some_and(|(limit, ms)| ms >= limit)
    }
}

impl Baseline {
    /// Baseline of a scenario: the first variant, or for a statement the first
    /// value.
    pub fn of(results: &Results) -> Self {
        let scenario = &results.experiment.scenario;
        let first = points(scenario).into_iter().next().unwrap_or_default();
        match (&scenario.statement, scenario.variants.first()) {
            (None, Some(variant)) => Self::Variant(variant.name.clone()),
            _ => Self::Point(first.label()),
        }
    }

    /// Name of the variant or point in the report.
    pub fn name(&self) -> &str {
        match self {
            Self::Variant(name) | Self::Point(name) => name,
        }
    }

    /// True if `base` is the baseline of a run.
    fn serves(&self, base: &Run, run: &Run) -> bool {
        let alike = base.version == run.version && base.round == run.round;
        alike
            && match self {
                Self::Variant(name) => base.variant == *name && base.point == run.point,
                Self::Point(label) => base.variant == run.variant && base.point.label() == *label,
            }
    }

    fn is(&self, run: &Run) -> bool {
        self.serves(run, run)
    }

    /// True if a cell belongs to the baseline.
    pub fn is_cell(&self, cell: &Cell) -> bool {
        match self {
            Self::Variant(name) => cell.variant == *name,
            Self::Point(label) => cell.point.label() == *label,
        }
    }

    /// The baseline's cell at the point of another cell, if the baseline is a
    /// variant.
    pub fn of_cell<'a>(&self, cells: &'a [Cell], cell: &Cell) -> Option<&'a Cell> {
        let Self::Variant(name) = self else {
            return None;
        };
        let mut cells = cells.iter();
        cells.find(|c| c.version == cell.version && c.point == cell.point && c.variant == *name)
    }
}

/// All cells, in the order of the plan.
pub fn cells(results: &Results) -> Vec<Cell> {
    let baseline = Baseline::of(results);
    let experiment = &results.experiment;
    let mut cells = Vec::new();
    for version in &experiment.versions {
        for point in points(&experiment.scenario) {
            for variant in &experiment.scenario.variants {
                let of = |run: &&Run| {
                    run.version == *version && run.variant == variant.name && run.point == point
                };
                let runs: Vec<&Run> = results.runs.iter().filter(of).collect();
                if !runs.is_empty() {
                    cells.push(cell(&runs, &results.runs, &baseline));
                }
            }
        }
    }
    cells
}

fn cell(runs: &[&Run], all: &[Run], baseline: &Baseline) -> Cell {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut waits = Profile::new();
    for run in runs {
        for (name, value) in &run.metrics {
            values.entry(name.clone()).or_default().push(*value);
        }
        for (wait, load) in &run.waits {
            *waits.entry(wait.clone()).or_default() += load;
        }
        if baseline.is(run) {
            continue;
        }
        // A time at the limit has no ratio: the real time is unknown.
        let whole = |base: &&Run| !base.metrics.contains_key(CUT_OFF);
        let base = all.iter().find(|base| baseline.serves(base, run));
        let base = base.filter(whole);
        for (name, value) in base.iter().flat_map(|base| &base.metrics) {
            if let (Some(own), true) = (run.metrics.get(name), *value != 0.0) {
                ratios.entry(name.clone()).or_default().push(own / value);
            }
        }
    }
    for load in waits.values_mut() {
        *load /= runs.len() as f64;
    }
    let first = runs[0];
    Cell {
        version: first.version.clone(),
        variant: first.variant.clone(),
        point: first.point.clone(),
        runs: runs.len(),
        values: estimates(values),
        ratios: estimates(ratios),
        waits,
    }
}

fn estimates(values: BTreeMap<String, Vec<f64>>) -> BTreeMap<String, Estimate> {
    let estimates = values.into_iter().map(|(k, v)| Some((k, estimate(&v)?)));
    estimates.flatten().collect()
}

/// Meaning of a ratio, in words.
pub fn words(metric: &Metric, ratio: &Estimate) -> &'static str {
    if ratio.confidence < 0.7 {
        return "too few rounds to tell";
    }
    match (ratio.verdict(), metric.better) {
        (Verdict::Noise, _) => "noise is larger than the effect",
        (Verdict::Above, Better::More) | (Verdict::Below, Better::Less) => "better",
        (Verdict::Above, Better::Less) | (Verdict::Below, Better::More) => "worse",
    }
}

/// Spread of the baseline's runs, as a share of their median: the difference of
/// repetitions without any cause.
pub fn noise(cells: &[Cell], baseline: &Baseline, metric: &str) -> Option<f64> {
    let spreads: Vec<f64> = cells
        .iter()
        .filter(|cell| baseline.is_cell(cell))
        .filter_map(|cell| cell.values.get(metric))
        .filter(|e| e.median != 0.0)
        .map(|e| (e.high - e.low) / e.median)
        .collect();
    median(&spreads)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::metric::find;
    use crate::scenario::{Cost, Costing, Scenario};
    use crate::store::{Experiment, Metrics};

    /// Results with these throughputs of variants "none" and "slow" at one
    /// client.
    pub fn results(none: &[f64], slow: &[f64]) -> Results {
        let text = r#"
            name = "t"
            title = "T"
            question = "?"
            rounds = 3
            [pgbench]
            seconds = 1
            warmup = 0
            clients = [1]
            workload = [{ name = "w", builtin = "select-only" }]
            [[variant]]
            name = "none"
            [[variant]]
            name = "slow"
        "#;
        let scenario = Scenario::parse(text, false).expect("valid");
        let point = points(&scenario).remove(0);
        let run = |variant: &str, round: usize, tps: f64| Run {
            version: "15.1".into(),
            variant: variant.into(),
            point: point.clone(),
            round: u32::try_from(round).expect("small") + 1,
            metrics: Metrics::from([("tps".into(), tps)]),
            waits: Profile::from([("CPU*".into(), tps / 100.0)]),
            occupancy: None,
        };
        let mut runs: Vec<Run> = Vec::new();
        runs.extend(none.iter().enumerate().map(|(i, &tps)| run("none", i, tps)));
        runs.extend(slow.iter().enumerate().map(|(i, &tps)| run("slow", i, tps)));
        Results {
            experiment: Experiment {
                scenario,
                versions: vec!["15.1".into()],
                commit: "0123456".into(),
                clients: None,
                left_out: Vec::new(),
                caches: None,
                uncounted: Vec::new(),
                given: None,
                machine: crate::machine::Machine::default(),
                command: "tacho bench t".into(),
            },
            runs,
            servers: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Such results with 20 µs of CPU, and the cost of statement "s": 1,000
    /// instructions and 300 ns for "none", 1,200 and 330 for "slow".
    pub fn costing() -> Results {
        let mut results = results(&[100.0; 3], &[90.0; 3]);
        for run in &mut results.runs {
            run.metrics.insert("cpu_us".into(), 20.0);
        }
        let experiment = &mut results.experiment;
        experiment.uncounted = vec!["system calls are not counted: x".into()];
        experiment.scenario.cost = Some(Cost {
            repeat: 1,
            cold: false,
            settings: BTreeMap::new(),
            statements: vec![Costing {
                name: "s".into(),
                sql: "select 1".into(),
                first: Vec::new(),
                repeat: None,
            }],
        });
        let point = points(&experiment.scenario).pop().expect("a point");
        for mut run in results.runs.clone() {
            let (ns, instructions) = match run.variant.as_str() {
                "none" => (300.0, 1_000.0),
                _ => (330.0, 1_200.0),
            };
            run.metrics = Metrics::from([("cpu_ns".into(), ns)]);
            if run.round == 1 {
                run.metrics.insert("instructions".into(), instructions);
            }
            run.point = point.clone();
            results.runs.push(run);
        }
        results
    }

    #[test]
    fn ratios_are_formed_within_a_round() {
        // The machine doubles its speed between rounds; the effect is 10 %.
        let results = results(&[100.0, 200.0, 400.0], &[90.0, 180.0, 360.0]);
        let cells = cells(&results);
        assert!(cells[0].ratios.is_empty());
        let ratio = cells[1].ratios["tps"];
        assert_eq!((ratio.low, ratio.median, ratio.high), (0.9, 0.9, 0.9));
        assert_eq!(words(find("tps").expect("known"), &ratio), "worse");
        assert_eq!(cells[0].waits["CPU*"], 7.0 / 3.0);
    }

    #[test]
    fn an_effect_smaller_than_noise_is_called_so() {
        let results = results(&[100.0, 100.0, 100.0], &[99.0, 101.0, 98.0]);
        let ratio = cells(&results)[1].ratios["tps"];
        let words = words(find("tps").expect("known"), &ratio);
        assert_eq!(words, "noise is larger than the effect");
    }

    #[test]
    fn one_round_tells_nothing() {
        let results = results(&[100.0], &[50.0]);
        let ratio = cells(&results)[1].ratios["tps"];
        assert_eq!(
            words(find("tps").expect("known"), &ratio),
            "too few rounds to tell"
        );
    }

    #[test]
    fn a_round_without_its_baseline_forms_no_ratio() {
        let results = results(&[100.0], &[90.0, 10.0]);
        let cell = &cells(&results)[1];
        assert_eq!((cell.runs, cell.ratios["tps"].median), (2, 0.9));
    }

    #[test]
    fn an_answer_that_was_stopped_is_no_baseline() {
        let mut results = results(&[100.0; 3], &[90.0; 3]);
        for run in &mut results.runs {
            run.metrics.insert("ms".into(), 1_000.0);
            if run.variant == "none" && run.round > 1 {
                run.metrics.insert(CUT_OFF.into(), 1_000.0);
            }
        }
        let cells = cells(&results);
        let confidence = cells[1].ratios["ms"].confidence;
        assert_eq!(confidence, 0.0, "one ratio, of round 1");
        assert!(cells[0].cut_off() && !cells[1].cut_off());
    }

    #[test]
    fn noise_is_the_spread_of_the_baseline() {
        let results = results(&[90.0, 100.0, 110.0], &[]);
        let noise = noise(&cells(&results), &Baseline::of(&results), "tps");
        assert_eq!(noise, Some(0.2));
    }
}
