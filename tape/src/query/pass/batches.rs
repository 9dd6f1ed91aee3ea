//! Adds up the runs of a part while the column with their keys is decoded: a batch of the column is
//! counted before the next one is decoded, and no list has an entry for each run. It serves the
//! second of two passes, if all runs match and a few numbers describe their ticks.
//!
//! Example: an hour of 50 sessions that run another query each second has 180,000 runs. Their
//! references, ranges and numbers would take 3.6 MB.

use crate::format::schema::RUN;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::integers::{NULL, Number};
use crate::query::rows::keys::{Keys, View};
use crate::query::rows::runs::Runs;
use crate::query::rows::ticks::{RunRanges, Ticks};
use crate::query::sums::choice::Choice;
use crate::query::sums::measure::{Adder, Grid};
use crate::query::value::error::QueryResult;

/// The number of the chosen key that each value of a file's column has. The first run with a value
/// causes its lookup.
#[derive(Default)]
pub struct ChosenValues(Vec<Number>);

/// Stands for a value that was not looked up yet.
const UNKNOWN: Number = Number::new(u32::MAX - 1);

/// The rows of a batch are tested in pieces of this number.
const PIECE: usize = 256;

/// A part whose runs can be counted without a list of them.
pub struct Batches<'p> {
    view: &'p View<'p>,
    ticks: &'p Ticks,
    runs: &'p Runs,
    /// The ticks of all runs.
    stretches: Vec<RunRanges>,
}

impl<'p> Batches<'p> {
    /// The runs of a part; all of them match. `None` if a list of them is needed.
    pub fn of(view: &'p View, ticks: &'p Ticks, runs: &'p Runs) -> Option<Batches<'p>> {
        Some(Batches {
            view,
            ticks,
            runs,
            stretches: runs.stretches(ticks)?,
        })
    }

    /// Counts the runs by the chosen keys of a group. `None` if a list of them is needed.
    pub fn count<'a>(
        &self,
        group: &[&Dimension],
        choice: &Choice,
        values: &mut ChosenValues,
        adder: &'a mut Adder,
    ) -> QueryResult<Option<&'a Grid>> {
        let width = choice.keys().len();
        let Some(grid) = adder.grid(self.ticks, self.runs.len(), width) else {
            return Ok(None);
        };
        match group {
            [] => self.count_all(choice.number((NULL, NULL)), grid),
            [one] if one.is_shared(self.view.part) => {
                let keys = one.resolve(self.view, self.runs)?;
                let Some((column, last)) = keys.codes.column() else {
                    return Ok(None);
                };
                values.0.resize(last + 1, UNKNOWN);
                self.count_column((column, &keys), choice, values, grid)?;
            }
            _ => return Ok(None),
        }
        Ok(Some(&*grid).filter(|grid| !grid.is_over()))
    }

    /// Counts all runs for one key.
    fn count_all(&self, number: Number, grid: &mut Grid) {
        if number == Number::NONE {
            return;
        }
        for stretch in &self.stretches {
            match stretch.together() {
                Some(range) => grid.add(number, range),
                None => stretch.all().for_each(|range| grid.add(number, range)),
            }
        }
    }

    /// Counts the runs by the value of a column.
    fn count_column(
        &self,
        (column, keys): (&str, &Keys),
        choice: &Choice,
        ChosenValues(values): &mut ChosenValues,
        grid: &mut Grid,
    ) -> QueryResult<()> {
        let mut place = Place::of(&self.stretches);
        let mut found = [0; PIECE];
        let mut done = Ok(());
        let mut count = |piece: &[i64]| -> QueryResult<()> {
            let wanted = find_chosen(values, piece, &mut found);
            for row in found[..wanted].iter().map(|row| usize::from(*row)) {
                let value = (piece[row] as usize).min(values.len() - 1);
                if values[value] == UNKNOWN {
                    let code = [keys.codes.of_value(value as i64)];
                    let ids = keys.ids(self.view, &code)?;
                    values[value] = choice.number((ids[0], NULL));
                }
                if values[value] != Number::NONE {
                    grid.add(values[value], place.range(row));
                }
            }
            place.skip(piece.len());
            Ok(())
        };
        self.view.part.batches(RUN, column, &mut |batch| {
            if done.is_ok() {
                let canceled = self.view.check_cancel();
                done = canceled.and_then(|()| batch.chunks(PIECE).try_for_each(&mut count));
            }
        })?;
        done
    }
}

/// Finds the rows of a piece of a batch whose value has a chosen key, or was not looked up yet;
/// returns their number. Larger values than the last one count as this one.
#[inline]
fn find_chosen(values: &[Number], piece: &[i64], found: &mut [u16; PIECE]) -> usize {
    let last = values.last().unwrap_or(&Number::NONE);
    let mut count = 0;
    // Each row is written, and counts if it is wanted: most rows are not, and a branch for each
    // would cost more. The remainder only spares a check of the bounds.
    for (row, value) in piece.iter().enumerate() {
        found[count % PIECE] = row as u16;
        count += usize::from(*values.get(*value as usize).unwrap_or(last) != Number::NONE);
    }
    count
}

/// A position in the stretches of a part, which moves forward.
struct Place<'s> {
    /// The stretches from the current one on.
    stretches: &'s [RunRanges],
    /// The row of the current stretch's first run, counted from the start of the piece. It is
    /// negative if the stretch begins before the piece.
    begin: i64,
}

impl Place<'_> {
    fn of(stretches: &[RunRanges]) -> Place<'_> {
        Place {
            stretches,
            begin: 0,
        }
    }

    /// The range of a row's ticks. Rows ascend.
    #[inline]
    fn range(&mut self, row: usize) -> (u32, u32) {
        while let [current, rest @ ..] = self.stretches {
            let run = row as i64 - self.begin;
            if run < current.runs() as i64 {
                return current.of(run as u32);
            }
            self.begin += current.runs() as i64;
            self.stretches = rest;
        }
        (0, 0)
    }

    /// Leaves a piece of a batch behind; rows now count from its end.
    fn skip(&mut self, rows: usize) {
        self.begin -= rows as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::part::Identity;
    use crate::format::part_builder::PartBuilder;
    use crate::query::rows::group::Coder;
    use crate::query::rows::integers::{Code, Key};
    use crate::query::rows::select::Selected;
    use crate::query::rows::ticks::Observed;
    use crate::query::sums::cells::Cell;
    use crate::query::value::bucket::Buckets;
    use crate::store::snapshot::Snapshot;
    use crate::testing::memory::MemoryStorage;
    use crate::testing::schema;
    use crate::write::seal::write_sealed;
    use std::rc::Rc;
    use std::sync::Arc;

    /// Twelve sessions in 900 ticks. Each runs another of 29 queries in each tick. Two sessions are
    /// absent for a while, and session 3 runs its queries for two ticks.
    fn sealed() -> MemoryStorage {
        let storage = MemoryStorage::new();
        let mut b = PartBuilder::new(Arc::new(schema().with_runs())).unwrap();
        let ids = 1..=30;
        let statements = ids.map(|id| b.intern("statement", &[("query_id", id)]).unwrap());
        let statements: Vec<i64> = statements.collect();
        let sessions = (0..12).map(|pid| {
            let session = [("pid", 100 + pid), ("category", 1)];
            b.intern("session", &session).unwrap()
        });
        let sessions: Vec<i64> = sessions.collect();
        for tick in 5..905_i64 {
            let times = ("slot_time", 1_000 * tick);
            let values = [("tick", tick), times, ("interval_ms", 1_000)];
            b.row("tick", &values).unwrap();
            for (index, session) in (0..).zip(&sessions) {
                if index % 5 == 4 && (90..100 * index).contains(&tick) {
                    continue;
                }
                let step = if index == 3 { tick / 2 } else { tick };
                let query = statements[(3 * step + 7 * index) as usize % 29];
                let values = [("statement", query)];
                b.sample(tick as u64, *session, &values).unwrap();
            }
        }
        write_sealed(&storage, 1, b, Identity::default(), Default::default()).unwrap();
        storage
    }

    /// The cells of a group by a list of the runs.
    fn by_list(
        view: &View,
        ticks: &Ticks,
        selected: &Selected,
        group: &[&Dimension],
        choice: &Choice,
    ) -> Vec<(Number, Cell)> {
        let resolved = group
            .iter()
            .map(|one| one.resolve(view, &selected.runs).unwrap());
        let resolved: Vec<Rc<Keys>> = resolved.collect();
        let (mut ranges, mut numbers, mut cells) = (Vec::new(), Vec::new(), Vec::new());
        selected.ranges(ticks, &mut ranges);
        let keys = Coder::default().numbers(view, selected, &resolved, &mut numbers);
        let keys: Vec<Key> = keys.unwrap();
        choice.apply(&keys, &mut ranges, &mut numbers);
        let width = choice.keys().len();
        Adder::default().cells(ticks, &ranges, &numbers, width, |number, cell| {
            cells.push((number, cell));
        });
        cells
    }

    #[test]
    fn batches_have_the_cells_of_a_list_of_the_runs() {
        let store = Snapshot::open_storage(&sealed()).unwrap();
        let part = store.parts(0).next().unwrap();
        let view = View::new(part, crate::query::value::plain::decode);
        let catalog = schema();
        let query = Dimension::find(&catalog, "dimension", "query_id").unwrap();
        let until = 700 * 1_000_000;
        let buckets = Buckets::new(20_000_000, until, 60_000_000, None, 100).unwrap();
        let ticks = Ticks::read(part, &buckets, &mut Observed::default()).unwrap();
        let runs = Runs::whole(part).unwrap();
        assert!(runs.len() > 2 * 4_096, "two batches: {}", runs.len());
        let selected = Selected { runs, pieces: None };
        let batches = Batches::of(&view, &ticks, &selected.runs).unwrap();
        let keys = query.resolve(&view, &selected.runs).unwrap();
        let ids = keys.ids(&view, &[20, 1, 9].map(Code::new)).unwrap();
        let chosen = || ids.iter().map(|id| (*id, NULL));
        let all = Choice::of(&[], [(NULL, NULL)]);
        let some = Choice::of(&[&query], chosen());
        let rest = Choice::of(&[&query], chosen()).with_rest();
        let mut adder = Adder::default();
        let groups: [(&[&Dimension], &Choice); 3] =
            [(&[], &all), (&[&query], &some), (&[&query], &rest)];
        for (group, choice) in groups {
            let expected = by_list(&view, &ticks, &selected, group, choice);
            assert!(expected.len() >= 12 * choice.keys().len());
            let mut values = ChosenValues::default();
            for _ in 0..2 {
                let grid = batches.count(group, choice, &mut values, &mut adder);
                let (grid, mut found) = (grid.unwrap().unwrap(), Vec::new());
                grid.cells(&ticks, choice.keys().len(), &mut |number, cell| {
                    found.push((number, cell));
                });
                assert_eq!(found, expected);
            }
        }
        let two: [&Dimension; 2] = [&query, &query];
        let pair = Choice::of(&two, []);
        let values = &mut ChosenValues::default();
        let counted = batches.count(&two, &pair, values, &mut adder);
        assert!(counted.unwrap().is_none(), "keys of two columns");
    }
}
