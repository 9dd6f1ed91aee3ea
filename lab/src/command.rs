//! The command line.

use crate::answers;
use crate::compare;
use crate::document::{html, markdown};
use crate::dry::tell;
use crate::history::ash;
use crate::outline;
use crate::process::Stop;
use crate::run::{Options, interrupted, run as run_bench, write_report};
use crate::scenario::{Cost, Form, Pgbench, Scenario, Statement, Variant};
use crate::store::Results;
use anyhow::{Context, Result, bail, ensure};
use clap::{ArgAction, Parser};
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tacho_tape::query::plain_lines;

/// Measure what observation or a setting costs, on private servers
#[derive(Parser)]
#[command(
    name = "tacho-bench",
    bin_name = "tacho bench",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_flag = true,
    disable_help_subcommand = true,
    after_help = outline::help()
)]
pub struct Args {
    /// Show this help (-h is reserved for the host)
    #[arg(long = "help", short = '?', action = ArgAction::Help, global = true)]
    help: Option<bool>,

    #[command(subcommand)]
    command: Option<Command>,

    /// A scenario: its name (see `tacho bench list`), or a file
    scenario: Option<String>,

    #[command(flatten)]
    choices: Choices,

    #[command(flatten)]
    common: Common,
}

/// Commands besides the measurement of a scenario.
#[derive(clap::Subcommand)]
enum Command {
    /// List the scenarios with their duration and needs
    List,
    /// Measure time and memory of answers in process, with warm caches
    Answers(answers::Args),
    /// Measure a statement against values of a setting
    Setting(Box<Setting>),
    /// Compare two directories of results, as Markdown
    Compare {
        /// Results before
        a: PathBuf,
        /// Results after
        b: PathBuf,
        /// Write one HTML page to this file instead
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Write the report of a directory of results again
    Report {
        /// The directory
        directory: PathBuf,
    },
}

/// Options that change a scenario.
#[derive(clap::Args)]
struct Choices {
    /// Run the full experiment, for large machines
    #[arg(long)]
    full: bool,
    /// Seconds of one run
    #[arg(long)]
    seconds: Option<u32>,
    /// Numbers of clients
    #[arg(long, value_delimiter = ',')]
    clients: Vec<u32>,
    /// Numbers of cores that the server may use
    #[arg(long, value_delimiter = ',')]
    cores: Vec<u32>,
    /// Transactions per second of all clients; 0 is as fast as it goes
    #[arg(long)]
    rate: Option<u32>,
    /// Names of variants; the first is the baseline
    #[arg(long, value_delimiter = ',')]
    variants: Vec<String>,
    /// Names of workloads
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,
}

/// Options of every experiment.
#[derive(clap::Args)]
struct Common {
    /// Directories of PostgreSQL's programs, separated by commas [default: the one of pg_config]
    #[arg(long, value_name = "DIR", value_delimiter = ',')]
    pg_bin: Vec<PathBuf>,
    /// Directory of psql and pgbench for all servers [default: of each server]
    #[arg(long, value_name = "DIR")]
    client_bin: Option<PathBuf>,
    /// Print the runs, their duration, the servers and what is missing; run nothing
    #[arg(long)]
    dry_run: bool,
    /// Measure this running server instead, in a database of its own; PG… variables count
    #[arg(long, value_name = "CONNECTION")]
    dsn: Option<String>,
    /// Repetitions of everything
    #[arg(long)]
    rounds: Option<u32>,
    /// Scale of pgbench's tables
    #[arg(long)]
    scale: Option<u32>,
    /// Setting of every server, as name=value; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Installer of the SQL edition, for `history`
    #[arg(long, value_name = "FILE")]
    edition: Option<PathBuf>,
    /// Installer of pg_ash, for `history` (several with several options) and `recording`
    #[arg(long, value_name = "FILE")]
    pg_ash: Vec<PathBuf>,
    /// Leave out variants whose extension is not installed
    #[arg(long)]
    skip_missing: bool,
    /// End behind the next block after this time; the same command goes on
    #[arg(long)]
    minutes: Option<u32>,
    /// Directory of results; one that exists is continued
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Parent of the private data directories
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    scratch: PathBuf,
}

#[derive(clap::Args)]
struct Setting {
    /// The setting
    #[arg(long)]
    name: String,
    /// Values of the setting, separated by commas; the first is the baseline
    #[arg(long, value_delimiter = ',', required = true)]
    values: Vec<String>,
    /// The statement that is timed
    #[arg(long)]
    sql: String,
    /// SQL that runs once before, to make tables; may be repeated
    #[arg(long)]
    prepare: Vec<String>,
    /// Empty caches before each run
    #[arg(long)]
    cold: bool,
    /// Switch one running server by reloads, without restarts
    #[arg(long)]
    reload: bool,
    #[command(flatten)]
    common: Common,
}

/// Runs an experiment, or another command.
pub fn run(args: &Args) -> ExitCode {
    match execute(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if interrupted(&error) => {
            say("interrupted: the report contains the runs so far");
            ExitCode::from(130)
        }
        Err(error) => {
            say(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn execute(args: &Args) -> Result<()> {
    match (&args.command, &args.scenario) {
        (Some(Command::List), _) => print(&outline::list()?),
        (Some(Command::Answers(args)), _) => answers::run(args, print),
        (Some(Command::Setting(setting)), _) => experiment(setting.scenario()?, &setting.common),
        (Some(Command::Compare { a, b, html }), _) => side_by_side(a, b, html.as_deref()),
        (Some(Command::Report { directory }), _) => write_report(directory),
        (None, Some(name)) => experiment(args.choices.scenario(name)?, &args.common),
        (None, None) => bail!("no scenario specified\nhint: See tacho bench list and --help."),
    }
}

/// Prints a line to standard error. Errors are ignored.
fn say(line: impl Display) {
    let line = plain_lines(&line.to_string());
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints to standard output. A reader that has gone is not a failure.
fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => bail!("could not write output: {e}"),
        _ => Ok(()),
    }
}

fn side_by_side(a: &Path, b: &Path, page: Option<&Path>) -> Result<()> {
    let blocks = compare::compare(&Results::read(a)?, &Results::read(b)?)?;
    match page {
        None => print(&markdown(&blocks))?,
        Some(path) => std::fs::write(path, html("Comparison", &blocks))
            .with_context(|| format!("could not write \"{}\"", path.display()))?,
    }
    Ok(())
}

/// Runs a scenario with the options of every experiment.
fn experiment(mut scenario: Scenario, common: &Common) -> Result<()> {
    scenario.rounds = common.rounds.unwrap_or(scenario.rounds);
    scenario.scale = common.scale.unwrap_or(scenario.scale);
    if common.dsn.is_some() {
        // Settings and cost make private servers alike; a given server is measured as it is.
        scenario.settings.clear();
        scenario.cost = None;
    }
    add_installers(&mut scenario, common)?;
    for setting in &common.settings {
        let (name, value) = setting.split_once('=').with_context(|| {
            format!("invalid setting \"{setting}\"\nhint: Use the form name=value.")
        })?;
        scenario.settings.insert(name.into(), value.into());
    }
    scenario.check()?;
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let output = common.output.clone();
    let output = output.unwrap_or_else(|| PathBuf::from(format!("{}-{now}", scenario.name)));
    let options = Options {
        installations: common.pg_bin.clone(),
        clients: common.client_bin.clone(),
        dsn: common.dsn.clone(),
        skip_missing: common.skip_missing,
        minutes: common.minutes,
        output: output.clone(),
        scratch: common.scratch.clone(),
        command: command(),
    };
    let stop = Stop::on_signals()?;
    if common.dry_run {
        return tell(&scenario, &options, &stop, print);
    }
    let ended = run_bench(&scenario, &options, &stop);
    if output.join("report.md").exists() {
        let page = output.join("report.html");
        say(format_args!("report: {}", page.display()));
    }
    ended
}

/// This command line, for the report.
fn command() -> String {
    let words = ["tacho", "bench"].map(String::from).into_iter();
    let words = words.chain(
        std::env::args_os()
            .skip(1)
            .map(|word| word.to_string_lossy().into()),
    );
    words.collect::<Vec<_>>().join(" ")
}

/// Gives the SQL edition its installer, and pg_ash its own or a variant for each installer.
fn add_installers(scenario: &mut Scenario, common: &Common) -> Result<()> {
    let variants = &mut scenario.variants;
    for variant in variants
        .iter_mut()
        .filter(|v| v.form == Some(Form::Edition))
    {
        variant.installer.clone_from(&common.edition);
    }
    let sampler = |v: &&mut Variant| matches!(v.form, Some(Form::Ash1 | Form::Ash2));
    if scenario.history.is_none()
        && let Some(variant) = variants.iter_mut().find(sampler)
    {
        ensure!(
            common.pg_ash.len() <= 1,
            "--pg-ash is specified more than once, but this scenario has one pg_ash"
        );
        variant.installer = common.pg_ash.first().cloned();
        return Ok(());
    }
    ensure!(
        scenario.history.is_some() || common.pg_ash.is_empty(),
        "--pg-ash is for scenarios with pg_ash in them\nhint: See tacho bench history."
    );
    for installer in &common.pg_ash {
        let text = std::fs::read_to_string(installer)
            .with_context(|| format!("could not read \"{}\"", installer.display()))?;
        let name = installer.file_stem().unwrap_or_default();
        variants.push(Variant {
            name: format!("pg_ash ({})", name.to_string_lossy()),
            form: Some(ash(&text)),
            installer: Some(installer.clone()),
            ..Variant::default()
        });
    }
    Ok(())
}

impl Choices {
    /// The scenario with the options applied.
    fn scenario(&self, name: &str) -> Result<Scenario> {
        let mut scenario = Scenario::load(name, self.full)?;
        select(&mut scenario.variants, &self.variants, "variant", |v| {
            &v.name
        })?;
        if let (None, Some(cost)) = (&scenario.pgbench, &mut scenario.cost) {
            select(&mut cost.statements, &self.workloads, "workload", |s| {
                &s.name
            })?;
        }
        if let Some(load) = &mut scenario.pgbench {
            choose_workloads(load, &mut scenario.cost, &self.workloads)?;
            load.seconds = self.seconds.unwrap_or(load.seconds);
            load.rate = self.rate.unwrap_or(load.rate);
            if !self.clients.is_empty() {
                load.clients.clone_from(&self.clients);
            }
            if !self.cores.is_empty() {
                load.cores.clone_from(&self.cores);
            }
        }
        Ok(scenario)
    }
}

/// Keeps the named workloads, and the named statements whose cost is measured.
fn choose_workloads(load: &mut Pgbench, cost: &mut Option<Cost>, given: &[String]) -> Result<()> {
    let statements = cost.iter().flat_map(|cost| &cost.statements);
    let known: Vec<&str> = statements
        .map(|s| s.name.as_str())
        .chain(load.workloads.iter().map(|w| w.name.as_str()))
        .collect();
    let names = whole_names(given, &known);
    let costing = |name: &&String| {
        let mut statements = cost.iter().flat_map(|cost| &cost.statements);
        statements.any(|s| s.name == **name)
    };
    let (costs, loads): (Vec<&String>, Vec<&String>) = names.iter().partition(costing);
    let [costs, loads] = [costs, loads].map(|names| names.into_iter().cloned().collect::<Vec<_>>());
    if !names.is_empty() && loads.is_empty() {
        load.workloads.clear();
    }
    select(&mut load.workloads, &loads, "workload", |w| &w.name)?;
    match cost {
        Some(cost) if !costs.is_empty() => {
            select(&mut cost.statements, &costs, "workload", |s| &s.name)?;
        }
        Some(_) if !names.is_empty() => *cost = None,
        _ => (),
    }
    Ok(())
}

/// Joins names that contain commas. A list is split at each comma, so `none,tacho, no tags` is given
/// as three pieces and has two names.
fn whole_names(pieces: &[String], known: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = pieces;
    while let Some(first) = rest.first() {
        let mut longest = (1..=rest.len()).rev().map(|n| (n, rest[..n].join(",")));
        let found = longest.find(|(_, name)| known.contains(&name.as_str()));
        let (n, name) = found.unwrap_or((1, first.clone()));
        names.push(name);
        rest = &rest[n..];
    }
    names
}

/// Keeps the named items, in the order of the names.
fn select<T: Clone>(
    items: &mut Vec<T>,
    names: &[String],
    what: &str,
    name: impl Fn(&T) -> &String,
) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let known: Vec<&str> = items.iter().map(|item| name(item).as_str()).collect();
    let mut chosen = Vec::new();
    for wanted in &whole_names(names, &known) {
        let found = items.iter().find(|item| name(item) == wanted);
        chosen.push(found.cloned().with_context(|| {
            let known = known.join("; ");
            format!("unknown {what} \"{wanted}\"\nhint: The scenario has {known}.")
        })?);
    }
    *items = chosen;
    Ok(())
}

impl Setting {
    fn scenario(&self) -> Result<Scenario> {
        ensure!(!self.values.is_empty(), "--values is empty");
        Ok(Scenario {
            name: "setting".into(),
            title: format!("{} against {}", self.sql, self.name),
            question: format!("How does {} change the time of this statement?", self.name),
            rounds: 5,
            run_s: None,
            scale: 10,
            prepare: self.prepare.clone(),
            settings: std::collections::BTreeMap::new(),
            pgbench: None,
            cost: None,
            statement: Some(Statement {
                sql: self.sql.clone(),
                setting: self.name.clone(),
                values: self.values.clone(),
                cold: self.cold,
            }),
            reload: self.reload,
            primary: None,
            variants: vec![Variant {
                name: "default".into(),
                ..Variant::default()
            }],
            budgets: Vec::new(),
            codec: None,
            history: None,
            metrics: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_commas_are_found_in_a_list() {
        let pieces = |list: &str| list.split(',').map(str::to_string).collect::<Vec<_>>();
        let known = [
            "none",
            "tacho",
            "tacho, no tags",
            "tacho, no tags, no texts",
        ];
        let names = |list: &str| whole_names(&pieces(list), &known);
        assert_eq!(names("none,tacho"), ["none", "tacho"]);
        assert_eq!(names("tacho, no tags,none"), ["tacho, no tags", "none"]);
        assert_eq!(
            names("tacho,tacho, no tags, no texts"),
            ["tacho", "tacho, no tags, no texts"]
        );
        assert_eq!(names("tachi, no tags"), ["tachi", " no tags"]);
    }
}
