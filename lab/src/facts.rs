//! Versions and settings of a measured server: what the server says itself,
//! and which files its libraries are.

use super::access::Access;
use super::process::{Stop, in_path, run};
use super::scenario::Variant;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Facts about one variant on one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Version of the server.
    pub version: String,
    /// Variant.
    pub variant: String,
    /// Versions and settings as the server reports them.
    #[serde(flatten)]
    pub said: Said,
    /// Libraries of the variant: hash of the file, and the package that it is
    /// from.
    pub libraries: BTreeMap<String, String>,
}

/// Versions and settings as a server reports them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// Result of version(); empty if the variant ran in single-user mode only.
    pub server: String,
    /// Versions of extensions that are installed or preloaded.
    pub extensions: BTreeMap<String, String>,
    /// All settings that are not at their default, without paths.
    pub settings: BTreeMap<String, String>,
}

/// Query for [`Said`] as JSON on one line. Settings with paths are left out, because paths differ
/// in each experiment.
const ASK: &str = "select json_build_object(\
  'server', version(), \
  'extensions', coalesce((select json_object_agg(name, coalesce(installed_version, \
    default_version) order by name) from pg_available_extensions where name <> 'plpgsql' \
    and (installed_version is not null or name = any (regexp_split_to_array((select setting \
    from pg_settings where name = 'shared_preload_libraries'), '\\s*,\\s*')))), '{}'), \
  'settings', coalesce((select json_object_agg(name, current_setting(name) order by name) \
    from pg_settings where source not in ('default', 'client', 'session') and name not in \
    ('config_file', 'data_directory', 'external_pid_file', 'hba_file', 'ident_file', \
    'unix_socket_directories') and name not like 'transaction%'), '{}'))";

impl Facts {
    /// Collects the facts. Without a running server `said` stays empty.
    pub fn collect(
        access: &Access,
        version: &str,
        variant: &Variant,
        running: bool,
        stop: &Stop,
    ) -> Result<Self> {
        let said = match running {
            true => serde_json::from_str(&access.sql(ASK, stop)?)
                .context("could not parse the facts reported by the server")?,
            false => Said::default(),
        };
        let mut libraries = BTreeMap::new();
        for name in &variant.preload {
            if let Some(file) = access.library(name) {
                libraries.insert(name.clone(), library(&file, stop)?);
            }
        }
        Ok(Self {
            version: version.to_owned(),
            variant: variant.name.clone(),
            said,
            libraries,
        })
    }

    /// True if both are about the same variant on the same server.
    pub fn same(&self, other: &Self) -> bool {
        (&self.version, &self.variant) == (&other.version, &other.variant)
    }

    /// Fails if another server, extension or library was measured before.
    pub fn check(&self, before: &Self) -> Result<()> {
        let (a, b) = (&self.said, &before.said);
        let alike = (&self.libraries, &a.server, &a.extensions)
            == (&before.libraries, &b.server, &b.extensions);
        ensure!(
            alike,
            "variant \"{}\" on PostgreSQL {} is not what was measured before\nhint: A server or a \
             library was replaced. Give another --output.",
            self.variant,
            self.version
        );
        Ok(())
    }
}

/// The first 12 digits of a library's SHA-256, and its package:
/// `sha256 0123456789ab, postgresql-15-pg-stat-kcache 2.2.1-1`.
fn library(file: &Path, stop: &Stop) -> Result<String> {
    let bytes =
        std::fs::read(file).with_context(|| format!("could not read \"{}\"", file.display()))?;
    let hash = Sha256::digest(bytes);
    let hash: String = hash.iter().take(6).map(|b| format!("{b:02x}")).collect();
    let package = package(file, stop).map_or_else(String::new, |p| format!(", {p}"));
    Ok(format!("sha256 {hash}{package}"))
}

/// Debian package of a file, and its version.
fn package(file: &Path, stop: &Stop) -> Option<String> {
    if !in_path("dpkg-query") {
        return None;
    }
    let file = file.canonicalize().ok()?;
    let owner = run(Command::new("dpkg-query").arg("-S").arg(file), stop).ok()?;
    let name = owner.split(':').next()?;
    let words = ["-W", "-f", "${Package} ${Version}", name];
    run(Command::new("dpkg-query").args(words), stop).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(library: &str, settings: &str) -> Facts {
        let settings = BTreeMap::from([("work_mem".to_owned(), settings.to_owned())]);
        Facts {
            version: "15.1".into(),
            variant: "a".into(),
            said: Said {
                settings,
                ..Said::default()
            },
            libraries: BTreeMap::from([("a".into(), library.into())]),
        }
    }

    #[test]
    fn a_replaced_library_ends_an_experiment_and_a_setting_does_not() {
        let before = facts("sha256 1", "4MB");
        assert!(facts("sha256 1", "8MB").check(&before).is_ok());
        let error = facts("sha256 2", "4MB")
            .check(&before)
            .expect_err("refused");
        let text = format!("{error}");
        let said = "variant \"a\" on PostgreSQL 15.1 is not what was measured before\nhint: ";
        assert!(text.starts_with(said), "{text}");
    }

    #[test]
    fn a_library_is_known_by_its_hash() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.so");
        std::fs::write(&file, "abc").expect("written");
        let found = library(&file, &Stop::default()).expect("read");
        // FIPS 180-2, appendix B.1
        assert_eq!(found, "sha256 ba7816bf8f01");
    }

    #[test]
    fn facts_of_a_server_are_one_object() {
        let text = r#"{"server" : "PostgreSQL 15.1", "extensions" : { "tacho" : "1.0" },
            "settings" : { "work_mem" : "4MB" }}"#;
        let said: Said = serde_json::from_str(text).expect("understood");
        assert_eq!(said.extensions["tacho"], "1.0");
        let line = serde_json::to_string(&facts("x", "4MB")).expect("written");
        let read: Facts = serde_json::from_str(&line).expect("read");
        assert_eq!(read, facts("x", "4MB"));
    }
}
