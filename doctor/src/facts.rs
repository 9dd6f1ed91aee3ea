//! The rows of `status`, whether a server or a directory of history gave them.

use std::collections::BTreeMap;

/// Longest sampling interval, in ms.
const LONGEST_MS: i64 = 60_000;

/// If the last sample is older than this, in seconds, recording has stopped: three intervals, at
/// least a minute. An unknown interval counts as the longest one.
pub fn silent_s(interval_ms: Option<i64>) -> i64 {
    (3 * interval_ms.unwrap_or(LONGEST_MS) / 1_000).max(60)
}

/// Metrics that have a value, by name.
#[derive(Debug, Default)]
pub struct Facts(pub BTreeMap<String, String>);

impl Facts {
    /// The facts with these names and values, for tests.
    #[cfg(test)]
    pub fn of(metrics: &[(&str, &str)]) -> Facts {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        Facts(metrics.iter().map(owned).collect())
    }

    pub fn text(&self, metric: &str) -> Option<&str> {
        self.0.get(metric).map(String::as_str)
    }

    pub fn number(&self, metric: &str) -> Option<i64> {
        self.text(metric)?.parse().ok()
    }

    /// The value of a metric that is a count; 0 if it is not known.
    pub fn count(&self, metric: &str) -> i64 {
        self.number(metric).unwrap_or(0)
    }
}

/// A size for people: `53 kB`, `6.3 MB`.
pub fn size(bytes: f64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match units.iter().find(|unit| bytes >= unit.1) {
        Some((name, unit)) => format!("{:.1} {name}", bytes / unit),
        None => format!("{bytes:.0} bytes"),
    }
}

/// A length of time for people, in the largest unit that fits: `45 s`, `3 h`, `12 days`.
pub fn length(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{} s", seconds.max(0)),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_longer_than_the_interval() {
        let silent = [Some(100), Some(20_000), Some(30_000), Some(60_000), None].map(silent_s);
        assert_eq!(silent, [60, 60, 90, 180, 180]);
    }

    #[test]
    fn sizes_and_lengths_have_the_largest_unit_that_fits() {
        let sizes = [999.0, 53_242.0, 6_300_000.0, 2e9].map(size);
        assert_eq!(sizes, ["999 bytes", "53.2 kB", "6.3 MB", "2.0 GB"]);
        let lengths = [45, 119, 120, 7_199, 7_200, 172_799, 172_800].map(length);
        assert_eq!(
            lengths,
            ["45 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 days"]
        );
    }
}
