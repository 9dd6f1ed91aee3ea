//! Totals: what each minute of a group observed and, of the samples that count
//! as load, the sum and the most in one tick, whole and by some dimensions.
//! Written with the group by the code that answers questions, so that both are
//! the same by construction; used where they answer exactly: no filter, and
//! buckets and a window that cut no minute of the group.

use super::bucket::{Buckets, SECOND};
use super::coder::{Coder, Key};
use super::cube::{Adder, Cell, Cells, Cube};
use super::dimension::{Dimension, Keys, View};
use super::error::{QueryError, QueryResult};
use super::plan::{MAX_BUCKETS, Selection};
use super::scan::Sums;
use super::select::{Selected, Tests};
use super::ticks::{Coverage, NONE, Observed, Ticks};
use super::vocabulary as pg;
use crate::part::Part;
use crate::schema::{Schema, TableDef};
use crate::table::{Column, Table};
use std::collections::HashMap;
use std::rc::Rc;

const MINUTE: i64 = 60 * SECOND;
/// What was observed, and the load.
const WHOLE: &str = "minute";
/// Id of the first table of totals; those behind it are totals too.
pub const FIRST_ID: u8 = 200;
/// Dimensions there are totals by.
const BY: [&str; 2] = [pg::WAIT_EVENT, pg::WAIT_TYPE];
/// Columns of a table of totals by a dimension.
const COLUMNS: [&str; 5] = ["group", "key", "minute", "sum_ms", "most"];
/// Columns of `minute` between `minute` and `sum_ms`: [`Coverage::to_row`].
const COVERAGE: [&str; 8] = [
    "observed_ms",
    "failed_ms",
    "ticks_observed",
    "ticks_failed",
    "last_slot_ms",
    "last_interval_ms",
    "vcpus_slot_ms",
    "vcpus_x100",
];

/// The table of totals by a group of dimensions.
fn table_name(group: &[&Dimension]) -> Option<String> {
    match group {
        [] => Some(WHOLE.to_string()),
        [one] => Some(format!("{WHOLE}_{}", one.name)),
        _ => None,
    }
}

/// Decides which parts of a question are answered by totals.
pub struct Totals {
    tables: Option<Vec<String>>,
    since: i64,
    until: i64,
}

impl Totals {
    /// For a question.
    pub fn new(
        wanted: bool,
        selection: &Selection,
        buckets: &Buckets,
        groups: &[Vec<&Dimension>],
    ) -> Totals {
        let fits = wanted && selection.is_load() && buckets.are_multiples_of(MINUTE);
        let names = groups.iter().map(|group| table_name(group)).collect();
        Totals {
            tables: if fits { names } else { None },
            since: buckets.since(),
            until: buckets.until(),
        }
    }

    /// The totals of a part have all that is asked for, and the window cuts
    /// none of its minutes.
    pub fn answer(&self, part: &Part) -> bool {
        let Some(tables) = &self.tables else {
            return false;
        };
        let info = part.info();
        let begin = info.min_ms.saturating_mul(1000).div_euclid(MINUTE) * MINUTE;
        let since_fits = self.since % MINUTE == 0 || self.since <= begin;
        let until_fits = self.until % MINUTE == 0 || self.until > info.max_ms.saturating_mul(1000);
        let known = |name: &String| part.schema().table(name).is_some();
        since_fits && until_fits && info.has_totals && tables.iter().all(known)
    }
}

/// The totals of some groups of a file.
pub struct FileTotals {
    minutes: Vec<Column>,
    by_group: Vec<Option<[Column; COLUMNS.len()]>>,
    /// By number of the group: it is wanted.
    wanted: Vec<bool>,
}

/// Reads the totals of parts of one file.
pub fn read(view: &View, parts: &[&Part], groups: &[Vec<&Dimension>]) -> QueryResult<FileTotals> {
    let most = parts.iter().map(|part| part.info().group).max();
    let mut wanted = vec![false; most.unwrap_or(0) as usize + 1];
    for part in parts {
        wanted[part.info().group as usize] = true;
    }
    let column = |table: &str, column: &str| view.part.ints(table, column);
    let names = ["group", "minute"].iter().chain(&COVERAGE);
    let names = names.chain(&["sum_ms", "most"]);
    let by_group = groups.iter().map(|group| -> QueryResult<_> {
        let Some(table) = table_name(group).filter(|_| !group.is_empty()) else {
            return Ok(None);
        };
        let [a, b, c, d, e] = COLUMNS.map(|name| column(&table, name));
        Ok(Some([a?, b?, c?, d?, e?]))
    });
    Ok(FileTotals {
        by_group: by_group.collect::<QueryResult<_>>()?,
        minutes: names
            .map(|name| column(WHOLE, name))
            .collect::<crate::Result<_>>()?,
        wanted,
    })
}

impl FileTotals {
    fn is_wanted(&self, group: i64) -> bool {
        let group = usize::try_from(group).unwrap_or(0);
        self.wanted.get(group).copied().unwrap_or(false)
    }

    /// Adds the totals of the groups that are wanted.
    pub fn add(
        &self,
        view: &View,
        buckets: &Buckets,
        groups: &[Vec<&Dimension>],
        sums: &mut Sums,
    ) -> QueryResult<()> {
        let by_minute = self.add_minutes(buckets, groups, sums);
        for (index, columns) in self.by_group.iter().enumerate() {
            if let Some(columns) = columns {
                let keys = groups[index][0].resolve(view, &Selected::nothing().runs)?;
                self.add_keys(&keys, columns, &by_minute, &mut sums.cubes[index]);
            }
        }
        Ok(())
    }

    /// Adds a table of totals by a dimension.
    fn add_keys(
        &self,
        keys: &Keys,
        columns: &[Column; COLUMNS.len()],
        by_minute: &ByMinute,
        cube: &mut Cube<Key>,
    ) {
        let [group, key, minute, sum_ms, most] = columns;
        let mut ids: HashMap<i64, usize> = HashMap::new();
        let mut newest: Option<(i64, usize)> = None;
        for row in 0..group.len() {
            let bucket = by_minute.bucket(minute[row]);
            if bucket == NONE || !self.is_wanted(group[row]) {
                continue;
            }
            let id = match newest {
                Some((known, id)) if known == key[row] => id,
                _ => *ids.entry(key[row]).or_insert_with(|| {
                    let code = keys.codes.of_reference(key[row]).unwrap_or(0);
                    cube.id((keys.keys[code as usize].clone(), None))
                }),
            };
            newest = Some((key[row], id));
            cube.add_cell(id, cell(bucket, sum_ms[row], most[row]));
        }
    }

    /// Adds the table `minute`; returns the bucket of each minute.
    fn add_minutes(
        &self,
        buckets: &Buckets,
        groups: &[Vec<&Dimension>],
        sums: &mut Sums,
    ) -> ByMinute {
        let column = |c: usize, row: usize| self.minutes[c][row];
        let rows = (0..self.minutes[0].len()).filter(|row| self.is_wanted(column(0, *row)));
        let mut by_minute = ByMinute::default();
        for row in rows {
            let minute = column(1, row);
            let coverage = Coverage::from_row(std::array::from_fn(|i| column(2 + i, row)));
            let start = minute.saturating_mul(MINUTE);
            let Some(bucket) = buckets.index(start) else {
                if start < buckets.since() {
                    sums.observed.minute_before(&coverage);
                }
                continue;
            };
            let bucket = bucket as u32;
            by_minute.put(minute, bucket);
            sums.observed.at(bucket).add(&coverage);
            let cell = cell(bucket, column(10, row), column(11, row));
            for (index, _) in groups.iter().enumerate().filter(|group| group.1.is_empty()) {
                if cell.sessions > 0 {
                    let id = sums.cubes[index].id((None, None));
                    sums.cubes[index].add_cell(id, cell);
                }
            }
        }
        by_minute
    }
}

fn cell(bucket: u32, sum_ms: i64, most: i64) -> Cell {
    Cell {
        bucket,
        sessions: u32::try_from(most).unwrap_or(0),
        sum_ms,
    }
}

/// Buckets by minute.
#[derive(Default)]
struct ByMinute {
    first: i64,
    buckets: Vec<u32>,
}

impl ByMinute {
    /// Minutes come in any order, but mostly ascending.
    fn put(&mut self, minute: i64, bucket: u32) {
        if self.buckets.is_empty() {
            self.first = minute;
        }
        while minute < self.first {
            self.first -= 1;
            self.buckets.insert(0, NONE);
        }
        let at = (minute - self.first) as usize;
        if at >= self.buckets.len() {
            self.buckets.resize(at + 1, NONE);
        }
        self.buckets[at] = bucket;
    }

    #[inline]
    fn bucket(&self, minute: i64) -> u32 {
        let at = minute.wrapping_sub(self.first) as usize;
        self.buckets.get(at).copied().unwrap_or(NONE)
    }
}

/// Dimensions that a schema has totals by.
fn dimensions(schema: &Schema) -> QueryResult<Vec<(usize, Dimension)>> {
    let tables = schema.tables.iter().enumerate();
    let named = tables.filter_map(|(t, def)| Some((t, def.name.strip_prefix("minute_")?)));
    named
        .map(|(t, name)| Ok((t, Dimension::find(schema, "dimension", name)?)))
        .collect()
}

/// Adds the totals of a group to the tables of its file, by index of the
/// schema.
pub fn write(part: &Part, group: u32, tables: &mut [Table]) -> QueryResult<()> {
    let begin = part.min_ms().saturating_mul(1000).div_euclid(MINUTE) * MINUTE;
    let end = part.max_ms().saturating_mul(1000).saturating_add(1);
    let buckets = Buckets::new(begin, end, MINUTE, None, MAX_BUCKETS)?;
    let mut observed = Observed::default();
    let ticks = Ticks::read(part, &buckets, &mut observed)?;
    let selection = Selection::load();
    let schema = part.schema();
    let view = View::new(part, super::text::decode);
    let tests = Tests::of(&view, schema, &selection)?;
    let selected = Selected::of(&view, &tests, &selection, false)?;
    let (mut ranges, mut numbers) = (Vec::new(), Vec::new());
    let mut adder = Adder::default();
    selected.ranges(&ticks, &mut ranges);
    let mut by_key = |dimensions: &[Rc<Keys>]| -> QueryResult<Vec<(u32, Cells)>> {
        let mut coder = Coder::default();
        coder.numbers(part, &selected, dimensions, &mut numbers)?;
        let codes = coder.take_codes();
        let mut found: Vec<(u32, Cells)> = codes.iter().map(|c| (*c, Cells::default())).collect();
        let add = |number: u32, cell| found[number as usize].1.add(cell);
        adder.cells(&ticks, &ranges, &numbers, codes.len(), add);
        Ok(found)
    };
    let whole = by_key(&[])?.pop().unwrap_or_default().1;
    let first = begin.div_euclid(MINUTE);
    let minute = |bucket: u32| first + i64::from(bucket);
    for (bucket, coverage) in observed.buckets() {
        let cell = whole.bucket(*bucket);
        let load = cell.map_or([0, 0], |c| [c.sum_ms, i64::from(c.sessions)]);
        let row = [i64::from(group), minute(*bucket)];
        let row = row.into_iter().chain(coverage.to_row()).chain(load);
        put(schema, tables, WHOLE, row)?;
    }
    for (t, dimension) in dimensions(schema)? {
        let keys = dimension.resolve(&view, &selected.runs)?;
        let references = keys.codes.references(keys.keys.len()).unwrap_or_default();
        let found = by_key(&[keys])?.into_iter();
        let mut found: Vec<(i64, Cells)> = found
            .map(|(code, cells)| (references[code as usize], cells))
            .collect();
        found.sort_by_key(|(reference, _)| *reference);
        for (reference, cells) in &found {
            for cell in &cells.0 {
                let row = [
                    i64::from(group),
                    *reference,
                    minute(cell.bucket),
                    cell.sum_ms,
                    i64::from(cell.sessions),
                ];
                put(schema, tables, &schema.tables[t].name, row)?;
            }
        }
    }
    Ok(())
}

/// Adds a row; its values are in the order of the columns.
fn put(
    schema: &Schema,
    tables: &mut [Table],
    name: &str,
    row: impl IntoIterator<Item = i64>,
) -> QueryResult<()> {
    let missing = || QueryError::new("XX000", format!("no table \"{name}\""));
    let t = schema.index(name).ok_or_else(missing)?;
    let at = tables[t].add_row();
    for (c, value) in row.into_iter().enumerate() {
        tables[t].set(c, at, value);
    }
    Ok(())
}

/// The tables of totals, which every file has beside those it was sent.
pub fn tables() -> Vec<TableDef> {
    let whole = ["group", "minute"].iter().chain(&COVERAGE);
    let whole: Vec<&str> = whole.chain(&["sum_ms", "most"]).copied().collect();
    let mut tables = vec![TableDef::of_numbers(FIRST_ID, WHOLE, &whole)];
    for (index, dimension) in BY.iter().enumerate() {
        let name = format!("{WHOLE}_{dimension}");
        tables.push(TableDef::of_numbers(
            FIRST_ID + 1 + index as u8,
            &name,
            &COLUMNS,
        ));
    }
    tables
}
