//! Converts frames to tables. Ids of the sampler become row indexes, relative ticks and times
//! become absolute, samples become runs. An id without a definition gets a row at once, and the
//! definition fills it in later. If none comes, the row reads as `?` and is counted.

use crate::error::Result;
use crate::fast::FastMap;
use crate::format::part::{Identity, Memory, Part, PartInfo};
use crate::format::part_builder::PartBuilder;
use crate::format::schema::{ColumnType, RUN, Schema, TableDef};
use crate::format::section::{Section, from_stored};
use crate::format::table::Table;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of ticks in a frame. A second has 100 ticks at the shortest interval, 10 ms; the
/// rest is reserve.
const MAX_TICKS: usize = 1_000;

/// Builds a part from the sections of frames.
pub struct Ingest {
    builder: PartBuilder,
    tick_base: u64,
    dictionaries: Vec<Dictionary>,
    tick_columns: Option<TickColumns>,
    /// Ticks of the current frame, by their index in it.
    ticks: Vec<Tick>,
    /// Values of the current sample.
    values: Vec<i64>,
    /// Memory of columns of earlier sections, for reuse.
    spare: Vec<Vec<i64>>,
    last_tick: i64,
    last_slot_ms: Option<i64>,
    sample_rows: u64,
    dropped_rows: u64,
    /// If the current group has at least this many rows, the next tick begins a new group.
    group_rows: usize,
    /// Finished groups, for [`Ingest::take_groups`].
    groups: Vec<(Vec<Table>, PartInfo)>,
}

/// Row index + 1 of the entries of one table, by id and by contents.
#[derive(Default)]
struct Dictionary {
    /// Index for the entry of an id; `None` if no row refers to entries by id.
    by_id: Option<FastMap<u64, i64>>,
    by_content: FastMap<(Vec<i64>, Vec<u8>), i64>,
    /// Ids without a definition, each with the number of rows that refer to it.
    lost: HashMap<u64, u64>,
    /// True if rows with equal contents are one entry.
    unique: bool,
}

#[derive(Clone, Copy)]
struct TickColumns {
    table: usize,
    tick: usize,
    slot_time: usize,
    status: Option<usize>,
    failed: i64,
}

#[derive(Clone, Copy)]
struct Tick {
    /// Absolute number of the tick; `None` if the tick goes back and is dropped.
    number: Option<i64>,
    failed: bool,
    slot_ms: i64,
}

/// The columns of a section, by index of the schema's columns.
struct Rows<'a> {
    rows: usize,
    ints: Vec<Vec<i64>>,
    strings: Vec<Option<Vec<&'a [u8]>>>,
}

impl Rows<'_> {
    fn get(&self, column: usize, row: usize) -> i64 {
        self.ints[column].get(row).copied().unwrap_or(0)
    }
}

impl Ingest {
    /// Creates a builder for the schema of a hello frame. `tick_base` is added to the tick numbers
    /// of frames.
    ///
    /// # Errors
    /// The schema lacks table `sample`.
    pub fn new(schema: Schema, tick_base: u64) -> Result<Self> {
        let schema = schema.with_runs();
        let dictionaries = (0..schema.tables.len()).map(|t| {
            let unique = schema.is_dictionary(t);
            let has_id = schema.tables[t].index("id").is_some();
            Dictionary {
                by_id: (unique && has_id).then(FastMap::default),
                unique,
                ..Dictionary::default()
            }
        });
        Ok(Ingest {
            dictionaries: dictionaries.collect(),
            tick_columns: TickColumns::find(&schema),
            builder: PartBuilder::new(Arc::new(schema))?,
            tick_base,
            ticks: Vec::new(),
            values: Vec::new(),
            spare: Vec::new(),
            last_tick: 0,
            last_slot_ms: None,
            sample_rows: 0,
            dropped_rows: 0,
            group_rows: usize::MAX,
            groups: Vec::new(),
        })
    }

    /// Slot time of the newest tick, in ms since 1970; `None` without ticks.
    pub fn last_slot_ms(&self) -> Option<i64> {
        self.last_slot_ms
    }

    /// Slot time of the first tick in the last frame, in ms since 1970.
    pub fn frame_first_slot_ms(&self) -> Option<i64> {
        let mut kept = self.ticks.iter().filter(|t| t.number.is_some());
        kept.next().map(|t| t.slot_ms)
    }

    /// Number of rows in table `sample` so far.
    pub fn sample_rows(&self) -> u64 {
        self.sample_rows
    }

    /// Number of dropped rows: their tick is not in the frame, or they go back in time.
    pub fn dropped_rows(&self) -> u64 {
        self.dropped_rows
    }

    /// Takes the sections of one frame.
    pub fn sections(&mut self, sections: &[Section<'_>], base_ms: i64) {
        self.ticks.clear();
        let schema = self.builder.schema.clone();
        let mut known: Vec<(usize, &Section<'_>)> = sections
            .iter()
            .filter_map(|s| Some((schema.index_of_id(s.table)?, s)))
            .collect();
        known.sort_by_key(|&(t, _)| self.rank(t, &schema));
        for (t, section) in known {
            let rows = self.decode(t, section, base_ms);
            if self.dictionaries[t].unique {
                self.define(t, &rows);
            } else if self.tick_columns.is_some_and(|c| c.table == t) {
                self.take_ticks(&rows);
            } else if schema.tables[t].name == RUN {
                self.samples(t, &rows);
            } else {
                self.plain(t, &rows);
            }
            self.spare.extend(rows.ints);
        }
    }

    /// Order of tables: definitions first, then ticks, then the rows that refer to both.
    fn rank(&self, table: usize, schema: &Schema) -> u8 {
        match schema.tables[table].name.as_str() {
            "name" => 0,
            "tick" => 2,
            _ if self.dictionaries[table].unique => 1,
            _ => 3,
        }
    }

    fn decode<'a>(&mut self, table: usize, section: &Section<'a>, base_ms: i64) -> Rows<'a> {
        let schema = self.builder.schema.clone();
        let columns = &schema.tables[table].columns;
        let mut rows = Rows {
            rows: section.rows,
            ints: Vec::with_capacity(columns.len()),
            strings: Vec::with_capacity(columns.len()),
        };
        for def in columns {
            let column = section.column(def.id);
            let mut ints = self.spare.pop().unwrap_or_default();
            ints.clear();
            let mut strings = None;
            match (def.ty, column) {
                (_, None) => (),
                (ColumnType::Bytes, Some(c)) if c.is_strings() => {
                    strings = Some(c.strings().collect());
                }
                (ColumnType::Name | ColumnType::Ref, Some(c)) => {
                    let target = match def.ty {
                        ColumnType::Name => schema.index("name"),
                        _ => schema.index(&def.target),
                    };
                    c.decode(section.rows, &mut ints, |id| self.resolve(target, id));
                }
                (ty, Some(c)) => {
                    c.decode(section.rows, &mut ints, |v| from_stored(ty, v, base_ms));
                }
            }
            rows.ints.push(ints);
            rows.strings.push(strings);
        }
        rows
    }

    /// Row index + 1 of an id. An id without a definition gets a row.
    fn resolve(&mut self, target: Option<usize>, id: u64) -> i64 {
        let Some(t) = target.filter(|_| id != 0) else {
            return 0;
        };
        let dictionary = &mut self.dictionaries[t];
        let Some(by_id) = &mut dictionary.by_id else {
            return 0;
        };
        let known = by_id.get(&id).copied();
        let reference = known.unwrap_or_else(|| {
            dictionary.lost.insert(id, 0);
            let added = self.builder.tables[t].add_row() as i64 + 1;
            by_id.insert(id, added);
            added
        });
        if !dictionary.lost.is_empty()
            && let Some(rows) = dictionary.lost.get_mut(&id)
        {
            *rows += 1;
        }
        reference
    }

    fn define(&mut self, t: usize, rows: &Rows<'_>) {
        let id_column = self.builder.schema.tables[t].index("id");
        let bytes_column = rows.strings.iter().position(Option::is_some);
        for row in 0..rows.rows {
            let content = (0..rows.ints.len()).map(|c| match Some(c) == id_column {
                true => 0,
                false => rows.get(c, row),
            });
            let string: &[u8] = match bytes_column.and_then(|c| rows.strings[c].as_ref()) {
                Some(strings) => strings[row],
                None => &[],
            };
            let content: Vec<i64> = content.collect();
            let id = id_column.map_or(0, |c| rows.get(c, row) as u64);
            self.define_one(t, id, content, bytes_column, string);
        }
    }

    fn define_one(
        &mut self,
        t: usize,
        id: u64,
        content: Vec<i64>,
        bytes_column: Option<usize>,
        string: &[u8],
    ) {
        let dictionary = &mut self.dictionaries[t];
        let table = &mut self.builder.tables[t];
        let referred = dictionary.by_id.is_some();
        if referred && id == 0 {
            self.dropped_rows += 1;
            return;
        }
        if !dictionary.lost.is_empty() && dictionary.lost.remove(&id).is_some() {
            let by_id = dictionary.by_id.as_ref();
            let reference = by_id.and_then(|m| m.get(&id)).copied().unwrap_or(0);
            let row = (reference - 1) as usize;
            for (column, &value) in content.iter().enumerate() {
                table.set(column, row, value);
            }
            if let Some(column) = bytes_column {
                table.replace_bytes(column, row, string);
            }
            dictionary
                .by_content
                .insert((content, string.to_vec()), reference);
            return;
        }
        let key = (content, string.to_vec());
        let known = dictionary.by_content.get(&key).copied();
        let reference = known.unwrap_or_else(|| {
            let row = table.add_row();
            for (column, &value) in key.0.iter().enumerate() {
                table.set(column, row, value);
            }
            if let Some(column) = bytes_column {
                table.set_bytes(column, string);
            }
            dictionary.by_content.insert(key, row as i64 + 1);
            row as i64 + 1
        });
        if let Some(by_id) = &mut dictionary.by_id {
            by_id.insert(id, reference);
        }
    }

    fn take_ticks(&mut self, rows: &Rows<'_>) {
        let Some(columns) = self.tick_columns else {
            return;
        };
        for row in 0..rows.rows {
            let relative = rows.get(columns.tick, row);
            let number = i64::try_from(self.tick_base).ok();
            let number = number.and_then(|base| base.checked_add(relative));
            let forward = |n: &i64| relative > 0 && *n > self.last_tick && row < MAX_TICKS;
            let def = &self.builder.schema.tables[columns.table].columns;
            let mut values = def.iter().enumerate();
            let sensible = values.all(|(c, def)| def.is_sensible(rows.get(c, row)));
            let tick = Tick {
                number: number.filter(|n| sensible && forward(n)),
                failed: columns
                    .status
                    .is_some_and(|c| rows.get(c, row) == columns.failed),
                slot_ms: rows.get(columns.slot_time, row),
            };
            self.ticks.push(tick);
            let Some(number) = tick.number else {
                self.dropped_rows += 1;
                continue;
            };
            self.end_group();
            self.last_tick = number;
            self.last_slot_ms = Some(tick.slot_ms);
            let table = &mut self.builder.tables[columns.table];
            let added = table.add_row();
            for column in 0..rows.ints.len() {
                table.set(column, added, rows.get(column, row));
            }
            table.set(columns.tick, added, number);
        }
    }

    /// Ends a large group before the first tick of a frame. By then, only definitions of this frame
    /// have been taken, which all groups share. Its other rows belong to the next group.
    fn end_group(&mut self) {
        let is_first = self.ticks.iter().filter(|t| t.number.is_some()).count() == 1;
        if self.group_rows < usize::MAX && is_first && self.builder.group_rows() >= self.group_rows
        {
            self.groups.push(self.builder.take_group());
        }
    }

    /// Absolute number of a tick by its index in this frame; `None` if there is no such tick, or if
    /// it was dropped.
    fn tick_at(&self, index: i64) -> Option<i64> {
        let index = usize::try_from(index).ok()?;
        self.ticks.get(index)?.number
    }

    fn plain(&mut self, t: usize, rows: &Rows<'_>) {
        let at = self.builder.schema.tables[t].index("at");
        for row in 0..rows.rows {
            let tick = at.map(|c| self.tick_at(rows.get(c, row)));
            if tick == Some(None) {
                self.dropped_rows += 1;
                continue;
            }
            let table = &mut self.builder.tables[t];
            let added = table.add_row();
            for column in 0..rows.ints.len() {
                table.set(column, added, rows.get(column, row));
                if let Some(strings) = &rows.strings[column] {
                    table.set_bytes(column, strings[row]);
                }
            }
            if let (Some(column), Some(Some(tick))) = (at, tick) {
                table.set(column, added, tick);
            }
        }
    }

    /// Converts samples. A row counts from its tick until the next row of its session, or until the
    /// end of the frame.
    fn samples(&mut self, t: usize, rows: &Rows<'_>) {
        let def = &self.builder.schema.tables[t];
        let index = |name| def.index(name);
        let (Some(at), Some(gone), Some(session)) =
            (index("first_tick"), index("ticks"), index("session"))
        else {
            return;
        };
        self.sample_rows += rows.rows as u64;
        if self.ticks.len() == 1 {
            self.samples_of_one_tick(rows, [at, gone, session]);
            return;
        }
        let mut order: Vec<usize> = (0..rows.rows).collect();
        order.sort_by_key(|&row| rows.get(at, row));
        let mut holding: HashMap<i64, usize> = HashMap::new();
        for row in order {
            if self.tick_at(rows.get(at, row)).is_none() || rows.get(session, row) == 0 {
                self.dropped_rows += 1;
                continue;
            }
            let from = rows.get(at, row) as usize;
            if let Some(before) = holding.remove(&rows.get(session, row)) {
                self.hold(rows, session, before, rows.get(at, before) as usize, from);
            }
            if rows.get(gone, row) == 0 {
                holding.insert(rows.get(session, row), row);
            }
        }
        for row in holding.into_values() {
            let from = rows.get(at, row) as usize;
            self.hold(rows, session, row, from, self.ticks.len());
        }
    }

    /// Same as [`Ingest::samples`] for a frame of one tick: every row counts for that tick only.
    fn samples_of_one_tick(&mut self, rows: &Rows<'_>, [at, gone, session]: [usize; 3]) {
        for row in 0..rows.rows {
            if self.tick_at(rows.get(at, row)).is_none() || rows.get(session, row) == 0 {
                self.dropped_rows += 1;
            } else if rows.get(gone, row) == 0 {
                self.hold(rows, session, row, 0, 1);
            }
        }
    }

    /// Adds a sample for the ticks `from..to` of the frame, except failed ticks.
    fn hold(&mut self, rows: &Rows<'_>, session: usize, row: usize, from: usize, to: usize) {
        let mut values = std::mem::take(&mut self.values);
        let columns = self.builder.runs.columns();
        values.clear();
        values.extend(columns.iter().map(|&c| rows.get(c, row)));
        let session = rows.get(session, row);
        for index in from..to {
            let tick = self.ticks[index];
            let Some(number) = tick.number.filter(|_| !tick.failed) else {
                continue;
            };
            if !self.builder.runs.push(session, number, 1, &values) {
                self.dropped_rows += 1;
            }
        }
        self.values = values;
    }

    /// Splits later rows into groups of about `rows` rows, for [`Ingest::take_groups`]. A finished
    /// group does not change any more.
    pub(crate) fn set_group_rows(&mut self, rows: usize) {
        self.group_rows = rows;
    }

    /// The groups finished since the last call.
    pub(crate) fn take_groups(&mut self) -> Vec<(Vec<Table>, PartInfo)> {
        std::mem::take(&mut self.groups)
    }

    /// A copy of the current group; `None` if it is empty.
    pub(crate) fn copy_current_group(&self) -> Option<(Vec<Table>, PartInfo)> {
        self.builder.has_rows().then(|| self.builder.copy_group())
    }

    /// The schema of the rows.
    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.builder.schema
    }

    /// Number of rows that refer to missing definitions.
    pub(crate) fn lost_definitions(&self) -> u64 {
        let lost = self.dictionaries.iter().flat_map(|d| d.lost.values());
        lost.sum()
    }

    /// The current dictionaries, with `?` for missing definitions. `before` is the result of the
    /// last call; tables that have not changed since are not copied.
    pub(crate) fn definitions(&mut self, before: Option<Definitions>) -> Definitions {
        let schema = self.builder.schema.clone();
        let lost = self.lost_rows();
        let unknown = match lost.is_empty() {
            true => 0,
            false => self.builder.name("?").unwrap_or(0),
        };
        let before = before.unwrap_or_default();
        let mut now = Definitions::default();
        let tables = (0..schema.tables.len()).map(|t| {
            let rows = match self.builder.is_dictionary[t] {
                true => self.builder.tables[t].rows,
                false => 0,
            };
            let has_lost = lost.iter().any(|l| l.0 == t);
            now.known.push((!has_lost).then_some(rows));
            if before.known.get(t) == Some(&Some(rows)) && !has_lost {
                return None;
            }
            let mut table = match rows {
                0 => Table::new(&schema.tables[t]),
                _ => self.builder.tables[t].clone(),
            };
            for (_, row) in lost.iter().filter(|l| l.0 == t) {
                set_unknown(&mut table, &schema.tables[t], *row, unknown);
            }
            Some(table)
        });
        let tables: Vec<Option<Table>> = tables.collect();
        now.is_same = tables.iter().all(Option::is_none);
        now.memory = match now.is_same {
            true => before.memory,
            false => Arc::new(before.memory.renewed(tables)),
        };
        now
    }

    /// Table and row of each missing definition.
    fn lost_rows(&self) -> Vec<(usize, usize)> {
        let dictionaries = self.dictionaries.iter().enumerate();
        let lost = dictionaries.flat_map(|(t, dictionary)| {
            let by_id = dictionary.by_id.as_ref();
            let row = move |id| by_id.and_then(|m| m.get(id)).map(|&r| (t, r as usize - 1));
            dictionary.lost.keys().filter_map(row)
        });
        lost.collect()
    }

    /// All rows so far as a part in memory.
    pub fn finish(self, identity: Identity) -> Part {
        self.into_builder().finish(identity)
    }

    /// The builder, with `?` for definitions that never came.
    pub(crate) fn into_builder(mut self) -> PartBuilder {
        let schema = self.builder.schema.clone();
        let lost = self.lost_rows();
        self.builder.lost_definitions += self.lost_definitions();
        self.builder.dropped_rows = self.dropped_rows;
        if lost.is_empty() {
            return self.builder;
        }
        let unknown = self.builder.name("?").unwrap_or(0);
        for (t, row) in lost {
            set_unknown(&mut self.builder.tables[t], &schema.tables[t], row, unknown);
        }
        self.builder
    }
}

/// The dictionaries at one point in time.
#[derive(Clone, Default)]
pub(crate) struct Definitions {
    pub(crate) memory: Arc<Memory>,
    /// True if nothing was defined since the call before.
    pub(crate) is_same: bool,
    /// Number of rows by table; `None` if existing rows may still change.
    known: Vec<Option<usize>>,
}

/// Sets a row to the name `?`.
fn set_unknown(table: &mut Table, def: &TableDef, row: usize, unknown: i64) {
    for (c, def) in def.columns.iter().enumerate() {
        match def.ty {
            ColumnType::Name => table.set(c, row, unknown),
            ColumnType::Bytes => table.replace_bytes(c, row, b"?"),
            _ => (),
        }
    }
}

impl TickColumns {
    fn find(schema: &Schema) -> Option<Self> {
        let table = schema.index("tick")?;
        let def = &schema.tables[table];
        Some(TickColumns {
            table,
            tick: def.index("tick")?,
            slot_time: def.index("slot_time")?,
            status: def.index("status"),
            failed: schema.value("tick_status", "failed").unwrap_or(i64::MAX),
        })
    }
}
