//! Totals: sums that a sealed file has beside its samples. For each minute of a group they have the
//! coverage and the load: the sum of the weights and the largest number of sessions in one tick.
//! The load is stored for all samples together and by some dimensions. Queries have many keys. The
//! file stores their sums for each group, and sums for each minute only of its largest queries.
//!
//! `totals_write.rs` writes totals with the code that answers questions, so both agree by
//! construction. Totals are used only where they answer exactly: without a filter, and if neither a
//! bucket nor the window cuts a minute of a group (for totals by group: a group).

use super::cells::Bin;
use super::choice::Choice;
use super::measure::{Cube, Measures};
use super::totals_by_group::{ByGroup, Names};
use super::totals_read::{
    ByMinute, Groups, KeyNumbers, Lookup, MINUTE, Places, WantedPart, cell, impossible,
    read_columns, rows_by_group,
};
use super::way::{NoTotalsReason, ReadFrom};
use crate::fast::FastMap;
use crate::format::part::Part;
use crate::format::schema::RUN;
use crate::format::table::Column;
use crate::format::totals::{
    BY_GROUP, BY_MINUTE, GROUP_COLUMNS, KEY_COLUMNS, MINUTE_COLUMNS, OWN_COLUMNS, WHOLE,
    WHOLE_COLUMNS, group_table, minute_table,
};
use crate::query::rows::dimension::Dimension;
use crate::query::rows::integers::{NULL, Reference};
use crate::query::rows::keys::View;
use crate::query::rows::ticks::{Coverage, NONE};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use std::ops::Range;

/// The table that answers for a group of dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Table {
    /// Table `minute` alone.
    Whole,
    /// Names of the table by minute and of the table by group. The table by group is used if the
    /// file has it and it suffices.
    Minutes(String, String),
    /// The tables of a dimension with many keys.
    Groups(Names),
}

/// The table for a group of dimensions; `None` for two dimensions.
fn table_of(group: &[&Dimension]) -> Option<Table> {
    match group {
        [] => Some(Table::Whole),
        [one] => Some(match BY_GROUP.contains(&one.name.as_str()) {
            true => Table::Groups(Names::of(&one.name)),
            false => Table::Minutes(minute_table(&one.name), group_table(&one.name)),
        }),
        _ => None,
    }
}

/// True if files have totals by this dimension for each group.
pub fn is_by_group(dimension: &Dimension) -> bool {
    let name = dimension.name.as_str();
    BY_GROUP.contains(&name) || BY_MINUTE.contains(&name)
}

/// Decides which parts of a question are answered from totals.
pub struct Totals<'q> {
    /// Table of each group of dimensions; `None` if totals cannot answer.
    tables: Option<Vec<Table>>,
    /// The keys of the last group that get cells; `None` means all.
    chosen: Option<&'q Choice>,
    /// True if the question does not need the coverage.
    only_sums: bool,
    buckets: &'q Buckets,
    groups: &'q [Vec<&'q Dimension>],
}

impl<'q> Totals<'q> {
    /// Totals for a question about load.
    pub fn new(buckets: &'q Buckets, groups: &'q [Vec<&'q Dimension>]) -> Totals<'q> {
        Totals {
            tables: groups.iter().map(|group| table_of(group)).collect(),
            chosen: None,
            only_sums: false,
            buckets,
            groups,
        }
    }

    /// Leaves the coverage out.
    pub fn only_sums(self) -> Totals<'q> {
        let only_sums = self.groups.iter().all(|group| !group.is_empty());
        Totals { only_sums, ..self }
    }

    /// Limits the keys of the last group to the chosen ones.
    pub fn chosen(self, chosen: Option<&'q Choice>) -> Totals<'q> {
        Totals { chosen, ..self }
    }

    /// How to read this part. If totals suffice, the file may still lack the minutes of a chosen
    /// key: then [`Totals::add`] returns the part.
    pub fn way(&self, part: &Part, is_chosen: bool) -> ReadFrom {
        let Some(tables) = &self.tables else {
            return ReadFrom::Samples(NoTotalsReason::Keys);
        };
        if !part.info().has_totals {
            return ReadFrom::Samples(if part.info().open {
                NoTotalsReason::Log
            } else {
                NoTotalsReason::NoTotals
            });
        }
        let wanted = self.wanted(part);
        let (since, until) = (self.buckets.since(), self.buckets.until());
        let inside = since <= wanted.first && wanted.last < until;
        let minutes = self.buckets.are_multiples_of(MINUTE)
            && (since % MINUTE == 0 || since <= wanted.first)
            && (until % MINUTE == 0 || wanted.last < until);
        let is_whole = wanted.bucket.is_some();
        let has = |name: &str| part.schema().table(name).is_some();
        let mut way = ReadFrom::Totals;
        for table in tables {
            let (is_cut, is_there) = match table {
                Table::Whole => (!is_whole && !minutes, has(WHOLE)),
                Table::Minutes(by_minute, _) => (!is_whole && !minutes, has(by_minute)),
                Table::Groups(names) if is_whole => (false, has(&names.groups)),
                Table::Groups(names) => {
                    way = ReadFrom::TotalsOfLargest;
                    let is_cut = !minutes || !inside || !is_chosen;
                    (is_cut, has(&names.groups) && has(&names.minutes))
                }
            };
            if !is_there {
                return ReadFrom::Samples(if has(WHOLE) {
                    NoTotalsReason::Keys
                } else {
                    NoTotalsReason::NoTotals
                });
            }
            if is_cut {
                return ReadFrom::Samples(NoTotalsReason::Cut);
            }
        }
        way
    }

    /// The columns to read for these parts of one file.
    pub fn columns(&self, parts: &[&Part]) -> Vec<(String, String)> {
        let mut columns: Vec<(String, String)> = Vec::new();
        let mut add = |table: &str, names: &[&str]| {
            let names = names
                .iter()
                .map(|name| (table.to_string(), name.to_string()));
            columns.extend(names);
        };
        match self.only_sums {
            true => add(WHOLE, &WHOLE_COLUMNS[..2]),
            false => add(WHOLE, &WHOLE_COLUMNS),
        }
        let by_minute = parts.iter().any(|part| self.wanted(part).bucket.is_none());
        for table in self.tables.iter().flatten() {
            let has = |name: &str| parts.iter().any(|part| part.rows(name) > 0);
            match table {
                Table::Whole => (),
                Table::Minutes(_, groups) if !by_minute && has(groups) => {
                    add(groups, &GROUP_COLUMNS);
                }
                Table::Minutes(minutes, _) => add(minutes, &MINUTE_COLUMNS),
                Table::Groups(names) => {
                    add(&names.groups, &GROUP_COLUMNS);
                    if by_minute {
                        add(&names.minutes, &KEY_COLUMNS);
                    }
                    if by_minute && has(&names.own) {
                        add(&names.own, &OWN_COLUMNS);
                    }
                }
            }
        }
        let dimensions = self.groups.iter().flatten();
        let keys = dimensions.flat_map(|dimension| dimension.columns(parts[0]));
        columns.extend(keys.filter(|(table, _)| table != RUN));
        columns
    }

    fn wanted(&self, part: &Part) -> WantedPart {
        let first = part.min_ms().saturating_mul(1000);
        let last = part.max_ms().saturating_mul(1000);
        let bucket = self.buckets.index(first);
        WantedPart {
            first,
            last,
            bucket: bucket
                .filter(|_| bucket == self.buckets.index(last))
                .map(|b| b as u32),
        }
    }

    /// Adds the totals of parts of one file. Returns the parts for which a chosen key's minutes are
    /// missing.
    pub fn add<'p>(
        &self,
        view: &View,
        parts: &[&'p Part],
        sums: &mut Measures,
    ) -> QueryResult<Vec<&'p Part>> {
        let tables = self.tables.as_deref().unwrap_or_default();
        let mut file = FileTotals::read(self, view, parts, tables)?;
        let mut left = Vec::new();
        for part in parts {
            let number = part.info().group;
            if file.is_unknown(number) {
                file.wanted.0.remove(&i64::from(number));
                left.push(*part);
            }
        }
        let places = file.add_minutes(self, sums);
        for (index, columns) in file.columns.iter().enumerate() {
            match self.only_sums {
                true => file.add(columns, &places, &mut sums.weights),
                false => file.add(columns, &places, &mut sums.cubes[index]),
            }
        }
        Ok(left)
    }
}

/// The totals of some groups of a file.
pub(super) struct FileTotals {
    /// The first row of table `minute` that was read.
    first: usize,
    /// The rows of each group in table `minute`.
    pub groups: FastMap<i64, Range<usize>>,
    minutes: [Column; WHOLE_COLUMNS.len()],
    columns: Vec<Columns>,
    pub wanted: Groups,
}

/// The columns that answer for a group of dimensions.
enum Columns {
    Whole,
    Minutes(Lookup, [Column; MINUTE_COLUMNS.len()]),
    Groups(ByGroup),
}

impl FileTotals {
    fn read(
        question: &Totals,
        view: &View,
        parts: &[&Part],
        tables: &[Table],
    ) -> QueryResult<FileTotals> {
        let wanted = parts.iter();
        let wanted = wanted.map(|p| (i64::from(p.info().group), question.wanted(p)));
        let wanted = Groups(wanted.collect());
        let own = wanted.rows(view, WHOLE)?;
        let minutes = match question.only_sums {
            true => {
                let names = ["group", "minute"];
                let [group, minute] = read_columns(view, WHOLE, &names, own.clone())?;
                let mut columns = std::array::from_fn(|_| Column::default());
                (columns[0], columns[1]) = (group, minute);
                columns
            }
            false => read_columns(view, WHOLE, &WHOLE_COLUMNS, own.clone())?,
        };
        let mut groups = FastMap::default();
        for (group, rows) in rows_by_group(&minutes[0]) {
            groups.insert(group, own.start + rows.start..own.start + rows.end);
            let mut minutes = minutes[1][rows].iter();
            let wanted = wanted.get(group);
            if wanted.is_some_and(|w| !minutes.all(|minute| w.may_have(*minute))) {
                return Err(impossible());
            }
        }
        let by_minute = parts.iter().any(|p| question.wanted(p).bucket.is_none());
        let last = tables.len().saturating_sub(1);
        let mut columns = Vec::with_capacity(tables.len());
        for (index, table) in tables.iter().enumerate() {
            let Some(dimension) = question.groups[index].first() else {
                columns.push(Columns::Whole);
                continue;
            };
            let chosen = question.chosen.filter(|_| index == last);
            let lookup = |columns: &[Column]| {
                let rows = columns[0].iter().zip(columns[1].iter());
                let own = rows.filter(|(group, _)| wanted.0.contains_key(group));
                Lookup::of(view, dimension, chosen, own.map(|(_, key)| key))
            };
            columns.push(match table {
                Table::Whole => Columns::Whole,
                Table::Minutes(_, groups) if !by_minute && view.part.rows(groups) > 0 => {
                    let rows = wanted.rows(view, groups)?;
                    Columns::Groups(ByGroup::read(view, groups, rows, lookup)?)
                }
                Table::Minutes(minutes, _) => {
                    let rows = wanted.rows(view, minutes)?;
                    let columns = read_columns(view, minutes, &MINUTE_COLUMNS, rows)?;
                    Columns::Minutes(lookup(&columns)?, columns)
                }
                Table::Groups(names) => {
                    let rows = wanted.rows(view, &names.groups)?;
                    let mut found = ByGroup::read(view, &names.groups, rows, lookup)?;
                    if by_minute {
                        found.read_minutes(view, names, &wanted, &groups)?;
                    }
                    Columns::Groups(found)
                }
            });
        }
        Ok(FileTotals {
            first: own.start,
            groups,
            minutes,
            columns,
            wanted,
        })
    }

    /// True if the group needs the minutes of a chosen key that the file lacks.
    fn is_unknown(&self, group: u32) -> bool {
        let group = i64::from(group);
        let spans_buckets = self
            .wanted
            .0
            .get(&group)
            .is_some_and(|w| w.bucket.is_none());
        spans_buckets
            && self.columns.iter().any(|columns| match columns {
                Columns::Groups(by_group) => by_group.is_unknown(group),
                _ => false,
            })
    }

    /// Adds table `minute`; returns the buckets of its minutes.
    fn add_minutes(&self, question: &Totals, sums: &mut Measures) -> Places {
        let buckets = question.buckets;
        let columns = &self.minutes;
        let mut places = Places {
            first: self.first,
            rows: vec![NONE; columns[0].len()],
            by_minute: ByMinute::default(),
        };
        for (group, rows) in rows_by_group(&columns[0]) {
            let Some(wanted) = self.wanted.0.get(&group) else {
                continue;
            };
            for (row, &minute) in rows.clone().zip(&columns[1][rows]) {
                // A part may begin after the start of its first minute.
                let start = minute.saturating_mul(MINUTE).max(wanted.first);
                let bucket = match wanted.bucket {
                    None => buckets.index(start).map(|bucket| bucket as u32),
                    bucket => bucket,
                };
                if let Some(bucket) = bucket {
                    places.rows[row] = bucket;
                    if wanted.bucket.is_none() {
                        places.by_minute.put(minute, bucket);
                    }
                }
                if !question.only_sums {
                    let is_before = start < buckets.since();
                    self.add_minute(row, bucket, is_before, sums);
                }
            }
        }
        places
    }

    /// Adds a row of table `minute` to its bucket, if it has one.
    fn add_minute(&self, row: usize, bucket: Option<u32>, is_before: bool, sums: &mut Measures) {
        let columns = &self.minutes;
        let coverage = Coverage::from_row(std::array::from_fn(|i| columns[2 + i][row]));
        let Some(bucket) = bucket else {
            if is_before {
                sums.observed.minute_before(&coverage);
            }
            return;
        };
        sums.observed.at(bucket).add(&coverage);
        let cell = cell(bucket, columns[10][row], columns[11][row]);
        for (index, columns) in self.columns.iter().enumerate() {
            if matches!(columns, Columns::Whole) && cell.sessions > 0 {
                let number = sums.cubes[index].number((NULL, NULL));
                sums.cubes[index].at(number).add(cell);
            }
        }
    }

    /// Adds the tables for a group of dimensions, except table `minute`.
    fn add(&self, columns: &Columns, places: &Places, cube: &mut Cube<impl Bin>) {
        match columns {
            Columns::Whole => (),
            Columns::Minutes(keys, columns) => self.add_by_minute(keys, columns, places, cube),
            Columns::Groups(by_group) => by_group.add(&self.wanted, &self.groups, places, cube),
        }
    }

    /// Adds a table of totals by minute.
    fn add_by_minute(
        &self,
        keys: &Lookup,
        columns: &[Column; MINUTE_COLUMNS.len()],
        places: &Places,
        cube: &mut Cube<impl Bin>,
    ) {
        let [group, key, minute, sum_ms, most] = columns.each_ref().map(|column| &column[..]);
        let mut numbers = KeyNumbers::new(keys);
        let mut end = 0;
        while end < group.len() {
            let begin = end;
            let rows = equal_rows(&key[begin..]);
            end += equal_rows(&group[begin..begin + rows]);
            let Some(wanted) = self.wanted.0.get(&group[begin]) else {
                continue;
            };
            let Some(number) = numbers.of(Reference(key[begin]), cube) else {
                continue;
            };
            let own = cube.at(number);
            let sums = sum_ms[begin..end].iter().zip(&most[begin..end]);
            match wanted.bucket {
                Some(bucket) => own.extend(sums.map(|(sum, most)| cell(bucket, *sum, *most))),
                None => {
                    let minutes = &minute[begin..end];
                    let cells = minutes.iter().zip(sums);
                    if let Some((first, ahead)) = places.by_minute.constant_offset(minutes) {
                        let at = |minute: &i64| minute.wrapping_sub(ahead) as u32;
                        let cells = cells.map(|(m, (sum, most))| cell(at(m), *sum, *most));
                        own.append(first, cells);
                        continue;
                    }
                    let at = |minute: &i64| places.by_minute.bucket(*minute);
                    let all = cells.map(|(m, (sum, most))| cell(at(m), *sum, *most));
                    own.extend(all.filter(|cell| cell.bucket != NONE));
                }
            }
        }
    }
}

/// Number of leading rows with the same value as the first.
fn equal_rows(values: &[i64]) -> usize {
    let other = values.iter().position(|value| *value != values[0]);
    other.unwrap_or(values.len())
}
