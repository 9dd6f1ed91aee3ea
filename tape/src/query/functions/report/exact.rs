//! Figures and times as [`json`] writes them. A figure keeps its digits in both directions: it is
//! never converted to floating point.

use crate::query::ask::row::rust;
use crate::query::value::json;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;
use serde_json::ser::{CharEscape, Formatter};
use std::fmt;
use std::io::{self, Write};

/// Type of a member: the type of its column.
pub type Text = rust::Text;
pub type Int = rust::Int;
pub use crate::query::ask::row::Numeric;

/// A point in time in µs since 1970 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

/// A 64-bit id. It is a string, because many JSON readers keep only 53 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub i64);

/// A length of time as text. Only people read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interval(pub String);

/// A number with two decimals, as in pg_ash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hundredths(pub i128);

impl From<i64> for Time {
    fn from(us: i64) -> Time {
        Time(us)
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Id {
        Id(number)
    }
}

impl From<i64> for Interval {
    fn from(us: i64) -> Interval {
        Interval(json::interval(us))
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str(&self.0)
    }
}

/// Writes a number from its digits.
fn write<S: Serializer>(digits: &str, to: S) -> Result<S::Ok, S::Error> {
    let number: Number = digits.parse().map_err(S::Error::custom)?;
    number.serialize(to)
}

/// Reads a number as an integer in units of its last decimal.
fn read<'de, D: Deserializer<'de>>(from: D, decimals: usize) -> Result<i128, D::Error> {
    let number = Number::deserialize(from)?;
    let read = json::parse_decimal(number.as_str(), decimals);
    read.ok_or_else(|| D::Error::custom(format!("{number} has no {decimals} decimals")))
}

impl Serialize for Numeric {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        write(&json::numeric(self.0), to)
    }
}

impl<'de> Deserialize<'de> for Numeric {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read(from, 4).map(Numeric)
    }
}

impl Serialize for Hundredths {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        write(&format!("{}.{:02}", self.0 / 100, self.0 % 100), to)
    }
}

impl<'de> Deserialize<'de> for Hundredths {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read(from, 2).map(Hundredths)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&json::time(self.0))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let read = json::parse_time(&text).map(Time);
        read.ok_or_else(|| D::Error::custom(format!("invalid time \"{text}\"")))
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Id).map_err(D::Error::custom)
    }
}

/// Writes as [`json`] does: a blank after `,` and `:`, and no character that a terminal would obey.
pub struct Exact;

impl Formatter for Exact {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        to.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(to, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        to: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut escaped = String::with_capacity(text.len());
        json::write_escaped(&mut escaped, text);
        to.write_all(escaped.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        to: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        let c = match escape {
            CharEscape::Quote => '"',
            CharEscape::ReverseSolidus => '\\',
            CharEscape::Solidus => '/',
            CharEscape::Backspace => '\u{8}',
            CharEscape::FormFeed => '\u{c}',
            CharEscape::LineFeed => '\n',
            CharEscape::CarriageReturn => '\r',
            CharEscape::Tab => '\t',
            CharEscape::AsciiControl(byte) => char::from(byte),
        };
        self.write_string_fragment(to, c.encode_utf8(&mut [0; 4]))
    }
}
