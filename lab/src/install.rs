//! Installations of PostgreSQL to measure, and the account of their servers:
//! the caller, or "postgres" or "nobody" if the caller is root.

use super::process::{Stop, run};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Login name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// An installed PostgreSQL.
#[derive(Debug, Clone)]
pub struct Installation {
    /// Directory of its programs.
    pub bin: PathBuf,
    /// Directory of psql and pgbench: `--client-bin`, or the same directory.
    pub clients: PathBuf,
    /// Version, as in `15.18`.
    pub version: String,
    libraries: PathBuf,
}

impl Account {
    /// The user that servers run as; `None` is the caller.
    pub fn of_servers() -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let users = std::fs::read_to_string("/etc/passwd").context("could not read /etc/passwd")?;
        let found = ["postgres", "nobody"]
            .iter()
            .find_map(|name| find(&users, name));
        found.map(Some).context(
            "no user found to run PostgreSQL as\nhint: PostgreSQL refuses root; \
             create a user \"postgres\", or run this as another user.",
        )
    }
}

/// Finds a user in the text of /etc/passwd.
fn find(users: &str, name: &str) -> Option<Account> {
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [found, _, uid, gid, ..] = fields[..] else {
            return None;
        };
        (found == name).then_some(())?;
        Some(Account {
            name: name.to_owned(),
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
        })
    })
}

/// Programs that connect to a server.
const CLIENTS: [&str; 2] = ["psql", "pgbench"];

/// Version of the clients in a directory; fails if one of them is missing.
pub fn clients_version(bin: &Path, stop: &Stop) -> Result<String> {
    for program in CLIENTS {
        ensure!(
            bin.join(program).exists(),
            "program \"{program}\" not found in \"{}\"\nhint: --client-bin takes a directory of \
             clients, such as /usr/lib/postgresql/17/bin.",
            bin.display()
        );
    }
    number(&run(
        Command::new(bin.join("pgbench")).arg("--version"),
        stop,
    )?)
}

impl Installation {
    /// Examines an installation by its directory of programs.
    pub fn at(bin: &Path, stop: &Stop) -> Result<Self> {
        for program in [
            "postgres",
            "initdb",
            "pg_ctl",
            "pgbench",
            "psql",
            "pg_config",
        ] {
            ensure!(
                bin.join(program).exists(),
                "program \"{program}\" not found in \"{}\"\nhint: --pg-bin takes the directories \
                 of programs, such as /usr/lib/postgresql/17/bin.",
                bin.display()
            );
        }
        let version = run(Command::new(bin.join("postgres")).arg("--version"), stop)?;
        let libraries = run(Command::new(bin.join("pg_config")).arg("--pkglibdir"), stop)?;
        Ok(Self {
            bin: bin.to_owned(),
            clients: bin.to_owned(),
            version: number(&version)?,
            libraries: PathBuf::from(libraries.trim()),
        })
    }

    /// The installation that `pg_config` in the PATH belongs to.
    pub fn default(stop: &Stop) -> Result<Self> {
        let config = std::env::var_os("PG_CONFIG").unwrap_or_else(|| "pg_config".into());
        let bin = run(Command::new(&config).arg("--bindir"), stop)
            .context("no PostgreSQL found\nhint: Specify installations with --pg-bin.")?;
        Self::at(Path::new(bin.trim()), stop)
    }

    /// True if a library for shared_preload_libraries is installed.
    pub fn has_library(&self, name: &str) -> bool {
        self.library(name).exists()
    }

    /// File of a library.
    pub fn library(&self, name: &str) -> PathBuf {
        self.libraries.join(format!("{name}.so"))
    }

    /// A program of the installation, or a client of `--client-bin`.
    pub fn program(&self, name: &str) -> Command {
        let directory = match CLIENTS.contains(&name) {
            true => &self.clients,
            false => &self.bin,
        };
        let mut command = Command::new(directory.join(name));
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("PG") {
                command.env_remove(variable);
            }
        }
        command
    }
}

/// The number in the text of `--version`, which is 15.18 in
/// `postgres (PostgreSQL) 15.18 (Debian …)`.
fn number(version: &str) -> Result<String> {
    match version.split_whitespace().nth(2) {
        Some(number) => Ok(number.to_owned()),
        None => bail!("could not parse the version \"{}\"", version.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\npostgres2:x:1:1::/:\npostgres:x:26:27::/:\n";
        let account = find(users, "postgres").expect("found");
        assert_eq!((account.uid, account.gid), (26, 27));
        assert_eq!(find(users, "nobody"), None);
    }

    #[test]
    fn versions_of_releases_and_of_candidates() {
        let of = |text| number(text).expect("version");
        assert_eq!(
            of("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"),
            "15.18"
        );
        assert_eq!(of("postgres (PostgreSQL) 19rc1"), "19rc1");
        assert!(number("postgres").is_err());
    }

    #[test]
    fn a_directory_without_postgresql_is_refused_with_a_hint() {
        let error = Installation::at(Path::new("/nonexistent"), &Stop::default());
        let text = format!("{}", error.expect_err("refused"));
        assert!(text.starts_with("program \"postgres\" not found in \"/nonexistent\"\nhint: "));
    }

    #[test]
    fn clients_come_from_their_own_directory_and_servers_do_not() {
        let installation = Installation {
            bin: "/15/bin".into(),
            clients: "/17/bin".into(),
            version: "15.1".into(),
            libraries: PathBuf::new(),
        };
        let path = |name| installation.program(name).get_program().to_owned();
        let paths = ["pgbench", "psql", "postgres", "initdb"].map(path);
        let expected = [
            "/17/bin/pgbench",
            "/17/bin/psql",
            "/15/bin/postgres",
            "/15/bin/initdb",
        ];
        assert_eq!(paths, expected);
        let error = clients_version(Path::new("/nonexistent"), &Stop::default());
        let text = format!("{}", error.expect_err("refused"));
        assert!(
            text.starts_with("program \"psql\" not found in \"/nonexistent\"\nhint: --client-bin")
        );
    }
}
