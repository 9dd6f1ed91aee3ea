//! Chooses the subjects: the one that the command line names, or all of this host.

use crate::cluster::{self, Cluster};
use crate::report::Report;
use crate::{history, lake, server};
use std::path::{Path, PathBuf};
use tacho_dsn::Options;
use tacho_record::finding::Finding;
use tacho_source::Failure;
use tacho_tape::locate::{self, Surroundings};

/// Name of our sessions, unless the connection string gives another.
const APPLICATION: &str = "tacho doctor";

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

    /// A directory, else a connection string.
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
            let message =
                format!("\"{named}\" is in an object store, and this looks at directories");
            let hint = format!(
                "Ask it: tacho fleet servers --lake \"{named}\"; its column hours_missing counts."
            );
            return Err(Failure::usage(message).hint(&hint));
        }
        if named.starts_with(['/', '.']) {
            let failure = Failure::usage(format!("there is no directory \"{named}\""));
            return Err(failure.hint("Name a data directory, a directory of history, or a server: tacho doctor \"host=HOST dbname=DB user=USER\""));
        }
        let options = Options::from_argument(named, APPLICATION);
        let options = options.map_err(|error| {
            Failure::usage(error.message.clone())
                .hint(&error.hint.or(error.detail).unwrap_or_default())
        })?;
        Ok(Subject::Server(options))
    }

    /// Looks at it.
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
            let message = "found no PostgreSQL server on this host";
            Err(Failure::usage(message.to_string()).hint(
                "Name one: tacho doctor DATA_DIRECTORY, or tacho doctor \"host=HOST dbname=DB user=USER\"",
            ))
        }
        false => Ok(clusters.into_iter().map(Subject::Cluster).collect()),
    }
}

/// Connects to a server of this host.
///
/// # Errors
/// Never, for a directory and a port.
pub fn local(socket: &str, port: &str) -> tacho_dsn::Result<Options> {
    let conninfo = format!("host='{socket}' port='{port}' dbname=postgres");
    Options::from_argument(&conninfo, APPLICATION)
}
