//! An existing server (`--dsn`). The load runs in a database of its own.
//! Settings of sessions are changed for that database and role, others by ALTER
//! SYSTEM and a reload. At the end of the experiment, however it ends, the
//! settings are restored and the database is dropped. For the worst case the
//! results have `restore.sql`, as long as anything is changed.

use super::access::{Access, LOADED};
use super::process::Stop;
use super::scenario::{Scenario, Variant};
use anyhow::{Context, Result, bail, ensure};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Settings = BTreeMap<String, String>;

/// The server of `--dsn`, which was not started by this program.
#[derive(Debug)]
pub struct Given {
    /// Access to the server.
    pub access: Access,
    /// Version of the server.
    pub version: String,
    /// Value of shared_preload_libraries; `None` if the role may not see it.
    pub libraries: Option<String>,
    /// Settings that need a reload, and their values in postgresql.auto.conf.
    system: BTreeMap<String, Option<String>>,
    /// Settings of `system` that are changed now, and their new values.
    changed: RefCell<Settings>,
    /// Path of `restore.sql`, while there is something to restore.
    restore: RefCell<Option<PathBuf>>,
}

impl Given {
    /// Examines the server. Refuses, before anything is changed, a scenario
    /// that the server cannot run.
    pub fn connect(access: Access, dsn: &str, scenario: &Scenario, stop: &Stop) -> Result<Self> {
        check_dsn(dsn)?;
        let facts = access.sql(FACTS, stop).context(
            "could not connect to the server of --dsn\nhint: Try the same with psql. Passwords \
             are taken from PGPASSWORD or the password file.",
        )?;
        let facts: Vec<&str> = facts.split('|').collect();
        let [version, libraries, role, creates, standby, exists] = facts[..] else {
            bail!(
                "could not parse the server's answer \"{}\"",
                facts.join("|")
            );
        };
        ensure!(
            standby == "f",
            "server is a standby and cannot run a load that writes"
        );
        ensure!(
            creates == "t",
            "role \"{role}\" may not create databases\nhint: The load runs in a database of its \
             own. An administrator allows it: ALTER ROLE \"{role}\" CREATEDB."
        );
        ensure!(
            exists == "f",
            "database \"{LOADED}\" already exists\nhint: An experiment that was killed left it; \
             psql -f restore.sql of its results puts everything back, or drop the database."
        );
        let mut given = Self {
            version: version.split(' ').next().unwrap_or_default().to_owned(),
            libraries: (libraries != "?").then(|| libraries.to_owned()),
            access,
            system: BTreeMap::new(),
            changed: RefCell::default(),
            restore: RefCell::default(),
        };
        check_scenario(scenario, given.libraries.as_deref())?;
        given.classify(scenario, stop)?;
        Ok(given)
    }

    /// Finds out how each setting can be changed.
    fn classify(&mut self, scenario: &Scenario, stop: &Stop) -> Result<()> {
        for name in names(scenario) {
            let sql = format!(
                "select name, context, source from pg_settings where lower(name) = lower({})",
                literal(&name)
            );
            let found = self.access.sql(&sql, stop)?;
            let found: Vec<&str> = found.split('|').collect();
            let [_, context, source] = found[..] else {
                bail!("setting \"{name}\" does not exist or is hidden from this role");
            };
            if takes_reload(&name, context, source)? {
                let sql = format!(
                    "select coalesce((select '=' || setting from pg_file_settings where name = {} \
                     and sourcefile like '%postgresql.auto.conf' order by seqno desc limit 1), '')",
                    literal(found[0])
                );
                let before = self.access.sql(&sql, stop).with_context(|| {
                    format!(
                        "setting \"{name}\" needs ALTER SYSTEM, for which this role lacks the \
                         privilege\nhint: Connect as a superuser."
                    )
                })?;
                let before = before.strip_prefix('=').map(str::to_owned);
                self.system.insert(name, before);
            }
        }
        Ok(())
    }

    /// Makes and fills the database of the load.
    pub fn prepare(&self, scenario: &Scenario, output: &Path, stop: &Stop) -> Result<()> {
        let file = output.join("restore.sql");
        let text: String = self.undo().iter().map(|sql| format!("{sql};\n")).collect();
        std::fs::write(&file, text)
            .with_context(|| format!("could not write \"{}\"", file.display()))?;
        // Ctrl-C does not interrupt this: the server would finish the statement unnoticed.
        let made = self
            .access
            .sql(&format!("create database {LOADED}"), &Stop::default());
        if made.is_err() {
            let _ = std::fs::remove_file(&file);
        }
        made?;
        *self.restore.borrow_mut() = Some(file);
        self.access.fill(scenario, stop)
    }

    /// Applies these settings to new sessions, and resets all others.
    pub fn apply(&self, settings: &Settings, stop: &Stop) -> Result<()> {
        let own = format!("alter role current_user in database {LOADED}");
        let mut wanted = Settings::new();
        self.command(&format!("{own} reset all"))?;
        for (name, value) in settings {
            if self.system.contains_key(name) {
                wanted.insert(name.clone(), value.clone());
            } else if name != "shared_preload_libraries" {
                // The libraries of all variants are loaded already.
                self.command(&format!("{own} set {name} = {}", literal(value)))?;
            }
        }
        if *self.changed.borrow() == wanted {
            return Ok(());
        }
        for (name, before) in &self.system {
            let sql = match wanted.get(name) {
                Some(value) => format!("alter system set {name} = {}", literal(value)),
                None => put_back(name, before.as_deref()),
            };
            self.command(&sql)?;
        }
        self.changed.replace(wanted);
        self.access.reload(stop)
    }

    fn command(&self, sql: &str) -> Result<()> {
        self.access.sql(sql, &Stop::default()).map(drop)
    }

    /// Statements that restore everything.
    fn undo(&self) -> Vec<String> {
        let settings = self.system.iter();
        let mut undo: Vec<String> = settings
            .map(|(name, before)| put_back(name, before.as_deref()))
            .collect();
        if !undo.is_empty() {
            undo.push("select pg_reload_conf()".into());
        }
        undo.push(format!("drop database if exists {LOADED} with (force)"));
        undo
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        let Some(file) = self.restore.take() else {
            return;
        };
        let failed: Vec<anyhow::Error> = self
            .undo()
            .iter()
            .filter_map(|sql| self.command(sql).err())
            .collect();
        for error in &failed {
            eprintln!("warning: {error:#}");
        }
        match failed.is_empty() {
            true => drop(std::fs::remove_file(file)),
            false => eprintln!(
                "warning: settings of the server were not restored\nhint: Run psql -f {} there.",
                file.display()
            ),
        }
    }
}

const FACTS: &str = "select current_setting('server_version'), \
    coalesce((select setting from pg_settings where name = 'shared_preload_libraries'), '?'), \
    current_user, rolcreatedb or rolsuper, pg_is_in_recovery(), \
    exists (select from pg_database where datname = 'tacho_bench') \
    from pg_roles where rolname = current_user";

/// Checks that a database name can be added to the connection string, and that
/// it may be shown in reports.
fn check_dsn(dsn: &str) -> Result<()> {
    ensure!(
        dsn.contains('=') || dsn.contains("://"),
        "invalid --dsn \"{dsn}\"\nhint: Use the form 'host=… user=…' or postgresql://user@host/."
    );
    let user = dsn.split_once("://").map_or("", |(_, rest)| rest);
    let user = user.split(['/', '?']).next().unwrap_or_default();
    let user = user.rsplit_once('@').map_or("", |(user, _)| user);
    ensure!(
        !dsn.contains("password=") && !user.contains(':'),
        "--dsn contains a password, which other users of this machine can see\nhint: Set \
         PGPASSWORD, or use the password file."
    );
    Ok(())
}

/// Refuses scenarios that a running server cannot run at all.
fn check_scenario(scenario: &Scenario, libraries: Option<&str>) -> Result<()> {
    let cold = scenario.statement.as_ref().is_some_and(|s| s.cold);
    ensure!(
        !cold,
        "caches of a given server cannot be emptied\nhint: Omit --dsn."
    );
    let cores = scenario
        .pgbench
        .as_ref()
        .is_some_and(|p| !p.cores.is_empty());
    ensure!(
        !cores,
        "a given server cannot be bound to cores\nhint: Omit --cores."
    );
    ensure!(
        scenario.history.is_none(),
        "a history can be generated only on private servers\nhint: Omit --dsn."
    );
    let there: Vec<&str> = libraries
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .collect();
    for variant in &scenario.variants {
        let name = &variant.name;
        ensure!(
            variant.sql.is_empty(),
            "variant \"{name}\" runs SQL after each start, and a given server is not started\n\
             hint: Choose others with --variants."
        );
        ensure!(
            variant.installer.is_none(),
            "variant \"{name}\" has an installer, and nothing is installed in a given server\n\
             hint: Choose others with --variants."
        );
        let lacking = variant
            .preload
            .iter()
            .find(|l| !there.contains(&l.as_str()));
        if let Some(library) = lacking {
            bail!(
                "variant \"{name}\" needs \"{library}\" in shared_preload_libraries, which takes a \
                 restart\nhint: Add it there and restart, or choose other variants with --variants."
            );
        }
        let same = |other: &Variant| other.preload == variant.preload;
        ensure!(
            scenario.variants.iter().all(same),
            "variants with different shared_preload_libraries take restarts between them\nhint: \
             Choose with --variants some that differ by settings only."
        );
    }
    Ok(())
}

/// All settings that a scenario changes.
fn names(scenario: &Scenario) -> BTreeSet<String> {
    let variants = scenario.variants.iter().flat_map(|v| v.settings.keys());
    let varied = scenario.statement.iter().map(|s| &s.setting);
    let all = scenario.settings.keys().chain(variants).chain(varied);
    all.cloned().collect()
}

/// True if a setting needs a reload; false for a setting of sessions.
fn takes_reload(name: &str, context: &str, source: &str) -> Result<bool> {
    match context {
        "user" | "superuser" => Ok(false),
        "sighup" | "backend" | "superuser-backend" => {
            ensure!(
                source != "command line",
                "setting \"{name}\" is set on the server's command line, so a reload does not \
                 change it"
            );
            Ok(true)
        }
        "postmaster" => bail!(
            "setting \"{name}\" takes a restart of the server\nhint: Omit --dsn to measure on \
             private servers, which are restarted."
        ),
        _ => bail!("setting \"{name}\" cannot be changed"),
    }
}

fn put_back(name: &str, before: Option<&str>) -> String {
    match before {
        Some(value) => format!("alter system set {name} = {}", literal(value)),
        None => format!("alter system reset {name}"),
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(result: Result<impl Sized>) -> String {
        format!("{:#}", result.err().expect("refused"))
    }

    #[test]
    fn passwords_and_bare_names_are_refused() {
        assert!(refused(check_dsn("mydb")).starts_with("invalid --dsn \"mydb\"\nhint: "));
        for dsn in [
            "host=a password=x",
            "postgresql://u:x@h/d",
            "postgresql://h/d?password=x",
        ] {
            assert!(refused(check_dsn(dsn)).starts_with("--dsn contains a password"));
        }
        for dsn in [
            "host=a user=b",
            "postgresql://u@h:5433/d",
            "postgresql://h:1,g:2/d?user=a",
        ] {
            check_dsn(dsn).expect(dsn);
        }
    }

    #[test]
    fn settings_are_changed_by_the_least_that_does() {
        assert!(!takes_reload("work_mem", "user", "default").expect("known"));
        assert!(takes_reload("checkpoint_timeout", "sighup", "default").expect("known"));
        let error = refused(takes_reload("shared_buffers", "postmaster", "default"));
        assert!(
            error.starts_with("setting \"shared_buffers\" takes a restart"),
            "{error}"
        );
        let error = refused(takes_reload("wal_log_hints", "sighup", "command line"));
        assert!(error.contains("command line"), "{error}");
        assert!(refused(takes_reload("block_size", "internal", "default")).contains("cannot"));
    }

    #[test]
    fn earlier_settings_are_restored() {
        assert_eq!(put_back("a", None), "alter system reset a");
        assert_eq!(put_back("a", Some("it's")), "alter system set a = 'it''s'");
    }

    #[test]
    fn variants_that_take_a_restart_are_refused() {
        let scenario = Scenario::load("overhead", false).expect("valid");
        let error = refused(check_scenario(&scenario, Some("tacho")));
        assert!(
            error.contains("different shared_preload_libraries"),
            "{error}"
        );
        let mut some = scenario.clone();
        some.variants.retain(|v| v.name.starts_with("tacho"));
        let error = refused(check_scenario(&some, Some("auto_explain")));
        assert!(
            error.starts_with("variant \"tacho\" needs \"tacho\""),
            "{error}"
        );
        check_scenario(&some, Some("auto_explain, tacho")).expect("differ by settings");
    }
}
