//! Descriptors of tables and columns. Every log and every sealed file carries
//! its own, so a reader needs no list of columns and a new column touches no
//! reader. Tables and columns with a meaning of their own (`tick`, `sample`,
//! `at`, …) are found by name.

use crate::error::{Error, Result};
use crate::format::totals;

/// How the stored number of a column is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Unsigned number; 64 bits wide ones are reinterpreted as `i64`.
    Uint,
    /// Signed number.
    Int,
    /// ms since 1970 UTC, 0 = null.
    Time,
    /// µs since 1970 UTC, 0 = null.
    TimeUs,
    /// Row index + 1 in table `name`, 0 = null.
    Name,
    /// Value of the enumeration `target`, 0 = null.
    Enum,
    /// Row index + 1 in table `target`, 0 = null.
    Ref,
    /// String of bytes.
    Bytes,
    /// Length of time in 10 µs.
    Span,
}

const TYPES: [(ColumnType, u8, &str); 9] = [
    (ColumnType::Uint, 1, "UINT"),
    (ColumnType::Int, 2, "INT"),
    (ColumnType::Time, 3, "TIME"),
    (ColumnType::TimeUs, 4, "TIME_US"),
    (ColumnType::Name, 5, "NAME"),
    (ColumnType::Enum, 6, "ENUM"),
    (ColumnType::Ref, 7, "REF"),
    (ColumnType::Bytes, 8, "BYTES"),
    (ColumnType::Span, 9, "SPAN"),
];

impl ColumnType {
    /// The number that stands for the type in files.
    pub fn code(self) -> u8 {
        TYPES.iter().find(|t| t.0 == self).map_or(0, |t| t.1)
    }

    /// The type with this number.
    pub fn from_code(code: u8) -> Option<Self> {
        TYPES.iter().find(|t| t.1 == code).map(|t| t.0)
    }

    fn from_catalog(word: &str) -> Option<Self> {
        TYPES.iter().find(|t| t.2 == word).map(|t| t.0)
    }
}

/// What a column is to readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Nothing in particular.
    #[default]
    None,
    /// Readers filter and group by it.
    Dimension,
    /// A measurement, stored plus one, 0 = not known: an increase since the
    /// reading before. Its target is the unit.
    Counter,
    /// The same for a state.
    Gauge,
}

const ROLES: [(Role, u8, &str); 4] = [
    (Role::None, 0, "NONE"),
    (Role::Dimension, 1, "DIM"),
    (Role::Counter, 2, "COUNTER"),
    (Role::Gauge, 4, "GAUGE"),
];

impl Role {
    /// The flags that stand for it in files.
    pub fn flags(self) -> u8 {
        ROLES.iter().find(|r| r.0 == self).map_or(0, |r| r.1)
    }

    /// The role with these flags.
    pub fn from_flags(flags: u8) -> Self {
        let found = ROLES.iter().find(|r| r.1 == flags);
        found.map_or(Role::None, |r| r.0)
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDef {
    /// Unique within the table, stored in files.
    pub id: u8,
    /// Name, as in `catalog/samples.h`.
    pub name: String,
    /// How numbers are read.
    pub ty: ColumnType,
    /// What it is to readers.
    pub role: Role,
    /// Enumeration (ENUM), table (REF) or unit (a measurement), else empty.
    pub target: String,
}

/// Readers may add up and multiply what is nearer to 0, ms.
pub(crate) const FAR_MS: u64 = 1 << 52;

impl ColumnDef {
    /// A time or an interval that somebody may have measured.
    pub(crate) fn is_sensible(&self, value: i64) -> bool {
        self.are_sensible(&[value])
    }

    /// The same of many at once.
    pub(crate) fn are_sensible(&self, values: &[i64]) -> bool {
        match self.ty {
            ColumnType::Time => values.iter().all(|v| v.unsigned_abs() < FAR_MS),
            _ if self.name == "interval_ms" => values.iter().all(|v| (0..1 << 40).contains(v)),
            _ => true,
        }
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDef {
    /// Unique, stored in files.
    pub id: u8,
    /// Name, as in `catalog/samples.h`; `run` stands for `sample`.
    pub name: String,
    /// Columns ordered by id.
    pub columns: Vec<ColumnDef>,
}

impl TableDef {
    /// A table whose columns are signed numbers, with ids from 1 on.
    pub fn of_numbers(id: u8, name: &str, columns: &[&str]) -> TableDef {
        let column = |(index, name): (usize, &&str)| ColumnDef {
            id: index as u8 + 1,
            name: (*name).to_string(),
            ty: ColumnType::Int,
            role: Role::None,
            target: String::new(),
        };
        TableDef {
            id,
            name: name.to_string(),
            columns: columns.iter().enumerate().map(column).collect(),
        }
    }

    /// Index of a column by name.
    pub fn index(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == column)
    }

    /// Index of a column by id.
    pub fn index_of_id(&self, id: u8) -> Option<usize> {
        self.columns.iter().position(|c| c.id == id)
    }

    /// A column by name.
    pub fn column(&self, column: &str) -> Option<&ColumnDef> {
        self.columns.iter().find(|c| c.name == column)
    }

    /// Adds a column; `None` when its id is not greater than the last one's.
    fn append(&mut self, column: ColumnDef) -> Option<()> {
        let last = self.columns.last();
        last.is_none_or(|c| c.id < column.id).then_some(())?;
        self.columns.push(column);
        Some(())
    }

    /// Adds the columns that only the other one has; `None` when one is
    /// another here.
    fn add_columns(&mut self, other: &TableDef) -> Option<()> {
        for column in &other.columns {
            match (self.index(&column.name), self.index_of_id(column.id)) {
                (Some(own), Some(_)) if self.columns[own] == *column => (),
                (None, None) => {
                    let place = self.columns.partition_point(|c| c.id < column.id);
                    self.columns.insert(place, column.clone());
                }
                _ => return None,
            }
        }
        Some(())
    }
}

/// One label of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Name of the enumeration.
    pub enumeration: String,
    /// Stored value, never 0.
    pub value: i64,
    /// What it means.
    pub label: String,
}

/// All tables, columns and labels of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Tables ordered by id.
    pub tables: Vec<TableDef>,
    /// Labels ordered by enumeration (in order of appearance) and value.
    pub labels: Vec<Label>,
}

/// Name of the table of runs.
pub const RUN: &str = "run";
/// Name of the table of counter deltas of statements.
pub const STATS: &str = "statement_stats";
/// Buckets of its histogram: columns `histogram_0` and so on.
pub const HISTOGRAM_BUCKETS: usize = 24;
/// Name of the table of samples, from which runs are made.
pub const SAMPLE: &str = "sample";

impl Schema {
    /// Index of a table by name.
    pub fn index(&self, table: &str) -> Option<usize> {
        self.tables.iter().position(|t| t.name == table)
    }

    /// Index of a table by id.
    pub fn index_of_id(&self, id: u8) -> Option<usize> {
        self.tables.iter().position(|t| t.id == id)
    }

    /// A table by name.
    pub fn table(&self, table: &str) -> Option<&TableDef> {
        self.tables.iter().find(|t| t.name == table)
    }

    /// Indexes of a table and a column by name.
    pub fn column(&self, table: &str, column: &str) -> Option<(usize, usize)> {
        let index = self.index(table)?;
        Some((index, self.tables[index].index(column)?))
    }

    /// The label of a value.
    pub fn label(&self, enumeration: &str, value: i64) -> Option<&str> {
        self.labels(enumeration)
            .find(|l| l.value == value)
            .map(|l| l.label.as_str())
    }

    /// The value of a label.
    pub fn value(&self, enumeration: &str, label: &str) -> Option<i64> {
        self.labels(enumeration)
            .find(|l| l.label == label)
            .map(|l| l.value)
    }

    /// The labels of an enumeration by value.
    pub fn labels<'s, 'e>(
        &'s self,
        enumeration: &'e str,
    ) -> impl Iterator<Item = &'s Label> + use<'s, 'e> {
        self.labels
            .iter()
            .filter(move |l| l.enumeration == enumeration)
    }

    /// Is this table, by index, a dictionary: referred to by id, or texts?
    /// All groups of a sealed file share its dictionaries.
    pub fn is_dictionary(&self, table: usize) -> bool {
        let def = &self.tables[table];
        let mut columns = self.tables.iter().flat_map(|t| &t.columns);
        let referred = columns.any(|c| match c.ty {
            ColumnType::Name => def.name == "name",
            ColumnType::Ref => c.target == def.name,
            _ => false,
        });
        def.name == "text" || referred && def.index("id").is_some()
    }

    /// Is this table, by index, one of totals? They stand beside the
    /// dictionaries, for all groups.
    pub fn is_totals(&self, table: usize) -> bool {
        self.tables[table].id >= totals::FIRST_ID
    }

    /// The same schema with table `sample` replaced by table `run`: `at`
    /// becomes `first_tick` and `gone` becomes `ticks`, under their ids; and
    /// with the tables of totals.
    #[must_use]
    pub fn with_runs(mut self) -> Self {
        if let Some(table) = self.tables.iter_mut().find(|t| t.name == SAMPLE) {
            table.name = RUN.into();
            for column in &mut table.columns {
                match column.name.as_str() {
                    "at" => column.name = "first_tick".into(),
                    "gone" => column.name = "ticks".into(),
                    _ => (),
                }
            }
        }
        if !(0..self.tables.len()).any(|t| self.is_totals(t)) {
            self.tables.extend(totals::tables());
        }
        self
    }

    /// This schema with what only the other one has; `None` when a name or a
    /// number means one thing here and another there.
    pub fn with_all_of(&self, other: &Schema) -> Option<Schema> {
        let mut all = self.clone();
        for table in &other.tables {
            match (all.index(&table.name), all.index_of_id(table.id)) {
                (Some(own), Some(same)) if own == same => all.tables[own].add_columns(table)?,
                (None, None) => {
                    let place = all.tables.partition_point(|t| t.id < table.id);
                    all.tables.insert(place, table.clone());
                }
                _ => return None,
            }
        }
        for label in &other.labels {
            let Label { enumeration, .. } = label;
            let known = all.value(enumeration, &label.label);
            match (known, all.label(enumeration, label.value)) {
                (Some(value), Some(_)) if value == label.value => (),
                (None, None) => {
                    let before = |l: &Label| l.enumeration == *enumeration && l.value < label.value;
                    let place = all.labels.iter().rposition(before);
                    let first = || {
                        all.labels
                            .iter()
                            .position(|l| l.enumeration == *enumeration)
                    };
                    let place = place.map(|last| last + 1).or_else(first);
                    all.labels
                        .insert(place.unwrap_or(all.labels.len()), label.clone());
                }
                _ => return None,
            }
        }
        Some(all)
    }

    /// Reads the text of `catalog/samples.h`, and behind it that of
    /// `catalog/counters.h`, whose counters are columns of `statement_stats`.
    ///
    /// # Errors
    /// A line that is not understood, or whose id is not greater than the one
    /// before it in its list: the order of lines is the order of ids, in which
    /// schemas of several ages are merged.
    pub fn from_catalog(text: &str) -> Result<Self> {
        let mut schema = Schema::default();
        for line in text.lines() {
            let done = if let Some(rest) = line.strip_prefix("COLUMN(") {
                schema.catalog_column(rest)
            } else if let Some(rest) = line.strip_prefix("COUNTER(") {
                schema.catalog_counter(rest)
            } else if let Some(rest) = line.strip_prefix("LABEL(") {
                schema.catalog_label(rest)
            } else if let Some(rest) = line.strip_prefix("TABLE(") {
                schema.catalog_table(rest)
            } else {
                continue;
            };
            done.ok_or_else(|| Error::damaged(format!("invalid catalog line: {line}")))?;
        }
        Ok(schema)
    }

    fn catalog_table(&mut self, rest: &str) -> Option<()> {
        let mut words = words(rest, 3);
        let (id, name) = (words.next()?.parse().ok()?, words.next()?);
        let last = self.tables.last();
        last.is_none_or(|t| t.id < id).then_some(())?;
        self.tables.push(TableDef {
            id,
            name: name.into(),
            columns: Vec::new(),
        });
        Some(())
    }

    fn catalog_column(&mut self, rest: &str) -> Option<()> {
        let mut words = words(rest, 7);
        let table = words.next()?;
        let table = self.tables.iter_mut().find(|t| t.name == table)?;
        let id = words.next()?.parse().ok()?;
        let name = words.next()?.into();
        let ty = ColumnType::from_catalog(words.next()?)?;
        let target = words.next()?;
        let word = words.next()?;
        let role = ROLES.iter().find(|r| r.2 == word)?.0;
        table.append(ColumnDef {
            id,
            name,
            ty,
            role,
            target: if target == "none" { "" } else { target }.into(),
        })
    }

    /// Extremes are not stored: a difference of extremes means nothing.
    fn catalog_counter(&mut self, rest: &str) -> Option<()> {
        let words: Vec<&str> = words(rest, 6).collect();
        let [id, name, _, unit, kind, _] = words.try_into().ok()?;
        let id: u8 = id.parse().ok()?;
        let ty = match (kind, unit) {
            ("SUM", "ms") => ColumnType::Span,
            _ => ColumnType::Uint,
        };
        let names: Vec<String> = match kind {
            "MIN" | "MAX" => Vec::new(),
            "HISTOGRAM" => (0..HISTOGRAM_BUCKETS)
                .map(|b| format!("{name}_{b}"))
                .collect(),
            _ => vec![name.into()],
        };
        let table = self.tables.iter_mut().find(|t| t.name == STATS)?;
        for (id, name) in (id..=u8::MAX).zip(names) {
            table.append(ColumnDef {
                id,
                name,
                ty,
                role: Role::None,
                target: String::new(),
            })?;
        }
        Some(())
    }

    fn catalog_label(&mut self, rest: &str) -> Option<()> {
        let mut words = words(rest, 3);
        let (enumeration, value) = (words.next()?, words.next()?);
        let label = words.next()?.strip_prefix('"')?.strip_suffix("\")")?;
        let value = value.parse().ok()?;
        let last = self.labels(enumeration).last();
        last.is_none_or(|l| l.value < value).then_some(())?;
        self.labels.push(Label {
            enumeration: enumeration.into(),
            value,
            label: label.into(),
        });
        Some(())
    }
}

/// The first words of a line, the last one with what is left. A byte is looked
/// at once: every reader does this to the whole catalog.
fn words(text: &str, count: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    (1..=count).map_while(move |number| {
        let text = rest.take()?;
        let comma = text.bytes().position(|byte| byte == b',');
        let word = match comma.filter(|_| number < count) {
            Some(at) => {
                rest = text.get(at + 1..);
                &text[..at]
            }
            None => text,
        };
        Some(word.trim_start_matches(' '))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = include_str!("../../../catalog/samples.h");

    #[test]
    fn the_catalog_gives_tables_columns_and_labels() {
        let schema = Schema::from_catalog(CATALOG).unwrap();
        let wait = schema.table("sample").unwrap().column("wait").unwrap();
        assert_eq!((wait.id, wait.ty), (4, ColumnType::Ref));
        assert_eq!(wait.target, "wait");
        assert!(schema.table("session").unwrap().column("pid").unwrap().role == Role::Dimension);
        let wal = schema.table("server").unwrap().column("wal_bytes").unwrap();
        assert_eq!((wal.role, wal.target.as_str()), (Role::Counter, "bytes"));
        assert_eq!(schema.label("state", 3), Some("idle in transaction"));
        assert_eq!(schema.value("cpu", "runnable"), Some(3));
    }

    #[test]
    fn counters_are_columns_of_statement_stats_but_for_extremes() {
        let counters = include_str!("../../../catalog/counters.h");
        let schema = Schema::from_catalog(&[CATALOG, counters].concat()).unwrap();
        let stats = schema.table(STATS).unwrap();
        let column = |name: &str| stats.column(name).map(|c| (c.id, c.ty));
        assert_eq!(column("calls"), Some((21, ColumnType::Uint)));
        assert_eq!(column("total_exec_time"), Some((22, ColumnType::Span)));
        assert_eq!(column("min_exec_time"), None);
        assert_eq!(column("square_exec_time"), Some((25, ColumnType::Uint)));
        assert_eq!(column("histogram_23"), Some((96, ColumnType::Uint)));
        assert_eq!(stats.columns.len(), 3 + 51 + 2 + HISTOGRAM_BUCKETS);
    }

    #[test]
    fn lines_of_the_catalog_stand_in_the_order_of_their_ids() {
        let all = [CATALOG, include_str!("../../../catalog/counters.h")].concat();
        let read = |begin: &str, line: &str| {
            let place = all.find(begin).unwrap();
            let end = place + all[place..].find('\n').unwrap() + 1;
            let text = [&all[..end], line, "\n", &all[end..]].concat();
            Schema::from_catalog(&text)
        };
        let refused_after = |begin: &str, line: &str, found: &str| {
            let expected = format!("invalid catalog line: {found}");
            let error = read(begin, line).unwrap_err().to_string();
            assert!(error.contains(&expected), "{error}");
        };
        let refused = |begin: &str, line: &str| refused_after(begin, line, line);
        let whole = Schema::from_catalog(&all).unwrap();
        let more = |table: &str, schema: Schema| {
            let columns = |s: &Schema| s.table(table).unwrap().columns.len();
            assert_eq!(columns(&schema), columns(&whole) + 1);
            assert_eq!(whole.with_all_of(&schema), Some(schema));
        };
        let last = |table: &str| whole.table(table).unwrap().columns.last().unwrap().id;
        let (last_counter, last_column) = (last(STATS), last(SAMPLE));
        let list_end = all.rfind("COUNTER(").unwrap();
        let counter = |id| format!(r#"COUNTER({id}, probes, int64, one, SUM, exec, 15, "probes")"#);
        more(
            STATS,
            read(&all[list_end..], &counter(last_counter + 1)).unwrap(),
        );
        refused_after("COUNTER(26,", &counter(last_counter + 1), "COUNTER(27,");
        refused(&all[list_end..], &counter(80));
        let column = |id| format!(r#"COLUMN(sample, {id}, probe, UINT, none, NONE, "a probe")"#);
        let end = format!("COLUMN(sample, {last_column},");
        more(SAMPLE, read(&end, &column(last_column + 1)).unwrap());
        refused("COLUMN(sample, 15,", &column(15));
        refused(&end, &column(last_column));
        refused_after(
            "COLUMN(sample, 8,",
            &column(last_column + 1),
            "COLUMN(sample, 9,",
        );
        refused("TABLE(10,", r#"TABLE(10, probe, "probes")"#);
        refused("LABEL(cpu, 2,", r#"LABEL(cpu, 2, "probing")"#);
    }

    #[test]
    fn two_schemas_make_one_unless_they_contradict() {
        let whole = Schema::from_catalog(CATALOG).unwrap().with_runs();
        let column = |schema: &mut Schema, table: &str| {
            let t = schema.index(table).unwrap();
            schema.tables[t].columns.remove(2)
        };
        let (mut old, mut new) = (whole.clone(), whole.clone());
        column(&mut old, "tick");
        old.tables.pop();
        let first = old.labels.iter().position(|l| l.enumeration == "state");
        old.labels.remove(first.unwrap());
        column(&mut new, "wait");
        new.labels.pop();
        for (a, b) in [(&old, &new), (&new, &old), (&old, &whole), (&whole, &new)] {
            assert_eq!(a.with_all_of(b).as_ref(), Some(&whole));
        }
        let contradicts = |change: &dyn Fn(&mut Schema)| {
            let mut other = whole.clone();
            change(&mut other);
            assert_eq!(whole.with_all_of(&other), None);
        };
        contradicts(&|s| s.tables[0].name = "other".into());
        contradicts(&|s| s.tables[0].id = 100);
        contradicts(&|s| s.tables[0].columns[0].name = "other".into());
        contradicts(&|s| s.tables[0].columns[1].ty = ColumnType::Bytes);
        contradicts(&|s| s.labels[0].label = "other".into());
        contradicts(&|s| s.labels[0].value = 1_000);
    }

    #[test]
    fn runs_replace_samples_under_the_same_ids() {
        let schema = Schema::from_catalog(CATALOG).unwrap().with_runs();
        assert!(schema.table("sample").is_none());
        let run = schema.table("run").unwrap();
        assert_eq!(run.column("first_tick").unwrap().id, 1);
        assert_eq!(run.column("ticks").unwrap().id, 3);
        assert_eq!(run.column("blocked_by").unwrap().target, "session");
    }
}
