//! Chooses the objects (databases, replicas, slots, kinds of I/O) that get series of
//! their own. A measurement has a limited number of series. The busiest objects get
//! one and keep it for a day: a counter that moved to `(other)` and back would look
//! to Prometheus as if it had been reset.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Shared name of all objects without a series.
const OTHERS: &str = "(other)";
/// Maximum number of series of a measurement.
pub const MOST_OBJECTS: usize = 50;

/// Values by measurement and object.
pub type Values<V> = BTreeMap<(&'static str, String), V>;

/// The objects that have series, by measurement.
#[derive(Clone, Debug, Default)]
pub struct Series {
    day: i64,
    taken: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Series {
    /// Frees all series on another day.
    pub fn begin(&mut self, day: i64) {
        if self.day != day {
            *self = Series {
                day,
                ..Series::default()
            };
        }
    }

    /// Gives free series to the objects with the largest values; among equals the
    /// first by name.
    pub fn fill<V: Ord + Copy>(&mut self, values: &Values<V>) {
        let mut by_size: Vec<_> = values.iter().collect();
        by_size.sort_by_key(|(key, value)| (Reverse(**value), *key));
        for ((name, object), _) in by_size {
            let taken = self.taken.entry(name).or_default();
            if taken.len() < MOST_OBJECTS {
                taken.insert(object.clone());
            }
        }
    }

    /// Joins the values of all objects without series into one.
    pub fn bounded<V>(&self, values: Values<V>, join: impl Fn(V, V) -> V) -> Values<V> {
        let mut all = Values::new();
        for ((name, object), value) in values {
            let has_series = self.taken.get(name).is_some_and(|t| t.contains(&object));
            let object = if has_series {
                object
            } else {
                OTHERS.to_string()
            };
            add(&mut all, (name, object), value, &join);
        }
        all
    }
}

/// Adds a value; `join` combines it with a value of the same key.
pub fn add<V>(
    values: &mut Values<V>,
    key: (&'static str, String),
    value: V,
    join: impl Fn(V, V) -> V,
) {
    let joined = match values.remove(&key) {
        Some(before) => join(before, value),
        None => value,
    };
    values.insert(key, joined);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(values: impl IntoIterator<Item = (usize, i128)>) -> Values<i128> {
        let named = |(i, value)| (("xact_commit", format!("d{i:02}")), value);
        values.into_iter().map(named).collect()
    }

    fn objects(values: &Values<i128>) -> Vec<&str> {
        values.keys().map(|(_, object)| object.as_str()).collect()
    }

    #[test]
    fn the_busiest_have_series_and_the_others_are_added_up() {
        let values = counted((0..60).map(|i| (i, 100 + i as i128)));
        let mut series = Series::default();
        series.fill(&values);
        let bounded = series.bounded(values.clone(), |a, b| a + b);
        let wanted: Vec<String> = (10..60).map(|i| format!("d{i}")).collect();
        assert_eq!(objects(&bounded)[1..], wanted);
        assert_eq!(objects(&bounded)[0], OTHERS);
        let others = ("xact_commit", OTHERS.to_string());
        assert_eq!(bounded[&others], (100..110).sum());
    }

    #[test]
    fn a_series_is_kept_until_the_day_is_over() {
        let mut series = Series::default();
        series.begin(1);
        series.fill(&counted((0..60).map(|i| (i, i as i128))));
        let busy = counted([(3, 1_000), (59, 1)]);
        let shown = |series: &mut Series| {
            series.fill(&busy);
            let bounded = series.bounded(busy.clone(), |a, b| a + b);
            objects(&bounded).join(" ")
        };
        series.begin(1);
        assert_eq!(shown(&mut series), "(other) d59");
        series.begin(2);
        assert_eq!(shown(&mut series), "d03 d59");
    }

    #[test]
    fn a_newcomer_gets_a_free_series() {
        let mut series = Series::default();
        series.fill(&counted([(1, 5)]));
        let more = counted([(1, 5), (2, 9)]);
        series.fill(&more);
        let bounded = series.bounded(more, |a, b| a + b);
        assert_eq!(objects(&bounded), ["d01", "d02"]);
    }
}
