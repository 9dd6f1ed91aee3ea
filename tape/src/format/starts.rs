//! Starts of queries, transactions and states in sealed files. They are coarse, and equal for all
//! runs of one execution.
//!
//! When a query is first seen, its age is kept exactly below 16 ms. Up to a second, or up to the
//! sampling interval, it is kept in four steps an octave; above that in whole seconds. Examples at
//! an interval of 1 s: 19 ms becomes 16 ms, 999 ms becomes 896 ms, 61.5 s becomes 61 s. The age of
//! its transaction at the start of the query is kept the same way. The time from the start of the
//! query to the change of state stays exact. Ages are rounded down, so coarse values do not change
//! when they are rounded again.

use crate::format::schema::{RUN, Schema};
use crate::format::sealed_write::at_ticks;
use crate::format::table::Table;

/// Ages below this are kept exactly, in ms.
const EXACT_MS: i64 = 16;
const SECOND_MS: i64 = 1_000;

/// The age that is kept in place of `age`, both in ms, at a tick with this interval.
pub(crate) fn coarse_age(age: i64, interval_ms: i64) -> i64 {
    if age < EXACT_MS {
        return age;
    }
    let whole = interval_ms.clamp(1, i64::MAX / 2) + SECOND_MS - 1;
    let seconds_from = whole - whole % SECOND_MS;
    if age >= seconds_from {
        return age - age % SECOND_MS;
    }
    let octave = 1 << age.ilog2();
    let step = (octave / 4).min(SECOND_MS);
    octave + (age - octave) / step * step
}

/// A start as it was, and as it is kept.
#[derive(Clone, Copy, Default)]
struct Start {
    was: i64,
    kept: i64,
}

/// The kept starts of each session's newest run.
#[derive(Default)]
pub(crate) struct Starts {
    /// Starts of query, transaction and state in each session's newest run, by session reference.
    newest: Vec<[Start; 3]>,
}

impl Starts {
    /// Makes the starts of a group's runs coarse. `None` if the schema lacks these columns.
    pub(crate) fn coarsen(&mut self, schema: &Schema, tables: &mut [Table]) -> Option<()> {
        let (t, session) = schema.column(RUN, "session")?;
        let run = &schema.tables[t];
        let first = run.index("first_tick")?;
        let columns = [
            run.index("query_start")?,
            run.index("xact_start")?,
            run.index("state_change")?,
        ];
        let (ticks, number) = schema.column("tick", "tick")?;
        let ticks_of = &tables[ticks];
        let numbers = ticks_of.ints(number);
        let taken = ticks_of.ints(schema.tables[ticks].index("taken_at")?);
        let interval = ticks_of.ints(schema.tables[ticks].index("interval_ms")?);
        let first = tables[t].ints(first);
        let taken = at_ticks(&first, &numbers, &taken);
        let interval = at_ticks(&first, &numbers, &interval);
        let table = &mut tables[t];
        for row in 0..table.rows {
            let values = columns.map(|column| table.get(column, row));
            if values == [0; 3] {
                continue;
            }
            let kept = self.keep(table.get(session, row), values, taken[row], interval[row]);
            for (column, kept) in columns.into_iter().zip(kept) {
                table.set(column, row, kept);
            }
        }
        Some(())
    }

    /// The kept starts of a session's next run.
    fn keep(&mut self, session: i64, values: [i64; 3], taken: i64, interval: i64) -> [i64; 3] {
        let slot = usize::try_from(session).unwrap_or(0);
        if self.newest.len() <= slot {
            self.newest.resize(slot + 1, Default::default());
        }
        let newest = &mut self.newest[slot];
        let mut keep = |which: usize, kept: &dyn Fn(i64) -> i64| {
            let was = values[which];
            if was != 0 && newest[which].was != was {
                let kept = kept(was);
                newest[which] = Start { was, kept };
            }
            if was == 0 { 0 } else { newest[which].kept }
        };
        let query = values[0];
        let kept = keep(0, &|was| taken - coarse_age(taken - was, interval));
        let xact = keep(1, &|was| match query {
            0 => was,
            query => kept - coarse_age(query - was, interval),
        });
        let state = keep(2, &|was| match query {
            0 => was,
            query => kept + (was - query),
        });
        [kept, xact, state]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_keep_their_order_of_magnitude() {
        let ages = [
            -5, 0, 15, 16, 19, 20, 31, 32, 100, 999, 1_000, 1_023, 1_999, 61_500,
        ];
        let kept = ages.map(|age| coarse_age(age, 1_000));
        let expected = [
            -5, 0, 15, 16, 16, 20, 28, 32, 96, 896, 1_000, 1_000, 1_000, 61_000,
        ];
        assert_eq!(kept, expected);
        assert_eq!(coarse_age(2_700, 10_000), 2_560);
        assert_eq!(coarse_age(9_500, 10_000), 9_192);
        assert_eq!(coarse_age(10_500, 10_000), 10_000);
        assert_eq!(coarse_age(500, 10), 448);
    }

    #[test]
    fn coarse_starts_stay() {
        for interval in [10, 1_000, 1_500, 10_000] {
            for age in 0..30_000 {
                let once = coarse_age(age, interval);
                assert!(once <= age && coarse_age(once, interval) == once, "{age}");
                let most = if age < 1_000 { age / 4 } else { 999 };
                assert!(age - once <= most, "{age} became {once} at {interval}");
            }
        }
    }

    #[test]
    fn an_execution_has_one_start_in_all_its_runs() {
        let mut starts = Starts::default();
        let first = starts.keep(1, [99_700, 99_000, 99_710], 100_000, 1_000);
        assert_eq!(first, [99_744, 99_104, 99_754]);
        let later = starts.keep(1, [99_700, 99_000, 99_950], 107_000, 1_000);
        assert_eq!(later, [99_744, 99_104, 99_994]);
        let next = starts.keep(1, [106_995, 99_000, 0], 107_000, 1_000);
        assert_eq!(next, [106_995, 99_104, 0]);
        assert_eq!(starts.keep(2, [0, 5, 0], 107_000, 1_000), [0, 5, 0]);
    }
}
