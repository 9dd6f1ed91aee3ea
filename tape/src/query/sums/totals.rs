//! Totals: sums that a sealed file has beside its samples. For each minute of a group they have the
//! coverage and the load: the sum of the weights and the largest number of sessions in one tick.
//! The load is stored for all samples together and by some dimensions. Queries have many keys. The
//! file stores their sums for each group, and sums for each minute only of its largest queries.
//!
//! `totals_write.rs` writes totals with the code that answers questions, so both agree by
//! construction. Totals are used only where they answer exactly: without a filter, and if neither a
//! bucket nor the window cuts a minute of a group (for totals by group: a group).

use super::cells::{Bin, Cell};
use super::choice::Choice;
use super::measure::{Cube, Measures};
use super::way::{NoTotalsReason, ReadFrom};
use crate::fast::FastMap;
use crate::format::part::Part;
use crate::format::schema::{FAR_MS, RUN};
use crate::format::table::Column;
use crate::format::totals::{
    BY_GROUP, BY_MINUTE, GROUP_COLUMNS, KEY_COLUMNS, MINUTE_COLUMNS, WHOLE, WHOLE_COLUMNS,
    group_table, minute_table,
};
use crate::query::rows::dimension::Dimension;
use crate::query::rows::integers::{Code, Id, NULL, Number, Reference};
use crate::query::rows::keys::{Keys, View};
use crate::query::rows::select::Selected;
use crate::query::rows::ticks::{Coverage, NONE};
use crate::query::value::bucket::{Buckets, SECOND};
use crate::query::value::error::{QueryError, QueryResult};
use std::ops::Range;
use std::rc::Rc;

/// One minute in µs.
pub(in crate::query) const MINUTE: i64 = 60 * SECOND;
/// Columns whose values are added up.
const SUMMED: [&str; 5] = [
    "observed_ms",
    "failed_ms",
    "ticks_observed",
    "ticks_failed",
    "sum_ms",
];

/// The table that answers for a group of dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Table {
    /// Table `minute` alone.
    Whole,
    /// Names of the table by minute and of the table by group. The table by group is used if the
    /// file has it and it suffices.
    Minutes(String, String),
    /// Names of the table by group and of the table with the largest keys' minutes.
    Groups(String, String),
}

/// The table for a group of dimensions; `None` for two dimensions.
fn table_of(group: &[&Dimension]) -> Option<Table> {
    match group {
        [] => Some(Table::Whole),
        [one] => {
            let (groups, minutes) = (group_table(&one.name), minute_table(&one.name));
            Some(match BY_GROUP.contains(&one.name.as_str()) {
                true => Table::Groups(groups, minutes),
                false => Table::Minutes(minutes, groups),
            })
        }
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

/// A part that totals may answer.
struct WantedPart {
    /// First and last slot time in µs.
    first: i64,
    last: i64,
    /// The bucket that contains the whole part, if there is one.
    bucket: Option<u32>,
}

impl WantedPart {
    /// True if the part may have ticks in this minute.
    fn may_have(&self, minute: i64) -> bool {
        (self.first.div_euclid(MINUTE)..=self.last.div_euclid(MINUTE)).contains(&minute)
    }
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
                Table::Groups(groups, _) if is_whole => (false, has(groups)),
                Table::Groups(groups, by_minute) => {
                    way = ReadFrom::TotalsOfLargest;
                    let is_cut = !minutes || !inside || !is_chosen;
                    (is_cut, has(groups) && has(by_minute))
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
                Table::Groups(groups, minutes) => {
                    add(groups, &GROUP_COLUMNS);
                    if by_minute {
                        add(minutes, &KEY_COLUMNS);
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
struct FileTotals {
    /// The rows of table `minute` that are read.
    rows: Range<usize>,
    minutes: [Column; WHOLE_COLUMNS.len()],
    columns: Vec<Columns>,
    wanted: Groups,
}

/// The groups of a file that totals may answer, by group number.
struct Groups(FastMap<i64, WantedPart>);

impl Groups {
    /// The rows of a table of totals from the first to the last of these groups.
    fn rows(&self, view: &View, table: &str) -> QueryResult<Range<usize>> {
        if let Some((first, last)) = view.part.bounds(table, "group") {
            let groups = last.saturating_sub(first);
            let are_few = usize::try_from(groups).is_ok_and(|n| n < self.0.len());
            if are_few && (first..=last).all(|group| self.0.contains_key(&group)) {
                return Ok(0..view.part.rows(table));
            }
        }
        let is_wanted = |group| self.0.contains_key(&group);
        Ok(view.part.rows_with(table, "group", is_wanted)?)
    }
}

/// The columns that answer for a group of dimensions.
enum Columns {
    Whole,
    Minutes(Lookup, [Column; MINUTE_COLUMNS.len()]),
    Groups(ByGroup),
}

/// Keys by reference.
struct Lookup {
    keys: Rc<Keys>,
    /// For each code: the key's id, or `None` if no cells of it are needed.
    ids: Vec<Option<Id>>,
}

impl Lookup {
    /// Looks up the keys of the references in a part's totals. With `chosen`, only keys of that
    /// choice get an id; cells of other keys are not needed.
    fn of<'r>(
        view: &View,
        dimension: &Dimension,
        chosen: Option<&Choice>,
        references: impl Iterator<Item = &'r i64>,
    ) -> QueryResult<Lookup> {
        let keys = dimension.resolve(view, &Selected::nothing().runs)?;
        let mut lookup = Lookup {
            ids: vec![None; keys.width()],
            keys,
        };
        let mut codes = Vec::new();
        for reference in references {
            let code = lookup.code(Reference(*reference));
            if lookup.ids[code.index()].is_none() {
                lookup.ids[code.index()] = Some(NULL);
                codes.push(code);
            }
        }
        let is_asked = |id: &Id| chosen.is_none_or(|chosen| chosen.has((*id, NULL)));
        for (code, id) in codes.iter().zip(lookup.keys.ids(view, &codes)?) {
            lookup.ids[code.index()] = Some(id).filter(is_asked);
        }
        Ok(lookup)
    }

    /// The code of a reference's key.
    fn code(&self, reference: Reference) -> Code {
        self.keys.codes.of_reference(reference).unwrap_or_default()
    }

    /// The id of a reference's key, if cells of it are needed.
    fn id(&self, reference: Reference) -> Option<Id> {
        self.ids[self.code(reference).index()]
    }
}

/// Number in a cube by code, filled when a code first occurs.
struct KeyNumbers<'k>(&'k Lookup, Vec<Option<Number>>);

impl<'k> KeyNumbers<'k> {
    fn new(keys: &'k Lookup) -> Self {
        KeyNumbers(keys, vec![None; keys.ids.len()])
    }

    /// The number of a reference's key, if cells of it are needed.
    #[inline]
    fn of(&mut self, reference: Reference, cube: &mut Cube<impl Bin>) -> Option<Number> {
        let code = self.0.code(reference).index();
        let id = self.0.ids[code]?;
        Some(*self.1[code].get_or_insert_with(|| cube.number((id, NULL))))
    }
}

/// Totals by group, and the minutes of the largest keys.
struct ByGroup {
    keys: Lookup,
    columns: [Column; GROUP_COLUMNS.len()],
    /// Row of each key's first minute.
    begins: FastMap<Id, usize>,
    minutes: Column,
}

/// The buckets of rows and minutes.
struct Places {
    /// Bucket of each row of `minute`, or [`NONE`].
    rows: Vec<u32>,
    by_minute: ByMinute,
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
        for (group, rows) in rows_by_group(&minutes[0]) {
            let mut own = minutes[1][rows].iter();
            let wanted = wanted.0.get(&group);
            if wanted.is_some_and(|w| !own.all(|minute| w.may_have(*minute))) {
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
                Table::Groups(groups, minutes_of) => {
                    let rows = wanted.rows(view, groups)?;
                    let mut found = ByGroup::read(view, groups, rows, lookup)?;
                    if by_minute {
                        found.read_minutes(view, minutes_of)?;
                    }
                    Columns::Groups(found)
                }
            });
        }
        Ok(FileTotals {
            rows: own,
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
            Columns::Groups(by_group) => by_group.add(self, places, cube),
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

/// Each group number with the range of its consecutive rows.
fn rows_by_group(groups: &[i64]) -> impl Iterator<Item = (i64, Range<usize>)> {
    let mut begin = 0;
    groups.chunk_by(|a, b| a == b).map(move |rows| {
        let own = begin..begin + rows.len();
        begin = own.end;
        (rows[0], own)
    })
}

/// Number of leading rows with the same value as the first.
fn equal_rows(values: &[i64]) -> usize {
    let other = values.iter().position(|value| *value != values[0]);
    other.unwrap_or(values.len())
}

fn read_columns<const N: usize>(
    view: &View,
    table: &str,
    names: &[&str; N],
    rows: Range<usize>,
) -> QueryResult<[Column; N]> {
    let mut columns = Vec::with_capacity(N);
    for name in names {
        view.check_cancel()?;
        let column = view.part.ints_of(table, name, rows.clone())?;
        if !are_possible(name, &column) {
            return Err(impossible());
        }
        columns.push(column);
    }
    let columns: Result<[Column; N], _> = columns.try_into();
    columns.map_err(|_| QueryError::new("XX000", "columns of totals are missing"))
}

fn impossible() -> QueryError {
    crate::Error::damaged("totals have impossible values").into()
}

/// True if the values can be added up and multiplied without overflow. Each value must be nearer to
/// 0 than [`FAR_MS`]; in columns that are added up, the sum must be, too.
fn are_possible(name: &str, values: &[i64]) -> bool {
    // The bitwise or of all values is at least as large as each, unless some are negative.
    let most = values.iter().fold(0, |all, v| all | *v as u64);
    if !SUMMED.contains(&name) {
        let most_abs = || values.iter().fold(0, |all, v| all | v.unsigned_abs());
        return most < FAR_MS || most_abs() < FAR_MS;
    }
    let at_most = most.saturating_mul(values.len() as u64);
    let sum = || {
        let values = values.iter().map(|v| u64::try_from(*v).unwrap_or(u64::MAX));
        values.fold(0, u64::saturating_add)
    };
    at_most < FAR_MS || sum() < FAR_MS
}

impl ByGroup {
    fn read(
        view: &View,
        table: &str,
        rows: Range<usize>,
        lookup: impl Fn(&[Column]) -> QueryResult<Lookup>,
    ) -> QueryResult<ByGroup> {
        let columns = read_columns(view, table, &GROUP_COLUMNS, rows)?;
        Ok(ByGroup {
            keys: lookup(&columns)?,
            columns,
            begins: FastMap::default(),
            minutes: Column::default(),
        })
    }

    /// Reads the minutes of the largest keys.
    fn read_minutes(&mut self, view: &View, table: &str) -> QueryResult<()> {
        let minutes = view.part.rows(WHOLE);
        let all = 0..view.part.rows(table);
        let [key, sum_ms] = read_columns(view, table, &KEY_COLUMNS, all)?;
        for begin in (0..key.len()).step_by(minutes.max(1)) {
            if begin + minutes <= key.len() {
                let id = self.keys.id(Reference(key[begin]));
                id.map(|id| self.begins.insert(id, begin));
            }
        }
        self.minutes = sum_ms;
        Ok(())
    }

    fn is_unknown(&self, number: i64) -> bool {
        let [group, key, ..] = &self.columns;
        let first = group.partition_point(|g| *g < number);
        let own = group[first..].iter().take_while(|g| **g == number).count();
        let own = key[first..first + own].iter();
        let mut ids = own.filter_map(|key| self.keys.id(Reference(*key)));
        ids.any(|id| !self.begins.contains_key(&id))
    }

    /// Adds a group that lies in one bucket as a whole. Other groups are added minute by minute,
    /// for the chosen keys. The group's largest number of sessions in one tick goes to any of its
    /// buckets, because the answer shows it only for the whole window.
    fn add(&self, file: &FileTotals, places: &Places, cube: &mut Cube<impl Bin>) {
        let [group, key, sum_ms, most] = &self.columns;
        let mut numbers = KeyNumbers::new(&self.keys);
        let rows: FastMap<i64, Range<usize>> = rows_by_group(&file.minutes[0]).collect();
        for row in 0..group.len() {
            let Some(wanted) = file.wanted.0.get(&group[row]) else {
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
            let mut most = most[row];
            let id = self.keys.id(Reference(key[row]));
            let Some(begin) = id.and_then(|id| self.begins.get(&id)) else {
                continue;
            };
            for minute in rows.get(&group[row]).cloned().unwrap_or_default() {
                let sum_ms = self.minutes[begin + file.rows.start + minute];
                if sum_ms != 0 && places.rows[minute] != NONE {
                    cube.at(number).add(cell(places.rows[minute], sum_ms, most));
                    most = 0;
                }
            }
        }
    }
}

fn cell(bucket: u32, sum_ms: i64, most: i64) -> Cell {
    Cell {
        bucket,
        sessions: u32::try_from(most).unwrap_or(0),
        sum_ms,
    }
}

/// Bucket of each minute.
#[derive(Default)]
struct ByMinute {
    first: i64,
    buckets: Vec<u32>,
}

impl ByMinute {
    /// Sets the bucket of a minute. Minutes come in any order, mostly ascending.
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

    /// For ascending minutes whose buckets also differ by one each: the first bucket, and the
    /// difference between minute and bucket. `None` for all others.
    fn constant_offset(&self, minutes: &[i64]) -> Option<(u32, i64)> {
        let (first, last) = (*minutes.first()?, *minutes.last()?);
        let bucket = self.bucket(first);
        let ends = (bucket, self.bucket(last));
        let apart = i64::from(ends.1) - i64::from(ends.0);
        let is_constant = bucket != NONE
            && ends.1 != NONE
            && apart == last - first
            && minutes.is_sorted_by(|a, b| a < b);
        is_constant.then(|| (bucket, first - i64::from(bucket)))
    }

    #[inline]
    fn bucket(&self, minute: i64) -> u32 {
        let at = minute.wrapping_sub(self.first) as usize;
        self.buckets.get(at).copied().unwrap_or(NONE)
    }
}
