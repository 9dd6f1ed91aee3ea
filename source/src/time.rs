//! Times, intervals and time zones, as people and the server write them.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use tacho_tape::query::{QueryError, QueryResult, Zone};

/// The system's directory of time zones, one file each.
const ZONES: &str = "/usr/share/zoneinfo";

/// SQLSTATE of a time that is not understood.
const INVALID_DATETIME: &str = "22007";

/// µs of each unit of an interval.
const UNITS: [(&str, i64); 22] = [
    ("us", 1),
    ("microseconds", 1),
    ("ms", 1_000),
    ("milliseconds", 1_000),
    ("s", 1_000_000),
    ("sec", 1_000_000),
    ("second", 1_000_000),
    ("seconds", 1_000_000),
    ("m", 60_000_000),
    ("min", 60_000_000),
    ("mins", 60_000_000),
    ("minute", 60_000_000),
    ("minutes", 60_000_000),
    ("h", 3_600_000_000),
    ("hour", 3_600_000_000),
    ("hours", 3_600_000_000),
    ("d", 86_400_000_000),
    ("day", 86_400_000_000),
    ("days", 86_400_000_000),
    ("w", 604_800_000_000),
    ("week", 604_800_000_000),
    ("weeks", 604_800_000_000),
];

/// A time zone by its name, or by a POSIX rule, which is how the server names an offset
/// (`<+02>-02`). The name `local` stands for the reader's zone.
pub fn zone(name: &str) -> QueryResult<TimeZone> {
    if name == "local" {
        return readers_zone();
    }
    if let Some(zone) = zone_of_file(name) {
        return Ok(zone);
    }
    let zone = TimeZone::get(name).or_else(|_| TimeZone::posix(name));
    zone.map_err(|_| unknown(name))
}

/// The reader's time zone as in [`readers_zone`]; UTC if `TZ` is unknown.
pub fn local() -> TimeZone {
    readers_zone().unwrap_or(TimeZone::UTC)
}

/// The reader's time zone as other programs find it: from `TZ`, else from
/// /etc/localtime, else UTC.
///
/// # Errors
/// `TZ` names an unknown zone.
pub fn readers_zone() -> QueryResult<TimeZone> {
    if let Some(zone) = local_name().and_then(|name| zone_of_file(&name)) {
        return Ok(zone);
    }
    let zone = TimeZone::try_system()
        .ok()
        .filter(|zone| !zone.is_unknown());
    match (zone, std::env::var("TZ")) {
        (Some(zone), _) => Ok(zone),
        (None, Ok(name)) if !name.is_empty() => {
            Err(unknown(&name).detail("It is the value of the environment variable TZ."))
        }
        (None, _) => Ok(TimeZone::UTC),
    }
}

fn unknown(name: &str) -> QueryError {
    QueryError::invalid(format!("time zone \"{name}\" not recognized"))
        .hint("Use an IANA name such as Europe/Berlin, or UTC.")
}

/// The name in `TZ`, else the name of the file behind /etc/localtime.
fn local_name() -> Option<String> {
    if let Some(name) = std::env::var_os("TZ") {
        return name.into_string().ok();
    }
    let file = std::fs::read_link("/etc/localtime").ok()?;
    let (_, name) = file.to_str()?.rsplit_once("zoneinfo/")?;
    Some(name.to_string())
}

/// Reads a zone of the system from its file; the name must be spelled as there.
/// The library reads a list of all zones first, which takes longer than a short
/// question. It gets only names that this function does not find.
fn zone_of_file(name: &str) -> Option<TimeZone> {
    if name == "UTC" {
        return Some(TimeZone::UTC);
    }
    let is_elsewhere = std::env::var_os("TZDIR").is_some();
    if is_elsewhere || !name.split('/').all(is_zone_word) {
        return None;
    }
    let tzif = std::fs::read(Path::new(ZONES).join(name)).ok()?;
    TimeZone::tzif(name, &tzif).ok()
}

/// Whether a word may be part of a zone's name. Names of other files, and of other
/// sets of zones, begin with a small letter.
fn is_zone_word(word: &str) -> bool {
    let is_of_name = |c: u8| c.is_ascii_alphanumeric() || b"_+-".contains(&c);
    word.starts_with(|c: char| c.is_ascii_uppercase()) && word.bytes().all(is_of_name)
}

/// Name of a zone, shown beside times.
pub fn zone_name(zone: &TimeZone) -> String {
    if is_utc(zone) {
        return "UTC".to_string();
    }
    match (zone.iana_name(), fixed_offset(zone)) {
        (Some(name), _) => name.to_string(),
        (None, Some(seconds)) => format!("UTC{}", offset(seconds)),
        (None, None) => "local time".to_string(),
    }
}

/// Calendar of a time zone.
pub struct Calendar(pub TimeZone);

impl Zone for Calendar {
    fn offset(&self, at_us: i64) -> i64 {
        i64::from(self.0.to_offset(timestamp(at_us)).seconds()) * 1_000_000
    }

    fn next_change(&self, at_us: i64) -> Option<i64> {
        let next = self.0.following(timestamp(at_us)).next()?;
        Some(next.timestamp().as_microsecond()).filter(|next| *next > at_us)
    }
}

/// An instant; a value out of range becomes the nearest in range.
pub fn timestamp(us: i64) -> Timestamp {
    let end = if us < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::from_microsecond(us).unwrap_or(end)
}

/// Parses an interval into µs: `90s`, `1h30m`, `1 day`, `00:01:00`, `60000000us`.
/// A bare number is seconds.
pub fn interval(text: &str) -> QueryResult<i64> {
    parse_interval(text.trim()).ok_or_else(|| {
        QueryError::new(INVALID_DATETIME, format!("invalid interval \"{text}\""))
            .hint("Use the form 30s, 5m, 1h30m or 1d.")
    })
}

/// Parses a duration in an option of a program like [`interval`]. A bare number is
/// in `unit`, or refused without one.
///
/// # Errors
/// The text is not a duration; the message says how to write one.
pub fn option(text: &str, unit: Option<&str>) -> Result<Duration, String> {
    let text = text.trim();
    let is_bare = text.bytes().all(|b| b.is_ascii_digit());
    let has_units = text.ends_with(|c: char| c.is_ascii_alphabetic()) || text.contains(':');
    let us = match unit {
        Some(unit) if is_bare => interval(&format!("{text}{unit}")).ok(),
        _ if has_units => interval(text).ok(),
        _ => None,
    };
    let us = us.and_then(|us| u64::try_from(us).ok());
    us.map(Duration::from_micros)
        .ok_or_else(|| "must have the form 500ms, 30s, 5m or 1h30m".to_string())
}

/// A duration in the form that [`interval`] reads.
pub fn length(us: i64) -> String {
    let units = [
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("m", 60_000_000),
        ("s", 1_000_000),
    ];
    let whole = units
        .iter()
        .find(|(_, width)| us >= *width && us % width == 0);
    match whole {
        Some((unit, width)) => format!("{}{unit}", us / width),
        None => format!("{us}us"),
    }
}

fn parse_interval(text: &str) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    if text.contains(':') {
        let mut words = text.split(':').map(|word| word.parse::<i64>().ok());
        let (h, m, s) = (
            words.next()??,
            words.next()??,
            words.next().unwrap_or(Some(0))?,
        );
        let minutes = h.checked_mul(60)?.checked_add(m)?;
        let seconds = minutes.checked_mul(60)?.checked_add(s)?;
        return seconds.checked_mul(sign * 1_000_000);
    }
    let mut sum: i64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let number: i64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "" => 1_000_000,
            unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
        };
        sum = sum.checked_add(number.checked_mul(unit)?)?;
        rest = rest[letters..].trim_start();
    }
    (!text.is_empty()).then_some(sign * sum)
}

/// Parses a moment into µs: `now`, `1h` (ago), `03:12` (the last one), `yesterday
/// 14:00`, `2026-11-21 03:12`, RFC 3339. Without an offset it is in `zone`.
/// PostgreSQL's rules apply to clock changes: if a time happens twice, the second is
/// meant; a skipped time is read with the offset before the change.
pub fn moment(text: &str, now_us: i64, zone: &TimeZone) -> QueryResult<i64> {
    parse_moment(text.trim(), now_us, zone).ok_or_else(|| {
        QueryError::new(INVALID_DATETIME, format!("invalid time \"{text}\"")).hint(
            "Use the form now, 1h, 03:12, \"yesterday 14:00\", \"2026-11-21 03:12\" or 2026-11-21T03:12:00Z.",
        )
    })
}

fn parse_moment(text: &str, now_us: i64, zone: &TimeZone) -> Option<i64> {
    if text == "now" {
        return Some(now_us);
    }
    if let Some(rfc) = rfc3339(text) {
        return Some(rfc);
    }
    let local = |at: DateTime| {
        let zoned = zone.to_ambiguous_zoned(at).later().ok()?;
        Some(zoned.timestamp().as_microsecond())
    };
    let today = zone.to_datetime(timestamp(now_us)).date();
    for (word, date) in [
        ("today", Some(today)),
        ("yesterday", today.yesterday().ok()),
    ] {
        if let Some(rest) = text.strip_prefix(word) {
            let time = match rest.trim() {
                "" => Time::midnight(),
                time => clock(time)?,
            };
            return local(DateTime::from_parts(date?, time));
        }
    }
    if let Some(time) = clock(text) {
        let at = local(DateTime::from_parts(today, time))?;
        if at <= now_us {
            return Some(at);
        }
        return local(DateTime::from_parts(today.yesterday().ok()?, time));
    }
    if text.contains('-') && !text.starts_with('-') {
        let at = text.parse::<DateTime>();
        return local(
            at.or_else(|_| {
                text.parse::<Date>()
                    .map(|d| d.to_datetime(Time::midnight()))
            })
            .ok()?,
        );
    }
    if text.contains(':') {
        return None;
    }
    let ago = text.strip_suffix("ago").unwrap_or(text).trim();
    let ago = parse_interval(ago.trim_start_matches('-'))?;
    now_us.checked_sub(ago)
}

/// A time with an offset in µs since 1970; `None` for other texts.
fn rfc3339(text: &str) -> Option<i64> {
    let at: Timestamp = text.parse().ok()?;
    Some(at.as_microsecond())
}

fn clock(text: &str) -> Option<Time> {
    let colon = text.contains(':') && text.starts_with(|c: char| c.is_ascii_digit());
    if !colon || text.contains('-') {
        return None;
    }
    text.parse().ok()
}

/// Writes a time in µs since 1970 in the form that COPY takes:
/// `2026-11-21 03:12:00.000000+00`
pub fn copy_time(us: i64) -> String {
    let at = TimeZone::UTC.to_datetime(timestamp(us));
    at.strftime("%Y-%m-%d %H:%M:%S.%6f+00").to_string()
}

/// `2026-11-21 03:12:00` in UTC, `2026-11-21 04:12:00+01` elsewhere. The offset
/// distinguishes the two hours of a clock change.
pub fn table_time(us: i64, zone: &TimeZone) -> String {
    let at = zone.to_datetime(timestamp(us));
    let time = at.strftime("%Y-%m-%d %H:%M:%S").to_string();
    match is_utc(zone) {
        true => time,
        false => time + &offset_text(us, zone),
    }
}

/// The offset of a zone at an instant: `+01`, `-03:30`.
pub fn offset_text(us: i64, zone: &TimeZone) -> String {
    offset(zone.to_offset(timestamp(us)).seconds())
}

/// Whether a zone has always been UTC, under any name. Its times are shown without
/// an offset.
pub fn is_utc(zone: &TimeZone) -> bool {
    fixed_offset(zone) == Some(0)
}

/// Seconds ahead of UTC, if the zone's clock never changes.
fn fixed_offset(zone: &TimeZone) -> Option<i32> {
    let changes = zone.following(Timestamp::MIN).next().is_some();
    let seconds = zone.to_offset(Timestamp::UNIX_EPOCH).seconds();
    (!changes).then_some(seconds)
}

/// Writes the offset of a zone in hours and minutes: `+01`, `-03:30`.
fn offset(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    match minutes % 60 {
        0 => format!("{sign}{:02}", minutes / 60),
        rest => format!("{sign}{:02}:{rest:02}", minutes / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_tape::query::bucket::Buckets;

    /// 2026-11-21 03:12:00 UTC
    const NOW: i64 = 1_795_230_720_000_000;
    const HOUR: i64 = 3_600_000_000;

    fn at(text: &str, zone_name: &str) -> i64 {
        moment(text, NOW, &zone(zone_name).unwrap()).unwrap()
    }

    #[test]
    fn moments_are_written_in_many_ways() {
        for text in [
            "now",
            "0s",
            "03:12",
            "today 03:12",
            "2026-11-21 03:12",
            "2026-11-21T03:12:00",
            "2026-11-21T03:12:00Z",
            "2026-11-21T04:12:00.000000+01:00",
            "2026-11-21 03:12:00+00",
        ] {
            assert_eq!(at(text, "UTC"), NOW, "{text}");
        }
        assert_eq!(at("1h", "UTC"), NOW - HOUR);
        assert_eq!(at("1h30m ago", "UTC"), NOW - HOUR * 3 / 2);
        assert_eq!(at("03:13", "UTC"), NOW + 60_000_000 - 24 * HOUR);
        assert_eq!(at("2026-11-21", "UTC"), NOW - 192 * 60_000_000);
    }

    #[test]
    fn times_without_offset_are_local() {
        assert_eq!(at("04:12", "Europe/Berlin"), NOW);
        let yesterday = at("yesterday 14:00", "Europe/Berlin");
        assert_eq!(copy_time(yesterday), "2026-11-20 13:00:00.000000+00");
    }

    /// Each is `timestamptz '…'` in PostgreSQL under that `TimeZone`.
    #[test]
    fn a_time_that_happens_twice_or_never_is_the_one_of_the_server() {
        for (text, name, expected) in [
            (
                "2026-10-25 01:59:59",
                "Europe/Berlin",
                "2026-10-24 23:59:59",
            ),
            ("2026-10-25 02:00", "Europe/Berlin", "2026-10-25 01:00:00"),
            (
                "2026-10-25 02:59:59",
                "Europe/Berlin",
                "2026-10-25 01:59:59",
            ),
            ("2026-10-25 03:00", "Europe/Berlin", "2026-10-25 02:00:00"),
            ("2026-03-29 02:00", "Europe/Berlin", "2026-03-29 01:00:00"),
            ("2026-03-29 02:30", "Europe/Berlin", "2026-03-29 01:30:00"),
            (
                "2026-11-01 01:30",
                "America/New_York",
                "2026-11-01 06:30:00",
            ),
            (
                "2026-03-08 02:30",
                "America/New_York",
                "2026-03-08 07:30:00",
            ),
            (
                "2026-04-05 01:45",
                "Australia/Lord_Howe",
                "2026-04-04 15:15:00",
            ),
            (
                "2026-10-04 02:15",
                "Australia/Lord_Howe",
                "2026-10-03 15:45:00",
            ),
            ("2014-10-26 01:30", "Europe/Moscow", "2014-10-25 22:30:00"),
            ("2026-10-25 01:30", "Europe/Dublin", "2026-10-25 01:30:00"),
            ("2011-12-30 12:00", "Pacific/Apia", "2011-12-30 22:00:00"),
        ] {
            let found = copy_time(at(text, name));
            assert_eq!(found, format!("{expected}.000000+00"), "{text}, {name}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_a_hint() {
        for text in ["", "soon", "25:00", "2026-13-01", "1x"] {
            let error = moment(text, NOW, &TimeZone::UTC).unwrap_err();
            assert_eq!(error.message, format!("invalid time \"{text}\""));
            assert_eq!(error.sqlstate, "22007");
        }
        assert_eq!(
            zone("Europe/Atlantis").unwrap_err().message,
            "time zone \"Europe/Atlantis\" not recognized"
        );
    }

    #[test]
    fn intervals_are_written_in_many_ways() {
        for text in [
            "60",
            "60s",
            "1m",
            "1 minute",
            "00:01:00",
            "60000000us",
            "0h1m",
        ] {
            assert_eq!(interval(text).unwrap(), 60_000_000, "{text}");
        }
        assert_eq!(interval("-1s").unwrap(), -1_000_000);
        assert_eq!(interval("0us").unwrap(), 0);
        assert!(interval("").is_err() && interval("m").is_err());
    }

    #[test]
    fn an_option_may_have_a_unit_of_its_own() {
        let ms = |text| option(text, Some("ms")).map(|time| time.as_millis());
        for (text, expected) in [
            ("1000", 1_000),
            ("1s", 1_000),
            ("250ms", 250),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("00:00:02", 2_000),
            ("0", 0),
        ] {
            assert_eq!(ms(text), Ok(expected), "{text}");
        }
        assert_eq!(option("5m", None), Ok(Duration::from_secs(300)));
        assert!(option("5", None).is_err());
        for text in [
            "",
            "m",
            "-1",
            "-1s",
            "1x",
            "1h30",
            "5 m 3 x",
            "99999999999999999999h",
        ] {
            assert!(ms(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_printed_as_the_server_does() {
        assert_eq!(copy_time(NOW), "2026-11-21 03:12:00.000000+00");
    }

    #[test]
    fn both_hours_of_a_clock_change_are_distinct() {
        let berlin = zone("Europe/Berlin").unwrap();
        let first = at("2026-10-25T00:30:00Z", "UTC");
        assert_eq!(table_time(first, &berlin), "2026-10-25 02:30:00+02");
        assert_eq!(table_time(first + HOUR, &berlin), "2026-10-25 02:30:00+01");
        let kolkata = zone("Asia/Kolkata").unwrap();
        assert_eq!(table_time(NOW, &kolkata), "2026-11-21 08:42:00+05:30");
        let newfoundland = zone("America/St_Johns").unwrap();
        assert_eq!(table_time(NOW, &newfoundland), "2026-11-20 23:42:00-03:30");
        assert_eq!(
            table_time(NOW, &zone("UTC").unwrap()),
            "2026-11-21 03:12:00"
        );
    }

    #[test]
    fn a_zone_is_called_by_its_name_or_its_offset() {
        for (name, shown) in [
            ("Europe/Berlin", "Europe/Berlin"),
            ("Etc/UTC", "UTC"),
            ("UTC", "UTC"),
            ("<+02>-02", "UTC+02"),
            ("<-0330>3:30", "UTC-03:30"),
            ("UTC0", "UTC"),
        ] {
            assert_eq!(zone_name(&zone(name).unwrap()), shown);
        }
        let summer = zone("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(zone_name(&summer), "local time");
        assert_eq!(table_time(NOW, &summer), "2026-11-21 04:12:00+01");
    }

    /// Every zone that the library knows is compared with the library's own
    /// answer.
    #[test]
    fn a_zone_read_from_its_file_is_the_one_that_the_library_finds() {
        let mut compared = 0;
        for name in jiff::tz::db().available() {
            let name = name.as_str();
            let found = TimeZone::get(name).unwrap();
            let same = match zone_of_file(name) {
                Some(zone) => zone == found && zone.iana_name() == found.iana_name(),
                None => !is_zone_word(name),
            };
            assert!(same, "{name}");
            compared += 1;
        }
        assert!(compared > 300, "{compared} zones");
    }

    #[test]
    fn files_are_searched_only_for_names_of_zones() {
        for name in [
            "",
            "/etc/passwd",
            "../../../etc/passwd",
            "Europe/../Europe/Berlin",
            "Europe",
            "Europe/",
            "right/Europe/Berlin",
            "posixrules",
            "tzdata.zi",
        ] {
            assert!(zone_of_file(name).is_none(), "{name}");
        }
        let berlin = zone("europe/BERLIN").unwrap();
        assert_eq!(zone_name(&berlin), "Europe/Berlin");
    }

    #[test]
    fn a_calendar_knows_when_its_clock_is_changed() {
        let berlin = Calendar(zone("Europe/Berlin").unwrap());
        let winter = at("2026-10-25T01:00:00Z", "UTC");
        assert_eq!(berlin.next_change(winter - 1), Some(winter));
        assert_eq!(berlin.offset(winter - 1), 2 * HOUR);
        assert_eq!(berlin.offset(winter), HOUR);
        for end in [i64::MIN, i64::MAX] {
            berlin.offset(end);
            let next = berlin.next_change(end);
            assert!(next.is_none_or(|next| next > end), "{next:?}");
        }
        assert_eq!(Calendar(TimeZone::UTC).next_change(0), None);
    }

    /// Begins of buckets within a window, found by looking at the clock each
    /// minute.
    fn looked_up(calendar: &Calendar, since: i64, until: i64, width: i64) -> Vec<i64> {
        const MINUTE: i64 = 60_000_000;
        let is_short = width <= HOUR;
        let mut begins = Vec::new();
        let (mut ahead, mut most, mut multiple) = (i64::MIN, i64::MIN, i64::MIN);
        // The clock may have been put back before the window.
        let from = since - 48 * HOUR;
        for at in (from..until).step_by(MINUTE as usize) {
            let offset = calendar.offset(at);
            most = most.max(at + offset);
            let shown = if is_short { at + offset } else { most };
            let is_new = shown.div_euclid(width) != multiple || (is_short && offset != ahead);
            if is_new && at > since {
                begins.push(at);
            }
            (ahead, multiple) = (offset, shown.div_euclid(width));
        }
        begins
    }

    #[test]
    fn buckets_begin_where_a_clock_passes_a_multiple() {
        for (name, change) in [
            ("Europe/Berlin", "2025-03-30T01:00Z"),
            ("Europe/Berlin", "2025-10-26T01:00Z"),
            ("Asia/Kathmandu", "2025-06-01T00:10Z"),
            ("Australia/Lord_Howe", "2025-04-05T15:00Z"),
            ("Australia/Lord_Howe", "2025-10-04T15:30Z"),
            ("America/Sao_Paulo", "2018-11-04T03:00Z"),
            ("Pacific/Apia", "2011-12-30T10:00Z"),
            ("<+0330>-03:30", "2025-01-01T00:00Z"),
            ("UTC", "2025-03-30T01:00Z"),
        ] {
            let calendar = Calendar(zone(name).unwrap());
            let change = rfc3339(change).unwrap();
            let (since, until) = (change - 30 * HOUR, change + 40 * HOUR);
            for minutes in [1, 7, 30, 60, 90, 360, 1_440, 2_160, 10_080] {
                let width = minutes * 60_000_000;
                let buckets = Buckets::new(since, until, width, Some(&calendar), 10_000).unwrap();
                let begins: Vec<i64> = (1..buckets.len()).map(|i| buckets.start(i)).collect();
                let expected = looked_up(&calendar, since, until, width);
                assert_eq!(begins, expected, "{minutes} minutes, {name}");
                assert!(buckets.start(0) <= since && buckets.start(buckets.len()) >= until);
                for (i, begin) in begins.iter().enumerate() {
                    assert_eq!(buckets.index(*begin), Some(i + 1));
                    assert_eq!(buckets.index(begin - 1), Some(i));
                }
            }
        }
    }
}
