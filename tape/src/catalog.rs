//! The built-in data model: `build.rs` converts the declarations in `catalog/` to Rust. Files carry
//! their own model. Readers need this one for names that no file has, and writers for the data that
//! they record.

use crate::format::schema::{ColumnDef, ColumnType, Label, Role, Schema, TableDef};

include!(concat!(env!("OUT_DIR"), "/catalog.rs"));

/// A column as it is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column's table.
    pub table: &'static str,
    /// Unique within the table.
    pub id: u8,
    /// Name of the column.
    pub name: &'static str,
    /// Meaning of the column's stored numbers.
    pub ty: ColumnType,
    /// Name of the enumeration (ENUM), table (REF) or unit (a measurement); otherwise empty.
    pub target: &'static str,
    /// Role for readers.
    pub role: Role,
    /// One line of documentation.
    pub about: &'static str,
    /// True for a counter of statements.
    pub is_counter: bool,
}

/// All columns of the catalog, in the order of its C lists.
pub fn columns() -> &'static [Column] {
    COLUMNS
}

/// Name and one line of documentation of each dimension that readers derive.
pub fn derived() -> &'static [(&'static str, &'static str)] {
    DERIVED
}

/// Tables, columns and labels, with the counters of statements.
pub fn schema() -> Schema {
    of(|_| true)
}

/// Same as [`schema`], without the counters of statements.
#[cfg(any(test, feature = "testing"))]
pub fn samples() -> Schema {
    of(|column| !column.is_counter)
}

fn of(takes: impl Fn(&Column) -> bool) -> Schema {
    let columns = |table: &str| {
        let own = COLUMNS.iter().filter(|column| column.table == table);
        own.filter(|column| takes(column)).map(definition).collect()
    };
    let tables = TABLES.iter().map(|&(id, name)| TableDef {
        id,
        name: name.to_string(),
        columns: columns(name),
    });
    let labels = LABELS.iter().map(|&(enumeration, value, label)| Label {
        enumeration: enumeration.to_string(),
        value,
        label: label.to_string(),
    });
    Schema {
        tables: tables.collect(),
        labels: labels.collect(),
    }
}

fn definition(column: &Column) -> ColumnDef {
    ColumnDef {
        id: column.id,
        name: column.name.to_string(),
        ty: column.ty,
        role: column.role,
        target: column.target.to_string(),
    }
}

#[cfg(test)]
#[allow(dead_code)]
#[path = "../../catalog/lists.rs"]
mod lists;

#[cfg(test)]
mod tests {
    use super::lists::Lists;
    use super::*;
    use crate::format::schema::{HISTOGRAM_BUCKETS, LONG_BUCKETS, STATS};

    const TEXT: &str = concat!(
        include_str!("../../catalog/samples.h"),
        include_str!("../../catalog/counters.h")
    );

    #[test]
    fn the_catalog_gives_tables_columns_and_labels() {
        let schema = schema();
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
        let schema = schema();
        let stats = schema.table(STATS).unwrap();
        let column = |name: &str| stats.column(name).map(|c| (c.id, c.ty));
        assert_eq!(column("calls"), Some((21, ColumnType::Uint)));
        assert_eq!(column("total_exec_time"), Some((22, ColumnType::Span)));
        assert_eq!(column("min_exec_time"), None);
        assert_eq!(column("square_exec_time"), Some((25, ColumnType::Uint)));
        assert_eq!(column("histogram_23"), Some((96, ColumnType::Uint)));
        let counters = TEXT.lines().filter(|line| line.starts_with("COUNTER("));
        let is_stored = |line: &&str| !line.contains(", MIN, ") && !line.contains(", MAX, ");
        // Two of the counters are histograms: each of their buckets is a column.
        let columns = 4 + counters.filter(is_stored).count() - 2 + HISTOGRAM_BUCKETS + LONG_BUCKETS;
        assert_eq!(stats.columns.len(), columns);
        assert_eq!(samples().table(STATS).unwrap().columns.len(), 4);
    }

    /// Number of columns of a table after `line` is inserted behind the line that begins with
    /// `begin`.
    fn columns_with(begin: &str, line: &str, table: &str) -> Result<usize, String> {
        let place = TEXT.rfind(begin).unwrap();
        let end = place + TEXT[place..].find('\n').unwrap() + 1;
        let text = [&TEXT[..end], line, "\n", &TEXT[end..]].concat();
        let columns = Lists::read(&text)?.columns;
        Ok(columns.iter().filter(|c| c.table == table).count())
    }

    #[test]
    fn lines_of_the_catalog_stand_in_the_order_of_their_ids() {
        let whole = schema();
        let last = |table: &str| whole.table(table).unwrap().columns.last().unwrap().id;
        let (last_counter, last_column) = (last(STATS), last("sample"));
        let more = |begin: &str, line: &str, table: &str| {
            let count = whole.table(table).unwrap().columns.len();
            assert_eq!(columns_with(begin, line, table), Ok(count + 1));
        };
        let refused_after = |begin: &str, line: &str, found: &str| {
            let error = columns_with(begin, line, STATS).unwrap_err();
            let expected = format!("invalid catalog line: {found}");
            assert!(error.starts_with(&expected), "{error}");
        };
        let refused = |begin: &str, line: &str| refused_after(begin, line, line);
        let counter = |id| format!(r#"COUNTER({id}, probes, int64, one, SUM, exec, 15, "probes")"#);
        more("COUNTER(", &counter(last_counter + 1), STATS);
        refused_after("COUNTER(26,", &counter(last_counter + 1), "COUNTER(27,");
        refused("COUNTER(", &counter(80));
        let column = |id| format!(r#"COLUMN(sample, {id}, probe, UINT, none, NONE, "a probe")"#);
        let end = format!("COLUMN(sample, {last_column},");
        more(&end, &column(last_column + 1), "sample");
        refused("COLUMN(sample, 15,", &column(15));
        refused(&end, &column(last_column));
        let next = "COLUMN(sample, 9,";
        refused_after("COLUMN(sample, 8,", &column(last_column + 1), next);
        refused("TABLE(10,", r#"TABLE(10, probe, "probes")"#);
        refused("LABEL(cpu, 2,", r#"LABEL(cpu, 2, "probing")"#);
    }
}
