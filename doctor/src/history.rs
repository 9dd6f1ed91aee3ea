//! Findings about a history: whether it grows, what is missing in it, how long it fits.

use crate::facts::{Facts, SILENT_S, length, size};
use jiff::tz::TimeZone;
use rustix::fs::statvfs;
use std::path::Path;
use tacho_record::finding::Finding;
use tacho_source::rows;
use tacho_source::{Tapes, expect_history};
use tacho_tape::query::{Markers, QueryResult, Status};

/// A younger history does not tell how fast it grows.
const HOUR_S: f64 = 3_600.0;
const DAY_S: f64 = 86_400.0;
/// Cache of the reader of a directory.
const CACHE_BYTES: u64 = 64 << 20;
/// Older gaps are not shown; µs.
const WEEK_US: i64 = 7 * 86_400_000_000;

/// The newest gap in a history.
pub struct Gap {
    /// Its end, as text.
    pub time: String,
    /// Its length and its cause.
    pub detail: String,
}

/// The limits of a history.
#[derive(Default)]
pub struct Limits {
    /// Seconds; 0 = none.
    pub age_s: i64,
    /// MB; 0 = none, nothing if the size of the file system decides.
    pub size_mb: Option<i64>,
}

/// Looks at a directory of history files.
pub fn examine(directory: &Path) -> Vec<Finding> {
    match read(directory) {
        Ok((facts, gap)) => {
            let mut findings = vec![recorded(&facts), complete(&facts, gap.as_ref())];
            findings.extend(damage(&facts));
            findings.push(space(&facts, None));
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

/// Whether samples arrive. A directory alone can be a copy, so silence is not broken.
fn recorded(facts: &Facts) -> Finding {
    let what = "samples";
    let Some(age_s) = facts.number("last_tick_age_s") else {
        return Finding::missing(what, "none were recorded");
    };
    let detail = format!("the last one {} ago", length(age_s));
    match age_s > SILENT_S {
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
        return "nothing of the last hour was observed".to_string();
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

/// A metric that is a time, µs since 1970.
fn time(facts: &Facts, metric: &str) -> Option<i64> {
    tacho_source::time::moment(facts.text(metric)?, 0, &TimeZone::UTC).ok()
}

/// Parts that cannot be read.
pub fn damage(facts: &Facts) -> Option<Finding> {
    let places = facts.count("damaged_places");
    (places > 0).then(|| {
        let bytes = size(facts.count("damaged_bytes") as f64);
        Finding::broken(
            "files",
            format!("{places} damaged places, {bytes}; the rest is read"),
        )
        .help("see which: tacho inspect --tape DIR")
    })
}

/// Size, growth, and how long the history fits into its limits.
pub fn space(facts: &Facts, limits: Option<&Limits>) -> Finding {
    let bytes = facts.count("bytes") as f64;
    let mut detail = match facts.text("first_tick_time") {
        Some(since) => format!("{} since {since}", size(bytes)),
        None => format!("{}, no samples yet", size(bytes)),
    };
    if let Some(a_day) = bytes_a_day(facts, bytes) {
        detail += &format!(", {} a day", size(a_day));
        detail += &limits.map_or_else(String::new, |limits| kept(limits, a_day));
    }
    Finding::works("space", detail)
}

/// How fast the history grows, if it is old enough to tell.
fn bytes_a_day(facts: &Facts, bytes: f64) -> Option<f64> {
    let recorded_s =
        (time(facts, "last_tick_time")? - time(facts, "first_tick_time")?) as f64 / 1e6;
    (recorded_s >= HOUR_S).then(|| bytes / recorded_s * DAY_S)
}

fn kept(limits: &Limits, a_day: f64) -> String {
    let by_age = (limits.age_s > 0).then_some(limits.age_s as f64 / DAY_S);
    let by_size = limits.size_mb.filter(|mb| *mb > 0);
    let by_size = by_size.map(|mb| mb as f64 * 1_048_576.0 / a_day);
    match by_age.into_iter().chain(by_size).min_by(f64::total_cmp) {
        Some(days) => format!(", kept for {days:.0} days at this rate"),
        None => ", kept without a limit".to_string(),
    }
}

/// Free space of the file system.
pub fn free_space(directory: &Path) -> Option<Finding> {
    let system = statvfs(directory).ok()?;
    let free = (system.f_bavail * system.f_frsize) as f64;
    Some(Finding::works("disk", format!("{} are free", size(free))))
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
        let detail = |age_s, size_mb| space(&facts, Some(&Limits { age_s, size_mb })).detail;
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
    fn growth_is_not_told_by_minutes() {
        let facts = Facts::of(&[
            ("bytes", "53242"),
            ("first_tick_time", "2026-11-27 01:51:40+00"),
            ("last_tick_time", "2026-11-27 01:59:40+00"),
        ]);
        assert_eq!(
            space(&facts, None).detail,
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
            "nothing of the last hour was observed"
        );
    }

    #[test]
    fn damage_is_broken() {
        assert_eq!(damage(&Facts::of(&[("damaged_places", "0")])), None);
        let damaged = Facts::of(&[("damaged_places", "2"), ("damaged_bytes", "4096")]);
        let detail = damage(&damaged).map(|finding| finding.detail);
        assert_eq!(
            detail.as_deref(),
            Some("2 damaged places, 4.1 kB; the rest is read")
        );
    }
}
