//! Findings about a history: whether it grows, what is missing in it, how long it fits.

use crate::facts::{Facts, length, silent_s, size};
use jiff::tz::TimeZone;
use rustix::fs::statvfs;
use std::path::Path;
use tacho_record::finding::Finding;
use tacho_source::rows;
use tacho_source::{Tapes, expect_history};
use tacho_tape::query::{Markers, QueryResult, Status};

/// Seconds of an hour. A history that is younger than this is too short to tell how fast it grows.
const HOUR_S: f64 = 3_600.0;
const DAY_S: f64 = 86_400.0;
const MB: f64 = 1_048_576.0;
/// Bytes of columns that the reader of a directory may cache.
const CACHE_BYTES: u64 = 64 << 20;
/// Age of a gap, µs, above which it is not shown.
const WEEK_US: i64 = 7 * 86_400_000_000;

/// The newest gap in a history.
pub struct Gap {
    /// Time at which the gap ended, as text.
    pub time: String,
    /// Length and cause of the gap.
    pub detail: String,
}

/// The limits of a history.
#[derive(Default)]
pub struct Limits {
    /// Age in seconds above which history is removed; 0 = no limit.
    pub age_s: i64,
    /// Size in MB above which history is removed; 0 = no limit. `None`: 4 GB or 5 % of the file
    /// system, whichever is smaller.
    pub size_mb: Option<i64>,
    /// MB of the file system that stay free.
    pub free_mb: i64,
}

/// Looks at a directory of history files.
pub fn examine(directory: &Path) -> Vec<Finding> {
    match read(directory) {
        Ok((facts, gap)) => {
            let mut findings = vec![recorded(&facts), complete(&facts, gap.as_ref())];
            findings.extend(damage(&facts));
            findings.push(space(&facts, None, Disk::of(directory)));
            findings.extend(free_space(directory));
            findings
        }
        Err(error) => {
            let finding = Finding::broken("history", error.message.clone());
            vec![finding.help(error.hint.unwrap_or_default())]
        }
    }
}

fn read(directory: &Path) -> QueryResult<(Facts, Option<Gap>)> {
    expect_history(directory)?;
    let mut tapes = Tapes::new(CACHE_BYTES);
    tapes.add(&format!("history={}", directory.display()))?;
    let status = rows::ask(&tapes, "history", &Status::default())?;
    let metrics = status.iter().filter_map(|row| {
        Some((
            row.metric.as_deref()?.to_string(),
            row.value.as_deref()?.to_string(),
        ))
    });
    let facts = Facts(metrics.collect());
    let since = jiff::Timestamp::now().as_microsecond() - WEEK_US;
    let asked = Markers {
        since: Some(since),
        ..Markers::default()
    };
    let markers = rows::ask(&tapes, "history", &asked)?;
    let gap = markers
        .iter()
        .rfind(|marker| marker.kind.as_deref() == Some("gap"));
    let gap = gap.map(|marker| Gap {
        time: marker
            .period_end
            .map_or_else(String::new, tacho_source::time::copy_time),
        detail: marker.detail.as_deref().unwrap_or_default().to_string(),
    });
    Ok((facts, gap))
}

/// Finds out whether samples arrive. A directory without a server can be a copy, so silence is not
/// a `Broken` finding.
fn recorded(facts: &Facts) -> Finding {
    let what = "samples";
    let Some(age_s) = facts.number("last_tick_age_s") else {
        return Finding::missing(what, "none were recorded");
    };
    let detail = format!("the last one {} ago", length(age_s));
    match age_s > silent_s(None) {
        false => Finding::works(what, detail),
        true => Finding::partial(what, detail)
            .help("ask the server that records into it: tacho doctor \"host=HOST dbname=DB\""),
    }
}

/// The share of the last hour that was observed, and the newest gap. A younger history
/// is measured from its begin.
pub fn complete(facts: &Facts, gap: Option<&Gap>) -> Finding {
    let now = jiff::Timestamp::now().as_microsecond();
    let age_s = time(facts, "first_tick_time").map_or(HOUR_S, |first| (now - first) as f64 / 1e6);
    let observed = observed(facts, age_s);
    let gap = gap.map_or("no gap within 7 days".to_string(), |gap| {
        format!("newest gap until {}: {}", gap.time, gap.detail)
    });
    Finding::works("coverage", format!("{observed}, {gap}"))
}

fn observed(facts: &Facts, age_s: f64) -> String {
    let percent = facts.text("coverage_last_hour_pct");
    let Some(percent) = percent.and_then(|percent| percent.parse::<f64>().ok()) else {
        return "the last hour was not observed".to_string();
    };
    match age_s < HOUR_S {
        false => format!("{percent:.1} % of the last hour was observed"),
        true => {
            let percent = (percent * HOUR_S / age_s.max(1.0)).min(100.0);
            let age = length(age_s as i64);
            format!("{percent:.1} % was observed since the first sample, {age} ago")
        }
    }
}

/// The value of a metric that is a time, µs since 1970.
fn time(facts: &Facts, metric: &str) -> Option<i64> {
    tacho_source::time::moment(facts.text(metric)?, 0, &TimeZone::UTC).ok()
}

/// The finding about parts that cannot be read; `None` without damage.
pub fn damage(facts: &Facts) -> Option<Finding> {
    let places = facts.count("damaged_places");
    (places > 0).then(|| {
        let bytes = size(facts.count("damaged_bytes") as f64);
        Finding::broken(
            "files",
            format!("{places} damaged parts, {bytes}; the rest is readable"),
        )
        .help("see which: tacho inspect --tape DIR")
    })
}

/// Size and growth of the history, and how long the limits and the disk let it be kept.
pub fn space(facts: &Facts, limits: Option<&Limits>, disk: Option<Disk>) -> Finding {
    let what = "space";
    let bytes = facts.count("bytes") as f64;
    let mut detail = match facts.text("first_tick_time") {
        Some(since) => format!("{} since {since}", size(bytes)),
        None => format!("{}, no samples yet", size(bytes)),
    };
    let Some(a_day) = bytes_a_day(facts, bytes) else {
        return Finding::works(what, detail);
    };
    detail += &format!(", {} a day", size(a_day));
    let room = disk.map(|disk| (disk.room(limits) + bytes) / a_day);
    let kept = limits.map(|limits| limits.days(disk, a_day));
    match (kept, room) {
        (Some(kept), Some(room)) if kept.is_none_or(|kept| kept > room) => {
            let fits = length((room * DAY_S) as i64);
            let detail = format!("{detail}, the disk has room for {fits} at this rate");
            let kept = kept.map_or("without a limit".into(), |kept| {
                format!("for {kept:.0} days")
            });
            let help = match age(room) {
                Some(age) => format!(
                    "free space, or set tacho.retention_age = '{age}': the settings keep it {kept}"
                ),
                None => format!("free space: the settings keep it {kept}"),
            };
            Finding::partial(what, detail).help(help)
        }
        (Some(Some(kept)), _) => Finding::works(
            what,
            format!("{detail}, kept for {kept:.0} days at this rate"),
        ),
        (Some(None), _) => Finding::works(what, format!("{detail}, kept without a limit")),
        (None, Some(room)) => {
            let room = format!("the disk has room for {room:.0} days at this rate");
            Finding::works(what, format!("{detail}, {room}"))
        }
        (None, None) => Finding::works(what, detail),
    }
}

/// A number of days as the largest value of `tacho.retention_age` below it; `None` below an hour,
/// because 0 means no limit.
fn age(days: f64) -> Option<String> {
    let hours = (days * 24.0).floor();
    match (days.floor(), hours) {
        (days, _) if days >= 1.0 => Some(format!("{days:.0}d")),
        (_, hours) if hours >= 1.0 => Some(format!("{hours:.0}h")),
        _ => None,
    }
}

/// Growth of the history in bytes a day, if it is old enough to tell.
fn bytes_a_day(facts: &Facts, bytes: f64) -> Option<f64> {
    let recorded_s =
        (time(facts, "last_tick_time")? - time(facts, "first_tick_time")?) as f64 / 1e6;
    (recorded_s >= HOUR_S).then(|| bytes / recorded_s * DAY_S)
}

impl Limits {
    /// Days for which the settings keep a history that grows by `a_day` bytes a day; `None`
    /// if they limit neither its age nor its size.
    fn days(&self, disk: Option<Disk>, a_day: f64) -> Option<f64> {
        let by_age = (self.age_s > 0).then_some(self.age_s as f64 / DAY_S);
        let bytes = match self.size_mb {
            Some(mb) => Some(mb as f64 * MB),
            None => disk.map(|disk| (disk.total / 20.0).min(4096.0 * MB)),
        };
        let by_size = bytes
            .filter(|bytes| *bytes > 0.0)
            .map(|bytes| bytes / a_day);
        by_age.into_iter().chain(by_size).min_by(f64::total_cmp)
    }
}

/// A file system, in bytes.
#[derive(Clone, Copy)]
pub struct Disk {
    free: f64,
    total: f64,
}

impl Disk {
    /// The file system of a directory, if it is on this host.
    pub fn of(directory: &Path) -> Option<Disk> {
        let system = statvfs(directory).ok()?;
        let bytes = |blocks: u64| (blocks * system.f_frsize) as f64;
        Some(Disk {
            free: bytes(system.f_bavail),
            total: bytes(system.f_blocks),
        })
    }

    /// Bytes that the history may still take: the writer removes old files before the
    /// free space falls below its limit.
    fn room(self, limits: Option<&Limits>) -> f64 {
        let kept_free = limits.map_or(0, |limits| limits.free_mb);
        (self.free - kept_free as f64 * MB).max(0.0)
    }
}

/// The finding about the free space of the file system; `None` if it is unknown.
pub fn free_space(directory: &Path) -> Option<Finding> {
    let disk = Disk::of(directory)?;
    Some(Finding::works(
        "disk",
        format!("{} are free", size(disk.free)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_tells_how_long_it_fits() {
        let facts = Facts::of(&[
            ("bytes", "12000000"),
            ("first_tick_time", "2026-11-20 00:00:00+00"),
            ("last_tick_time", "2026-11-26 00:00:00+00"),
        ]);
        let detail = |age_s, size_mb| {
            let limits = Limits {
                age_s,
                size_mb,
                free_mb: 0,
            };
            space(&facts, Some(&limits), None).detail
        };
        let begin = "12.0 MB since 2026-11-20 00:00:00+00, 2.0 MB a day, kept ";
        assert_eq!(
            detail(864_000, Some(0)),
            format!("{begin}for 10 days at this rate")
        );
        assert_eq!(
            detail(864_000, Some(10)),
            format!("{begin}for 5 days at this rate")
        );
        assert_eq!(detail(0, Some(0)), format!("{begin}without a limit"));
    }

    #[test]
    fn a_disk_that_is_smaller_than_the_limits_is_partial() {
        let facts = Facts::of(&[
            ("bytes", "12000000"),
            ("first_tick_time", "2026-11-20 00:00:00+00"),
            ("last_tick_time", "2026-11-26 00:00:00+00"),
        ]);
        let limits = |size_mb, free_mb| Limits {
            age_s: 31_622_400,
            size_mb,
            free_mb,
        };
        let disk = |free, total| Some(Disk { free, total });
        let begin = "12.0 MB since 2026-11-20 00:00:00+00, 2.0 MB a day, ";
        // The history has 12 MB, and 8 MB more fit on the disk.
        let full = space(&facts, Some(&limits(Some(0), 0)), disk(8e6, 1e12));
        assert_eq!(
            full.detail,
            format!("{begin}the disk has room for 10 days at this rate")
        );
        assert_eq!(
            full.help.as_deref(),
            Some(
                "free space, or set tacho.retention_age = '10d': the settings keep it for 366 days"
            )
        );
        // The disk has 1 MB (2^20 bytes) more, which the writer keeps free, so 8 MB more fit again.
        let less = space(
            &facts,
            Some(&limits(Some(0), 1)),
            disk(9e6 + 48_576.0, 1e12),
        );
        assert_eq!(less.detail, full.detail);
        // 5 % of 200 MB
        let small = space(&facts, Some(&limits(None, 0)), disk(8e6, 2e8));
        assert_eq!(small.detail, format!("{begin}kept for 5 days at this rate"));
        assert_eq!(
            space(&facts, None, disk(8e6, 1e12)).detail,
            format!("{begin}the disk has room for 10 days at this rate")
        );
    }

    #[test]
    fn an_age_that_would_be_no_limit_is_not_advised() {
        let facts = Facts::of(&[
            ("bytes", "480000"),
            ("first_tick_time", "2026-11-26 00:00:00+00"),
            ("last_tick_time", "2026-11-26 01:00:00+00"),
        ]);
        let limits = Limits {
            age_s: 864_000,
            size_mb: Some(0),
            free_mb: 0,
        };
        // 480 kB an hour
        let of_room = |free| {
            let disk = Some(Disk { free, total: 1e12 });
            let finding = space(&facts, Some(&limits), disk);
            let (_, fits) = finding.detail.split_once("a day, ").unwrap();
            (fits.to_string(), finding.help.unwrap())
        };
        let told = |fits: &str, help: &str| {
            (
                format!("the disk has room for {fits} at this rate"),
                format!("{help}: the settings keep it for 10 days"),
            )
        };
        assert_eq!(
            of_room(480e3 * 47.5),
            told("2 days", "free space, or set tacho.retention_age = '2d'")
        );
        assert_eq!(
            of_room(480e3 * 4.5),
            told("5 h", "free space, or set tacho.retention_age = '5h'")
        );
        let short = Facts::of(&[
            ("bytes", "3600000"),
            ("first_tick_time", "2026-11-26 00:00:00+00"),
            ("last_tick_time", "2026-11-26 02:00:00+00"),
        ]);
        assert_eq!(age(0.03), None);
        assert_eq!(age(1.0 / 24.0).as_deref(), Some("1h"));
        assert_eq!(age(0.999).as_deref(), Some("23h"));
        let full = Disk {
            free: 0.0,
            total: 1e12,
        };
        let kept = Limits {
            age_s: 864_000,
            size_mb: Some(0),
            free_mb: 0,
        };
        let finding = space(&short, Some(&kept), Some(full));
        assert_eq!(
            finding.help.as_deref(),
            Some("free space, or set tacho.retention_age = '2h': the settings keep it for 10 days")
        );
    }

    #[test]
    fn growth_is_not_told_by_minutes() {
        let facts = Facts::of(&[
            ("bytes", "53242"),
            ("first_tick_time", "2026-11-27 01:51:40+00"),
            ("last_tick_time", "2026-11-27 01:59:40+00"),
        ]);
        assert_eq!(
            space(&facts, None, None).detail,
            "53.2 kB since 2026-11-27 01:51:40+00"
        );
    }

    #[test]
    fn a_young_history_is_measured_from_its_begin() {
        let half = Facts::of(&[("coverage_last_hour_pct", "50.0000")]);
        assert_eq!(
            observed(&half, 86_400.0),
            "50.0 % of the last hour was observed"
        );
        let young = "100.0 % was observed since the first sample, 30 min ago";
        assert_eq!(observed(&half, 1_800.0), young);
        assert_eq!(
            observed(&Facts::of(&[]), 10.0),
            "the last hour was not observed"
        );
    }

    #[test]
    fn damage_is_broken() {
        assert_eq!(damage(&Facts::of(&[("damaged_places", "0")])), None);
        let damaged = Facts::of(&[("damaged_places", "2"), ("damaged_bytes", "4096")]);
        let detail = damage(&damaged).map(|finding| finding.detail);
        assert_eq!(
            detail.as_deref(),
            Some("2 damaged parts, 4.1 kB; the rest is readable")
        );
    }
}
