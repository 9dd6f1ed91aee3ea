//! Reads shipped objects back, as engines do.

use crate::shipper::SERVERS;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field as Cell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

pub type Row = BTreeMap<String, Cell>;

pub fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect();
    found.sort();
    found
}

/// All rows of a table, of all generations.
pub fn all_rows(root: &Path, table: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for file in files(&root.join(table)) {
        let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let cells = row.get_column_iter();
            rows.push(
                cells
                    .map(|(name, cell)| (name.clone(), cell.clone()))
                    .collect(),
            );
        }
    }
    rows
}

/// The rows that count: rows of the newest complete generation of each hour.
pub fn rows(root: &Path, table: &str) -> Vec<Row> {
    let of = |row: &Row| (row["node"].to_string(), row["hour"].to_string());
    let mut newest: BTreeMap<_, i64> = BTreeMap::new();
    for row in all_rows(root, SERVERS) {
        let known = newest.entry(of(&row)).or_default();
        *known = number(&row, "generation").max(*known);
    }
    let mut rows = all_rows(root, table);
    rows.retain(|row| newest.get(&of(row)) == Some(&number(row, "generation")));
    rows
}

pub fn number(row: &Row, column: &str) -> i64 {
    match &row[column] {
        Cell::Long(n) | Cell::TimestampMicros(n) => *n,
        Cell::Null => 0,
        Cell::Decimal(d) => d.data().iter().fold(0, |n, byte| n << 8 | i64::from(*byte)),
        other => panic!("{column}: {other:?}"),
    }
}

pub fn text(row: &Row, column: &str) -> Option<String> {
    match &row[column] {
        Cell::Str(text) => Some(text.clone()),
        Cell::Null => None,
        other => panic!("{column}: {other:?}"),
    }
}

/// All objects, by name below the root.
pub fn objects(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let name = |path: &PathBuf| {
        path.strip_prefix(root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_string()
    };
    let read = |path: PathBuf| (name(&path), fs::read(&path).unwrap());
    files(root).into_iter().map(read).collect()
}
