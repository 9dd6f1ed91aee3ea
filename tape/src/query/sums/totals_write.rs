//! Writes totals with the code that answers questions: totals of a group when the group is written,
//! and the minutes of the largest queries when the file is complete.

use super::cells::{Bin, Cells};
use super::measure::Adder;
use super::totals::MINUTE;
use crate::fast::FastMap;
use crate::format::part::Part;
use crate::format::schema::Schema;
use crate::format::table::Table;
use crate::format::totals::{BY_GROUP, BY_MINUTE, KEY_COLUMNS, WHOLE, group_table, minute_table};
use crate::query::rows::dimension::Dimension;
use crate::query::rows::group::Coder;
use crate::query::rows::integers::{Code, Id, Number, Reference};
use crate::query::rows::keys::{Codes, Keys, View};
use crate::query::rows::parse::{MAX_BUCKETS, Selection};
use crate::query::rows::select::{Selected, Tests};
use crate::query::rows::ticks::{Observed, Ticks};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::{QueryError, QueryResult};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::rc::Rc;

/// Number of keys whose minutes a file stores. An answer has fewer lines, so its keys are most
/// likely among them. This also holds for a window that begins or ends within the file.
const MINUTE_KEYS: usize = 32;
/// Until the largest keys of the file are known, each group keeps this many times more keys.
const KEPT: usize = 8;

/// The totals of a file that is being written.
pub struct Writer {
    /// Tables of totals, by index in the schema.
    tables: Vec<Table>,
    minute_keys: usize,
    /// For each key: the number of groups that kept it, and its sum for each row of table `minute`.
    minutes: HashMap<i64, (u32, Vec<(u32, i64)>)>,
    /// Codes for numbers of dictionaries, by index of the dimension in `BY_GROUP`.
    numbers: [Numbers; BY_GROUP.len()],
}

/// Codes for numbers of a dictionary, which grows from group to group. Code 0 is null, code 1 a
/// reference without a definition.
struct Numbers {
    known: FastMap<i64, Code>,
    /// Code of each reference.
    codes: Vec<Code>,
    /// One reference for each code.
    references: Vec<Reference>,
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers {
            known: [(0, Code::default())].into_iter().collect(),
            codes: vec![Code::default()],
            references: vec![Reference(0), Reference::LOST],
        }
    }
}

impl Numbers {
    /// Codes for the runs of a group. The keys themselves are not needed.
    fn keys(&mut self, column: String, values: &[i64]) -> Keys {
        for &value in values.get(self.codes.len() - 1..).unwrap_or_default() {
            let next = Code::at(self.references.len());
            let code = *self.known.entry(value).or_insert(next);
            if code == next {
                self.references.push(Reference(self.codes.len() as i64));
            }
            self.codes.push(code);
        }
        let mut map = self.codes.clone();
        map.push(Code::new(1));
        Keys::of_codes(self.references.len(), Codes::Lookup { column, map })
    }
}

/// The cells of each key in a group, by reference.
type CellsByReference = Vec<(i64, Cells)>;

impl Writer {
    /// Totals for a file of this schema.
    pub fn new(schema: &Schema) -> Writer {
        Writer {
            tables: schema.tables.iter().map(Table::new).collect(),
            minute_keys: MINUTE_KEYS,
            minutes: HashMap::new(),
            numbers: Default::default(),
        }
    }

    /// Stores the minutes of this many keys.
    #[cfg(feature = "testing")]
    pub fn with_minute_keys(self, minute_keys: usize) -> Writer {
        Writer {
            minute_keys,
            ..self
        }
    }

    /// Adds the totals of a group.
    pub fn group(&mut self, part: &Part, group: u32) -> QueryResult<()> {
        let begin = part.min_ms().saturating_mul(1000).div_euclid(MINUTE) * MINUTE;
        let end = part.max_ms().saturating_mul(1000).saturating_add(1);
        let buckets = Buckets::new(begin, end, MINUTE, None, MAX_BUCKETS)?;
        let mut observed = Observed::default();
        let ticks = Ticks::read(part, &buckets, &mut observed)?;
        let selection = Selection::load();
        let schema = part.schema();
        let view = View::new(part, crate::query::value::plain::decode);
        let tests = Tests::of(&view, schema, &selection)?;
        let selected = Selected::of(&view, &tests, &selection, &[])?;
        let mut group = Group {
            number: i64::from(group),
            first: begin.div_euclid(MINUTE),
            ticks,
            ranges: Vec::new(),
            selected,
            view,
        };
        group.selected.ranges(&group.ticks, &mut group.ranges);
        self.whole(&group, &observed)?;
        for name in BY_MINUTE {
            if schema.index(&minute_table(name)).is_some() {
                let dimension = Dimension::find(schema, "dimension", name)?;
                let keys = dimension.resolve(&group.view, &group.selected.runs)?;
                let references = keys.codes.references(keys.width());
                let codes = Rc::new(Keys::of_codes(keys.width(), keys.codes.clone()));
                let found = group.found(codes, &references.unwrap_or_default())?;
                self.by_minute(&group, &minute_table(name), &found)?;
                self.whole_group(&group, name, &found)?;
            }
        }
        for (index, name) in BY_GROUP.into_iter().enumerate() {
            if schema.index(&group_table(name)).is_none() {
                continue;
            }
            let dimension = Dimension::find(schema, "dimension", name)?;
            if let Some((column, values)) = dimension.numbers(part)? {
                let own = &mut self.numbers[index];
                let keys = Rc::new(own.keys(column, &values));
                let found = group.found(keys, &own.references)?;
                self.by_group(&group, name, found, &observed)?;
            }
        }
        Ok(())
    }

    fn whole(&mut self, group: &Group, observed: &Observed) -> QueryResult<()> {
        let whole = group.cells(&[])?.pop().unwrap_or_default().1;
        for (bucket, coverage) in observed.buckets() {
            let cell = whole.bucket(*bucket);
            let load = cell.map_or([0, 0], |c| [c.sum_ms, i64::from(c.sessions)]);
            let row = [group.number, group.first + i64::from(*bucket)];
            let row = row.into_iter().chain(coverage.to_row()).chain(load);
            self.put(group.view.part.schema(), WHOLE, row)?;
        }
        Ok(())
    }

    fn by_minute(
        &mut self,
        group: &Group,
        table: &str,
        found: &CellsByReference,
    ) -> QueryResult<()> {
        for (key, cells) in found {
            for cell in &cells.rows {
                let minute = group.first + i64::from(cell.bucket);
                let most = i64::from(cell.sessions);
                let row = [group.number, *key, minute, cell.sum_ms, most];
                self.put(group.view.part.schema(), table, row)?;
            }
        }
        Ok(())
    }

    /// Adds the sums of each key in the group.
    fn whole_group(
        &mut self,
        group: &Group,
        name: &str,
        found: &CellsByReference,
    ) -> QueryResult<()> {
        let (schema, table) = (group.view.part.schema(), group_table(name));
        for (key, cells) in found.iter().filter(|_| schema.index(&table).is_some()) {
            let row = [group.number, *key, cells.sum_ms(), cells.sessions()];
            self.put(schema, &table, row)?;
        }
        Ok(())
    }

    fn by_group(
        &mut self,
        group: &Group,
        name: &str,
        mut found: CellsByReference,
        observed: &Observed,
    ) -> QueryResult<()> {
        let schema = group.view.part.schema();
        self.whole_group(group, name, &found)?;
        if schema.index(&minute_table(name)).is_none() {
            return Ok(());
        }
        let minutes = observed.buckets();
        let whole = schema.index(WHOLE).map_or(0, |t| self.tables[t].rows);
        let first_row = whole - minutes.len();
        let row_of = |bucket: u32| minutes.partition_point(|m| m.0 < bucket) + first_row;
        found.sort_by_key(|(key, cells)| (Reverse(cells.sum_ms()), *key));
        found.truncate(self.minute_keys.saturating_mul(KEPT));
        for (key, cells) in found {
            let kept = self.minutes.entry(key).or_default();
            kept.0 += 1;
            let sums = cells
                .rows
                .iter()
                .map(|c| (row_of(c.bucket) as u32, c.sum_ms));
            kept.1.extend(sums);
        }
        Ok(())
    }

    /// The tables of totals, by index in the schema.
    pub fn finish(mut self, schema: &Schema) -> QueryResult<Vec<Table>> {
        for name in BY_GROUP {
            let (groups, minutes) = (group_table(name), minute_table(name));
            if let (Some(g), Some(_)) = (schema.index(&groups), schema.index(&minutes)) {
                self.largest(schema, g, &minutes)?;
            }
        }
        Ok(self.tables)
    }

    /// Adds the minutes of the largest keys. A key counts only if every group with it kept it.
    fn largest(&mut self, schema: &Schema, groups: usize, minutes: &str) -> QueryResult<()> {
        let key = schema.tables[groups].index(KEY_COLUMNS[0]).unwrap_or(0);
        for row in 0..self.tables[groups].rows {
            if let Some(kept) = self.minutes.get_mut(&self.tables[groups].get(key, row)) {
                kept.0 = kept.0.wrapping_sub(1);
            }
        }
        let all = std::mem::take(&mut self.minutes).into_iter();
        let known = all.filter(|(_, kept)| kept.0 == 0).map(|(key, kept)| {
            let sum: i64 = kept.1.iter().map(|m| m.1).sum();
            (Reverse(sum), key, kept.1)
        });
        let mut known: Vec<_> = known.collect();
        known.sort_unstable();
        let rows = schema.index(WHOLE).map_or(0, |t| self.tables[t].rows);
        for (_, key, sums) in known.into_iter().take(self.minute_keys) {
            let mut dense = vec![0; rows];
            sums.iter()
                .for_each(|(row, sum)| dense[*row as usize] = *sum);
            for sum_ms in dense {
                self.put(schema, minutes, [key, sum_ms])?;
            }
        }
        Ok(())
    }

    /// Adds a row. Its values are in the order of the columns.
    fn put(
        &mut self,
        schema: &Schema,
        name: &str,
        row: impl IntoIterator<Item = i64>,
    ) -> QueryResult<()> {
        let missing = || QueryError::new("XX000", format!("no table \"{name}\""));
        let t = schema.index(name).ok_or_else(missing)?;
        let at = self.tables[t].add_row();
        for (c, value) in row.into_iter().enumerate() {
            self.tables[t].set(c, at, value);
        }
        Ok(())
    }
}

/// A group whose totals are computed.
struct Group<'a> {
    number: i64,
    /// Minute of the first bucket.
    first: i64,
    ticks: Ticks,
    ranges: Vec<(u32, u32)>,
    selected: Selected,
    view: View<'a>,
}

impl Group<'_> {
    /// The cells of each key, in ascending order of references. The keys are not printed, so their
    /// ids are codes.
    fn found(&self, keys: Rc<Keys>, references: &[Reference]) -> QueryResult<CellsByReference> {
        let found = self.cells(&[keys])?.into_iter();
        let mut found: CellsByReference = found
            .map(|(id, cells)| (references[id.index()].0, cells))
            .filter(|(_, cells)| !cells.rows.is_empty())
            .collect();
        found.sort_by_key(|(reference, _)| *reference);
        Ok(found)
    }

    /// The cells of each key.
    fn cells(&self, dimensions: &[Rc<Keys>]) -> QueryResult<Vec<(Id, Cells)>> {
        let (mut coder, mut numbers) = (Coder::default(), Vec::new());
        let keys = coder.numbers(&self.view, &self.selected, dimensions, &mut numbers)?;
        let mut found: Vec<(Id, Cells)> = keys.iter().map(|k| (k.0, Cells::default())).collect();
        let add = |number: Number, cell| found[number.index()].1.add(cell);
        Adder::default().cells(&self.ticks, &self.ranges, &numbers, keys.len(), add);
        Ok(found)
    }
}
