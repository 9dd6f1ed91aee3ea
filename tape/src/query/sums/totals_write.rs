//! Writes totals with the code that answers questions. The totals of a group are computed when the
//! group is written. The minutes of the largest queries follow when the file is complete.

use super::cells::{Bin, Cells};
use super::measure::Adder;
use super::totals_read::{MINUTE, rows_by_group};
use crate::fast::{FastMap, FastSet};
use crate::format::part::Part;
use crate::format::schema::Schema;
use crate::format::table::Table;
use crate::format::totals::{BY_GROUP, BY_MINUTE, WHOLE, group_table, minute_table, own_table};
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
use std::ops::Range;
use std::rc::Rc;

/// Number of keys whose minutes a file stores. An answer has fewer lines, so its keys are most
/// likely among them. This also holds for a window that begins or ends within the file. The minutes
/// of as many keys of each group are stored, if they are not among the file's: a window of one group
/// prints the largest keys of this group.
const MINUTE_KEYS: usize = 32;
/// Positions in `GROUP_COLUMNS`; column `group` is also the first one of table `minute`.
const GROUP: usize = 0;
const KEY: usize = 1;
const SUM_MS: usize = 2;
/// Until the largest keys of the file are known, each group keeps this many times more keys.
const KEPT: usize = 8;

/// The totals of a file that is being written.
pub struct Writer {
    /// Tables of totals, by index in the schema.
    tables: Vec<Table>,
    minute_keys: usize,
    minutes: KeptMinutes,
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

/// For each key: the number of groups that kept it, and its sum for each row of table `minute`, in
/// ascending order.
type KeptMinutes = HashMap<i64, (u32, Vec<(u32, i64)>)>;

/// The sums in a range of rows of table `minute`, with zeros for rows without one.
fn dense(sums: &[(u32, i64)], rows: Range<usize>) -> Vec<i64> {
    let mut dense = vec![0; rows.len()];
    let first = sums.partition_point(|(row, _)| (*row as usize) < rows.start);
    let own = sums[first..].iter().map(|(row, sum)| (*row as usize, sum));
    for (row, sum) in own.take_while(|(row, _)| *row < rows.end) {
        dense[row - rows.start] = *sum;
    }
    dense
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
                let mut kept = std::mem::take(&mut self.minutes);
                let keys = self.largest(schema, g, &minutes, &mut kept)?;
                kept.retain(|key, _| !keys.contains(key));
                self.largest_of_groups(schema, g, &own_table(name), &kept)?;
            }
        }
        Ok(self.tables)
    }

    /// Adds the minutes of the largest keys and returns these keys. A key counts only if every
    /// group with it kept it.
    fn largest(
        &mut self,
        schema: &Schema,
        groups: usize,
        minutes: &str,
        kept: &mut KeptMinutes,
    ) -> QueryResult<FastSet<i64>> {
        for key in self.tables[groups].ints(KEY).iter() {
            if let Some(kept) = kept.get_mut(key) {
                kept.0 = kept.0.wrapping_sub(1);
            }
        }
        let known = kept.iter().filter(|(_, kept)| kept.0 == 0);
        let known = known.map(|(key, kept)| {
            let sum: i64 = kept.1.iter().map(|m| m.1).sum();
            (Reverse(sum), *key, &kept.1)
        });
        let mut known: Vec<_> = known.collect();
        known.sort_unstable();
        known.truncate(self.minute_keys);
        let rows = schema.index(WHOLE).map_or(0, |t| self.tables[t].rows);
        for (_, key, sums) in &known {
            for sum_ms in dense(sums, 0..rows) {
                self.put(schema, minutes, [*key, sum_ms])?;
            }
        }
        Ok(known.into_iter().map(|(_, key, _)| key).collect())
    }

    /// Adds the minutes of each group's largest keys, as far as these are among `kept`.
    fn largest_of_groups(
        &mut self,
        schema: &Schema,
        groups: usize,
        own: &str,
        kept: &KeptMinutes,
    ) -> QueryResult<()> {
        let (Some(_), Some(whole)) = (schema.index(own), schema.index(WHOLE)) else {
            return Ok(());
        };
        let columns = [GROUP, KEY, SUM_MS].map(|c| self.tables[groups].ints(c).into_owned());
        let [group, key, sum_ms] = &columns;
        let minutes = self.tables[whole].ints(GROUP).into_owned();
        let minutes: FastMap<i64, Range<usize>> = rows_by_group(&minutes).collect();
        for (number, rows) in rows_by_group(group) {
            let mut largest: Vec<_> = rows.map(|row| (Reverse(sum_ms[row]), key[row])).collect();
            largest.sort_unstable();
            largest.truncate(self.minute_keys);
            let minutes = minutes.get(&number).cloned().unwrap_or_default();
            for (_, key) in largest {
                let sums = kept.get(&key).map(|kept| dense(&kept.1, minutes.clone()));
                for sum_ms in sums.unwrap_or_default() {
                    self.put(schema, own, [number, key, sum_ms])?;
                }
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
