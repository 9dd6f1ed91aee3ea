//! Names of objects: `TABLE/server=NAME/day=DAY/HOUR-NODE-GENERATION.parquet`. A
//! name depends on the shipped rows alone, so that everyone who ships them gives
//! the same name. If an hour has several generations, the greatest counts.

use jiff::Timestamp;
use std::fmt::Write as _;

/// An hour of a node, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HourId {
    /// Random number of the recorder's directory.
    pub node: u64,
    /// Hours since 1970 UTC.
    pub hour: i64,
    /// Twice the known number of ticks and markers of the hour, plus one if
    /// nothing of the hour is damaged: 7205 for 3,600 ticks and 2 markers. It only
    /// grows; after a repair it is greater.
    pub generation: u64,
}

/// Seconds of an hour.
const SECONDS: i64 = 3_600;
/// End of every object's name.
const SUFFIX: &str = ".parquet";

impl HourId {
    /// An hour with `count` ticks and markers.
    pub fn new(node: u64, hour: i64, count: u64, is_whole: bool) -> HourId {
        HourId {
            node,
            hour,
            generation: count.saturating_mul(2).saturating_add(u64::from(is_whole)),
        }
    }

    /// The directory of the hour's objects of a table.
    pub fn directory(self, table: &str, server: &str) -> String {
        format!("{}/day={}", directory(table, server), day(self.hour))
    }

    /// The name of the hour's object of a table.
    pub fn object(self, table: &str, server: &str) -> String {
        format!("{}/{}", self.directory(table, server), self.file())
    }

    fn file(self) -> String {
        let hour = self.hour.rem_euclid(24);
        let (node, generation) = (self.node, self.generation);
        format!("{hour:02}-{node:016x}-{generation:08}{SUFFIX}")
    }

    /// The hour that the name of an object in the directory of this hour's day means; `None` for
    /// other names.
    pub fn parse_file_name(self, file: &str) -> Option<HourId> {
        let mut words = file.strip_suffix(SUFFIX)?.split('-');
        let hour: i64 = words.next()?.parse().ok()?;
        let hour_id = HourId {
            hour: self.hour - self.hour.rem_euclid(24) + hour,
            node: u64::from_str_radix(words.next()?, 16).ok()?,
            generation: words.next()?.parse().ok()?,
        };
        (hour_id.file() == file && words.next().is_none()).then_some(hour_id)
    }
}

/// The directory of a server's objects of a table.
pub fn directory(table: &str, server: &str) -> String {
    format!("{table}/server={}", escaped(server))
}

/// The UTC day of an hour.
fn day(hour: i64) -> String {
    let second = hour.saturating_mul(SECONDS);
    let time = Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%d").to_string()
}

/// Encodes a value of a partition as Hive does; engines decode it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => {
                escaped.push(char::from(byte));
            }
            _ => {
                let _ = write!(escaped, "%{byte:02X}");
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: HourId = HourId {
        node: 0xAB,
        hour: 491_763,
        generation: 3_601,
    };

    #[test]
    fn an_object_is_named_after_its_contents() {
        let name = UNIT.object("ticks", "shop");
        let wanted = "ticks/server=shop/day=2026-02-06/03-00000000000000ab-00003601.parquet";
        assert_eq!(name, wanted);
        let file = "03-00000000000000ab-00003601.parquet";
        let other = HourId {
            hour: 491_780,
            ..UNIT
        };
        assert_eq!(other.parse_file_name(file), Some(UNIT));
        for file in [
            "3-00000000000000ab-00003601.parquet",
            "03-ab-00003601.parquet",
            "03-00000000000000ab-00003601.parquet#1",
            "03-00000000000000ab-00003601-1.parquet",
            "03-00000000000000ab-+0003601.parquet",
            ".parquet",
            "",
        ] {
            assert_eq!(UNIT.parse_file_name(file), None, "{file}");
        }
    }

    #[test]
    fn no_name_of_a_server_leaves_its_directory() {
        let of = |server| UNIT.directory("ticks", server);
        assert_eq!(of("../.."), "ticks/server=..%2F../day=2026-02-06");
        assert_eq!(of("a/b=c d"), "ticks/server=a%2Fb%3Dc%20d/day=2026-02-06");
        assert_eq!(of("%2F"), "ticks/server=%252F/day=2026-02-06");
        assert_eq!(of("ä\n"), "ticks/server=%C3%A4%0A/day=2026-02-06");
    }

    #[test]
    fn a_generation_of_more_digits_is_a_name_too() {
        let hour_id = HourId {
            generation: 123_456_789,
            ..UNIT
        };
        assert_eq!(UNIT.parse_file_name(&hour_id.file()), Some(hour_id));
    }
}
