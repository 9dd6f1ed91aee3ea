//! The data model that is built into the program: dimensions, their documentation, labels.

use std::sync::OnceLock;
use tacho_tape::catalog::{self, Column};
use tacho_tape::format::schema::Role;
use tacho_tape::{Schema, query};

/// Tables, columns and labels of `catalog/samples.h`, and the counters of
/// `catalog/counters.h`.
pub fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(catalog::schema)
}

/// The names of the dimensions.
pub fn dimension_names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| query::dimension_names(schema()))
}

/// Name and one line of documentation of every dimension.
pub fn dimensions() -> &'static [(&'static str, &'static str)] {
    static DIMENSIONS: OnceLock<Vec<(&'static str, &'static str)>> = OnceLock::new();
    DIMENSIONS.get_or_init(|| {
        let columns = catalog::columns().iter();
        let columns = columns.filter(|c| c.role == Role::Dimension);
        let columns = columns.map(|c| (c.name, c.about));
        let all: Vec<_> = columns.chain(catalog::derived().iter().copied()).collect();
        let about = |name: &str| {
            let found = all.iter().find(|(known, _)| *known == name);
            found.map_or("", |(_, about)| *about)
        };
        let names = dimension_names().iter();
        names.map(|name| (*name, about(name))).collect()
    })
}

/// Something measured for the server as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Name of the measurement in `server_history`.
    pub name: &'static str,
    /// The table it is recorded in: `server`, or a table for one kind of
    /// objects.
    pub table: &'static str,
    /// True if the column is a counter, which only grows.
    pub counts: bool,
    /// `count`, `bytes`, `blocks`, `ms`, `us`, or `hundredths` of a count.
    pub unit: &'static str,
    /// The measured quantity, in one line.
    pub about: &'static str,
}

/// Measurements of the server, in the order of the catalog.
pub fn measurements() -> impl Iterator<Item = Measurement> {
    catalog::columns().iter().filter_map(measured)
}

/// The measurement that a column records, if it records one.
fn measured(column: &Column) -> Option<Measurement> {
    let counts = match column.role {
        Role::Counter => true,
        Role::Gauge => false,
        _ => return None,
    };
    Some(Measurement {
        name: column.name,
        table: column.table,
        counts,
        unit: column.target,
        about: column.about,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_dimension_has_a_name_and_a_doc() {
        let dimensions = dimensions();
        assert_eq!(
            dimensions[0],
            ("wait_event_type", "class of the wait event")
        );
        assert!(dimensions.contains(&("pid", "process id")));
        let derived = (
            "root_blocker",
            "session at the head of the queue this one waits in",
        );
        assert!(dimensions.contains(&derived));
        let columns = schema().tables.iter().flat_map(|t| &t.columns);
        let marked = columns.filter(|c| c.role == Role::Dimension).count();
        assert_eq!(dimensions.len(), marked + catalog::derived().len());
        assert!(dimensions.iter().all(|(_, about)| !about.is_empty()));
    }

    #[test]
    fn the_sql_edition_has_the_dimensions_of_the_catalog() {
        let script = include_str!("../../sql/src/05_dimensions.sql");
        let rows = script.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("\t(")?.split(", ");
            let position: usize = cells.next()?.parse().ok()?;
            Some((position, cells.next()?.trim_matches('\'')))
        });
        let rows: Vec<(usize, &str)> = rows.collect();
        let names = dimension_names().iter().copied();
        assert_eq!(rows, (1..).zip(names).collect::<Vec<_>>());
    }

    #[test]
    fn measurements_are_the_columns_that_the_schema_marks() {
        let all: Vec<Measurement> = measurements().collect();
        let wal = all.iter().find(|m| m.name == "wal_bytes").unwrap();
        let about = "write-ahead log inserted; on a standby replayed";
        let expected = ("server", true, "bytes", about);
        assert_eq!((wal.table, wal.counts, wal.unit, wal.about), expected);
        let retained = all.iter().find(|m| m.name == "slot_retained").unwrap();
        assert_eq!((retained.table, retained.counts), ("server_slot", false));
        let columns = schema().tables.iter().flat_map(|t| &t.columns);
        let marked = columns.filter(|c| matches!(c.role, Role::Counter | Role::Gauge));
        let marked: Vec<&str> = marked.map(|c| c.name.as_str()).collect();
        assert_eq!(all.iter().map(|m| m.name).collect::<Vec<_>>(), marked);
    }
}
