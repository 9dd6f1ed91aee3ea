//! Findings about a lake, the directory that `tacho ship` writes to: which servers have
//! hours in it, and whether the newest hours arrive.

use crate::facts::length;
use crate::history;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tacho_record::finding::Finding;

/// Table whose objects mark complete hours: an hour counts when its object of this table is there.
const TABLE: &str = "servers";
const HOUR_S: i64 = 3_600;
/// Seconds since the end of the newest hour above which a lake is late. Without statistics of
/// statements tacho ship waits an hour before it ships an hour.
const LATE_S: i64 = 2 * HOUR_S;
const HELP: &str =
    "tacho ship lists the hours that it holds back, and why: tacho ship --tape DIR --to LAKE";

/// True if a directory is a lake.
pub fn is_at(directory: &Path) -> bool {
    !servers(directory).is_empty()
}

/// True if a name is the address of a lake in an object store.
pub fn is_address(name: &str) -> bool {
    let stores = ["s3://", "gs://", "az://"];
    stores.iter().any(|store| name.starts_with(store))
}

/// Looks at a lake.
pub fn examine(directory: &Path) -> Vec<Finding> {
    let now_s = Timestamp::now().as_second();
    let of_servers = servers(directory).into_iter().map(|(name, directory)| {
        let hours = hours(&directory);
        of_server(&name, &hours, now_s)
    });
    of_servers.chain(history::free_space(directory)).collect()
}

/// The servers of a lake: their names as directories have them, and their directories.
fn servers(directory: &Path) -> Vec<(String, PathBuf)> {
    partitions(&directory.join(TABLE), "server=")
}

/// The directories `KEY=VALUE` in a directory, by value.
fn partitions(directory: &Path, key: &str) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name.strip_prefix(key)?.to_string(), entry.path()))
    });
    let mut named: Vec<_> = named.filter(|(_, path)| path.is_dir()).collect();
    named.sort();
    named
}

/// The hours of a server: the begin of each in seconds since 1970.
fn hours(server: &Path) -> BTreeSet<i64> {
    let days = partitions(server, "day=").into_iter();
    let of_day = days.flat_map(|(day, directory)| {
        let files = fs::read_dir(directory).into_iter().flatten().flatten();
        let hour = move |name: String| hour(&day, &name);
        files
            .filter_map(|file| file.file_name().into_string().ok())
            .filter_map(hour)
    });
    of_day.collect()
}

/// The hour of an object such as `03-00000000000000ab-00003601.parquet`.
fn hour(day: &str, file: &str) -> Option<i64> {
    let hour = file.strip_suffix(".parquet")?.split('-').next()?;
    let begin: Timestamp = format!("{day}T{hour}:00:00Z").parse().ok()?;
    Some(begin.as_second())
}

fn of_server(name: &str, hours: &BTreeSet<i64>, now_s: i64) -> Finding {
    let what = "server";
    let (Some(first), Some(last)) = (hours.first(), hours.last()) else {
        return Finding::missing(what, format!("{name}: no hour is complete")).help(HELP);
    };
    let age_s = now_s - (last + HOUR_S);
    let newest = Timestamp::from_second(*last).unwrap_or(Timestamp::UNIX_EPOCH);
    let newest = newest.strftime("%Y-%m-%d %H:00+00");
    let detail = format!(
        "{name}: {} hours, the newest {newest} ended {} ago",
        hours.len(),
        length(age_s)
    );
    let missing = (last - first) / HOUR_S + 1 - hours.len() as i64;
    match (age_s > LATE_S, missing) {
        (false, 0) => Finding::works(what, detail),
        (_, 0) => Finding::partial(what, detail).help(HELP),
        (_, missing) => {
            Finding::partial(what, format!("{detail}; {missing} before it are missing")).help(HELP)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_record::finding::State;

    #[test]
    fn an_hour_is_read_from_the_name_of_its_object() {
        let name = "03-00000000000000ab-00003601.parquet";
        assert_eq!(hour("1970-01-02", name), Some(27 * HOUR_S));
        assert_eq!(hour("1970-01-02", "03-x.tmp"), None);
        assert_eq!(hour("yesterday", name), None);
    }

    #[test]
    fn late_and_missing_hours_are_partial() {
        let find = |hours: &[i64], now_s| {
            let hours = hours.iter().map(|hour| hour * HOUR_S).collect();
            let finding = of_server("shop", &hours, now_s);
            (finding.state, finding.detail)
        };
        let text = "shop: 2 hours, the newest 1970-01-01 01:00+00 ended ";
        assert_eq!(
            find(&[0, 1], 4 * HOUR_S),
            (State::Works, format!("{text}2 h ago"))
        );
        assert_eq!(
            find(&[0, 1], 4 * HOUR_S + 1),
            (State::Partial, format!("{text}2 h ago"))
        );
        let gap = "shop: 2 hours, the newest 1970-01-01 03:00+00 ended 60 min ago; 2 before it are missing";
        assert_eq!(find(&[0, 3], 5 * HOUR_S), (State::Partial, gap.to_string()));
        assert_eq!(find(&[], 0).0, State::Missing);
    }
}
