//! Findings about a cluster of this host, by its files: installed, preloaded, running,
//! recording. If it runs, the findings of a connection follow.

use crate::preload::{has_tacho, preload_with};
use crate::{cost, history, page, server};
use rustix::fs::Access;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tacho_record::finding::{Finding, State};
use tacho_source::Failure;
use tacho_tape::locate;

/// The directory of Debian's clusters, unless `PG_CLUSTER_CONF_ROOT` names another.
const DEBIAN: &str = "/etc/postgresql";
const DEBIAN_PROGRAMS: &str = "/usr/lib/postgresql";
const CONFIGURATION: &str = "postgresql.conf";
/// Name of a file that each data directory has.
const VERSION: &str = "PG_VERSION";

/// A cluster of this host.
pub struct Cluster {
    data: PathBuf,
    /// Debian's name, and its directory of configuration.
    debian: Option<(String, PathBuf)>,
}

/// A cluster that runs.
struct Running {
    port: String,
    /// The directory of the server's socket, or the address that it listens on.
    host: String,
}

impl Cluster {
    /// The cluster of a data directory.
    pub fn of(data: &Path) -> Cluster {
        Cluster {
            data: fs::canonicalize(data).unwrap_or_else(|_| data.to_path_buf()),
            debian: None,
        }
    }

    /// A cluster by Debian's name, `15/main`.
    ///
    /// # Errors
    /// No cluster has that name.
    pub fn debian(name: &str) -> Result<Cluster, Failure> {
        let found = Cluster::all_of_debian();
        let names: Vec<String> = found.iter().map(Cluster::name).collect();
        let cluster = found.into_iter().find(|cluster| {
            cluster
                .debian
                .as_ref()
                .is_some_and(|debian| debian.0 == name)
        });
        cluster.ok_or_else(|| {
            let known = match names.is_empty() {
                true => "No cluster was found. Specify a data directory.".to_string(),
                false => format!("There are: {}.", names.join(", ")),
            };
            Failure::usage(format!("cluster \"{name}\" does not exist")).hint(&known)
        })
    }

    /// All clusters of this host that Debian's tools have made.
    pub fn all_of_debian() -> Vec<Cluster> {
        let root = std::env::var_os("PG_CLUSTER_CONF_ROOT");
        let root = root.map_or_else(|| PathBuf::from(DEBIAN), PathBuf::from);
        let mut clusters = Vec::new();
        for version in entries(&root) {
            for directory in entries(&version) {
                if !directory.join(CONFIGURATION).is_file() {
                    continue;
                }
                let name = format!("{}/{}", last(&version), last(&directory));
                let programs = Path::new(DEBIAN_PROGRAMS).join(last(&version)).join("bin");
                let data = configured(&programs, &directory, None, "data_directory");
                let data = data.map_or_else(|| directory.clone(), PathBuf::from);
                clusters.push(Cluster {
                    data,
                    debian: Some((name, directory)),
                });
            }
        }
        clusters
    }

    /// True if a name has the form of Debian's cluster names: `15/main`.
    pub fn is_name(name: &str) -> bool {
        let parts = name.split_once('/');
        parts.is_some_and(|(version, cluster)| {
            version.parse::<f32>().is_ok() && !cluster.is_empty() && !cluster.contains('/')
        })
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Name of the cluster in messages.
    pub fn name(&self) -> String {
        match &self.debian {
            Some((name, _)) => format!("cluster {name}"),
            None => format!("cluster {}", self.data.display()),
        }
    }

    /// True if the directory is the data directory of a cluster.
    pub fn is_at(directory: &Path) -> bool {
        directory.join(VERSION).is_file()
    }

    /// The major version of the files, if they may be read.
    fn major(&self) -> Option<String> {
        let text = fs::read_to_string(self.data.join(VERSION)).ok()?;
        Some(text.trim().to_string())
    }

    /// The directory of the programs: by the last start, else Debian's, else the first
    /// one in `PATH`.
    fn programs(&self, major: &str) -> PathBuf {
        let started = fs::read_to_string(self.data.join("postmaster.opts")).unwrap_or_default();
        let program = started.split_whitespace().next().map(Path::new);
        let started = program.and_then(Path::parent).map(Path::to_path_buf);
        let debian = Path::new(DEBIAN_PROGRAMS).join(major).join("bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let known = std::env::split_paths(&path);
        let mut known = started.into_iter().chain([debian.clone()]).chain(known);
        let found = known.find(|directory| directory.join("postgres").is_file());
        found.unwrap_or(debian)
    }

    fn configuration(&self) -> PathBuf {
        let debian = self.debian.as_ref().map(|(_, directory)| directory);
        debian.unwrap_or(&self.data).join(CONFIGURATION)
    }

    /// The file into which a person writes a setting: the file of `ALTER SYSTEM` if it has the
    /// setting, because that file wins.
    fn file_of(&self, setting: &str) -> PathBuf {
        let automatic = self.data.join("postgresql.auto.conf");
        let text = fs::read_to_string(&automatic).unwrap_or_default();
        let is_there = text
            .lines()
            .any(|line| line.trim_start().starts_with(setting));
        match is_there {
            true => automatic,
            false => self.configuration(),
        }
    }

    /// A setting as the files have it now; `None` if the server's program cannot tell.
    fn configured(&self, programs: &Path, name: &str) -> Option<String> {
        configured(programs, &self.data, Some(&self.configuration()), name)
    }

    /// Socket and port of the server, if it runs.
    fn running(&self) -> Option<Running> {
        let file = fs::read_to_string(self.data.join("postmaster.pid")).ok()?;
        let lines: Vec<&str> = file.lines().collect();
        let pid = lines.first()?.trim();
        let hosts = [lines.get(4)?.trim(), lines.get(5)?.trim()];
        let host = hosts.into_iter().find(|host| !host.is_empty())?;
        Path::new("/proc").join(pid).exists().then(|| Running {
            port: lines[3].trim().to_string(),
            host: host.to_string(),
        })
    }

    /// The command that starts or restarts the cluster's server.
    fn command(&self, programs: &Path, verb: &str) -> String {
        match self
            .debian
            .as_ref()
            .and_then(|(name, _)| name.split_once('/'))
        {
            Some((version, name)) => format!("pg_ctlcluster {version} {name} {verb}"),
            None => format!(
                "{} {verb} -D {}",
                programs.join("pg_ctl").display(),
                self.data.display()
            ),
        }
    }
}

/// Looks at a cluster.
pub fn examine(cluster: &Cluster) -> Vec<Finding> {
    let Some(major) = cluster.major() else {
        let detail = format!("{} cannot be read", cluster.data.display());
        let finding = Finding::broken("data directory", detail);
        return vec![
            finding.help("run tacho doctor as the owner of the data directory, usually postgres"),
        ];
    };
    let programs = cluster.programs(&major);
    let running = cluster.running();
    let detail = format!("PostgreSQL {major}, {}", cluster.data.display());
    let mut findings = vec![Finding::works("data directory", detail)];
    let installed = installed(cluster, &programs, &major);
    let works = |finding: &Finding| finding.state == State::Works;
    let is_installed = installed.iter().all(works);
    let has_library = installed.first().is_some_and(works);
    findings.extend(installed);
    let preloaded = preloaded(cluster, &programs, has_library, running.is_some());
    let is_preloaded = preloaded.state == State::Works;
    findings.push(preloaded);
    let tape = locate::of_data_directory(&cluster.data);
    match running {
        Some(running) => {
            findings.extend(connected(&running, is_installed));
            if tape.is_dir() {
                findings.push(page::page_finding(&running.port));
            }
        }
        None => {
            let start = cluster.command(&programs, "start");
            findings.push(Finding::missing("server", "not running").help(format!("run: {start}")));
            match tape.is_dir() {
                true => findings.extend(history::examine(&tape)),
                false if !is_preloaded => findings.push(cost::estimate(None)),
                false => (),
            }
        }
    }
    findings.extend(history::free_space(&cluster.data));
    findings.extend(left_behind(cluster, &major));
    findings
}

/// The findings of a connection. If tacho is not installed, the findings of the files say so
/// already.
fn connected(running: &Running, is_installed: bool) -> Vec<Finding> {
    let examined = server::local(&running.host, &running.port)
        .and_then(|target| server::examine(&target, true));
    match examined {
        Ok(findings) if is_installed => findings,
        Ok(findings) => findings
            .into_iter()
            .filter(|finding| finding.what != "extension")
            .collect(),
        Err(error) => {
            let detail = format!("port {}: {}", running.port, error.line());
            let finding = Finding::missing("connection", detail);
            vec![finding.help(
                "run tacho doctor as postgres, or specify a role: tacho doctor \"host=… user=…\"",
            )]
        }
    }
}

/// The library and the program, where this server looks for them.
fn installed(cluster: &Cluster, programs: &Path, major: &str) -> Vec<Finding> {
    let help = format!(
        "install package postgresql-{major}-tacho, or in the source: make install PG_CONFIG={}",
        programs.join("pg_config").display()
    );
    let places = [
        "../lib/tacho.so",
        "../lib/postgresql/tacho.so",
        "../lib64/tacho.so",
    ];
    let mut places = places.iter().map(|place| programs.join(place));
    let library = match places.find(|place| place.is_file()) {
        Some(_) => Finding::works("library", "installed"),
        None => Finding::missing(
            "library",
            format!("not installed for {}", programs.display()),
        )
        .help(&*help),
    };
    let named = cluster
        .configured(programs, "tacho.program")
        .filter(|name| !name.is_empty());
    let program = named.map_or_else(|| programs.join("tacho"), PathBuf::from);
    let runs = rustix::fs::access(&program, Access::EXEC_OK).is_ok();
    let program = match runs {
        true => Finding::works("program", program.display().to_string()),
        false => {
            Finding::missing("program", format!("{} cannot be run", program.display())).help(&*help)
        }
    };
    vec![library, program]
}

/// Finds out whether the configuration files name the library. The findings of the connection show
/// a server that was not restarted since.
fn preloaded(cluster: &Cluster, programs: &Path, has_library: bool, runs: bool) -> Finding {
    let what = "preload";
    let name = "shared_preload_libraries";
    let Some(list) = cluster.configured(programs, name) else {
        let detail = "the configuration cannot be read";
        return Finding::missing(what, detail)
            .help("run tacho doctor as the owner of the data directory");
    };
    if has_tacho(&list) {
        return Finding::works(what, format!("{name} = '{list}'"));
    }
    let missing = Finding::missing(what, format!("{name} is '{list}'"));
    if !has_library {
        return missing.help(
            "install the package first: a server that preloads a missing library does not start",
        );
    }
    let all = preload_with(&list);
    let help = match runs {
        true => {
            let restart = cluster.command(programs, "restart");
            format!("run: ALTER SYSTEM SET {name} = {all}; then: {restart}")
        }
        false => {
            let file = cluster.file_of(name);
            format!(
                "write into {}: {name} = '{}'",
                file.display(),
                all.replace('\'', "")
            )
        }
    };
    missing.help(help)
}

/// Histories of other versions of a Debian cluster, which `pg_upgradecluster` leaves in
/// the old data directory.
fn left_behind(cluster: &Cluster, major: &str) -> Vec<Finding> {
    let Some((_, name)) = cluster
        .debian
        .as_ref()
        .and_then(|(name, _)| name.split_once('/'))
    else {
        return Vec::new();
    };
    let Some(root) = cluster.data.parent().and_then(Path::parent) else {
        return Vec::new();
    };
    let older = entries(root).into_iter().filter(|version| {
        let number = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
        number(&last(version)) < number(major)
    });
    let left = older.map(|version| version.join(name).join(locate::DEFAULT));
    let left = left.filter(|tape| tape.is_dir());
    left.map(|tape| {
        let detail = format!("the history of an older version is in {}", tape.display());
        let help = format!("read it: tacho report --tape {}", tape.display());
        Finding::partial("history", detail).help(help)
    })
    .collect()
}

/// A setting as the files have it now, by the server's own program; `None` if the program fails.
fn configured(programs: &Path, data: &Path, file: Option<&Path>, name: &str) -> Option<String> {
    let mut command = Command::new(programs.join("postgres"));
    command.args(["-C", name, "-D"]).arg(data);
    if let Some(file) = file {
        command
            .arg("-c")
            .arg(format!("config_file={}", file.display()));
    }
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim_end_matches('\n').to_string())
}

/// The entries of a directory in order of their names; nothing if it cannot be read.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The last part of a path.
fn last(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
