//! The data model as it was built in: dimensions, their documentation, labels.

use std::sync::OnceLock;
use tacho_tape::Schema;
use tacho_tape::query;

/// The lists as they are.
pub const TEXT: &str = concat!(
    include_str!("../../catalog/samples.h"),
    include_str!("../../catalog/counters.h")
);

/// Tables, columns and labels of `catalog/samples.h`, and the counters of
/// `catalog/counters.h`.
pub fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| Schema::from_catalog(TEXT).unwrap_or_default())
}

/// The names of the dimensions.
pub fn dimension_names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| query::dimension_names(schema()))
}

/// Name and one line of documentation of every dimension. Found once: every
/// reader command for people asks for them at each start of the program.
pub fn dimensions() -> &'static [(&'static str, &'static str)] {
    static DIMENSIONS: OnceLock<Vec<(&'static str, &'static str)>> = OnceLock::new();
    DIMENSIONS.get_or_init(|| {
        let documented: Vec<_> = TEXT.lines().filter_map(documented).collect();
        let doc = |name: &str| {
            let found = documented.iter().find(|column| column.0 == name);
            found.map_or(ROOT_BLOCKER, |column| column.1)
        };
        let names = dimension_names().iter();
        names.map(|name| (*name, doc(name))).collect()
    })
}

/// The dimension that is no column.
const ROOT_BLOCKER: &str = "session at the head of the queue this one waits in";

/// Name and documentation of a line about a column that is a dimension.
fn documented(line: &'static str) -> Option<(&'static str, &'static str)> {
    let mut words = line
        .strip_prefix("COLUMN(")?
        .split(',')
        .map(str::trim_start);
    let name = words.nth(2)?;
    if words.nth(2)? != "DIM" {
        return None;
    }
    let text = line.split_once('"')?.1.strip_suffix("\")")?;
    Some((name, text))
}

/// Something that is measured of the server as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// As `server_history` calls it.
    pub name: &'static str,
    /// The table it is recorded in: `server`, or one of kinds of objects.
    pub table: &'static str,
    /// It only increases.
    pub counts: bool,
    /// `count`, `bytes`, `blocks`, `ms`, `us`, or `hundredths` of a count.
    pub unit: &'static str,
    /// One line of documentation.
    pub about: &'static str,
}

/// What is measured of the server, in the order of the catalog.
pub fn measurements() -> &'static [Measurement] {
    static MEASUREMENTS: OnceLock<Vec<Measurement>> = OnceLock::new();
    MEASUREMENTS.get_or_init(|| TEXT.lines().filter_map(measured).collect())
}

/// The measurement that a line is about.
fn measured(line: &'static str) -> Option<Measurement> {
    let (head, about) = line.strip_prefix("COLUMN(")?.split_once('"')?;
    let words: Vec<&str> = head.split(',').map(str::trim).collect();
    let [table, _, name, _, unit, role, _] = words[..] else {
        return None;
    };
    let counts = match role {
        "COUNTER" => true,
        "GAUGE" => false,
        _ => return None,
    };
    let about = about.strip_suffix("\")")?;
    Some(Measurement {
        name,
        table,
        counts,
        unit,
        about,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tacho_tape::format::schema::Role;

    #[test]
    fn every_dimension_has_a_name_and_a_doc() {
        let dimensions = dimensions();
        assert_eq!(
            dimensions[0],
            ("wait_event_type", "class of the wait event")
        );
        assert!(dimensions.contains(&("pid", "process id")));
        let last = (
            "root_blocker",
            "session at the head of the queue this one waits in",
        );
        assert_eq!(dimensions.last(), Some(&last));
        assert_eq!(dimensions.len(), 16);
    }

    #[test]
    fn what_is_measured_is_what_the_schema_marks() {
        let all = measurements();
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
