//! `tacho bench`: experiments on private servers that anyone can repeat.
//!
//! `scenario` says what is measured, `plan` in which order, `cluster` provides
//! the server of a run, `pgbench` and `statement` measure, `store` keeps each
//! run at once, `summary` and `report` tell what they show. Whatever ends an
//! experiment early, no process stays and what was measured is kept.

mod cluster;
pub mod compare;
pub mod document;
mod install;
mod machine;
mod metric;
mod pgbench;
mod plan;
mod plot;
pub mod process;
mod progress;
mod report;
pub mod scenario;
mod statement;
mod stats;
pub mod store;
mod summary;
mod usage;
mod usl;
mod waits;

use anyhow::{Context, Result, ensure};
use cluster::{Cluster, Server};
use install::{Account, Installation};
use machine::Machine;
use plan::Job;
use process::{Interrupted, Stop};
use progress::Progress;
use scenario::{Scenario, Variant};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use store::{Experiment, Metrics, Results, Run, Store};

/// What a caller asks for beside the scenario.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Directories of programs; none: that of `pg_config`.
    pub installations: Vec<PathBuf>,
    /// Leave out variants whose extension is missing.
    pub skip_missing: bool,
    /// Directory of results.
    pub output: PathBuf,
    /// Parent of the data directories.
    pub scratch: PathBuf,
    /// The command as given, for the report.
    pub command: String,
}

/// Everything a run needs.
struct Bench<'a> {
    scenario: &'a Scenario,
    clusters: Vec<Cluster>,
    stop: &'a Stop,
}

/// Runs a scenario and writes its results. After Ctrl-C what was measured is
/// written too, and `Interrupted` returned.
pub fn run(scenario: &Scenario, options: &Options, stop: &Stop) -> Result<()> {
    let installations = installations(options, stop)?;
    let missing = missing(scenario, &installations);
    let lacking = missing
        .iter()
        .filter(|m| m.library)
        .map(|m| m.reason.as_str());
    let lacking: Vec<&str> = lacking.collect();
    ensure!(
        lacking.is_empty() || options.skip_missing,
        "{}\nhint: Install it, or leave such variants out with --skip-missing.",
        lacking.join("\n")
    );
    let experiment = experiment(scenario, &installations, &missing, options);
    let (mut store, done) = Store::open(&options.output, &experiment)?;
    let jobs = plan::jobs(scenario, installations.len(), |i, v| {
        !missing
            .iter()
            .any(|m| (m.installation, m.variant) == (i, v))
    });
    let jobs: Vec<Job> = jobs
        .into_iter()
        .filter(|job| {
            let planned = planned(job, scenario, &installations);
            !done.iter().any(|run| run.same(&planned))
        })
        .collect();
    let ended = measure_all(scenario, installations, &jobs, &mut store, options, stop);
    write_report(&store.directory)?;
    ended
}

fn measure_all(
    scenario: &Scenario,
    installations: Vec<Installation>,
    jobs: &[Job],
    store: &mut Store,
    options: &Options,
    stop: &Stop,
) -> Result<()> {
    let scratch = Scratch::new(&options.scratch)?;
    let account = Account::of_servers()?;
    let mut clusters = Vec::new();
    for installation in installations {
        eprintln!("PostgreSQL {}: making a cluster", installation.version);
        let account = account.clone();
        clusters.push(Cluster::create(
            installation,
            account,
            &scratch.0,
            scenario,
            stop,
        )?);
    }
    let bench = Bench {
        scenario,
        clusters,
        stop,
    };
    let mut progress = Progress::new(jobs.len());
    for job in jobs {
        stop.check()?;
        let run = bench.measure(job);
        let run = run.with_context(|| format!("while measuring {}", bench.name(job)))?;
        store.add(&run)?;
        progress.done(&bench.name(job), &run.metrics);
    }
    Ok(())
}

/// A directory that goes when the experiment ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(parent: &Path) -> Result<Self> {
        let path = parent.join(format!("tacho-bench.{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("could not make \"{}\"", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn installations(options: &Options, stop: &Stop) -> Result<Vec<Installation>> {
    if options.installations.is_empty() {
        return Ok(vec![Installation::default(stop)?]);
    }
    let mut found: Vec<Installation> = Vec::new();
    for bin in &options.installations {
        let installation = Installation::at(bin, stop)?;
        let twice = found.iter().any(|f| f.version == installation.version);
        ensure!(!twice, "PostgreSQL {} is given twice", installation.version);
        found.push(installation);
    }
    Ok(found)
}

/// A variant that an installation cannot run.
struct Missing {
    installation: usize,
    variant: usize,
    reason: String,
    /// It could, if a library were installed.
    library: bool,
}

fn missing(scenario: &Scenario, installations: &[Installation]) -> Vec<Missing> {
    let mut missing = Vec::new();
    for (i, installation) in installations.iter().enumerate() {
        for (v, variant) in scenario.variants.iter().enumerate() {
            if let Some((reason, library)) = why_not(variant, installation) {
                missing.push(Missing {
                    installation: i,
                    variant: v,
                    reason,
                    library,
                });
            }
        }
    }
    missing
}

/// Why an installation cannot run a variant, and whether a library would help.
fn why_not(variant: &Variant, installation: &Installation) -> Option<(String, bool)> {
    let (name, version) = (&variant.name, &installation.version);
    if !variant.majors.is_empty() && !variant.majors.contains(&installation.major()) {
        let reason = format!("variant \"{name}\" is not for PostgreSQL {version}");
        return Some((reason, false));
    }
    let library = variant
        .preload
        .iter()
        .find(|l| !installation.has_library(l))?;
    let reason = format!("PostgreSQL {version} has no \"{library}\" (variant \"{name}\")");
    Some((reason, true))
}

fn experiment(
    scenario: &Scenario,
    installations: &[Installation],
    missing: &[Missing],
    options: &Options,
) -> Experiment {
    let cold = scenario.statement.as_ref().is_some_and(|s| s.cold);
    Experiment {
        scenario: scenario.clone(),
        versions: installations.iter().map(|i| i.version.clone()).collect(),
        left_out: missing.iter().map(|m| m.reason.clone()).collect(),
        caches: cold.then(|| statement::Emptied::here().text().to_owned()),
        machine: Machine::here(),
        command: options.command.clone(),
    }
}

/// A run as it will be, without numbers.
fn planned(job: &Job, scenario: &Scenario, installations: &[Installation]) -> Run {
    Run {
        version: installations[job.installation].version.clone(),
        variant: scenario.variants[job.variant].name.clone(),
        point: job.point.clone(),
        round: job.round,
        metrics: Metrics::new(),
        waits: BTreeMap::new(),
    }
}

impl Bench<'_> {
    fn variant(&self, job: &Job) -> &Variant {
        &self.scenario.variants[job.variant]
    }

    fn name(&self, job: &Job) -> String {
        let version = &self.clusters[job.installation].installation.version;
        let (variant, point) = (&self.variant(job).name, job.point.label());
        format!("{version} {variant}, {point}, round {}", job.round)
    }

    /// Starts the server of a variant, measures, stops it.
    fn measure(&self, job: &Job) -> Result<Run> {
        let (cluster, variant) = (&self.clusters[job.installation], self.variant(job));
        if self.scenario.statement.as_ref().is_some_and(|s| s.cold) {
            statement::empty_caches(&cluster.data)?;
        }
        let server = cluster.start(&self.settings(variant), job.point.cores, self.stop)?;
        for sql in &variant.sql {
            cluster.sql(sql, self.stop)?;
        }
        let (mut metrics, waits) = self.load(job, cluster, &server)?;
        self.ask(job, cluster, &mut metrics)?;
        server.stop(self.stop)?;
        Ok(Run {
            version: cluster.installation.version.clone(),
            variant: variant.name.clone(),
            point: job.point.clone(),
            round: job.round,
            metrics,
            waits,
        })
    }

    fn settings(&self, variant: &Variant) -> BTreeMap<String, String> {
        let mut settings = self.scenario.settings.clone();
        if !variant.preload.is_empty() {
            settings.insert("shared_preload_libraries".into(), variant.preload.join(","));
        }
        settings.extend(variant.settings.clone());
        settings
    }

    fn load(
        &self,
        job: &Job,
        cluster: &Cluster,
        server: &Server,
    ) -> Result<(Metrics, waits::Profile)> {
        if let Some(statement) = &self.scenario.statement {
            return statement::measure(cluster, server, statement, &job.point, self.stop);
        }
        let load = self.scenario.pgbench.as_ref().context("there is no load")?;
        let load = pgbench::Load {
            cluster,
            load,
            variant: self.variant(job),
            point: &job.point,
        };
        load.measure(server, self.stop)
    }

    /// Asks the server for the numbers of the scenario.
    fn ask(&self, job: &Job, cluster: &Cluster, metrics: &mut Metrics) -> Result<()> {
        let transactions = metrics.get("transactions").copied().unwrap_or(0.0);
        for asked in &self.scenario.metrics {
            if let Some(sql) = asked.sql.get(&self.variant(job).name) {
                let sql = sql.replace(":transactions", &format!("{transactions:.0}"));
                let number = cluster.number(&sql, self.stop)?;
                metrics.insert(asked.name.clone(), number);
            }
        }
        Ok(())
    }
}

/// Writes the report of a directory of results anew.
pub fn write_report(directory: &Path) -> Result<()> {
    let results = Results::read(directory)?;
    let blocks = report::report(&results);
    let title = &results.experiment.scenario.title;
    for (name, text) in [
        ("report.md", document::markdown(&blocks)),
        ("report.html", document::html(title, &blocks)),
        ("runs.csv", results.csv()?),
        ("summary.json", summary_json(&results)?),
    ] {
        let path = directory.join(name);
        fs::write(&path, text)
            .with_context(|| format!("could not write \"{}\"", path.display()))?;
    }
    Ok(())
}

/// Medians and ratios, for programs.
fn summary_json(results: &Results) -> Result<String> {
    let estimate = |e: &stats::Estimate| serde_json::json!({ "median": e.median, "low": e.low, "high": e.high, "confidence": e.confidence });
    let cells = summary::cells(results);
    let cells: Vec<serde_json::Value> = cells
        .iter()
        .map(|cell| {
            let of = |map: &BTreeMap<String, stats::Estimate>| -> serde_json::Map<_, _> {
                map.iter().map(|(k, e)| (k.clone(), estimate(e))).collect()
            };
            serde_json::json!({
                "version": cell.version, "variant": cell.variant, "point": cell.point,
                "runs": cell.runs, "values": of(&cell.values), "ratios": of(&cell.ratios),
                "waits": cell.waits,
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&cells)? + "\n")
}

/// Whether an experiment ended because the user wanted it to.
pub fn interrupted(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<Interrupted>())
}
