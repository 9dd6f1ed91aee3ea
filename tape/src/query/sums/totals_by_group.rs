//! Totals of a dimension with many keys: sums of each group for all keys, and sums of each minute
//! for some. A file has the minutes of its largest keys. Each group has the minutes of its own
//! largest keys, unless the file has them already. So a window of one group finds the minutes of
//! the keys that it prints.

use super::cells::{Bin, Cell};
use super::measure::Cube;
use super::totals_read::{Groups, KeyNumbers, Lookup, Places, cell, read_columns, rows_by_group};
use crate::fast::FastMap;
use crate::format::table::Column;
use crate::format::totals::{
    GROUP_COLUMNS, KEY_COLUMNS, OWN_COLUMNS, WHOLE, group_table, minute_table, own_table,
};
use crate::query::rows::integers::{Id, Reference};
use crate::query::rows::keys::View;
use crate::query::rows::ticks::NONE;
use crate::query::value::error::QueryResult;
use std::ops::Range;

/// The names of a dimension's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Sums of each group.
    pub groups: String,
    /// Sums of each minute, for the largest keys of the file.
    pub minutes: String,
    /// Sums of each minute, for the largest keys of each group.
    pub own: String,
}

impl Names {
    pub fn of(dimension: &str) -> Names {
        Names {
            groups: group_table(dimension),
            minutes: minute_table(dimension),
            own: own_table(dimension),
        }
    }
}

/// Totals by group, and the minutes of the largest keys.
pub(super) struct ByGroup {
    keys: Lookup,
    columns: [Column; GROUP_COLUMNS.len()],
    minutes: KeyMinutes,
}

/// Sums of each minute.
#[derive(Default)]
struct KeyMinutes {
    /// The row of `sum_ms` with the first minute of the file, for each of the file's keys.
    begins: FastMap<Id, usize>,
    sum_ms: Column,
    /// The row of `own_sum_ms` with the group's first minute, for keys of one group.
    own_begins: FastMap<(i64, Id), usize>,
    own_sum_ms: Column,
}

impl KeyMinutes {
    fn has(&self, group: i64, id: Id) -> bool {
        self.begins.contains_key(&id) || self.own_begins.contains_key(&(group, id))
    }

    /// The sums of a group's minutes. `rows` are the rows of the group in table `minute`.
    fn of(&self, group: i64, id: Id, rows: &Range<usize>) -> Option<&[i64]> {
        let (sums, begin) = match self.begins.get(&id) {
            Some(begin) => (&self.sum_ms, begin + rows.start),
            None => (&self.own_sum_ms, *self.own_begins.get(&(group, id))?),
        };
        sums.get(begin..begin + rows.len())
    }
}

impl ByGroup {
    pub fn read(
        view: &View,
        table: &str,
        rows: Range<usize>,
        lookup: impl Fn(&[Column]) -> QueryResult<Lookup>,
    ) -> QueryResult<ByGroup> {
        let columns = read_columns(view, table, &GROUP_COLUMNS, rows)?;
        Ok(ByGroup {
            keys: lookup(&columns)?,
            columns,
            minutes: KeyMinutes::default(),
        })
    }

    /// Reads the minutes of the file's largest keys, and of a group's largest keys if a group needs
    /// others. `minutes` has the rows of each group in table `minute`.
    pub fn read_minutes(
        &mut self,
        view: &View,
        names: &Names,
        wanted: &Groups,
        minutes: &FastMap<i64, Range<usize>>,
    ) -> QueryResult<()> {
        self.read_of_file(view, &names.minutes)?;
        let needs = |group: &i64| self.is_unknown(*group);
        if view.part.rows(&names.own) > 0 && wanted.spanning_buckets().any(needs) {
            self.read_of_groups(view, &names.own, wanted, minutes)?;
        }
        Ok(())
    }

    fn read_of_file(&mut self, view: &View, table: &str) -> QueryResult<()> {
        let minutes = view.part.rows(WHOLE);
        let all = 0..view.part.rows(table);
        let [key, sum_ms] = read_columns(view, table, &KEY_COLUMNS, all)?;
        for begin in (0..key.len()).step_by(minutes.max(1)) {
            if begin + minutes <= key.len() {
                let id = self.keys.id(Reference(key[begin]));
                id.map(|id| self.minutes.begins.insert(id, begin));
            }
        }
        self.minutes.sum_ms = sum_ms;
        Ok(())
    }

    fn read_of_groups(
        &mut self,
        view: &View,
        table: &str,
        wanted: &Groups,
        minutes: &FastMap<i64, Range<usize>>,
    ) -> QueryResult<()> {
        let rows = wanted.rows(view, table)?;
        let [group, key, sum_ms] = read_columns(view, table, &OWN_COLUMNS, rows)?;
        for (number, rows) in rows_by_group(&group) {
            let minutes = minutes.get(&number).map_or(0, Range::len);
            for begin in rows.clone().step_by(minutes.max(1)) {
                if 0 < minutes && begin + minutes <= rows.end {
                    let id = self.keys.id(Reference(key[begin]));
                    id.map(|id| self.minutes.own_begins.insert((number, id), begin));
                }
            }
        }
        self.minutes.own_sum_ms = sum_ms;
        Ok(())
    }

    /// True if the minutes of a needed key of the group are missing.
    pub fn is_unknown(&self, number: i64) -> bool {
        let [group, key, ..] = &self.columns;
        let first = group.partition_point(|g| *g < number);
        let own = group[first..].iter().take_while(|g| **g == number).count();
        let own = key[first..first + own].iter();
        let mut ids = own.filter_map(|key| self.keys.id(Reference(*key)));
        ids.any(|id| !self.minutes.has(number, id))
    }

    /// Adds a group that lies in one bucket as a whole. Other groups are added minute by minute,
    /// for the chosen keys. The group's largest number of sessions in one tick goes to any of its
    /// buckets, because the answer shows it only for the whole window.
    pub fn add(
        &self,
        wanted: &Groups,
        minutes: &FastMap<i64, Range<usize>>,
        places: &Places,
        cube: &mut Cube<impl Bin>,
    ) {
        let [group, key, sum_ms, most] = &self.columns;
        let mut numbers = KeyNumbers::new(&self.keys);
        for row in 0..group.len() {
            let Some(wanted) = wanted.get(group[row]) else {
                continue;
            };
            let Some(number) = numbers.of(Reference(key[row]), cube) else {
                continue;
            };
            if let Some(bucket) = wanted.bucket {
                let own = cell(bucket, sum_ms[row], most[row]);
                cube.at(number).add(own);
                continue;
            }
            let Some(rows) = minutes.get(&group[row]) else {
                continue;
            };
            let id = self.keys.id(Reference(key[row]));
            let sums = id.and_then(|id| self.minutes.of(group[row], id, rows));
            let cells = places.cells(rows, sums.unwrap_or_default(), most[row]);
            cells.for_each(|cell| cube.at(number).add(cell));
        }
    }
}

impl Places {
    /// The cells of a group's minutes. Their largest number of sessions goes to the first one.
    fn cells(&self, rows: &Range<usize>, sums: &[i64], most: i64) -> impl Iterator<Item = Cell> {
        let mut most = most;
        let rows = rows.clone().zip(sums);
        rows.filter_map(move |(row, sum_ms)| {
            let bucket = self.rows[row - self.first];
            let counts = *sum_ms != 0 && bucket != NONE;
            counts.then(|| cell(bucket, *sum_ms, std::mem::take(&mut most)))
        })
    }
}
