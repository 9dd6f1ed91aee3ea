//! Chooses the subjects: the one that the command line names, or all of this host.

use crate::cluster::{self, Cluster};
use crate::report::Report;
use crate::{history, lake, server};
use std::path::{Path, PathBuf};
use tacho_dsn::Options;
use tacho_record::finding::Finding;
use tacho_source::Failure;
use tacho_tape::locate::{self, Surroundings};

/// A server, a cluster or a directory to report on.
pub enum Subject {
    Cluster(Cluster),
    /// A directory of history files.
    History(PathBuf),
    /// A directory that tacho ship writes to.
    Lake(PathBuf),
    Server(Options),
}

impl Subject {
    /// The subjects that the command line names, or all servers of this host.
    ///
    /// # Errors
    /// Nothing of that name exists, or this host has no server.
    pub fn all(cluster: Option<&str>, named: Option<&str>) -> Result<Vec<Subject>, Failure> {
        match (cluster, named) {
            (Some(name), _) => Cluster::debian(name).map(|found| vec![Subject::Cluster(found)]),
            (None, Some(named)) => Subject::named(named).map(|subject| vec![subject]),
            (None, None) => here(),
        }
    }

    /// The subject of a name on the command line: an existing directory, else a cluster by Debian's
    /// name, else a connection string.
    fn named(named: &str) -> Result<Subject, Failure> {
        let path = Path::new(named);
        if Cluster::is_at(path) {
            return Ok(Subject::Cluster(Cluster::of(path)));
        }
        if lake::is_at(path) {
            return Ok(Subject::Lake(path.to_path_buf()));
        }
        if path.is_dir() {
            return Ok(Subject::History(path.to_path_buf()));
        }
        if Cluster::is_name(named) {
            return Cluster::debian(named).map(Subject::Cluster);
        }
        if lake::is_address(named) {
            let message = format!(
                "\"{named}\" is in an object store; tacho doctor examines only directories"
            );
            let hint = format!(
                "Run tacho fleet servers --lake \"{named}\" and see its column hours_missing."
            );
            return Err(Failure::usage(message).hint(&hint));
        }
        if named.starts_with(['/', '.']) {
            let failure = Failure::usage(format!("directory \"{named}\" does not exist"));
            return Err(failure.hint("Specify a data directory, a directory of history, or a server: tacho doctor \"host=HOST dbname=DB user=USER\""));
        }
        let options = Options::from_argument(named, server::APPLICATION);
        let options = options.map_err(|error| {
            Failure::usage(error.message.clone())
                .hint(&error.hint.or(error.detail).unwrap_or_default())
        })?;
        Ok(Subject::Server(options))
    }

    /// Examines the subject.
    pub fn examine(&self) -> Report {
        match self {
            Subject::Cluster(cluster) => Report {
                subject: cluster.name(),
                findings: cluster::examine(cluster),
            },
            Subject::History(tape) => Report {
                subject: format!("history {}", tape.display()),
                findings: history::examine(tape),
            },
            Subject::Lake(lake) => Report {
                subject: format!("lake {}", lake.display()),
                findings: lake::examine(lake),
            },
            Subject::Server(options) => Report {
                subject: format!("server {}", options.describe()),
                findings: server::examine(options, false).unwrap_or_else(|error| {
                    vec![Finding::broken("connection", error.line()).help(format!(
                        "try the same with psql: psql \"{}\"",
                        options.describe()
                    ))]
                }),
            },
        }
    }
}

/// All servers of this host: the one that `PGDATA` names; else Debian's clusters, and
/// servers that run.
fn here() -> Result<Vec<Subject>, Failure> {
    let here = Surroundings::here();
    if let Some(data) = &here.data {
        return Ok(vec![Subject::Cluster(Cluster::of(data))]);
    }
    let mut clusters = Cluster::all_of_debian();
    let running = locate::running(&here.processes);
    for data in &running.data {
        if clusters.iter().all(|known| known.data() != data) {
            clusters.push(Cluster::of(data));
        }
    }
    match clusters.is_empty() {
        true => {
            let message = "no PostgreSQL server found on this host";
            Err(Failure::usage(message.to_string()).hint(
                "Specify one: tacho doctor DATA_DIRECTORY, or tacho doctor \"host=HOST dbname=DB user=USER\"",
            ))
        }
        false => Ok(clusters.into_iter().map(Subject::Cluster).collect()),
    }
}
