//! JSON of answers: numbers keep all digits, 64-bit ids are strings, times are RFC 3339 in UTC.
//! Control characters that a terminal would obey are escaped as `\uXXXX`.

use super::civil::{civil_us, write_civil};
use super::plain::controls_output;
use super::sink::Value;
use std::fmt::Write as _;

/// The text as a JSON string.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_quoted(&mut out, text);
    out
}

/// Appends the text as a JSON string.
fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    write_escaped(out, text);
    out.push('"');
}

/// Appends the text escaped, without quotes.
pub(in crate::query) fn write_escaped(out: &mut String, text: &str) {
    let is_plain = |b: u8| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\';
    if text.bytes().all(is_plain) {
        out.push_str(text);
    } else {
        text.chars().for_each(|c| write_char(out, c));
    }
}

fn write_char(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if controls_output(c) => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        c => out.push(c),
    }
}

/// The value as JSON. Intervals are text for people.
pub fn value(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

/// Appends the value. Answers have many values, and a string for each took a third of the time of a
/// long answer.
pub fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Text(text) => write_quoted(out, text),
        Value::Bool(is) => out.push_str(if *is { "true" } else { "false" }),
        Value::Numeric(n) => write_numeric(out, *n),
        Value::Time(us) => {
            out.push('"');
            write_time(out, *us);
            out.push('"');
        }
        Value::Interval(us) => write_quoted(out, &interval(*us)),
        Value::Int(n) => {
            let _ = write!(out, "{n}");
        }
        Value::Id(n) => {
            let _ = write!(out, "\"{n}\"");
        }
    }
}

/// Ten-thousandths as text with four decimals: `numeric(12_345)` is `1.2345`.
pub fn numeric(n: i128) -> String {
    let mut out = String::new();
    write_numeric(&mut out, n);
    out
}

/// Appends ten-thousandths as text with four decimals.
pub fn write_numeric(out: &mut String, n: i128) {
    let sign = if n < 0 { "-" } else { "" };
    let n = n.unsigned_abs();
    let _ = match u64::try_from(n) {
        Ok(n) => write!(out, "{sign}{}.{:04}", n / 10_000, n % 10_000),
        Err(_) => write!(out, "{sign}{}.{:04}", n / 10_000, n % 10_000),
    };
}

/// Writes a time in µs since 1970 as `2026-11-21T03:12:00Z`, with a fraction of a second if it is
/// not zero.
pub(in crate::query) fn time(us: i64) -> String {
    let mut out = String::with_capacity(20);
    write_time(&mut out, us);
    out
}

/// Appends a time as in [`time`].
fn write_time(out: &mut String, us: i64) {
    write_civil(out, us, 'T');
    write_fraction(out, us);
    out.push('Z');
}

/// Reads a time that has this form, as µs since 1970.
pub(in crate::query) fn parse_time(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let us = parse_decimal(&format!("0.{fraction}"), 6)?;
    civil_us(date, time)?.checked_add(i64::try_from(us).ok()?)
}

/// Reads a number with `decimals` decimals as an integer: `parse_decimal("1.25", 1)` is 13, which
/// means 1.3. It rounds surplus digits, halves away from zero.
pub fn parse_decimal(text: &str, decimals: usize) -> Option<i128> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let more = fraction.as_bytes().get(decimals);
    let rounded = i128::from(more.is_some_and(|digit| *digit >= b'5'));
    let kept = fraction.get(..decimals).unwrap_or(fraction);
    let value: i128 = format!("{whole}{kept:0<decimals$}").parse().ok()?;
    let value = value.checked_add(rounded)?;
    Some(if is_negative { -value } else { value })
}

/// Writes an interval of `us` µs as PostgreSQL prints it: `00:01:00`, `1 day`, `7 days 12:00:00`.
pub fn interval(us: i64) -> String {
    const DAY: i64 = 86_400_000_000;
    let (days, rest) = (us / DAY, us % DAY);
    let seconds = rest / 1_000_000;
    let mut text = match days {
        0 => String::new(),
        1 => "1 day".to_string(),
        days => format!("{days} days"),
    };
    if rest != 0 || days == 0 {
        if days != 0 {
            text.push(' ');
        }
        let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        text.push_str(&format!("{h:02}:{m:02}:{s:02}"));
    }
    write_fraction(&mut text, rest);
    text
}

/// Appends `.5` for half a second, nothing for a whole one.
fn write_fraction(out: &mut String, us: i64) {
    let rest = us.rem_euclid(1_000_000);
    if rest != 0 {
        let _ = write!(out, ".{rest:06}");
        out.truncate(out.trim_end_matches('0').len());
    }
}

/// A JSON array. The items are JSON already.
pub fn array(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    format!("[{}]", items.join(", "))
}

/// A JSON object under construction.
#[derive(Default)]
pub struct Object(String);

impl Object {
    /// Adds a member. Its value is JSON already.
    pub fn put(&mut self, name: &str, json: &str) -> &mut Object {
        let comma = if self.0.is_empty() { "" } else { ", " };
        let _ = write!(self.0, "{comma}{}: {json}", quote(name));
        self
    }

    /// The finished JSON.
    pub fn json(&self) -> String {
        format!("{{{}}}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_read_by_their_digits() {
        for (text, ten_thousandths) in [
            ("1.5000", 15_000),
            ("-0.0001", -1),
            ("12", 120_000),
            ("0.00005", 1),
            ("0.00004999", 0),
            ("-9.99995", -100_000),
            ("9007199254740993.0001", 90_071_992_547_409_930_001),
        ] {
            assert_eq!(parse_decimal(text, 4), Some(ten_thousandths), "{text}");
        }
        for text in [
            "NaN",
            "Infinity",
            "",
            ".5",
            "1e3",
            "1.2.3",
            "-",
            "170141183460469231731687303715884106",
        ] {
            assert_eq!(parse_decimal(text, 4), None, "{text}");
        }
        assert_eq!(parse_decimal("2.98", 2), Some(298));
    }

    proptest! {
        #[test]
        fn times_are_read_as_they_are_written(us in -62_135_596_800_000_000..253_402_300_800_000_000_i64) {
            prop_assert_eq!(parse_time(&time(us)), Some(us));
        }
    }

    #[test]
    fn invalid_times_are_not_read() {
        for text in [
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00.x1Z",
            "",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn values_keep_their_digits() {
        let json = |v: Value| value(&v);
        assert_eq!(json(Value::Numeric(-12_345)), "-1.2345");
        assert_eq!(json(Value::Id(i64::MIN)), "\"-9223372036854775808\"");
        assert_eq!(json(Value::Bool(false)), "false");
        assert_eq!(json(Value::Time(0)), "\"1970-01-01T00:00:00Z\"");
        assert_eq!(json(Value::Time(-500_000)), "\"1969-12-31T23:59:59.5Z\"");
        assert_eq!(interval(60_000_000), "00:01:00");
        assert_eq!(interval(24 * 3_600_000_000), "1 day");
        assert_eq!(interval(36 * 3_600_000_000), "1 day 12:00:00");
        assert_eq!(interval(500_000), "00:00:00.5");
        assert_eq!(
            json(Value::Text("a\"\u{1}\\".into())),
            "\"a\\\"\\u0001\\\\\""
        );
        assert_eq!(
            quote("\u{9b}\u{202e}\u{e0041}é\u{7f}"),
            "\"\\u009b\\u202e\\udb40\\udc41é\\u007f\""
        );
        let mut object = Object::default();
        object.put("a", "1").put("b", &array(["2".to_string()]));
        assert_eq!(object.json(), "{\"a\": 1, \"b\": [2]}");
    }
}
