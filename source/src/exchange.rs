//! History as text: the columns that `export` writes and `import` reads. They
//! follow from the catalog, so a new column needs no new line.
//!
//! A name ends in the unit, unless it has the unit already: `_ms`, `_us`,
//! `_bytes`, `_x100` for hundredths, `_ms2` for square milliseconds. Lengths of
//! time and squares of them are stored in hundredths and written as decimal
//! fractions. Earlier exports have these columns without a unit and with the
//! stored numbers; they are read that way.

use tacho_tape::Schema;
use tacho_tape::format::schema::{ColumnDef, ColumnType, RUN, Role, STATS, TableDef};

/// The kind of ticks and samples.
pub const SESSIONS: &str = "sessions";
/// The kind of query texts, which have no time of their own.
pub const TEXTS: &str = "texts";

/// Names of kinds for people, and their tables. Every other table is a kind with the name of the
/// table.
const KINDS: [(&str, &str); 6] = [
    (SESSIONS, RUN),
    ("locks", "lock"),
    ("counts", "count"),
    (TEXTS, "text"),
    ("markers", "marker"),
    ("statements", "statement_stats"),
];

/// Columns whose names in text differ from the catalog: table, name in the catalog, name in text.
const RENAMED: [(&str, &str, &str); 5] = [
    ("tick", "status", "tick_status"),
    ("tick", "reason", "tick_reason"),
    ("session", "leader", "leader_pid"),
    ("wait", "number", "wait_number"),
    ("text", "bytes", "query_text"),
];

/// Suffix of a column in hundredths, written as a decimal fraction.
const HUNDREDTHS: &str = "_x100";
/// Prefix of a column with sums of squares, in hundredths of a square
/// millisecond.
const SQUARES: &str = "square_";

/// Suffix of a column's name in text: its unit.
fn unit(table: &TableDef, column: &ColumnDef) -> &'static str {
    let is_measured = matches!(column.role, Role::Counter | Role::Gauge);
    match column.target.as_str() {
        _ if column.ty == ColumnType::Span => "_ms",
        _ if table.name == STATS && column.name.starts_with(SQUARES) => "_ms2",
        "ms" if is_measured => "_ms",
        "us" if is_measured => "_us",
        "bytes" if is_measured && !column.name.ends_with("_bytes") => "_bytes",
        "hundredths" if is_measured => HUNDREDTHS,
        _ => "",
    }
}

/// The row that holds a field's value, relative to the row that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The row's tick.
    Tick,
    /// The row itself.
    Own,
    /// The row that this column refers to.
    Reference(String),
}

/// A column of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the column in the first line.
    pub name: String,
    /// Suffix of the name that shows the unit.
    unit: &'static str,
    /// True if the number is written as stored, whatever its unit.
    is_raw: bool,
    /// The row that holds the value.
    pub place: Place,
    /// The table of that row.
    pub table: String,
    /// The column in that row.
    pub column: ColumnDef,
}

impl Field {
    fn new(place: Place, table: &TableDef, column: &ColumnDef) -> Field {
        let renamed = RENAMED
            .iter()
            .find(|r| (r.0, r.1) == (table.name.as_str(), column.name.as_str()));
        let name = match renamed {
            Some((_, _, name)) => name,
            None => column.name.strip_suffix(HUNDREDTHS).unwrap_or(&column.name),
        };
        let unit = unit(table, column);
        Field {
            name: format!("{name}{unit}"),
            unit,
            is_raw: false,
            place,
            table: table.name.clone(),
            column: column.clone(),
        }
    }

    fn named(mut self, name: impl Into<String>) -> Field {
        self.name = name.into();
        self
    }

    /// True if the value is stored plus one. A stored 0 means unknown, and is empty in the text.
    pub fn is_measured(&self) -> bool {
        matches!(self.column.role, Role::Counter | Role::Gauge)
    }

    /// True if the value is stored in hundredths.
    pub fn is_fraction(&self) -> bool {
        let in_hundredths = ["_ms", "_ms2"].contains(&self.unit) && !self.is_measured();
        !self.is_raw && (in_hundredths || self.column.name.ends_with(HUNDREDTHS))
    }

    /// The field that a name in the first line means: this one, or its earlier
    /// form without a unit in the name.
    pub fn called(&self, name: &str) -> Option<Field> {
        if self.name == name {
            return Some(self.clone());
        }
        let is_raw = !self.unit.is_empty() && self.name.strip_suffix(self.unit) == Some(name);
        is_raw.then(|| Field {
            is_raw,
            ..self.clone()
        })
    }
}

/// The table of a kind. `None` for tables whose rows are only referred to, and
/// for totals, which are computed from other tables.
pub fn table_of<'a>(schema: &'a Schema, kind: &str) -> Option<&'a TableDef> {
    let known = KINDS.iter().find(|k| k.0 == kind);
    let name = known.map_or(kind, |k| k.1);
    let other_name = known.is_none() && KINDS.iter().any(|k| k.1 == name);
    let index = schema.index(name).filter(|_| !other_name)?;
    let alone = !schema.is_dictionary(index) || name == "text";
    let stored = name != "tick" && !schema.is_totals(index);
    (alone && stored).then(|| &schema.tables[index])
}

/// All kinds of a schema.
pub fn kinds(schema: &Schema) -> Vec<&str> {
    let names = schema.tables.iter().map(|t| {
        let named = KINDS.iter().find(|k| k.1 == t.name);
        named.map_or(t.name.as_str(), |k| k.0)
    });
    names.filter(|k| table_of(schema, k).is_some()).collect()
}

/// True if rows of the table belong to ticks.
pub fn has_ticks(table: &TableDef) -> bool {
    table.name == RUN || table.index("at").is_some()
}

/// The columns of a table's rows as text.
pub fn fields(schema: &Schema, table: &TableDef) -> Vec<Field> {
    let mut fields = Vec::new();
    let tick = schema.table("tick");
    let of_tick = |name: &str| {
        let tick = tick?;
        Some(Field::new(Place::Tick, tick, tick.column(name)?))
    };
    if has_ticks(table) || table.name == "text" {
        fields.extend(of_tick("slot_time").map(|f| f.named("time")));
    }
    if has_ticks(table) {
        fields.extend(of_tick("tick"));
    }
    if table.name == RUN {
        let rest = tick.iter().flat_map(|t| &t.columns);
        let rest = rest.filter(|c| !["tick", "slot_time"].contains(&c.name.as_str()));
        fields.extend(rest.filter_map(|c| of_tick(&c.name)));
    }
    let encoded = table.columns.iter().any(|c| c.ty == ColumnType::Bytes);
    for column in &table.columns {
        match column.name.as_str() {
            "at" | "first_tick" | "ticks" | "id" => (),
            "encoding" if encoded => (),
            _ if column.ty == ColumnType::Ref => {
                fields.extend(referred(schema, table, column));
            }
            _ => fields.push(Field::new(Place::Own, table, column)),
        }
    }
    fields
}

/// The columns of the row that `reference` refers to: all of them, or, for
/// another session than the row's own, only those that identify it.
fn referred(schema: &Schema, table: &TableDef, reference: &ColumnDef) -> Vec<Field> {
    let Some(target) = schema.table(&reference.target) else {
        return Vec::new();
    };
    let place = Place::Reference(reference.name.clone());
    let field = |column: &ColumnDef| Field::new(place.clone(), target, column);
    if target.name == "session" && !(table.name == RUN && reference.name == "session") {
        let name = &reference.name;
        let names = [
            ("pid", name.clone()),
            ("backend_start", format!("{name}_start")),
        ];
        let found = names
            .into_iter()
            .filter_map(|(column, name)| Some(field(target.column(column)?).named(name)));
        return found.collect();
    }
    let own = target.columns.iter().filter(|c| c.name != "id");
    own.filter(|c| c.ty != ColumnType::Ref).map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use std::collections::HashSet;

    fn runs() -> Schema {
        catalog::schema().clone().with_runs()
    }

    fn names(kind: &str) -> Vec<String> {
        let schema = runs();
        let table = table_of(&schema, kind).unwrap();
        fields(&schema, table).into_iter().map(|f| f.name).collect()
    }

    #[test]
    fn every_kind_has_columns_with_names_of_their_own() {
        let schema = runs();
        let kinds = kinds(&schema);
        for kind in [
            "sessions",
            "locks",
            "texts",
            "server",
            "markers",
            "statements",
        ] {
            assert!(kinds.contains(&kind), "{kind}");
        }
        for kind in kinds {
            let names = names(kind);
            assert_eq!(names[0], "time", "{kind}");
            let distinct: HashSet<&String> = names.iter().collect();
            assert_eq!(distinct.len(), names.len(), "{kind}: {names:?}");
        }
        for kind in ["run", "lock", "tick", "name", "session", "mood"] {
            assert_eq!(table_of(&schema, kind), None, "{kind}");
        }
    }

    #[test]
    fn names_tell_the_unit() {
        let units = |kind: &str| {
            let names = names(kind).join(" ");
            move |name: &str| names.split(' ').any(|n| n == name)
        };
        let of_statements = units("statements");
        for name in ["elapsed_ms", "calls", "wal_bytes", "total_exec_time_ms"] {
            assert!(of_statements(name), "{name}");
        }
        assert!(of_statements("square_exec_time_ms2"));
        let of_server = units("server");
        for name in [
            "cpu_user_ms",
            "load_1_x100",
            "memory_total_bytes",
            "wal_bytes",
        ] {
            assert!(of_server(name), "{name}");
        }
        assert!(units("server_database")("blk_read_time_us"));
    }

    #[test]
    fn sessions_have_every_column_of_ticks_sessions_and_samples() {
        let schema = runs();
        let names = names("sessions");
        let stored = ["tick", "session", "run", "wait", "statement"];
        let stored = stored.map(|t| schema.table(t).unwrap().columns.len());
        // Left out: three ids, the three columns of references, first tick and
        // ticks. Added: the start of the blocker.
        assert_eq!(names.len(), stored.iter().sum::<usize>() - 3 - 3 - 2 + 1);
        for name in [
            "tick",
            "vcpus",
            "leader_pid",
            "wait_event",
            "plan_id",
            "blocked_by",
        ] {
            assert!(names.iter().any(|n| n == name), "{name}");
        }
    }

    #[test]
    fn a_lock_names_its_sessions_by_process_and_start() {
        let names = names("locks");
        let expected = [
            "time",
            "tick",
            "waiter",
            "waiter_start",
            "blocker",
            "blocker_start",
        ];
        assert_eq!(names[..6], expected);
    }
}
