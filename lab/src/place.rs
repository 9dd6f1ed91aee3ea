//! Places of runs: private servers of installations, or an existing server.

use super::access::Access;
use super::cluster::{Cluster, Server};
use super::codec;
use super::given::Given;
use super::install::Installation;
use super::process::Stop;
use super::scenario::{Form, Variant};
use super::statement;
use anyhow::Result;
use std::collections::BTreeMap;

/// A place to measure that was found, before its servers and databases are
/// made.
pub enum Found {
    /// Programs of PostgreSQL, from which private servers are started.
    Installed(Installation),
    /// The server of `--dsn`.
    Given(Box<Given>),
}

/// A place that is ready for runs.
pub enum Place {
    /// A data directory of our own.
    Private(Box<Cluster>),
    /// The given server.
    Given(Box<Given>),
}

/// A server with the settings of a run.
pub enum Running<'a> {
    /// A private server that was started for the run.
    Private(Server<'a>),
    /// The server of `--dsn`, which ran before.
    Given,
}

impl Found {
    /// Version of the server.
    pub fn version(&self) -> &str {
        match self {
            Self::Installed(installation) => &installation.version,
            Self::Given(given) => &given.version,
        }
    }

    fn major(&self) -> u32 {
        let digits = self.version().split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|d| d.parse().ok()).unwrap_or(0)
    }

    /// The reason why a variant cannot run here, and true if installing a library would help.
    pub fn why_not(&self, variant: &Variant) -> Option<(String, bool)> {
        let (name, version) = (&variant.name, self.version());
        if !variant.majors.is_empty() && !variant.majors.contains(&self.major()) {
            let reason = format!("variant \"{name}\" is not for PostgreSQL {version}");
            return Some((reason, false));
        }
        let lacking = match variant.form {
            Some(Form::Edition) if variant.installer.is_none() => "--edition was not specified",
            Some(Form::Ash1 | Form::Ash2) if variant.installer.is_none() => {
                "--pg-ash was not specified"
            }
            Some(Form::Parquet) if !codec::PARQUET => "this program was built without Parquet",
            _ => "",
        };
        if !lacking.is_empty() {
            return Some((format!("{lacking} (variant \"{name}\")"), false));
        }
        // A server of `--dsn` without the library was refused when it was found.
        let Self::Installed(installation) = self else {
            return None;
        };
        let mut libraries = variant.preload.iter();
        let library = libraries.find(|l| !installation.has_library(l))?;
        let reason = format!("PostgreSQL {version} has no \"{library}\" (variant \"{name}\")");
        Some((reason, true))
    }
}

impl Place {
    /// Access for clients.
    pub fn access(&self) -> &Access {
        match self {
            Self::Private(cluster) => &cluster.access,
            Self::Given(given) => &given.access,
        }
    }

    /// Empties the caches of a stopped server.
    pub fn empty_caches(&self) -> Result<()> {
        match self {
            Self::Private(cluster) => statement::empty_caches(&cluster.data),
            Self::Given(_) => Ok(()), // refused before
        }
    }

    /// Applies these settings to a running server.
    pub fn reload(&self, settings: &BTreeMap<String, String>, stop: &Stop) -> Result<()> {
        match self {
            Self::Private(cluster) => cluster.reload(settings, stop),
            Self::Given(given) => given.apply(settings, stop),
        }
    }

    /// Provides a server with these settings, on the first `cores` cores.
    pub fn start(
        &self,
        settings: &BTreeMap<String, String>,
        cores: Option<u32>,
        stop: &Stop,
    ) -> Result<Running<'_>> {
        match self {
            Self::Private(cluster) => cluster.start(settings, cores, stop).map(Running::Private),
            Self::Given(given) => given.apply(settings, stop).map(|()| Running::Given),
        }
    }
}

impl Running<'_> {
    /// PID of the postmaster; `None` for the server of `--dsn`, which may be on another machine.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Self::Private(server) => Some(server.pid),
            Self::Given => None,
        }
    }

    /// Ends the run; shuts a private server down.
    pub fn stop(self, stop: &Stop) -> Result<()> {
        match self {
            Self::Private(server) => server.stop(stop),
            Self::Given => Ok(()),
        }
    }
}
