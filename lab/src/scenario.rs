//! A scenario: an experiment as data. The files are in `bench/scenarios/`.
//! Built-in ones are found by name, others by path.

use super::primary::Primary;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Scenarios that come with the program: name, text.
pub const BUILT_IN: &[(&str, &str)] = &[
    (
        "overhead",
        include_str!("../../bench/scenarios/overhead.toml"),
    ),
    ("churn", include_str!("../../bench/scenarios/churn.toml")),
    ("hot", include_str!("../../bench/scenarios/hot.toml")),
    (
        "analyze",
        include_str!("../../bench/scenarios/analyze.toml"),
    ),
    (
        "history",
        include_str!("../../bench/scenarios/history.toml"),
    ),
    ("codec", include_str!("../../bench/scenarios/codec.toml")),
    (
        "recording",
        include_str!("../../bench/scenarios/recording.toml"),
    ),
    (
        "instructions",
        include_str!("../../bench/scenarios/instructions.toml"),
    ),
    ("lines", include_str!("../../bench/scenarios/lines.toml")),
    ("plans", include_str!("../../bench/scenarios/plans.toml")),
];

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// File name without its extension.
    pub name: String,
    /// One line, the title of the report.
    pub title: String,
    /// The question that the experiment answers.
    pub question: String,
    /// Number of rounds. A round has each variant at each point once; ratios are formed within a
    /// round.
    pub rounds: u32,
    /// Seconds that one run takes on two cores, for the guess of the duration.
    /// Runs of pgbench by time need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_s: Option<f64>,
    /// Scale of pgbench's tables; 0 = no tables.
    #[serde(default)]
    pub scale: u32,
    /// SQL that runs once, after the tables are made.
    #[serde(default)]
    pub prepare: Vec<String>,
    /// Settings of every server.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Load by pgbench.
    #[serde(default)]
    pub pgbench: Option<Pgbench>,
    /// Cost of single statements without a load. It may be measured beside a load by pgbench, or
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// One timed statement, instead of a load by pgbench.
    #[serde(default)]
    pub statement: Option<Statement>,
    /// A history that is stored and read, instead of a load by pgbench.
    #[serde(default)]
    pub codec: Option<Codec>,
    /// Questions about samples, instead of a load by pgbench.
    #[serde(default)]
    pub history: Option<History>,
    /// True if one server with the libraries of all variants runs all the time, and reloads switch
    /// between variants. Otherwise a server is started for each run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reload: bool,
    /// The compared variants; the first is the baseline.
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
    /// The figure that has a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<Primary>,
    /// Limits of the variants' ratios to the baseline.
    #[serde(default, rename = "budget", skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<Budget>,
    /// Numbers that are read from the server after each run.
    #[serde(default, rename = "metric")]
    pub metrics: Vec<Asked>,
}

/// A load that pgbench makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pgbench {
    /// Seconds of one run.
    pub seconds: u32,
    /// Transactions of one run, of all clients together, instead of seconds; 0 =
    /// as many as fit into the seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub transactions: u32,
    /// True if the share of the sessions' CPU time that the variant's libraries take is sampled.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shares: bool,
    /// Seconds of warm-up, which do not count.
    pub warmup: u32,
    /// Numbers of clients.
    pub clients: Vec<u32>,
    /// Numbers of cores that the server may use; empty = all.
    #[serde(default)]
    pub cores: Vec<u32>,
    /// Query protocol.
    #[serde(default = "simple")]
    pub protocol: String,
    /// Transactions per second of all clients; 0 = as fast as possible.
    #[serde(default)]
    pub rate: u32,
    /// The transactions of the clients.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
}

/// A transaction of pgbench.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Name of the workload in the report.
    pub name: String,
    /// Name of one of pgbench's own scripts; a workload has this or `script`.
    #[serde(default)]
    pub builtin: Option<String>,
    /// Text of a script; a workload has this or `builtin`.
    #[serde(default)]
    pub script: Option<String>,
    /// Number of statements in a transaction, including BEGIN and COMMIT.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub statements: u32,
}

/// Statements that a single-user server executes repeatedly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Number of executions for counting instructions and system calls. The timed
    /// run has twenty times as many.
    pub repeat: u32,
    /// True if the lines and pages of memory that an execution touches are counted, instead of
    /// instructions and system calls.
    #[serde(default)]
    pub cold: bool,
    /// Further settings of that server, besides the scenario's and the variant's.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The statements.
    #[serde(rename = "statement")]
    pub statements: Vec<Costing>,
}

/// A statement whose cost is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costing {
    /// Name of the measured cost in the report.
    pub name: String,
    /// SQL on one line; `{n}` becomes the number of the execution.
    pub sql: String,
    /// Lines of SQL that every server executes once before the statement. Their cost is in both
    /// runs of n and of 3 n executions, so it is not counted.
    #[serde(default)]
    pub first: Vec<String>,
    /// Number of executions, if it differs from the scenario's.
    #[serde(default)]
    pub repeat: Option<u32>,
}

/// A statement that is timed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The statement.
    pub sql: String,
    /// The setting that is varied.
    pub setting: String,
    /// Values of the setting; the first is the baseline.
    pub values: Vec<String>,
    /// True if caches are emptied before each run.
    #[serde(default)]
    pub cold: bool,
}

/// A history of statements that is stored and read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Codec {
    /// Number of databases.
    pub databases: u32,
    /// Number of days of each database.
    pub days: u32,
    /// Arrangements of the rows, which are compared.
    #[serde(rename = "layout")]
    pub layouts: Vec<Layout>,
}

/// Arrangement of a history's rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Name of the layout in the report.
    pub name: String,
    /// Minutes of one database in one row of a table.
    pub bucket_minutes: u32,
    /// Decimals to which times in ms are rounded; `None` = all.
    #[serde(default)]
    pub decimals: Option<u32>,
    /// If set instead of `decimals`: times are whole numbers, and a ms is this many of their units.
    #[serde(default)]
    pub multiply: Option<u32>,
}

/// Questions about the samples of some hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Number of hours, at most 24.
    pub hours: u32,
    /// Seconds after which a question is given up; `None` = no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<u32>,
    /// Questions whose answers are timed.
    #[serde(rename = "question")]
    pub questions: Vec<Question>,
}

/// A question about a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Name of the question in the report.
    pub name: String,
    /// SQL; {hour}, {begin}, {end} and {node} are filled in.
    pub sql: String,
    /// The question for pg_ash 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ash1: Option<String>,
    /// The question for pg_ash 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ash2: Option<String>,
}

/// A form of storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Arrays in rows of a table.
    Arrays,
    /// Columns compressed by pco in rows of a table.
    Pco,
    /// Files of tacho.
    Tape,
    /// Parquet with zstd.
    Parquet,
    /// Tables of the SQL edition.
    Edition,
    /// Tables of pg_ash 1.
    Ash1,
    /// Tables of pg_ash 2.
    Ash2,
}

/// A compared variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Name of the variant in the report.
    pub name: String,
    /// Libraries for shared_preload_libraries.
    #[serde(default)]
    pub preload: Vec<String>,
    /// Settings in addition to the scenario's.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// SQL that runs after each start.
    #[serde(default)]
    pub sql: Vec<String>,
    /// SQL that runs every five seconds beside the load, unless `poll_seconds` is set.
    #[serde(default)]
    pub poll: Option<String>,
    /// Interval of `poll` in seconds; `None` = five.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_seconds: Option<f64>,
    /// SQL that returns true once the variant's settings are effective; the run
    /// waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// Form of storage, for a stored history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// SQL that installs an extension without a library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installer: Option<PathBuf>,
    /// Major versions of PostgreSQL on which the variant runs; empty = all.
    #[serde(default)]
    pub majors: Vec<u32>,
}

/// A limit of a ratio to the baseline: an upper limit if less of the metric is better, otherwise a
/// lower limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Name of the metric in the results.
    pub metric: String,
    /// Limit of the ratio to the baseline.
    pub ratio: f64,
    /// Variants with this budget.
    pub variants: Vec<String>,
    /// Workloads with this budget; empty = all.
    #[serde(default)]
    pub workloads: Vec<String>,
}

/// A number that is read from the server after a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Name of the figure in the results.
    pub name: String,
    /// Unit of the figure, for the report.
    #[serde(default)]
    pub unit: String,
    /// A query with one number, for each variant that has it. `:transactions` is
    /// pgbench's count, including the warm-up. `:statements` is the number of
    /// statements in these.
    pub sql: BTreeMap<String, String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_false(value: &bool) -> bool {
    !value
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_one(value: &u32) -> bool {
    *value == 1
}

fn simple() -> String {
    "simple".to_owned()
}

impl Scenario {
    /// Finds a built-in scenario by name, or a file by path. With `full`, its
    /// table `[full]` overrides the rest.
    pub fn load(name: &str, full: bool) -> Result<Self> {
        let text = match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => (*text).to_owned(),
            None if Path::new(name).extension().is_some() => std::fs::read_to_string(name)
                .with_context(|| format!("could not read scenario \"{name}\""))?,
            None => bail!(
                "unknown scenario \"{name}\"\nhint: One of {}, or the path of a .toml file.",
                BUILT_IN.map_names()
            ),
        };
        Self::parse(&text, full).with_context(|| format!("invalid scenario \"{name}\""))
    }

    /// Reads a scenario from TOML and checks it.
    pub fn parse(text: &str, full: bool) -> Result<Self> {
        let mut table: toml::Table = text.parse()?;
        let larger = table.remove("full");
        if let (true, Some(toml::Value::Table(larger))) = (full, larger) {
            overlay(&mut table, larger);
        }
        let scenario: Self = table.try_into()?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Refuses scenarios that cannot be measured.
    pub fn check(&self) -> Result<()> {
        ensure!(self.rounds > 0, "rounds must be at least 1");
        ensure!(!self.variants.is_empty(), "scenario has no variant");
        let loads = [
            self.pgbench.is_some(),
            self.statement.is_some(),
            self.codec.is_some(),
            self.history.is_some(),
        ];
        let loads = loads.iter().filter(|given| **given).count();
        ensure!(
            loads == 1 || (loads == 0 && self.cost.is_some()),
            "one of pgbench, statement, codec and history must be given"
        );
        if let Some(codec) = &self.codec {
            codec.check()?;
        }
        if let Some(history) = &self.history {
            history.check()?;
        }
        if self.codec.is_some() || self.history.is_some() {
            let formless = self.variants.iter().find(|v| v.form.is_none());
            let name = formless.map(|v| &v.name);
            ensure!(name.is_none(), "variant {name:?} has no form");
        }
        if let Some(load) = &self.pgbench {
            load.check()?;
            let measured = self.cost.is_some() || !load.workloads.is_empty();
            ensure!(measured, "there is no pgbench.workload");
        }
        if let Some(cost) = &self.cost {
            ensure!(
                self.pgbench.is_some() || loads == 0,
                "cost can be combined only with pgbench"
            );
            cost.check()?;
        }
        self.check_reload()?;
        if let Some(primary) = &self.primary {
            primary.check()?;
        }
        for budget in &self.budgets {
            budget.check()?;
        }
        if let Some(statement) = &self.statement {
            ensure!(!statement.values.is_empty(), "statement has no values");
        }
        for (at, variant) in self.variants.iter().enumerate() {
            let twice = self.variants[..at].iter().any(|v| v.name == variant.name);
            ensure!(!twice, "variant \"{}\" appears twice", variant.name);
        }
        Ok(())
    }
}

impl Scenario {
    /// Refuses scenarios that need a stopped server.
    fn check_reload(&self) -> Result<()> {
        let stopped = [
            (self.cost.is_some(), "cost"),
            (self.codec.is_some(), "codec"),
            (self.history.is_some(), "history"),
            (
                self.statement.as_ref().is_some_and(|s| s.cold),
                "statement.cold",
            ),
            (
                self.pgbench.as_ref().is_some_and(|p| !p.cores.is_empty()),
                "pgbench.cores",
            ),
        ];
        match stopped.iter().find(|(given, _)| self.reload && *given) {
            Some((_, name)) => bail!("{name} requires restarts of the server, not reload"),
            None => Ok(()),
        }
    }
}

impl Budget {
    /// The caller may have left out variants and workloads.
    fn check(&self) -> Result<()> {
        let known = super::metric::find(&self.metric).is_some();
        ensure!(known, "budget of an unknown metric \"{}\"", self.metric);
        ensure!(
            !self.variants.is_empty(),
            "budget of \"{}\" is for no variant",
            self.metric
        );
        Ok(())
    }
}

impl Cost {
    fn check(&self) -> Result<()> {
        ensure!(self.repeat > 0, "cost.repeat must be at least 1");
        ensure!(!self.statements.is_empty(), "there is no cost.statement");
        for statement in &self.statements {
            let (name, sql) = (&statement.name, &statement.sql);
            ensure!(
                !sql.contains('\n'),
                "cost.statement \"{name}\" has more than one line"
            );
            ensure!(
                !self.cold || sql.ends_with(';'),
                "cost.statement \"{name}\" must end with a semicolon, without blanks after it"
            );
        }
        Ok(())
    }
}

impl Codec {
    fn check(&self) -> Result<()> {
        ensure!(
            self.databases > 0 && self.days > 0,
            "codec.databases and codec.days must be at least 1"
        );
        ensure!(!self.layouts.is_empty(), "there is no codec.layout");
        for layout in &self.layouts {
            ensure!(
                layout.bucket_minutes > 0
                    && (layout.decimals.is_none() || layout.multiply.is_none()),
                "layout \"{}\" needs bucket_minutes and at most one of decimals and multiply",
                layout.name
            );
        }
        Ok(())
    }
}

impl History {
    fn check(&self) -> Result<()> {
        ensure!(
            (1..=24).contains(&self.hours),
            "history.hours must be from 1 to 24"
        );
        ensure!(
            self.limit_s != Some(0),
            "history.limit_s must be at least 1"
        );
        ensure!(!self.questions.is_empty(), "there is no history.question");
        Ok(())
    }
}

impl Pgbench {
    fn check(&self) -> Result<()> {
        ensure!(self.seconds > 0, "pgbench.seconds must be at least 1");
        ensure!(!self.clients.is_empty(), "pgbench.clients is empty");
        ensure!(
            !self.clients.contains(&0) && !self.cores.contains(&0),
            "clients and cores must be at least 1"
        );
        ensure!(
            self.clients
                .iter()
                .all(|clients| self.transactions.is_multiple_of(*clients)),
            "pgbench.transactions must be a multiple of every number of clients"
        );
        for workload in &self.workloads {
            ensure!(
                workload.builtin.is_some() != workload.script.is_some(),
                "workload \"{}\" needs one of builtin and script",
                workload.name
            );
        }
        Ok(())
    }
}

/// Names of a list of scenarios.
trait Names {
    fn map_names(&self) -> String;
}

impl Names for [(&str, &str)] {
    fn map_names(&self) -> String {
        let names: Vec<&str> = self.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}

/// Overrides values of the same name. Tables are merged member by member, and
/// lists of named tables name by name.
fn overlay(base: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(over)) => overlay(base, over),
            (Some(toml::Value::Array(base)), toml::Value::Array(over)) if named(&over) => {
                overlay_named(base, over);
            }
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

fn named(list: &[toml::Value]) -> bool {
    !list.is_empty() && list.iter().all(|item| item.get("name").is_some())
}

/// Replaces items of the same name in place, and adds the others.
fn overlay_named(base: &mut Vec<toml::Value>, over: Vec<toml::Value>) {
    for item in over {
        match base.iter_mut().find(|b| b.get("name") == item.get("name")) {
            Some(same) => *same = item,
            None => base.push(item),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        name = "t"
        title = "T"
        question = "?"
        rounds = 3
        [pgbench]
        seconds = 2
        warmup = 1
        clients = [1]
        workload = [{ name = "w", builtin = "select-only" }]
        [[variant]]
        name = "none"
        [full]
        rounds = 9
        [full.pgbench]
        clients = [1, 50]
    "#;

    #[test]
    fn every_built_in_scenario_is_valid_small_and_full() {
        for (name, _) in BUILT_IN {
            for full in [false, true] {
                let scenario = Scenario::load(name, full).expect(name);
                assert_eq!(&scenario.name, name);
            }
        }
    }

    #[test]
    fn full_is_put_over_the_rest_member_by_member() {
        let small = Scenario::parse(SMALL, false).expect("valid");
        let full = Scenario::parse(SMALL, true).expect("valid");
        assert_eq!((small.rounds, full.rounds), (3, 9));
        let load = full.pgbench.expect("load");
        assert_eq!((load.clients, load.seconds), (vec![1, 50], 2));
    }

    #[test]
    fn full_adds_workloads_to_workloads_of_other_names() {
        let more = r#"[[full.pgbench.workload]]
            name = "v"
            script = "select 1;"
            [[full.pgbench.workload]]
            name = "w"
            builtin = "tpcb-like"
        "#;
        let full = Scenario::parse(&format!("{SMALL}{more}"), true).expect("valid");
        let load = full.pgbench.expect("load");
        let names: Vec<&str> = load.workloads.iter().map(|w| w.name.as_str()).collect();
        assert_eq!(names, ["w", "v"]);
        assert_eq!(load.workloads[0].builtin.as_deref(), Some("tpcb-like"));
    }

    #[test]
    fn a_setting_that_needs_a_restart_is_refused_beside_reload() {
        let text = SMALL.replacen("rounds = 3", "rounds = 3\nreload = true", 1);
        assert!(Scenario::parse(&text, false).expect("valid").reload);
        let cores = text.replacen("clients = [1]", "clients = [1]\ncores = [1]", 1);
        let error = Scenario::parse(&cores, false).expect_err("refused");
        assert!(format!("{error}").starts_with("pgbench.cores requires restarts of the server"));
    }

    #[test]
    fn unmeasurable_settings_are_refused_by_name() {
        let refused = |from: &str, to: &str| {
            let text = SMALL.replacen(from, to, 1);
            format!("{:#}", Scenario::parse(&text, false).expect_err(to))
        };
        assert_eq!(
            refused("rounds = 3", "rounds = 0"),
            "rounds must be at least 1"
        );
        assert_eq!(
            refused("clients = [1]", "clients = []"),
            "pgbench.clients is empty"
        );
        assert_eq!(
            refused(
                "builtin = \"select-only\"",
                "builtin = \"a\", script = \"b\""
            ),
            "workload \"w\" needs one of builtin and script"
        );
        assert!(refused("seconds = 2", "secods = 2").contains("secods"));
        let unknown = Scenario::load("nothing", false).expect_err("unknown");
        assert!(format!("{unknown}").starts_with("unknown scenario \"nothing\""));
    }
}
