//! A private server: one data directory for each installation, started anew for
//! each run with the settings of its variant, reachable by a Unix socket only.

use super::install::{Account, Installation};
use super::process::{Running, Stop, as_account, run};
use super::scenario::Scenario;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PORT: &str = "5432";

/// Database of the load. Everything else happens in another one, so that
/// statistics of this one are those of the load alone.
pub const LOADED: &str = "load";

/// Name of the sessions that are no load.
pub const SELF: &str = "tacho bench";

/// A data directory and how to reach its server.
#[derive(Debug)]
pub struct Cluster {
    /// Whose programs run it.
    pub installation: Installation,
    account: Option<Account>,
    /// Data directory.
    pub data: PathBuf,
    /// Directory of the socket and of files a run leaves.
    pub scratch: PathBuf,
}

/// A started server; stopped when dropped.
#[derive(Debug)]
pub struct Server<'a> {
    cluster: &'a Cluster,
    /// Process id of the postmaster.
    pub pid: u32,
    stopped: bool,
}

impl Cluster {
    /// Makes a data directory in `parent` and fills it as the scenario says.
    pub fn create(
        installation: Installation,
        account: Option<Account>,
        parent: &Path,
        scenario: &Scenario,
        stop: &Stop,
    ) -> Result<Self> {
        let scratch = parent.join(format!("pg{}", installation.version));
        fs::create_dir_all(&scratch)?;
        fs::set_permissions(&scratch, fs::Permissions::from_mode(0o755))?;
        if let Some(account) = &account {
            chown(&scratch, Some(account.uid), Some(account.gid))?;
        }
        let cluster = Self {
            data: scratch.join("data"),
            installation,
            account,
            scratch,
        };
        if !cluster.data.join("PG_VERSION").exists() {
            cluster.initialise(scenario, stop)?;
        }
        Ok(cluster)
    }

    fn initialise(&self, scenario: &Scenario, stop: &Stop) -> Result<()> {
        let mut initdb = self.command("initdb");
        initdb.arg("-D").arg(&self.data).args([
            "-A",
            "trust",
            "-U",
            "postgres",
            "-N",
            "--locale=C",
        ]);
        run(&mut initdb, stop).context("could not create a data directory")?;
        let server = self.start(&scenario.settings, None, stop)?;
        self.sql(&format!("create database {LOADED}"), stop)?;
        if scenario.scale > 0 {
            let mut pgbench = self.client("pgbench");
            pgbench.args(["-i", "-q", "-s", &scenario.scale.to_string()]);
            run(&mut pgbench, stop).context("could not fill pgbench's tables")?;
        }
        for sql in &scenario.prepare {
            run(self.psql(LOADED).args(["-c", sql]), stop)
                .with_context(|| format!("could not run \"{sql}\""))?;
        }
        self.sql("checkpoint", stop)?;
        server.stop(stop)
    }

    /// A program run by the server's account.
    fn command(&self, program: &str) -> Command {
        let mut command = self.installation.program(program);
        as_account(&mut command, self.account.as_ref());
        command.current_dir(&self.scratch);
        command
    }

    /// A program that connects to the database of the load.
    pub fn client(&self, program: &str) -> Command {
        let mut command = self.command(program);
        command
            .env("PGHOST", &self.scratch)
            .env("PGPORT", PORT)
            .env("PGUSER", "postgres")
            .env("PGDATABASE", LOADED);
        command
    }

    /// psql on a database, without anything around its rows.
    pub fn psql(&self, database: &str) -> Command {
        let mut command = self.client("psql");
        command
            .env("PGDATABASE", database)
            .args(["-XAtq", "-v", "ON_ERROR_STOP=1"]);
        command
    }

    /// Runs SQL beside the load and returns what it prints.
    pub fn sql(&self, sql: &str, stop: &Stop) -> Result<String> {
        let mut psql = self.psql("postgres");
        psql.env("PGAPPNAME", SELF).args(["-c", sql]);
        let text = run(&mut psql, stop).with_context(|| format!("could not run \"{sql}\""))?;
        Ok(text.trim_end().to_owned())
    }

    /// Asks the same again and again beside the load, until it is ended.
    pub fn watch(&self, sql: &str, seconds: f64) -> Result<Running> {
        let mut psql = self.psql("postgres");
        psql.env("PGAPPNAME", SELF).stdin(Stdio::piped());
        let mut running = Running::start(&mut psql)?;
        let mut input = running.input().context("psql has no input")?;
        input.write_all(format!("{sql} \\watch {seconds}\n").as_bytes())?;
        Ok(running)
    }

    /// Runs SQL that returns one number.
    pub fn number(&self, sql: &str, stop: &Stop) -> Result<f64> {
        let text = self.sql(sql, stop)?;
        text.parse()
            .with_context(|| format!("\"{sql}\" returned \"{text}\", not a number"))
    }

    /// Starts the server with settings, on the first `cores` cores. A stop
    /// waits for the start's end: a server half started cannot be told to end.
    pub fn start(
        &self,
        settings: &BTreeMap<String, String>,
        cores: Option<u32>,
        stop: &Stop,
    ) -> Result<Server<'_>> {
        let log = self.scratch.join("server.log");
        fs::write(
            self.data.join("postgresql.auto.conf"),
            self.configuration(settings),
        )?;
        let mut start = self.command("pg_ctl");
        if let Some(cores) = cores {
            let pg_ctl = start;
            start = self.pinned(&pg_ctl, cores);
        }
        start
            .arg("-D")
            .arg(&self.data)
            .arg("-l")
            .arg(&log)
            .args(["-w", "start"]);
        run(&mut start, &Stop::default())
            .with_context(|| format!("could not start the server: {}", last_line(&log)))?;
        let mut server = Server {
            cluster: self,
            pid: 0,
            stopped: false,
        };
        stop.check()?;
        let pid = fs::read_to_string(self.data.join("postmaster.pid"))?;
        let pid = pid.lines().next().unwrap_or_default();
        server.pid = pid.parse().context("could not read postmaster.pid")?;
        Ok(server)
    }

    /// The same command by `taskset`.
    fn pinned(&self, command: &Command, cores: u32) -> Command {
        let mut pinned = Command::new("taskset");
        as_account(&mut pinned, self.account.as_ref());
        pinned
            .current_dir(&self.scratch)
            .args(["-c", &format!("0-{}", cores - 1)])
            .arg(command.get_program());
        pinned
    }

    fn configuration(&self, settings: &BTreeMap<String, String>) -> String {
        let mut all = BTreeMap::from([
            ("listen_addresses".to_owned(), String::new()),
            ("port".to_owned(), PORT.to_owned()),
            (
                "unix_socket_directories".to_owned(),
                self.scratch.display().to_string(),
            ),
        ]);
        all.extend(settings.clone());
        let quoted = |value: &String| value.replace('\'', "''");
        all.iter()
            .map(|(name, value)| format!("{name} = '{}'\n", quoted(value)))
            .collect()
    }
}

impl Server<'_> {
    /// Stops it in good order.
    pub fn stop(mut self, stop: &Stop) -> Result<()> {
        run(&mut self.pg_ctl_stop("fast"), stop).context("could not stop the server")?;
        self.stopped = true;
        Ok(())
    }

    fn pg_ctl_stop(&self, mode: &str) -> Command {
        let mut command = self.cluster.command("pg_ctl");
        command
            .arg("-D")
            .arg(&self.cluster.data)
            .args(["-m", mode, "-w", "stop"]);
        command
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if !self.stopped {
            // A stop of its own: the experiment's may have been given already.
            let _ = run(&mut self.pg_ctl_stop("immediate"), &Stop::default());
        }
    }
}

fn last_line(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let said = |line: &&str| line.contains("FATAL") || line.contains("ERROR");
    let line = text.lines().rev().find(said).or(text.lines().last());
    line.unwrap_or("no message").to_owned()
}
