//! Writes and reads times as a date and a time of day in UTC.

use super::bucket::{DAY, SECOND};
use std::fmt::Write;

/// Writes a time in µs since 1970 as `2026-11-21 03:12:00+00`. Fractions of a second are left out.
pub fn time_text(us: i64) -> String {
    let mut text = String::with_capacity(22);
    write_civil(&mut text, us, ' ');
    text + "+00"
}

/// Appends `2026-11-21 03:12:00` in UTC, with `between` between date and time.
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

/// Appends a number below 100 as two digits.
fn push_two(out: &mut String, number: i64) {
    let digit = |number: i64| char::from(b'0' + (number % 10) as u8);
    out.push(digit(number / 10));
    out.push(digit(number));
}

/// Reads a date and a time of day in UTC that have this form, as µs since 1970.
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
    // Refuses the 31st of a shorter month.
    (self::date(days) == (year, month, day)).then_some(us)
}

/// The three items, if all are there.
fn three(mut items: impl Iterator<Item = Option<i64>>) -> Option<[i64; 3]> {
    Some([items.next()??, items.next()??, items.next()??])
}

/// Days from 1970-01-01 to this day, counted as in [`date`].
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

/// Year, month, day of a number of days since 1970-01-01. Years begin in March here, and 400 years
/// are an era.
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
