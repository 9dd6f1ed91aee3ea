//! The directory of results. `experiment.json` describes the experiment.
//! `runs.jsonl` gets a line after each run: the results of an interrupted
//! experiment are valid, and it can be continued.

use super::busy::Occupancy;
use super::facts::Facts;
use super::machine::Machine;
use super::plan::Point;
use super::scenario::Scenario;
use super::waits::Profile;
use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Measured numbers by name.
pub type Metrics = BTreeMap<String, f64>;

/// Metric of a run whose answer took longer than the time limit. Its value is the limit in ms.
pub const CUT_OFF: &str = "cut_off_ms";

/// The experiment: variants, servers, machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The scenario with its options applied.
    pub scenario: Scenario,
    /// Versions of the servers.
    pub versions: Vec<String>,
    /// Commit of this program.
    #[serde(default)]
    pub commit: String,
    /// Version of psql and pgbench, if `--client-bin` names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<String>,
    /// Variants that are left out, with the reason.
    pub left_out: Vec<String>,
    /// Method of emptying caches, if that matters.
    pub caches: Option<String>,
    /// Numbers that cannot be counted here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<String>,
    /// Remarks about a given server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<String>,
    /// The machine that the experiment runs on.
    pub machine: Machine,
    /// The command that started the experiment.
    pub command: String,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of the server.
    pub version: String,
    /// Name of the variant.
    pub variant: String,
    /// The point of the scenario.
    #[serde(flatten)]
    pub point: Point,
    /// Number of the round.
    pub round: u32,
    /// Measured numbers.
    pub metrics: Metrics,
    /// Load by wait event.
    pub waits: Profile,
    /// CPU time of the experiment and of others; unknown for a given server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<Occupancy>,
}

impl Run {
    /// True if two runs measure the same thing.
    pub fn same(&self, other: &Self) -> bool {
        (&self.version, &self.variant, self.round) == (&other.version, &other.variant, other.round)
            && self.point == other.point
    }
}

/// A part of an experiment that one command measured without a pause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// The machine.
    pub machine: Machine,
    /// Commit of the program.
    pub commit: String,
    /// Number of runs that earlier pieces had measured.
    pub runs_before: usize,
}

/// Results: the experiment and its runs.
#[derive(Debug, Clone)]
pub struct Results {
    /// The experiment that was measured.
    pub experiment: Experiment,
    /// Measured runs, in order.
    pub runs: Vec<Run>,
    /// Versions and settings of the measured servers.
    pub servers: Vec<Facts>,
    /// Pieces in their order; empty if an earlier version measured them.
    pub pieces: Vec<Piece>,
}

/// Keeps results.
#[derive(Debug)]
pub struct Store {
    /// Directory of the results.
    pub directory: PathBuf,
    runs: File,
    servers: Vec<Facts>,
}

impl Store {
    /// Opens a directory for results: a new one, or one with the same
    /// experiment. Returns the earlier runs.
    pub fn open(directory: &Path, experiment: &Experiment) -> Result<(Self, Vec<Run>)> {
        fs::create_dir_all(directory)
            .with_context(|| format!("could not make \"{}\"", directory.display()))?;
        let (before, servers) = match directory.join("experiment.json").exists() {
            true => same_experiment(directory, experiment)?,
            false => {
                let text = serde_json::to_string_pretty(experiment)?;
                write_whole(&directory.join("experiment.json"), &text)?;
                (Vec::new(), Vec::new())
            }
        };
        let mut options = OpenOptions::new();
        let path = directory.join("runs.jsonl");
        write_whole(&path, &lines(&before)?)?;
        let mut pieces: Vec<Piece> = read_lines(directory, PIECES)?;
        // An earlier piece without any run is replaced.
        pieces.retain(|piece| piece.runs_before < before.len());
        pieces.push(Piece {
            machine: experiment.machine.clone(),
            commit: experiment.commit.clone(),
            runs_before: before.len(),
        });
        write_whole(&directory.join(PIECES), &lines(&pieces)?)?;
        let runs = options.create(true).append(true).open(path)?;
        let directory = directory.to_owned();
        let store = Self {
            directory,
            runs,
            servers,
        };
        Ok((store, before))
    }

    /// Keeps facts about a server. Fails if another server or library was
    /// measured under the same name before.
    pub fn note(&mut self, facts: &Facts) -> Result<()> {
        if let Some(known) = self.servers.iter().find(|known| known.same(facts)) {
            return facts.check(known);
        }
        self.servers.push(facts.clone());
        write_whole(&self.directory.join(SERVERS), &lines(&self.servers)?)
    }

    /// Adds a run.
    pub fn add(&mut self, run: &Run) -> Result<()> {
        let line = serde_json::to_string(run)? + "\n";
        self.runs
            .write_all(line.as_bytes())
            .context("could not write runs.jsonl")
    }
}

/// File of the facts about servers.
const SERVERS: &str = "servers.jsonl";

/// File of the pieces.
const PIECES: &str = "pieces.jsonl";

/// One line of JSON for each item.
fn lines<T: Serialize>(items: &[T]) -> Result<String> {
    let mut text = String::new();
    for item in items {
        text.push_str(&(serde_json::to_string(item)? + "\n"));
    }
    Ok(text)
}

/// Items of a file with a line of JSON for each. Ignores an incomplete last
/// line.
fn read_lines<T: DeserializeOwned>(directory: &Path, name: &str) -> Result<Vec<T>> {
    let text = fs::read_to_string(directory.join(name)).unwrap_or_default();
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    whole
        .enumerate()
        .map(|(at, line)| {
            let item = serde_json::from_str(line);
            item.with_context(|| format!("{name}, line {}", at + 1))
        })
        .collect()
}

/// Replaces a file as a whole: even on a full disk it has its old or its new
/// content.
pub fn write_whole(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.with_context(|| format!("could not write \"{}\"", path.display()))
}

fn same_experiment(directory: &Path, experiment: &Experiment) -> Result<(Vec<Run>, Vec<Facts>)> {
    let found = Results::read(directory)?;
    ensure!(
        found.experiment.scenario == experiment.scenario
            && found.experiment.versions == experiment.versions
            && found.experiment.clients == experiment.clients
            && found.experiment.given == experiment.given,
        "directory \"{}\" contains results of another experiment\nhint: Use another --output, or \
         continue that experiment with its arguments:\n      {}",
        directory.display(),
        found.experiment.command
    );
    Ok((found.runs, found.servers))
}

impl Results {
    /// Reads a directory of results.
    pub fn read(directory: &Path) -> Result<Self> {
        let path = directory.join("experiment.json");
        let text = fs::read_to_string(&path).with_context(|| {
            format!("directory \"{}\" contains no results", directory.display())
        })?;
        let experiment = serde_json::from_str(&text)
            .with_context(|| format!("could not parse \"{}\"", path.display()))?;
        Ok(Self {
            experiment,
            runs: read_lines(directory, "runs.jsonl")?,
            servers: read_lines(directory, SERVERS)?,
            pieces: read_lines(directory, PIECES)?,
        })
    }

    /// Writes all runs as CSV: a line for each number.
    pub fn csv(&self) -> Result<String> {
        let mut csv = csv::Writer::from_writer(Vec::new());
        csv.write_record([
            "version", "variant", "workload", "clients", "cores", "value", "round", "metric",
            "number",
        ])?;
        for run in &self.runs {
            let point = &run.point;
            let optional = |n: Option<u32>| n.map(|n| n.to_string()).unwrap_or_default();
            for (metric, number) in &run.metrics {
                csv.write_record([
                    &run.version,
                    &run.variant,
                    point.workload.as_deref().unwrap_or_default(),
                    &optional(point.clients),
                    &optional(point.cores),
                    point.value.as_deref().unwrap_or_default(),
                    &run.round.to_string(),
                    metric,
                    &number.to_string(),
                ])?;
            }
        }
        Ok(String::from_utf8(csv.into_inner()?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::results;
    use super::*;

    #[test]
    fn each_command_that_goes_on_is_a_piece_with_its_machine() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("out");
        let Results {
            mut experiment,
            runs,
            ..
        } = results(&[1.0, 2.0], &[]);
        let mut piece = |cpu: &str, run: Option<&Run>| {
            experiment.machine.cpu = cpu.into();
            let (mut store, before) = Store::open(&path, &experiment).expect("opened");
            run.map(|run| store.add(run)).transpose().expect("kept");
            before.len()
        };
        assert_eq!(piece("A", Some(&runs[0])), 0);
        assert_eq!(piece("B", None), 1, "nothing was measured on it");
        assert_eq!(piece("C", Some(&runs[1])), 1);
        let found = Results::read(&path).expect("read");
        let pieces = found
            .pieces
            .iter()
            .map(|p| (p.machine.cpu.as_str(), p.runs_before));
        assert_eq!(pieces.collect::<Vec<_>>(), [("A", 0), ("C", 1)]);
        assert_eq!(found.runs, runs);
        assert_eq!(
            found.experiment.machine.cpu, "A",
            "the first one describes the experiment"
        );
    }
}
