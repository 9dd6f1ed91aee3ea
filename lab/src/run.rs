//! The course of an experiment. `scenario` describes the measurement, `plan`
//! its order. `cluster` provides the server of a run, `pgbench` and `statement`
//! measure, `store` keeps each run at once, `summary` and `report` evaluate. If
//! an experiment ends early for any reason, no process stays and the measured
//! runs are kept.

use crate::access::Access;
use crate::busy::Watch;
use crate::cluster::Cluster;
use crate::facts::Facts;
use crate::given::Given;
use crate::install::{Account, Installation, clients_version};
use crate::machine::Machine;
use crate::place::{Found, Place, Running};
use crate::plan::Job;
use crate::process::{Interrupted, Stop};
use crate::progress::Progress;
use crate::scenario::{Scenario, Variant};
use crate::store::{Experiment, Metrics, Results, Run, Store};
use crate::{
    codec, cost, document, history, pgbench, plan, report, share, statement, stats, store, summary,
    waits,
};
use anyhow::{Context, Result, bail, ensure};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The caller's options besides the scenario.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Directories of programs; empty = the directory of `pg_config`.
    pub installations: Vec<PathBuf>,
    /// Directory of psql and pgbench for all servers; `None` = each installation
    /// has its own.
    pub clients: Option<PathBuf>,
    /// Connection string of the server to measure; `None` = private servers.
    pub dsn: Option<String>,
    /// True if variants are left out whose extension is missing.
    pub skip_missing: bool,
    /// Minutes after which no block is begun.
    pub minutes: Option<u32>,
    /// Directory of results.
    pub output: PathBuf,
    /// Parent of the data directories.
    pub scratch: PathBuf,
    /// The command as given, for the report.
    pub command: String,
}

/// Pause between two checks whether a variant is ready.
const READY_PAUSE: Duration = Duration::from_millis(20);

const MINUTE: Duration = Duration::from_secs(60);

/// Everything that a run needs.
struct Bench<'a> {
    scenario: &'a Scenario,
    places: Vec<Place>,
    versions: Vec<String>,
    /// Libraries of all variants of an installation, if one server has them
    /// all.
    libraries: Vec<String>,
    /// Facts about the servers of this session.
    noted: RefCell<Vec<Facts>>,
    stop: &'a Stop,
}

/// Runs a scenario and writes its results. After Ctrl-C the finished runs are
/// written as well, and `Interrupted` is returned.
pub fn run(scenario: &Scenario, options: &Options, stop: &Stop) -> Result<()> {
    let scratch = Scratch::new(&options.scratch)?;
    let found = find(scenario, options, &scratch.0, stop)?;
    let missing = missing(scenario, &found);
    refuse_missing(&missing, options)?;
    let experiment = experiment(scenario, &found, &missing, options, stop)?;
    let (mut store, done) = Store::open(&options.output, &experiment)?;
    let jobs = plan::jobs(scenario, found.len(), |i, v| {
        !missing.iter().any(|m| m.is(i, v))
    });
    let jobs: Vec<Job> = jobs
        .into_iter()
        .filter(|job| {
            let planned = planned(job, scenario, &experiment);
            !done.iter().any(|run| run.same(&planned))
        })
        .collect();
    let ended = prepare(scenario, found, &scratch, &store.directory, stop).and_then(|places| {
        let bench = Bench {
            scenario,
            libraries: libraries(scenario, &places, &missing),
            places,
            versions: experiment.versions,
            noted: RefCell::default(),
            stop,
        };
        bench.install(&jobs)?;
        bench.fill(&jobs)?;
        let until = options.minutes.map(|m| Instant::now() + MINUTE * m);
        bench.measure_all(&jobs, until, &mut store)
    });
    write_report(&store.directory)?;
    ended
}

/// Libraries of all variants that an installation has, in their order.
fn libraries(scenario: &Scenario, places: &[Place], missing: &[Missing]) -> Vec<String> {
    let of = |place: usize| {
        let lacks = |v: usize| missing.iter().any(|m| m.is(place, v));
        let variants = scenario.variants.iter().enumerate();
        let variants = variants.filter(|(v, _)| !lacks(*v));
        let mut libraries: Vec<&str> = Vec::new();
        for library in variants.flat_map(|(_, variant)| &variant.preload) {
            if !libraries.contains(&library.as_str()) {
                libraries.push(library);
            }
        }
        libraries.join(",")
    };
    (0..places.len()).map(of).collect()
}

/// Prepares the found places.
fn prepare(
    scenario: &Scenario,
    found: Vec<Found>,
    scratch: &Scratch,
    results: &Path,
    stop: &Stop,
) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    for found in found {
        places.push(match found {
            Found::Given(given) => {
                eprintln!("PostgreSQL {}: making a database", given.version);
                given.prepare(scenario, results, stop)?;
                Place::Given(given)
            }
            Found::Installed(installation) => {
                eprintln!("PostgreSQL {}: making a cluster", installation.version);
                let account = Account::of_servers()?;
                let cluster = Cluster::create(installation, account, &scratch.0, scenario, stop);
                Place::Private(Box::new(cluster?))
            }
        });
    }
    Ok(places)
}

/// A directory that is removed at the end of the experiment.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes the directory in `parent`.
    pub fn new(parent: &Path) -> Result<Self> {
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

/// Finds the places to measure: the given server, or installations.
pub fn find(
    scenario: &Scenario,
    options: &Options,
    scratch: &Path,
    stop: &Stop,
) -> Result<Vec<Found>> {
    let mut installations = installations(options, stop)?;
    let Some(dsn) = &options.dsn else {
        return Ok(installations.into_iter().map(Found::Installed).collect());
    };
    ensure!(
        installations.len() == 1,
        "--dsn takes the programs of one installation\nhint: Specify one directory with --pg-bin."
    );
    let access = Access::given(installations.remove(0), dsn, scratch);
    let given = Given::connect(access, dsn, scenario, stop)?;
    Ok(vec![Found::Given(Box::new(given))])
}

fn installations(options: &Options, stop: &Stop) -> Result<Vec<Installation>> {
    let mut found = servers(options, stop)?;
    if let Some(clients) = &options.clients {
        clients_version(clients, stop)?;
        for installation in &mut found {
            installation.clients.clone_from(clients);
        }
    }
    Ok(found)
}

fn servers(options: &Options, stop: &Stop) -> Result<Vec<Installation>> {
    if options.installations.is_empty() {
        return Ok(vec![Installation::default(stop)?]);
    }
    let mut found: Vec<Installation> = Vec::new();
    for bin in &options.installations {
        let installation = Installation::at(bin, stop)?;
        let twice = found.iter().any(|f| f.version == installation.version);
        ensure!(
            !twice,
            "PostgreSQL {} is specified more than once",
            installation.version
        );
        found.push(installation);
    }
    Ok(found)
}

/// A variant that an installation cannot run.
pub struct Missing {
    /// Index of the installation.
    pub installation: usize,
    /// Index of the variant.
    pub variant: usize,
    /// The reason in words.
    pub reason: String,
    /// True if an installed library would let the variant run.
    library: bool,
}

impl Missing {
    /// True if this variant is missing on this installation.
    pub fn is(&self, installation: usize, variant: usize) -> bool {
        (self.installation, self.variant) == (installation, variant)
    }
}

/// Refuses an experiment whose libraries are not installed.
pub fn refuse_missing(missing: &[Missing], options: &Options) -> Result<()> {
    let lacking = missing.iter().filter(|m| m.library);
    let lacking: Vec<&str> = lacking.map(|m| m.reason.as_str()).collect();
    ensure!(
        lacking.is_empty() || options.skip_missing,
        "{}\nhint: Install it, or leave such variants with --skip-missing.",
        lacking.join("\n")
    );
    Ok(())
}

/// Variants that the places cannot run.
pub fn missing(scenario: &Scenario, found: &[Found]) -> Vec<Missing> {
    let mut missing = Vec::new();
    for (i, server) in found.iter().enumerate() {
        for (v, variant) in scenario.variants.iter().enumerate() {
            if let Some((reason, library)) = server.why_not(variant) {
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

fn experiment(
    scenario: &Scenario,
    found: &[Found],
    missing: &[Missing],
    options: &Options,
    stop: &Stop,
) -> Result<Experiment> {
    let cold = scenario.statement.as_ref().is_some_and(|s| s.cold);
    let clients = options.clients.as_ref();
    Ok(Experiment {
        scenario: scenario.clone(),
        versions: found.iter().map(|f| f.version().to_owned()).collect(),
        commit: COMMIT.unwrap_or("unknown").to_owned(),
        clients: clients.map(|c| clients_version(c, stop)).transpose()?,
        left_out: missing.iter().map(|m| m.reason.clone()).collect(),
        caches: cold.then(|| statement::CacheMethod::here().text().to_owned()),
        uncounted: uncounted(scenario),
        given: given(found, options),
        machine: Machine::here(),
        command: options.command.clone(),
    })
}

/// Commit that this program was built from; see `build.rs`.
const COMMIT: Option<&str> = option_env!("TACHO_COMMIT");

/// Numbers that cannot be counted because a program is not installed.
pub fn uncounted(scenario: &Scenario) -> Vec<String> {
    let shares = scenario.pgbench.as_ref().is_some_and(|load| load.shares);
    let costs = scenario.cost.iter().flat_map(|_| cost::uncounted());
    costs
        .chain(shares.then(share::unmeasured).flatten())
        .collect()
}

/// Text of the report about the server of `--dsn`; `None` for private servers.
fn given(found: &[Found], options: &Options) -> Option<String> {
    let [Found::Given(given)] = found else {
        return None;
    };
    let dsn = options.dsn.as_deref().unwrap_or_default();
    let libraries = given.libraries.as_deref().unwrap_or("not visible");
    Some(format!(
        "the server is --dsn \"{dsn}\" (shared_preload_libraries: {libraries}); the machine is \
         the one with the clients, CPU and memory of the server are not measured, and WAL is of \
         the whole server"
    ))
}

/// A planned run, without numbers.
fn planned(job: &Job, scenario: &Scenario, experiment: &Experiment) -> Run {
    Run {
        version: experiment.versions[job.installation].clone(),
        variant: scenario.variants[job.variant].name.clone(),
        point: job.point.clone(),
        round: job.round,
        metrics: Metrics::new(),
        waits: BTreeMap::new(),
        occupancy: None,
    }
}

impl Bench<'_> {
    fn variant(&self, job: &Job) -> &Variant {
        &self.scenario.variants[job.variant]
    }

    fn name(&self, job: &Job) -> String {
        let version = &self.versions[job.installation];
        let (variant, point) = (&self.variant(job).name, job.point.label());
        format!("{version} {variant}, {point}, round {}", job.round)
    }

    /// Runs the installers of variants that share one database.
    fn install(&self, jobs: &[Job]) -> Result<()> {
        for (p, place) in self.places.iter().enumerate() {
            let variants = self.scenario.variants.iter().enumerate();
            for (v, variant) in variants.filter(|_| self.scenario.history.is_none()) {
                let asked = jobs.iter().any(|j| (j.installation, j.variant) == (p, v));
                if let (true, Some(file)) = (asked, &variant.installer) {
                    let server = place.start(&self.scenario.settings, None, self.stop)?;
                    history::run_installer(place.access(), "postgres", file, self.stop)
                        .with_context(|| format!("variant \"{}\"", variant.name))?;
                    server.stop(self.stop)?;
                }
            }
        }
        Ok(())
    }

    /// Creates the histories for the questions.
    fn fill(&self, jobs: &[Job]) -> Result<()> {
        let Some(history) = &self.scenario.history else {
            return Ok(());
        };
        for (p, place) in self.places.iter().enumerate() {
            let server = place.start(&self.scenario.settings, None, self.stop)?;
            for (v, variant) in self.scenario.variants.iter().enumerate() {
                let asked = jobs.iter().any(|j| (j.installation, j.variant) == (p, v));
                if asked {
                    eprintln!("{}: making {} hours", variant.name, history.hours);
                    history::fill(place.access(), history, variant, self.stop)
                        .with_context(|| format!("variant \"{}\"", variant.name))?;
                }
            }
            server.stop(self.stop)?;
        }
        Ok(())
    }

    /// Measures all jobs. After the time `until` it ends behind the current block.
    fn measure_all(&self, jobs: &[Job], until: Option<Instant>, store: &mut Store) -> Result<()> {
        let mut progress = Progress::new(jobs.len());
        let mut running: Vec<Option<Running>> = self.places.iter().map(|_| None).collect();
        for (at, job) in jobs.iter().enumerate() {
            self.stop.check()?;
            let late = until.is_some_and(|until| Instant::now() >= until);
            if late && at > 0 && !job.same_block(&jobs[at - 1]) {
                eprintln!("time is up; repeat the command with --output to continue");
                break;
            }
            let run = self.measure(job, &mut running[job.installation]);
            let run = run.with_context(|| format!("while measuring {}", self.name(job)))?;
            for facts in self.noted.borrow().iter() {
                store.note(facts)?;
            }
            store.add(&run)?;
            progress.done(&self.name(job), &run.metrics);
        }
        let mut running = running.into_iter().flatten();
        running.try_for_each(|server| server.stop(self.stop))
    }

    /// Provides the server of a variant and measures. With `reload` the running
    /// server gets the settings, and stays.
    fn measure<'s>(&'s self, job: &Job, kept: &mut Option<Running<'s>>) -> Result<Run> {
        let watch = Watch::start(None)?;
        if let Some(metrics) = self.cost(job)? {
            self.note(job, false)?;
            let run = self.run(job, metrics, waits::Profile::new());
            let occupancy = Some(watch.end()?);
            return Ok(Run { occupancy, ..run });
        }
        let (place, variant) = (&self.places[job.installation], self.variant(job));
        if self.scenario.statement.as_ref().is_some_and(|s| s.cold) {
            place.empty_caches()?;
        }
        let settings = self.settings(job);
        let server = match kept.take() {
            Some(server) => place.reload(&settings, self.stop).map(|()| server)?,
            None => place.start(&settings, job.point.cores, self.stop)?,
        };
        for sql in &variant.sql {
            place.access().sql(sql, self.stop)?;
        }
        if let Some(ready) = &variant.ready {
            place.access().wait(ready, READY_PAUSE, self.stop)?;
        }
        self.note(job, true)?;
        let watch = server.pid().map(|pid| Watch::start(Some(pid)));
        let watch = watch.transpose()?;
        let (mut metrics, waits) = self.load(job, place.access(), &server)?;
        let occupancy = watch.map(Watch::end).transpose()?;
        self.ask(job, place.access(), &mut metrics)?;
        match self.scenario.reload {
            true => *kept = Some(server),
            false => server.stop(self.stop)?,
        }
        let run = self.run(job, metrics, waits);
        Ok(Run { occupancy, ..run })
    }

    /// Notes versions and settings of the job's server, once in this session.
    fn note(&self, job: &Job, running: bool) -> Result<()> {
        let (version, variant) = (&self.versions[job.installation], self.variant(job));
        let known = |facts: &Facts| (&facts.version, &facts.variant) == (version, &variant.name);
        if self.noted.borrow().iter().any(known) {
            return Ok(());
        }
        let access = self.places[job.installation].access();
        let facts = Facts::collect(access, version, variant, running, self.stop)?;
        self.noted.borrow_mut().push(facts);
        Ok(())
    }

    fn run(&self, job: &Job, metrics: Metrics, waits: waits::Profile) -> Run {
        Run {
            version: self.versions[job.installation].clone(),
            variant: self.variant(job).name.clone(),
            point: job.point.clone(),
            round: job.round,
            metrics,
            waits,
            occupancy: None,
        }
    }

    /// Measures the cost of a statement, if that is the job.
    fn cost(&self, job: &Job) -> Result<Option<Metrics>> {
        let cost = self.scenario.cost.as_ref();
        let mut statements = cost.iter().flat_map(|cost| &cost.statements);
        let statement = statements.find(|s| Some(&s.name) == job.point.value.as_ref());
        let (Some(cost), Some(statement)) = (cost, statement) else {
            return Ok(None);
        };
        let Place::Private(cluster) = &self.places[job.installation] else {
            bail!("the cost of a statement is measured on private servers only");
        };
        let measurement = cost::Measurement {
            cluster,
            settings: self.settings(job),
            cost,
            statement,
        };
        measurement.measure(job.round == 1, self.stop).map(Some)
    }

    fn settings(&self, job: &Job) -> BTreeMap<String, String> {
        let variant = self.variant(job);
        let mut settings = self.scenario.settings.clone();
        let libraries = match self.scenario.reload {
            true => self.libraries[job.installation].clone(),
            false => variant.preload.join(","),
        };
        if !libraries.is_empty() {
            settings.insert("shared_preload_libraries".into(), libraries);
        }
        settings.extend(variant.settings.clone());
        if let (Some(_), Some(form)) = (&self.scenario.history, variant.form) {
            let access = self.places[job.installation].access();
            settings.extend(history::settings(access, form));
        }
        if let (Some(statement), Some(value)) = (&self.scenario.statement, &job.point.value) {
            settings.insert(statement.setting.clone(), value.clone());
        }
        settings
    }

    fn load(
        &self,
        job: &Job,
        access: &Access,
        server: &Running,
    ) -> Result<(Metrics, waits::Profile)> {
        if let Some(statement) = &self.scenario.statement {
            return statement::measure(access, server.pid(), statement, self.stop);
        }
        if let Some(codec) = &self.scenario.codec {
            let mut layouts = codec.layouts.iter();
            let layout = layouts.find(|l| Some(&l.name) == job.point.value.as_ref());
            let layout = layout.context("there is no such layout")?;
            let form = self.variant(job).form.context("the variant has no form")?;
            return codec::measure(access, codec, form, layout, self.stop);
        }
        if let Some(history) = &self.scenario.history {
            let question = job.point.value.as_deref().unwrap_or_default();
            return history::measure(access, history, self.variant(job), question, self.stop);
        }
        let load = self.scenario.pgbench.as_ref().context("there is no load")?;
        let load = pgbench::Load {
            access,
            load,
            variant: self.variant(job),
            point: &job.point,
        };
        load.measure(server.pid(), self.stop)
    }

    /// Reads the scenario's numbers from the server.
    fn ask(&self, job: &Job, access: &Access, metrics: &mut Metrics) -> Result<()> {
        let transactions = metrics.get("transactions").copied().unwrap_or(0.0);
        let mut workloads = self
            .scenario
            .pgbench
            .iter()
            .flat_map(|load| &load.workloads);
        let workload = workloads.find(|w| Some(&w.name) == job.point.workload.as_ref());
        let each = workload.map_or(1, |w| w.statements);
        let statements = transactions * f64::from(each);
        for asked in &self.scenario.metrics {
            if let Some(sql) = asked.sql.get(&self.variant(job).name) {
                let sql = sql.replace(":transactions", &format!("{transactions:.0}"));
                let sql = sql.replace(":statements", &format!("{statements:.0}"));
                let number = access.number(&sql, self.stop)?;
                metrics.insert(asked.name.clone(), number);
            }
        }
        Ok(())
    }
}

/// Writes the report of a directory of results again.
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
        store::write_whole(&directory.join(name), &text)?;
    }
    Ok(())
}

/// Medians and ratios as JSON, for programs.
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

/// True if the user has ended the experiment.
pub fn interrupted(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<Interrupted>())
}
