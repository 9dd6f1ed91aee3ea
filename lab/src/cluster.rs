//! A private server. Each installation has one data directory. The server is
//! started for each run with the settings of its variant, and reachable by a
//! Unix socket only.

use super::access::{Access, LOADED};
use super::install::{Account, Installation};
use super::process::{Stop, as_account, last_error_line, run};
use super::scenario::Scenario;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A data directory and its server.
#[derive(Debug)]
pub struct Cluster {
    /// Access to its server.
    pub access: Access,
    account: Option<Account>,
    /// Data directory.
    pub data: PathBuf,
    /// Directory of the socket.
    scratch: PathBuf,
}

/// A started server; it is stopped when dropped.
#[derive(Debug)]
pub struct Server<'a> {
    cluster: &'a Cluster,
    /// PID of the postmaster.
    pub pid: u32,
    stopped: bool,
}

impl Cluster {
    /// Makes a data directory in `parent`, and fills it for the scenario.
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
            access: Access::private(installation, account.clone(), &scratch),
            account,
            scratch,
        };
        if !cluster.data.join("PG_VERSION").exists() {
            cluster.initialise(scenario, stop)?;
        }
        Ok(cluster)
    }

    fn initialise(&self, scenario: &Scenario, stop: &Stop) -> Result<()> {
        let mut initdb = self.access.program("initdb");
        initdb.arg("-D").arg(&self.data).args([
            "-A",
            "trust",
            "-U",
            "postgres",
            "-N",
            "--locale=C",
        ]);
        run(&mut initdb, stop).context("could not create data directory")?;
        let server = self.start(&scenario.settings, None, stop)?;
        self.access
            .sql(&format!("create database {LOADED}"), stop)?;
        self.access.fill(scenario, stop)?;
        self.access.sql("checkpoint", stop)?;
        server.stop(stop)
    }

    /// Starts the server with settings, on the first `cores` cores. A stop
    /// waits until the start has ended: a server that is still starting cannot
    /// be stopped.
    pub fn start(
        &self,
        settings: &BTreeMap<String, String>,
        cores: Option<u32>,
        stop: &Stop,
    ) -> Result<Server<'_>> {
        let log = self.scratch.join("server.log");
        self.configure(settings)?;
        let mut start = self.access.program("pg_ctl");
        if let Some(cores) = cores {
            let cores = format!("0-{}", cores - 1);
            start = self.under(&["taskset", "-c", &cores], &start);
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

    /// Applies settings to a running server. Settings that need a restart are
    /// refused.
    pub fn reload(&self, settings: &BTreeMap<String, String>, stop: &Stop) -> Result<()> {
        self.configure(settings)?;
        self.access.reload(stop)?;
        let pending = "select string_agg(name, ', ') from pg_settings where pending_restart";
        let pending = self.access.sql(pending, stop)?;
        ensure!(
            pending.is_empty(),
            "{pending} cannot be changed by a reload\nhint: Take reload out of the scenario, or \
             give all variants the same."
        );
        Ok(())
    }

    /// The command of a single-user server with settings, which reads its
    /// standard input. It runs under another program if `tool` names one.
    pub fn alone(&self, settings: &BTreeMap<String, String>, tool: &[&str]) -> Result<Command> {
        self.configure(settings)?;
        let mut server = self.access.program("postgres");
        if !tool.is_empty() {
            server = self.under(tool, &server);
        }
        server.arg("--single").arg("-D").arg(&self.data).arg(LOADED);
        Ok(server)
    }

    fn configure(&self, settings: &BTreeMap<String, String>) -> Result<()> {
        let file = self.data.join("postgresql.auto.conf");
        Ok(fs::write(file, self.configuration(settings))?)
    }

    /// The same command without its arguments, run under the program that `tool` names.
    fn under(&self, tool: &[&str], command: &Command) -> Command {
        let mut under = Command::new(tool[0]);
        as_account(&mut under, self.account.as_ref());
        under
            .current_dir(&self.scratch)
            .args(&tool[1..])
            .arg(command.get_program());
        under
    }

    fn configuration(&self, settings: &BTreeMap<String, String>) -> String {
        let mut all = BTreeMap::from([
            ("listen_addresses".to_owned(), String::new()),
            ("port".to_owned(), "5432".to_owned()),
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
    /// Shuts the server down.
    pub fn stop(mut self, stop: &Stop) -> Result<()> {
        run(&mut self.pg_ctl_stop("fast"), stop).context("could not stop the server")?;
        self.stopped = true;
        Ok(())
    }

    fn pg_ctl_stop(&self, mode: &str) -> Command {
        let mut command = self.cluster.access.program("pg_ctl");
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
            // This command has a `Stop` of its own, because the `Stop` of the experiment may be set
            // already.
            let _ = run(&mut self.pg_ctl_stop("immediate"), &Stop::default());
        }
    }
}

fn last_line(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    last_error_line(&text).unwrap_or("no message").to_owned()
}
