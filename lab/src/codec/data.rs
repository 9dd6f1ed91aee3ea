//! A generated history of statements, similar to the one with which the seed of
//! this benchmark was measured. It has ten columns, and a row for each
//! statement executed in a minute. Statements follow Zipf's law; each database
//! has 2,000.

use super::super::scenario::{Codec, Layout};

/// Columns in the order of [`Day::columns`].
pub const COLUMNS: [&str; 10] = [
    "collected_at",
    "collected_secs",
    "fingerprint",
    "postgres_role_id",
    "calls",
    "rows",
    "shared_blks_hit",
    "shared_blks_read",
    "total_time",
    "io_time",
];
/// Index of the first column with times of execution.
const TIMES: usize = 8;
/// 2026-03-02 00:00:00 UTC.
const BEGIN_S: i64 = 1_772_409_600;
const STATEMENTS: u64 = 2_000;

/// Values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Ints(Vec<i64>),
    /// Times in ms.
    Floats(Vec<f64>),
}

impl Values {
    /// Sum over all bits; independent of the order of rows.
    pub fn sum(&self) -> i64 {
        match self {
            Self::Ints(v) => v.iter().fold(0, |sum, &x| sum.wrapping_add(x)),
            Self::Floats(v) => v
                .iter()
                .fold(0, |sum, x| sum.wrapping_add(x.to_bits() as i64)),
        }
    }

    /// Number of values: one for each row.
    pub fn len(&self) -> usize {
        match self {
            Self::Ints(v) => v.len(),
            Self::Floats(v) => v.len(),
        }
    }

    fn slice(&self, from: usize, to: usize) -> Self {
        match self {
            Self::Ints(v) => Self::Ints(v[from..to].to_vec()),
            Self::Floats(v) => Self::Floats(v[from..to].to_vec()),
        }
    }
}

/// Rows of one database in one interval.
#[derive(Debug, Clone)]
pub struct Bucket {
    /// Number of the database.
    pub database: i64,
    /// Time of the first and the last row, in µs since 1970.
    pub bounds: (i64, i64),
    /// Values, in the order of [`COLUMNS`].
    pub columns: Vec<Values>,
}

/// A day of one database.
#[derive(Debug, Clone)]
pub struct Day {
    /// The database, from 1.
    pub database: i64,
    ints: Vec<Vec<i64>>,
    times: Vec<Vec<f64>>,
}

/// A linear congruential generator; returns its upper bits.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 >> 33) ^ self.0;
        mixed.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 11
    }

    /// A random number from 0 to below 1.
    fn share(&mut self) -> f64 {
        self.next() as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Constant properties of a statement.
struct Kind {
    fingerprint: i64,
    role: i64,
    /// Time of one execution, ms.
    mean: f64,
    calls: f64,
    rows: i64,
    blocks: i64,
    /// Share of blocks (0 to 1) that are read and not found in the cache.
    cold: f64,
}

impl Kind {
    fn new(database: i64, number: u64) -> Self {
        let mut random = Random((database as u64) << 32 | (number + 1));
        random.next();
        let fingerprint = (random.next() << 11 ^ random.next()) as i64;
        Self {
            fingerprint,
            role: 100 + random.below(5) as i64,
            mean: 0.02 * (random.share() * 12.0).exp2(),
            calls: (random.share() * 10.0).exp2(),
            rows: [0, 1, 1, 1, 10, 100][random.below(6) as usize],
            blocks: 3 + (random.share() * 10.0).exp2() as i64,
            cold: if random.below(3) == 0 {
                0.1 * random.share()
            } else {
                0.0
            },
        }
    }
}

impl Day {
    /// The generated day of a database. The same arguments give the same rows.
    pub fn new(day: u32, database: i64) -> Self {
        let kinds: Vec<Kind> = (0..STATEMENTS).map(|n| Kind::new(database, n)).collect();
        let mut random = Random(u64::from(day) << 20 | database as u64);
        let (mut ints, mut times) = (vec![Vec::new(); TIMES], vec![Vec::new(); 2]);
        for minute in 0..1_440_i64 {
            let at = BEGIN_S + i64::from(day) * 86_400 + minute * 60 + random.below(3) as i64;
            // Number of statements in the minute: more by day than by night, 19.75 on average.
            let daily = (minute as f64 / 1_440.0 * std::f64::consts::TAU).cos();
            let statements = (19.75 - 8.0 * daily + random.share()) as u64;
            for _ in 0..statements {
                // Approximately Zipf's law: the logarithm of the rank is
                // uniform.
                let rank = ((STATEMENTS as f64).powf(random.share()) - 1.0) as usize;
                let kind = &kinds[rank.min(kinds.len() - 1)];
                let calls = 1 + (kind.calls * (0.5 + random.share())) as i64;
                let blocks = calls * kind.blocks;
                let read = (blocks as f64 * kind.cold * random.share()) as i64;
                let time = calls as f64 * kind.mean * (0.6 + 0.8 * random.share());
                let fixed = [at * 1_000_000, 60, kind.fingerprint, kind.role, calls];
                let counted = [calls * kind.rows, blocks - read, read];
                for (column, value) in ints.iter_mut().zip(fixed.into_iter().chain(counted)) {
                    column.push(value);
                }
                times[0].push(time);
                times[1].push(read as f64 * 0.05 * (0.5 + random.share()));
            }
        }
        Self {
            database,
            ints,
            times,
        }
    }

    /// All columns, with times in the form of the layout.
    pub fn columns(&self, layout: &Layout) -> Vec<Values> {
        let ints = self.ints.iter().cloned().map(Values::Ints);
        ints.chain(self.times.iter().map(|t| layout.times(t)))
            .collect()
    }

    /// The day in intervals of the layout.
    pub fn buckets(&self, layout: &Layout) -> Vec<Bucket> {
        let columns = self.columns(layout);
        let width = i64::from(layout.bucket_minutes) * 60_000_000;
        let at = &self.ints[0];
        let mut buckets = Vec::new();
        let mut from = 0;
        for bucket in at.chunk_by(|a, b| a / width == b / width) {
            let to = from + bucket.len();
            buckets.push(Bucket {
                database: self.database,
                bounds: (at[from], at[to - 1]),
                columns: columns.iter().map(|c| c.slice(from, to)).collect(),
            });
            from = to;
        }
        buckets
    }
}

impl Layout {
    /// Times of execution in the form of the layout.
    fn times(&self, times: &[f64]) -> Values {
        if let Some(factor) = self.multiply {
            let scaled = times.iter().map(|t| (t * f64::from(factor)).round() as i64);
            return Values::Ints(scaled.collect());
        }
        let Some(decimals) = self.decimals else {
            return Values::Floats(times.to_vec());
        };
        let unit = 10_f64.powi(i32::try_from(decimals).unwrap_or(0));
        Values::Floats(times.iter().map(|t| (t * unit).round() / unit).collect())
    }
}

/// The days of all databases, one after the other.
pub fn days(codec: &Codec) -> impl Iterator<Item = Vec<Day>> {
    let databases = i64::from(codec.databases);
    (0..codec.days).map(move |day| (1..=databases).map(|d| Day::new(day, d)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(bucket_minutes: u32) -> Layout {
        Layout {
            name: "l".into(),
            bucket_minutes,
            decimals: None,
            multiply: None,
        }
    }

    #[test]
    fn a_day_has_as_many_rows_as_the_published_one_and_is_repeated_exactly() {
        let day = Day::new(0, 1);
        let rows = day.times[0].len();
        assert!((28_000..29_000).contains(&rows), "{rows}");
        assert_eq!(
            day.columns(&layout(10)),
            Day::new(0, 1).columns(&layout(10))
        );
        assert_ne!(
            day.columns(&layout(10)),
            Day::new(1, 1).columns(&layout(10))
        );
    }

    #[test]
    fn buckets_hold_every_row_once() {
        let day = Day::new(3, 2);
        for (minutes, number) in [(10, 144), (60, 24), (1_440, 1)] {
            let buckets = day.buckets(&layout(minutes));
            assert_eq!(buckets.len(), number);
            for (column, whole) in day.columns(&layout(minutes)).iter().enumerate() {
                let parts = buckets.iter().map(|b| b.columns[column].sum());
                assert_eq!(parts.fold(0, i64::wrapping_add), whole.sum());
            }
        }
    }

    #[test]
    fn times_are_rounded_or_scaled() {
        let times = [1.2345, 0.005];
        let rounded = Layout {
            decimals: Some(2),
            ..layout(10)
        };
        assert_eq!(rounded.times(&times), Values::Floats(vec![1.23, 0.01]));
        let scaled = Layout {
            multiply: Some(100),
            ..layout(10)
        };
        assert_eq!(scaled.times(&times), Values::Ints(vec![123, 1]));
        assert_eq!(layout(10).times(&times), Values::Floats(times.to_vec()));
    }
}
