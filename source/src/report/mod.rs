//! The report as a document for people: the JSON of the reader, shown as a
//! page or as Markdown. Figures are shown with two decimals, all else is as
//! the reader says.

mod chart;
mod html;
mod markdown;
mod story;

use crate::time::{offset_text, table_time, timestamp, zone_name};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

pub use html::page;
pub use markdown::text;

/// The document and the zone its times are shown in.
pub struct Report {
    root: Value,
    zone: TimeZone,
}

/// A part of the document.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    value: &'a Value,
    zone: &'a TimeZone,
}

impl Report {
    /// Of the JSON of the reader.
    pub fn new(root: Value, zone: TimeZone) -> Report {
        Report { root, zone }
    }

    fn part(&self) -> Part<'_> {
        Part {
            value: &self.root,
            zone: &self.zone,
        }
    }

    fn zone_name(&self) -> String {
        zone_name(&self.zone)
    }
}

impl<'a> Part<'a> {
    fn get(&self, name: &str) -> Part<'a> {
        Part {
            value: &self.value[name],
            zone: self.zone,
        }
    }

    fn list(&self, name: &str) -> Vec<Part<'a>> {
        let items = self.value[name].as_array();
        let part = |value| Part {
            value,
            zone: self.zone,
        };
        items.into_iter().flatten().map(part).collect()
    }

    /// A text, or a number as it is written.
    fn text(&self, name: &str) -> Option<String> {
        match &self.value[name] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// The same, with a word for what is missing.
    fn shown(&self, name: &str) -> String {
        self.text(name).unwrap_or_else(|| "(none)".to_string())
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.value[name].as_f64()
    }

    /// A number with two decimals.
    fn two(&self, name: &str) -> String {
        self.number(name)
            .map_or_else(|| "unknown".to_string(), |n| format!("{n:.2}"))
    }

    fn moment(&self, name: &str) -> Option<Timestamp> {
        self.value[name].as_str()?.parse().ok()
    }

    /// `2026-11-21 03:12:00`
    fn time(&self, name: &str) -> String {
        let moment = self.moment(name);
        moment.map_or_else(String::new, |at| table_time(at.as_microsecond(), self.zone))
    }

    /// `03:12:00`, of another day with its date.
    fn clock(&self, name: &str, day: Option<Timestamp>) -> String {
        let text = self.time(name);
        let same = day.map(|day| table_time(day.as_microsecond(), self.zone));
        match same {
            Some(day) if day.get(..10) == text.get(..10) => text.get(11..).unwrap_or("").into(),
            _ => text,
        }
    }
}

/// A number of a list.
fn numbers(part: Part, name: &str) -> Vec<Option<f64>> {
    let items = part.value[name].as_array();
    items.into_iter().flatten().map(Value::as_f64).collect()
}

/// A time of day, with seconds where there are any; with its offset where the
/// picture has more than one, so that no two times read the same.
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
