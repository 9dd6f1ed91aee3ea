//! Descriptors of tables and columns. Every log and every sealed file has its own, so readers need
//! no list of columns, and a new column changes no reader. Tables and columns with a special
//! meaning (`tick`, `sample`, `at`, …) are found by name.

/// Meaning of a column's stored number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Unsigned number. Numbers of 64 bits are reinterpreted as `i64`.
    Uint,
    /// Signed number.
    Int,
    /// ms since 1970 UTC; 0 = null.
    Time,
    /// µs since 1970 UTC; 0 = null.
    TimeUs,
    /// Row index + 1 in table `name`; 0 = null.
    Name,
    /// Value of the enumeration `target`; 0 = null.
    Enum,
    /// Row index + 1 in table `target`; 0 = null.
    Ref,
    /// String of bytes.
    Bytes,
    /// Length of time in units of 10 µs.
    Span,
}

const TYPES: [(ColumnType, u8); 9] = [
    (ColumnType::Uint, 1),
    (ColumnType::Int, 2),
    (ColumnType::Time, 3),
    (ColumnType::TimeUs, 4),
    (ColumnType::Name, 5),
    (ColumnType::Enum, 6),
    (ColumnType::Ref, 7),
    (ColumnType::Bytes, 8),
    (ColumnType::Span, 9),
];

impl ColumnType {
    /// The number of the type in files.
    pub fn code(self) -> u8 {
        TYPES.iter().find(|t| t.0 == self).map_or(0, |t| t.1)
    }

    /// The type with this number.
    pub fn from_code(code: u8) -> Option<Self> {
        TYPES.iter().find(|t| t.1 == code).map(|t| t.0)
    }
}

/// Role of a column for readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// No special role.
    #[default]
    None,
    /// Readers filter and group by it.
    Dimension,
    /// A measurement: the increase since the reading before. It is stored plus one; 0 = unknown.
    /// Its target is the unit.
    Counter,
    /// A measurement of a state, stored as a counter is.
    Gauge,
}

const ROLES: [(Role, u8); 4] = [
    (Role::None, 0),
    (Role::Dimension, 1),
    (Role::Counter, 2),
    (Role::Gauge, 4),
];

impl Role {
    /// The flags of the role in files.
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
    /// Id, unique within the table and stored in files.
    pub id: u8,
    /// Name, as in `catalog/samples.h`.
    pub name: String,
    /// Meaning of the column's stored numbers.
    pub ty: ColumnType,
    /// Role for readers.
    pub role: Role,
    /// Name of the enumeration (ENUM), table (REF) or unit (a measurement); otherwise empty.
    pub target: String,
}

/// Limit in ms since 1970. Readers can add and multiply times below it without overflow.
pub(crate) const FAR_MS: u64 = 1 << 52;

/// Limit of an interval in ms, 34 years. A longer one is damage.
pub const INTERVAL_LIMIT_MS: i64 = 1 << 40;

impl ColumnDef {
    /// True if a time or an interval is credible. Values of other columns always are.
    pub(crate) fn is_sensible(&self, value: i64) -> bool {
        self.are_sensible(&[value])
    }

    /// Same as [`ColumnDef::is_sensible`], for many values.
    pub(crate) fn are_sensible(&self, values: &[i64]) -> bool {
        match self.ty {
            ColumnType::Time => values.iter().all(|v| v.unsigned_abs() < FAR_MS),
            _ if self.name == "interval_ms" => {
                values.iter().all(|v| (0..INTERVAL_LIMIT_MS).contains(v))
            }
            _ => true,
        }
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDef {
    /// Id, unique and stored in files.
    pub id: u8,
    /// Name as in `catalog/samples.h`; `run` replaces `sample`.
    pub name: String,
    /// Columns in the order of their ids.
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

    /// Adds the columns that only `other` has. `None` if a column differs in the two.
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
    /// Stored value; never 0.
    pub value: i64,
    /// Text that readers show for the value.
    pub label: String,
}

/// All tables, columns and labels of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Tables in the order of their ids.
    pub tables: Vec<TableDef>,
    /// Labels ordered by enumeration (in order of appearance) and value.
    pub labels: Vec<Label>,
}

/// Name of the table of runs.
pub const RUN: &str = "run";
/// Name of the table with the increases of statements' counters.
pub const STATS: &str = "statement_stats";
/// Name of the column of `statement_stats` with the time since the last call, plus 1 ms.
pub const SINCE_CALL: &str = "since_call_ms";
/// Name of the table with the increases of plans' counters.
pub const PLAN_STATS: &str = "plan_stats";
/// Name of the table with the errors of statements by SQLSTATE.
pub const ERROR_STATS: &str = "error_stats";
/// Number of buckets of the histogram in `statement_stats`: columns `histogram_0` and so on.
pub const HISTOGRAM_BUCKETS: usize = 24;
/// Number of buckets that divide the histogram's last bucket: columns `histogram_long_0` and so on.
pub const LONG_BUCKETS: usize = 12;
/// Name of the table of samples, which become runs.
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

    /// True if this table (by index) is a dictionary: rows refer to it by id, or it holds texts.
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

    /// This schema with the tables, columns and labels that only `other` has. `None` if a name or a
    /// number has different meanings in the two.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;

    #[test]
    fn two_schemas_make_one_unless_they_contradict() {
        let whole = catalog::samples().with_runs();
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
        let schema = catalog::samples().with_runs();
        assert!(schema.table("sample").is_none());
        let run = schema.table("run").unwrap();
        assert_eq!(run.column("first_tick").unwrap().id, 1);
        assert_eq!(run.column("ticks").unwrap().id, 3);
        assert_eq!(run.column("blocked_by").unwrap().target, "session");
    }
}
