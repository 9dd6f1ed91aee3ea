//! Values of the input.

use super::lines::Record;
use super::{ImportError, ImportResult};
use jiff::tz::TimeZone;
use tacho_source::exchange::Field;
use tacho_source::time;
use tacho_tape::format::schema::{ColumnType, Schema};

/// The columns of a line.
pub struct Header {
    /// Stored fields and their positions in the line.
    pub fields: Vec<(usize, Field)>,
    /// Position of a column that is not stored.
    pub extra: Option<usize>,
}

impl Header {
    /// Reads the first line. `known` are the stored columns; `extra` is one
    /// more that is understood.
    pub fn parse(record: &Record, known: &[Field], extra: &str) -> ImportResult<Header> {
        let mut header = Header {
            fields: Vec::new(),
            extra: None,
        };
        for (position, name) in record.iter().enumerate() {
            let name = String::from_utf8_lossy(name);
            let name = name.trim();
            let twice = || ImportError::new(format!("column \"{name}\" occurs twice"));
            if let Some(field) = known.iter().find_map(|f| f.called(name)) {
                if header.position(&field.name).is_some() {
                    return Err(twice());
                }
                header.fields.push((position, field));
            } else if !extra.is_empty() && name == extra {
                if header.extra.replace(position).is_some() {
                    return Err(twice());
                }
            } else {
                let names: Vec<&str> = known.iter().map(|f| f.name.as_str()).collect();
                let hint = format!("Available are {}.", names.join(", "));
                return Err(ImportError::new(format!("unknown column \"{name}\"")).hint(hint));
            }
        }
        if header.position("time").is_none() {
            return Err(ImportError::new("column \"time\" is missing")
                .hint("The first line names the columns."));
        }
        Ok(header)
    }

    /// Position of a stored column.
    pub fn position(&self, name: &str) -> Option<usize> {
        let found = self.fields.iter().find(|f| f.1.name == name);
        found.map(|f| f.0)
    }
}

/// A field of a line; empty if it is missing.
pub fn text(record: &Record, position: Option<usize>) -> &[u8] {
    position.and_then(|p| record.get(p)).unwrap_or_default()
}

/// The number that stores a field of any type but names and strings.
pub fn number(schema: &Schema, field: &Field, text: &[u8]) -> ImportResult<i64> {
    match field.column.ty {
        _ if text.is_empty() => Ok(0),
        ColumnType::Time => Ok(time_us(text, &field.name)?.div_euclid(1000)),
        ColumnType::TimeUs => time_us(text, &field.name),
        ColumnType::Enum => label(schema, &field.column.target, text, &field.name),
        _ if field.is_measured() => {
            let stored = int(text, &field.name)?.checked_add(1);
            stored.ok_or_else(|| invalid(text, &field.name))
        }
        _ if field.is_fraction() => hundredths(text, &field.name),
        _ => int(text, &field.name),
    }
}

/// A whole number; 0 if empty.
pub fn int(text: &[u8], name: &str) -> ImportResult<i64> {
    if let Some(number) = digits(text) {
        return Ok(number);
    }
    let parsed = std::str::from_utf8(text)
        .ok()
        .and_then(|t| t.trim().parse().ok());
    parsed.ok_or_else(|| invalid(text, name))
}

/// The number of at most 18 digits, or 0 for an empty text: the most frequent cases. `None` for
/// every other text.
fn digits(text: &[u8]) -> Option<i64> {
    if text.len() > 18 {
        return None;
    }
    let mut number = 0;
    for byte in text {
        match byte.wrapping_sub(b'0') {
            digit @ 0..=9 => number = number * 10 + i64::from(digit),
            _ => return None,
        }
    }
    Some(number)
}

/// A decimal fraction in hundredths. With two digits after the point it is
/// exact, whatever its size.
fn hundredths(text: &[u8], name: &str) -> ImportResult<i64> {
    let parsed = std::str::from_utf8(text).ok();
    let exact = parsed.and_then(|t| {
        let (whole, rest) = t.split_once('.')?;
        let is_plain = rest.len() == 2 && rest.bytes().all(|b| b.is_ascii_digit());
        format!("{whole}{rest}").parse().ok().filter(|_| is_plain)
    });
    let near = || {
        parsed?
            .trim()
            .parse()
            .ok()
            .map(|v: f64| (v * 100.0).round())
    };
    match (exact, near().filter(|v| (0.0..1e17).contains(v))) {
        (Some(value), _) => Ok(value),
        (None, Some(near)) => Ok(near as i64),
        (None, None) => Err(invalid(text, name)),
    }
}

/// The value of a label. A text that is not a label may be its number.
pub fn label(schema: &Schema, labels: &str, text: &[u8], column: &str) -> ImportResult<i64> {
    let label = std::str::from_utf8(text).ok();
    let value = label.and_then(|label| schema.value(labels, label));
    let number = || {
        label?
            .parse::<i64>()
            .ok()
            .filter(|&n| schema.label(labels, n).is_none())
    };
    value.or_else(number).ok_or_else(|| {
        let labels: Vec<&str> = schema.labels(labels).map(|l| l.label.as_str()).collect();
        invalid(text, column).hint(format!("Available are {}.", labels.join(", ")))
    })
}

/// A time in µs; without an offset it is in UTC.
pub fn time_us(text: &[u8], name: &str) -> ImportResult<i64> {
    if let Some(us) = plain_time(text) {
        return Ok(us);
    }
    let parsed = std::str::from_utf8(text)
        .ok()
        .filter(|t| t.contains('-'))
        .and_then(|t| time::moment(t, 0, &TimeZone::UTC).ok());
    parsed.ok_or_else(|| invalid(text, name))
}

/// Parses `YYYY-MM-DD HH:MM:SS[.ffffff][Z|+00]` into µs since 1970, the form of millions of lines.
/// `None` for other forms, which are left to [`time::moment`].
fn plain_time(text: &[u8]) -> Option<i64> {
    let head: &[u8; 19] = text.first_chunk()?;
    let digit = |byte: u8| match byte.wrapping_sub(b'0') {
        digit @ 0..=9 => Some(i64::from(digit)),
        _ => None,
    };
    let two = |at: usize| Some(digit(head[at])? * 10 + digit(head[at + 1])?);
    let marks =
        [head[4], head[7], head[13], head[16]] == *b"--::" && matches!(head[10], b' ' | b'T');
    let (year, month, day) = (two(0)? * 100 + two(2)?, two(5)?, two(8)?);
    let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
    let mut rest = &text[19..];
    let mut us = 0;
    if let Some(fraction) = rest.strip_prefix(b".") {
        rest = fraction;
        let mut scale = 1_000_000;
        while let Some(digit) = rest.first().and_then(|byte| digit(*byte)) {
            scale /= 10;
            us += digit * scale;
            rest = &rest[1..];
        }
        // More than six digits, or none.
        if scale == 0 || scale == 1_000_000 {
            return None;
        }
    }
    let utc = matches!(rest, b"" | b"Z" | b"+00" | b"+00:00");
    // `time::moment` handles 29 February.
    let longest = match month {
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let exists = marks && utc && (1..=12).contains(&month) && (1..=longest).contains(&day);
    if !exists || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * 1_000_000 + us)
}

/// Days since 1970-01-01 of a date in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March.
    let (year, month) = match month {
        3.. => (year, month - 3),
        _ => (year - 1, month + 9),
    };
    let of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
        - 719_468
}

/// The error of a value that is not understood.
pub fn invalid(text: &[u8], name: &str) -> ImportError {
    let text = String::from_utf8_lossy(text);
    ImportError::new(format!("invalid value \"{text}\" for column \"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_way_to_read_a_time_agrees_with_the_thorough_one() {
        let thorough = |text: &str| time::moment(text, 0, &TimeZone::UTC).ok();
        for year in [
            1, 1899, 1900, 1970, 1999, 2000, 2024, 2025, 2026, 2100, 9998,
        ] {
            for month in 1..=12 {
                for day in [1, 28, if month == 2 { 9 } else { 30 }] {
                    let text = format!("{year:04}-{month:02}-{day:02} 23:59:01.25Z");
                    assert_eq!(plain_time(text.as_bytes()), thorough(&text), "{text}");
                }
            }
        }
        for end in ["", "Z", "+00", ".5", ".000001+00:00", ".123456Z"] {
            let text = format!("2026-03-02T04:05:06{end}");
            assert!(plain_time(text.as_bytes()).is_some(), "{text}");
            assert_eq!(plain_time(text.as_bytes()), thorough(&text), "{text}");
        }
    }

    #[test]
    fn whole_numbers_of_every_length_are_read() {
        let cases = [
            ("", Some(0)),
            ("007", Some(7)),
            (" 12 ", Some(12)),
            ("-5", Some(-5)),
            ("999999999999999999", Some(999_999_999_999_999_999)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("1.5", None),
            ("1:", None),
        ];
        for (text, number) in cases {
            assert_eq!(int(text.as_bytes(), "x").ok(), number, "{text}");
        }
    }

    #[test]
    fn other_ways_to_write_a_time_are_left_to_the_thorough_one() {
        for text in [
            "2026-02-29 00:00:00Z",
            "2026-13-01 00:00:00Z",
            "2026-01-01 24:00:00Z",
            "2026-01-01 00:00:60Z",
            "2026-01-01 00:00:00+01",
            "2026-01-01 00:00:00.1234567Z",
            "2026-01-01",
            "2026/01/01 00:00:00",
            "now",
            "",
        ] {
            assert_eq!(plain_time(text.as_bytes()), None, "{text}");
        }
    }
}
