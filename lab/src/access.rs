//! Access of programs to the server of a run: a connection string, and the user
//! they run as. It is the same for a private server and for a given one.

use super::install::{Account, Installation};
use super::process::{Running, Stop, as_account, run};
use super::scenario::Scenario;
use anyhow::{Context, Result, ensure};
use std::io::Write;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Database of the load. Everything else runs in another database, so that
/// statistics of this one show the load alone.
pub const LOADED: &str = "tacho_bench";

/// Application name of sessions that are not load.
pub const SELF: &str = "tacho bench";

/// Programs, and a server for them.
#[derive(Debug)]
pub struct Access {
    programs: Installation,
    account: Option<Account>,
    dsn: String,
    /// True if the caller's PG… variables apply.
    environment: bool,
    /// Directory for the files of a run.
    pub scratch: PathBuf,
}

impl Access {
    /// Access to a server whose socket is in `scratch`.
    pub fn private(programs: Installation, account: Option<Account>, scratch: &Path) -> Self {
        Self {
            programs,
            account,
            dsn: format!("host='{}' user=postgres dbname=postgres", scratch.display()),
            environment: false,
            scratch: scratch.to_owned(),
        }
    }

    /// Access to the server of a connection string and the caller's
    /// environment.
    pub fn given(programs: Installation, dsn: &str, scratch: &Path) -> Self {
        Self {
            programs,
            account: None,
            dsn: dsn.to_owned(),
            environment: true,
            scratch: scratch.to_owned(),
        }
    }

    /// A program that runs as the user of the server.
    pub fn program(&self, name: &str) -> Command {
        let mut command = self.programs.program(name);
        if self.environment {
            let set = std::env::vars_os();
            command.envs(set.filter(|(name, _)| name.to_string_lossy().starts_with("PG")));
            if std::env::var_os("PGCONNECT_TIMEOUT").is_none() {
                command.env("PGCONNECT_TIMEOUT", "10");
            }
        }
        as_account(&mut command, self.account.as_ref());
        command.current_dir(&self.scratch);
        command
    }

    /// File of a library; `None` for a given server.
    pub fn library(&self, name: &str) -> Option<PathBuf> {
        (!self.environment).then(|| self.programs.library(name))
    }

    /// pgbench on the database of the load.
    pub fn pgbench(&self) -> Command {
        let mut command = self.program("pgbench");
        command.arg(on_database(&self.dsn, LOADED));
        command
    }

    /// psql on the database of the load; it prints nothing but rows.
    pub fn psql_loaded(&self) -> Command {
        self.psql(&on_database(&self.dsn, LOADED))
    }

    /// psql on any database; it prints nothing but rows.
    pub fn psql_on(&self, database: &str) -> Command {
        self.psql(&on_database(&self.dsn, database))
    }

    /// psql on any database, run by the caller, whose files it may read.
    pub fn psql_as_caller(&self, database: &str) -> Command {
        plain_rows(
            self.programs.program("psql"),
            &on_database(&self.dsn, database),
        )
    }

    /// Gives a directory and its files to the user of the server.
    pub fn own(&self, directory: &Path) -> Result<()> {
        let Some(account) = &self.account else {
            return Ok(());
        };
        let (uid, gid) = (Some(account.uid), Some(account.gid));
        chown(directory, uid, gid)?;
        for file in std::fs::read_dir(directory)? {
            chown(file?.path(), uid, gid)?;
        }
        Ok(())
    }

    fn psql(&self, dsn: &str) -> Command {
        plain_rows(self.program("psql"), dsn)
    }

    /// Runs SQL beside the load and returns what it prints.
    pub fn sql(&self, sql: &str, stop: &Stop) -> Result<String> {
        let mut psql = self.psql(&self.dsn);
        psql.env("PGAPPNAME", SELF).args(["-c", sql]);
        let text = run(&mut psql, stop).with_context(|| format!("could not run \"{sql}\""))?;
        Ok(text.trim_end().to_owned())
    }

    /// Runs SQL that returns one number.
    pub fn number(&self, sql: &str, stop: &Stop) -> Result<f64> {
        let text = self.sql(sql, stop)?;
        text.parse()
            .with_context(|| format!("\"{sql}\" returned \"{text}\", not a number"))
    }

    /// Repeats a query beside the load every `seconds` seconds, until the caller ends it.
    pub fn watch(&self, sql: &str, seconds: f64) -> Result<Running> {
        let mut psql = self.psql(&self.dsn);
        psql.env("PGAPPNAME", SELF).stdin(Stdio::piped());
        let mut running = Running::start(&mut psql)?;
        let mut input = running.input().context("psql has no input")?;
        input.write_all(format!("{sql} \\watch {seconds}\n").as_bytes())?;
        Ok(running)
    }

    /// Reloads the configuration, and waits until new sessions see it.
    pub fn reload(&self, stop: &Stop) -> Result<()> {
        let loaded = "select pg_conf_load_time()";
        let before = self.sql(loaded, stop)?;
        self.sql("select pg_reload_conf()", &Stop::default())?;
        self.wait(
            &format!("select pg_conf_load_time() <> '{before}'"),
            Duration::from_millis(10),
            stop,
        )
        .context("the server did not reload its configuration")
    }

    /// Polls until SQL returns true, for at most 30 s.
    pub fn wait(&self, sql: &str, pause: Duration, stop: &Stop) -> Result<()> {
        let begin = Instant::now();
        while self.sql(sql, stop)? != "t" {
            ensure!(
                begin.elapsed() < Duration::from_secs(30),
                "\"{sql}\" was not true within 30 s"
            );
            stop.sleep(pause)?;
        }
        Ok(())
    }

    /// Fills the database of the load for the scenario.
    pub fn fill(&self, scenario: &Scenario, stop: &Stop) -> Result<()> {
        if scenario.scale > 0 {
            let mut pgbench = self.pgbench();
            pgbench.args(["-i", "-q", "-s", &scenario.scale.to_string()]);
            run(&mut pgbench, stop).context("could not fill pgbench's tables")?;
        }
        for sql in &scenario.prepare {
            run(self.psql_loaded().args(["-c", sql]), stop)
                .with_context(|| format!("could not run \"{sql}\""))?;
        }
        Ok(())
    }
}

/// psql that prints nothing but rows and ends at an error.
fn plain_rows(mut psql: Command, dsn: &str) -> Command {
    psql.args(["-XAtqw", "-v", "ON_ERROR_STOP=1", "-d", dsn]);
    psql
}

/// Changes a connection string to another database. If it has several `dbname`,
/// the last one counts.
fn on_database(dsn: &str, database: &str) -> String {
    match (dsn.contains("://"), dsn.contains('?')) {
        (false, _) => format!("{dsn} dbname={database}"),
        (true, false) => format!("{dsn}?dbname={database}"),
        (true, true) => format!("{dsn}&dbname={database}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_connection_strings_lead_to_another_database() {
        assert_eq!(
            on_database("host=a dbname=b", "c"),
            "host=a dbname=b dbname=c"
        );
        assert_eq!(
            on_database("postgresql://a/b", "c"),
            "postgresql://a/b?dbname=c"
        );
        let query = on_database("postgresql://a/b?port=1", "c");
        assert_eq!(query, "postgresql://a/b?port=1&dbname=c");
    }
}
