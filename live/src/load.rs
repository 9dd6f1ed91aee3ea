//! The load picture as numbers: the average active sessions of each class in
//! each column of time.

use crate::paint::rank;
use std::collections::BTreeMap;
use tacho_source::rows::count;
use tacho_tape::query::{Numeric, TimelineRow};

/// A column: classes with their average active sessions, bottom first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    pub classes: Vec<(String, f64)>,
    /// True if at least one tick was recorded in the column's time.
    pub observed: bool,
}

impl Column {
    pub fn total(&self) -> f64 {
        self.classes.iter().map(|class| class.1).sum()
    }
}

/// Columns by their begin in µs since 1970, and their width in µs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    pub width: i64,
    pub columns: BTreeMap<i64, Column>,
    /// Number of CPUs of the server, as last recorded.
    pub vcpus: Option<f64>,
}

impl Load {
    /// Makes the columns from the rows of `timeline` by wait class.
    pub fn of(rows: Vec<TimelineRow>, width: i64) -> Load {
        let mut load = Load {
            width,
            ..Load::default()
        };
        for row in rows {
            let Some(begin) = row.bucket_start else {
                continue;
            };
            let column = load.columns.entry(begin).or_default();
            column.observed = count(row.ticks_observed) > 0;
            let aas = row.avg_aas.map_or(0.0, Numeric::to_f64);
            if let (Some(class), true) = (row.key, aas > 0.0) {
                column.classes.push((class.to_string(), aas));
            }
            load.vcpus = row.vcpus.map(Numeric::to_f64).or(load.vcpus);
        }
        for column in load.columns.values_mut() {
            column.classes.sort_by_key(|class| rank(&class.0));
        }
        load
    }

    /// The load of the largest column, in average active sessions.
    pub fn peak(&self) -> f64 {
        let totals = self.columns.values().map(Column::total);
        totals.fold(0.0, f64::max)
    }

    /// All classes, bottom first.
    pub fn classes(&self) -> Vec<&str> {
        let columns = self.columns.values();
        let all = columns.flat_map(|column| column.classes.iter().map(|class| class.0.as_str()));
        let mut all: Vec<&str> = all.collect();
        all.sort_by_key(|class| (rank(class), *class));
        all.dedup();
        all
    }
}

/// The next larger number that reads well: 1, 2, 4, 5, 6 or 8 times a power of
/// ten.
pub fn nice(most: f64) -> f64 {
    let most = most.max(1.0);
    let power = 10f64.powf(most.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let step = steps.iter().find(|step| *step * power >= most - 1e-9);
    step.unwrap_or(&10.0) * power
}

#[cfg(test)]
mod tests {
    use super::nice;

    #[test]
    fn an_axis_ends_at_a_number_that_reads_well() {
        for (most, end) in [
            (0.0, 1.0),
            (1.0, 1.0),
            (1.2, 2.0),
            (3.0, 4.0),
            (7.0, 8.0),
            (16.1, 20.0),
            (100.0, 100.0),
            (101.0, 200.0),
        ] {
            assert!((nice(most) - end).abs() < 1e-9, "{most}: {}", nice(most));
        }
    }
}
