//! The report as a document for people: the reader's answer as a page or as
//! Markdown. Figures are shown with two decimals, everything else as the reader
//! gives it.

mod chart;
mod findings;
mod html;
mod markdown;
mod story;

use crate::time::{offset_text, table_time, timestamp, zone_name};
use jiff::tz::TimeZone;
use tacho_tape::query::report::{Document, Explanation, Key, Text, Time};
use tacho_tape::query::{Numeric, QueryResult};

pub use findings::{Facts, Finding, findings};
pub use html::page;
pub use markdown::text;

/// The document and the zone its times are shown in.
pub struct Report {
    document: Document,
    zone: TimeZone,
}

impl Report {
    /// Parses the reader's JSON.
    ///
    /// # Errors
    /// The JSON is not a report.
    pub fn new(json: &str, zone: TimeZone) -> QueryResult<Report> {
        let document = Document::parse(json)?;
        Ok(Report { document, zone })
    }

    fn zone_name(&self) -> String {
        zone_name(&self.zone)
    }

    /// A time in the report's zone: `2026-11-21 03:12:00`. Empty for `None`.
    fn time(&self, at: Option<Time>) -> String {
        at.map_or_else(String::new, |at| table_time(at.0, &self.zone))
    }

    /// The time of day, such as `03:12:00`; with the date if it is another day than `day`.
    fn clock(&self, at: Option<Time>, day: Option<Time>) -> String {
        let text = self.time(at);
        let same = day.map(|day| self.time(Some(day)));
        match same {
            Some(day) if day.get(..10) == text.get(..10) => text.get(11..).unwrap_or("").into(),
            _ => text,
        }
    }

    /// Begin, end and time zone of the report.
    fn title(&self) -> String {
        let period = &self.document.period;
        let (start, end) = (period.period_start, period.period_end);
        let zone = self.zone_name();
        format!("{} to {} {zone}", self.time(start), self.clock(end, start))
    }
}

/// Load by database, user and application: the kind of name, and the name with
/// its load.
fn whose(document: &Document) -> impl Iterator<Item = (&'static str, &Key)> {
    let kinds = [
        ("database", &document.databases),
        ("user", &document.users),
        ("application", &document.applications),
    ];
    let kinds = kinds.into_iter();
    kinds.flat_map(|(kind, keys)| keys.iter().map(move |key| (kind, key)))
}

/// The rows of `changes`; none if the earlier window was not recorded, because all load
/// is new then.
fn explained(document: &Document) -> &[Explanation] {
    let all = document.findings.as_slice();
    let recorded = all.first().and_then(|row| row.before_coverage_pct);
    match recorded {
        Some(Numeric(1..)) => all,
        _ => &[],
    }
}

/// A text, or "(none)" if it is missing.
fn named(text: &Option<impl AsRef<str>>) -> &str {
    text.as_ref().map_or("(none)", AsRef::as_ref)
}

/// The text of a query, or its key if the text is missing.
fn query_name<'a>(text: &'a Option<Text>, key: &'a Option<Text>) -> &'a str {
    text.as_deref().unwrap_or_else(|| named(key))
}

/// A text or a whole number; empty if missing.
fn or_nothing(text: &Option<impl ToString>) -> String {
    text.as_ref().map_or_else(String::new, ToString::to_string)
}

/// A number with two decimals.
fn two(number: Option<Numeric>) -> String {
    number.map_or_else(|| "unknown".to_string(), |n| format!("{:.2}", n.to_f64()))
}

/// A time of day, with seconds unless they are 0. If the picture has more than
/// one offset from UTC, the label shows it: no two times read the same.
fn tick_label(us: i64, zone: &TimeZone, days: bool, offsets: bool) -> String {
    let at = zone.to_datetime(timestamp(us));
    let format = match (days, at.second()) {
        (true, _) => "%m-%d %H:%M",
        (false, 0) => "%H:%M",
        (false, _) => "%H:%M:%S",
    };
    let label = at.strftime(format).to_string();
    match offsets {
        true => label + &offset_text(us, zone),
        false => label,
    }
}
