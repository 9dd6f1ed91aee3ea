//! Columns that several functions have, and the measures of a key.

use crate::query::bucket::{DAY, SECOND};
use crate::query::cells::Cells;
use crate::query::error::QueryResult;
use crate::query::filter::Filter;
use crate::query::measure::Cube;
use crate::query::number::Ratio;
use crate::query::parse::Window;
use crate::query::read::{Scan, Scanned};
use crate::query::register::{Id, Register};
use crate::query::spec::Value;
use crate::query::text::{TextKey, Texts};
use crate::query::ticks::Coverage;
use crate::query::vocabulary as pg;
use std::fmt::Write as _;

/// Rounded, or null.
pub fn numeric(ratio: Option<Ratio>) -> Value {
    ratio.map_or(Value::Null, |r| Value::Numeric(r.round4()))
}

/// Weight in seconds.
pub fn seconds(ms: i64) -> Value {
    numeric(Ratio::new(ms.into(), 1000))
}

/// A number of units of `us` since 1970; 0 is null.
pub fn some_time(units: i64, us: i64) -> Value {
    match units {
        0 => Value::Null,
        units => Value::Time(units.saturating_mul(us)),
    }
}

/// Where the figures come from.
pub fn source(coverage: &Coverage) -> Value {
    let known = coverage.ticks_observed > 0;
    Value::Text(if known { "raw" } else { "none" }.into())
}

/// Columns `avg_aas, peak_aas, p99_aas, peak_sessions, backend_seconds` of a
/// key. `sessions` is false where the most rows in one tick is not known.
pub fn measures(cells: &Cells, scanned: &Scanned, total: &Coverage, sessions: bool) -> [Value; 5] {
    if total.observed_ms == 0 {
        return [const { Value::Null }; 5];
    }
    let sum = cells.sum_ms();
    [
        numeric(Ratio::new(sum.into(), total.observed_ms.into())),
        numeric(Some(cells.peak(&scanned.observed))),
        numeric(Some(cells.p99(&scanned.observed))),
        Value::int(sessions.then(|| cells.sessions())),
        seconds(sum),
    ]
}

/// Columns `vcpus, ticks_expected, ticks_observed, ticks_failed,
/// coverage_pct` of a period; `interval_ms` is that of the last tick at or
/// before its end.
pub fn coverage(total: &Coverage, length_us: i64, interval_ms: Option<i64>) -> [Value; 5] {
    [
        numeric(total.vcpus()),
        Value::Int(total.ticks_expected(length_us, interval_ms)),
        Value::Int(total.ticks_observed),
        Value::Int(total.ticks_failed),
        numeric(total.percent(length_us)),
    ]
}

/// The same for a window.
pub fn window_coverage(scanned: &Scanned, total: &Coverage, window: Window) -> [Value; 5] {
    let before = scanned.observed.interval_before.map(|b| b.1);
    let interval = total.last_interval_ms().or(before);
    coverage(total, window.length(), interval)
}

/// Keys with their cells.
pub type Ranked = Vec<(Id, Cells)>;

/// The keys of a group of one dimension, the largest first, ties by key.
pub fn ranked(register: &Register, cube: Cube<Cells>) -> Ranked {
    let keys = cube.into_cells();
    let mut ranked: Vec<_> = keys
        .map(|(key, cells)| (cells.sum_ms(), key.0, cells))
        .collect();
    let ids = register.ids();
    ranked.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| ids.compare(a.1, b.1)));
    ranked
        .into_iter()
        .map(|(_, key, cells)| (key, cells))
        .collect()
}

/// A key as it is shown.
pub fn key_text(register: &Register, dimension: &str, key: Id) -> Value {
    let null = || pg::null_label(dimension).map(str::to_string);
    Value::text(register.text(key).or_else(null))
}

/// The only database a filter lets through, if it is one.
pub fn only_database<'s>(scan: &'s Scan) -> Option<&'s str> {
    let filters = scan.selection.filters.iter();
    filters
        .filter(|(dimension, _)| dimension.name == "database")
        .find_map(|(_, filter)| match filter {
            Filter { any, none } if any.len() == 1 && none.is_empty() => any[0].as_deref(),
            _ => None,
        })
}

/// Texts of query ids given as keys.
pub fn query_texts(scan: &Scan, keys: impl IntoIterator<Item = Id>) -> QueryResult<Texts> {
    let ids = keys.into_iter().filter_map(|key| query_id(scan, key));
    Texts::find(
        ids.map(TextKey::Query),
        scan.parts.iter().copied(),
        scan.others.iter().rev().copied(),
        scan.spec,
    )
}

/// The text of a query id given as key.
pub fn query_text(scan: &Scan, texts: &Texts, key: Id, database: Option<&str>) -> Value {
    let id = query_id(scan, key);
    Value::text(id.and_then(|id| texts.get(TextKey::Query(id), database)))
}

fn query_id(scan: &Scan, key: Id) -> Option<i64> {
    scan.register.text(key)?.parse().ok()
}

/// `2026-11-21 03:12:00+00`; fractions of a second are left out.
pub fn time_text(us: i64) -> String {
    let mut text = String::with_capacity(22);
    write_civil(&mut text, us, ' ');
    text + "+00"
}

/// Adds `2026-11-21 03:12:00` in UTC, with a character between date and time.
pub fn write_civil(out: &mut String, us: i64, between: char) {
    let (day, second) = (us.div_euclid(DAY), us.rem_euclid(DAY) / SECOND);
    let (year, month, day) = date(day);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let _ = write!(out, "{year:04}-");
    for (number, after) in [(month, '-'), (day, between), (hour, ':'), (minute, ':')] {
        push_two(out, number);
        out.push(after);
    }
    push_two(out, second);
}

/// Adds a number below 100 as two digits.
fn push_two(out: &mut String, number: i64) {
    let digit = |number: i64| char::from(b'0' + (number % 10) as u8);
    out.push(digit(number / 10));
    out.push(digit(number));
}

/// µs since 1970 of a date and a time of day in UTC, written like that.
pub fn civil_us(date: &str, time: &str) -> Option<i64> {
    let number = |text: &str| text.parse::<i64>().ok();
    let [year, month, day] = three(date.splitn(3, '-').map(number))?;
    let [hour, minute, second] = three(time.splitn(3, ':').map(number))?;
    let is_date =
        (0..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    if !is_date || !is_time {
        return None;
    }
    let days = days(year, month, day);
    let us = days * DAY + (hour * 3600 + minute * 60 + second) * SECOND;
    // A month may be shorter.
    (self::date(days) == (year, month, day)).then_some(us)
}

/// All of three.
fn three(mut items: impl Iterator<Item = Option<i64>>) -> Option<[i64; 3]> {
    Some([items.next()??, items.next()??, items.next()??])
}

/// The number of days since 1970-01-01 of a day, as [`date`] counts them.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 {
        (year - 1, month + 12)
    } else {
        (year, month)
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (month - 3) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month, day of a number of days since 1970-01-01: years are counted
/// from March on, in eras of 400 years.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_the_server_prints_them() {
        assert_eq!(time_text(0), "1970-01-01 00:00:00+00");
        assert_eq!(time_text(1_709_251_199_999_999), "2024-02-29 23:59:59+00");
        assert_eq!(time_text(-1), "1969-12-31 23:59:59+00");
    }
}
