//! A load in consecutive buckets, and the search for the time at which it changed.

use crate::fast::FastMap;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::integers::Id;
use crate::query::rows::parse::MAX_BUCKETS;
use crate::query::rows::scan::Scan;
use crate::query::rows::ticks::Observed;
use crate::query::sums::cells::Cells;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;

/// A load: `num / den` sessions. The denominator is positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub num: i128,
    pub den: i128,
}

impl Level {
    pub fn exceeds(self, other: Level) -> bool {
        self.num.saturating_mul(other.den) > other.num.saturating_mul(self.den)
    }

    pub fn times(self, factor: Level) -> Level {
        Level {
            num: self.num.saturating_mul(factor.num),
            den: self.den.saturating_mul(factor.den),
        }
    }

    pub fn plus(self, other: Level) -> Level {
        Level {
            num: (self.num.saturating_mul(other.den))
                .saturating_add(other.num.saturating_mul(self.den)),
            den: self.den.saturating_mul(other.den),
        }
    }

    /// The mean of two.
    pub fn middle(self, other: Level) -> Level {
        let sum = self.plus(other);
        Level {
            den: sum.den.saturating_mul(2),
            ..sum
        }
    }
}

/// A bucket that was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    since: i64,
    until: i64,
    sum_ms: i64,
    observed_ms: i64,
}

impl Point {
    fn level(&self) -> Level {
        Level {
            num: self.sum_ms.into(),
            den: self.observed_ms.into(),
        }
    }
}

/// The load of each observed bucket, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series(Vec<Point>);

impl Series {
    /// The whole load of a scan.
    pub fn of_load(scan: &Scan, width: i64) -> QueryResult<Series> {
        let buckets = buckets(scan, width)?;
        let mut scanned = scan.sums(buckets, &[vec![]])?;
        let cube = scanned.cubes.pop().unwrap_or_default();
        let cells = cube.into_cells().next().map_or(Cells::default(), |k| k.1);
        Ok(Series::of(&cells, &scanned.observed, &scanned.buckets))
    }

    /// The load of some keys of a dimension. Keys without load in the window are left out.
    pub fn of_keys(
        scan: &Scan,
        width: i64,
        dimension: &Dimension,
        keys: impl IntoIterator<Item = Id>,
    ) -> QueryResult<FastMap<Id, Series>> {
        let mut scanned = scan.cells_of(buckets(scan, width)?, dimension, keys)?;
        let cube = scanned.cubes.pop().unwrap_or_default();
        let series = |cells: &Cells| Series::of(cells, &scanned.observed, &scanned.buckets);
        let keys = cube.into_cells();
        Ok(keys.map(|(key, cells)| (key.0, series(&cells))).collect())
    }

    /// A series of points (start in µs, weight in ms, value), in order of time. Each
    /// covers `length` µs.
    pub fn of_points(points: &[(i64, i64, i64)], length: i64) -> Series {
        let point = |&(since, weight_ms, value): &(i64, i64, i64)| Point {
            since,
            until: since.saturating_add(length),
            sum_ms: value.saturating_mul(weight_ms),
            observed_ms: weight_ms,
        };
        Series(points.iter().map(point).collect())
    }

    fn of(cells: &Cells, observed: &Observed, buckets: &Buckets) -> Series {
        let point = |(bucket, covered): &(u32, crate::query::rows::ticks::Coverage)| {
            let (since, until) = buckets.clipped(*bucket as usize);
            Point {
                since,
                until,
                sum_ms: cells.bucket(*bucket).map_or(0, |cell| cell.sum_ms),
                observed_ms: covered.observed_ms,
            }
        };
        let points = observed.buckets().iter().map(point);
        Series(points.filter(|p| p.observed_ms > 0).collect())
    }

    /// The buckets that begin before a time, and the others.
    pub fn split(&self, at: i64) -> (Series, Series) {
        let (before, rest) = self.0.split_at(self.0.partition_point(|p| p.since < at));
        (Series(before.to_vec()), Series(rest.to_vec()))
    }

    /// The mean load; `None` if nothing was observed.
    pub fn mean(&self) -> Option<Level> {
        let sum = |of: fn(&Point) -> i64| self.0.iter().map(|p| i128::from(of(p))).sum();
        let (num, den) = (sum(|p| p.sum_ms), sum(|p| p.observed_ms));
        (den > 0).then_some(Level { num, den })
    }

    /// The same series, with each bucket above `level` lowered to it.
    pub fn clipped(&self, level: Level) -> Series {
        let clipped = |point: &Point| {
            let most = level.num.saturating_mul(point.observed_ms.into()) / level.den.max(1);
            Point {
                sum_ms: point.sum_ms.min(i64::try_from(most).unwrap_or(i64::MAX)),
                ..*point
            }
        };
        Series(self.0.iter().map(clipped).collect())
    }

    /// The lower median of the buckets.
    pub fn median(&self) -> Option<Level> {
        let mut levels: Vec<Level> = self.0.iter().map(Point::level).collect();
        levels.sort_by(|a, b| (a.num * b.den).cmp(&(b.num * a.den)));
        levels.get(levels.len().checked_sub(1)? / 2).copied()
    }

    /// Start and end, in µs, of the consecutive buckets whose loads exceed a level by
    /// the largest sum. Buckets below the level count as negative, so a short dip
    /// does not end a long excess.
    ///
    /// Example: the loads are 0 0 4 0 4 4 0 0, and the level is 1. The answer is buckets 3 to 6,
    /// with the sum 3 - 1 + 3 + 3.
    pub fn excess(&self, level: Level) -> Option<(i64, i64)> {
        self.excess_beyond(level, i64::MIN)
    }

    /// Same as [`Series::excess`], but only for stretches that end after `time`.
    pub fn excess_beyond(&self, level: Level, time: i64) -> Option<(i64, i64)> {
        let over = |p: &Point| {
            (i128::from(p.sum_ms).saturating_mul(level.den))
                .saturating_sub(level.num.saturating_mul(p.observed_ms.into()))
        };
        let (mut best, mut found): (i128, Option<(i64, i64)>) = (0, None);
        let (mut sum, mut since) = (0_i128, None);
        for point in &self.0 {
            if sum <= 0 {
                (sum, since) = (0, Some(point.since));
            }
            sum = sum.saturating_add(over(point));
            if sum > best && point.until > time {
                best = sum;
                found = since.map(|since| (since, point.until));
            }
        }
        found
    }
}

fn buckets(scan: &Scan, width: i64) -> QueryResult<Buckets> {
    let window = scan.window();
    Buckets::new(window.since, window.until, width, None, MAX_BUCKETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bucket each second, with a load.
    fn series(loads: &[i64]) -> Series {
        let point = |(second, load): (usize, &i64)| Point {
            since: second as i64,
            until: second as i64 + 1,
            sum_ms: load * 1000,
            observed_ms: 1000,
        };
        Series(loads.iter().enumerate().map(point).collect())
    }

    const fn level(num: i128, den: i128) -> Level {
        Level { num, den }
    }

    #[test]
    fn an_excess_spans_short_dips() {
        let loads = series(&[0, 0, 4, 0, 4, 4, 0, 0]);
        assert_eq!(loads.excess(level(1, 1)), Some((2, 6)));
        assert_eq!(loads.excess(level(4, 1)), None);
        // A lone peak before a long gap is another stretch.
        let loads = series(&[9, 0, 0, 0, 0, 4, 4, 4, 4]);
        assert_eq!(loads.excess(level(2, 1)), Some((5, 9)));
        // A greater excess that has ended is another incident.
        let loads = series(&[9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3]);
        assert_eq!(loads.excess(level(2, 1)), Some((0, 3)));
        assert_eq!(loads.excess_beyond(level(2, 1), 14), Some((14, 16)));
        // A peak that was much higher does not reach over a longer gap.
        let loads = series(&[90, 90, 0, 0, 0, 0, 3, 3]);
        assert_eq!(loads.excess_beyond(level(2, 1), 6), Some((0, 8)));
        let clipped = loads.clipped(level(3, 1));
        assert_eq!(clipped.excess_beyond(level(2, 1), 6), Some((6, 8)));
    }

    #[test]
    fn a_peak_does_not_change_the_usual_load() {
        let loads = series(&[1, 1, 1, 100, 2]);
        assert_eq!(loads.median(), Some(level(1000, 1000)));
        assert_eq!(series(&[]).median(), None);
        let (before, rest) = loads.split(3);
        assert_eq!(before.mean(), Some(level(3000, 3000)));
        assert_eq!(rest.mean(), Some(level(102_000, 2000)));
        assert_eq!(series(&[]).mean(), None);
    }

    #[test]
    fn levels_are_compared_without_rounding() {
        assert!(level(1, 3).exceeds(level(333_333, 1_000_000)));
        assert!(!level(1, 3).exceeds(level(2, 6)));
        assert_eq!(level(1, 2).middle(level(3, 2)), level(8, 8));
        assert!(level(13, 10).exceeds(level(1, 1).plus(level(1, 4))));
    }
}
