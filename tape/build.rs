//! Converts the lists of `catalog/` to Rust; `src/catalog.rs` includes the result.

#[path = "../catalog/lists.rs"]
mod lists;

use lists::{Column, Lists};
use std::fmt::Write;
use std::path::Path;

fn main() {
    let text = ["samples.h", "counters.h", "derived.h"].map(|name| {
        let path = Path::new("../catalog").join(name);
        println!("cargo:rerun-if-changed={}", path.display());
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    println!("cargo:rerun-if-changed=../catalog/lists.rs");
    let text = text.concat();
    let lists = Lists::read(&text).unwrap_or_else(|error| panic!("{error}"));
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    let out = Path::new(&out).join("catalog.rs");
    std::fs::write(&out, code(&lists)).unwrap_or_else(|error| panic!("{error}"));
}

/// The lists as Rust code.
fn code(lists: &Lists) -> String {
    let mut code = String::from("static TABLES: &[(u8, &str)] = &[\n");
    for table in &lists.tables {
        let _ = writeln!(code, "    ({}, {:?}),", table.id, table.name);
    }
    code.push_str("];\nstatic COLUMNS: &[Column] = &[\n");
    for column in &lists.columns {
        let _ = writeln!(code, "    {},", column_code(column));
    }
    code.push_str("];\nstatic LABELS: &[(&str, i64, &str)] = &[\n");
    for label in &lists.labels {
        let (enumeration, text) = (label.enumeration, label.label);
        let _ = writeln!(code, "    ({enumeration:?}, {}, {text:?}),", label.value);
    }
    code.push_str("];\nstatic DERIVED: &[(&str, &str)] = &[\n");
    for (name, about) in &lists.derived {
        let _ = writeln!(code, "    ({name:?}, {about:?}),");
    }
    code.push_str("];\n");
    code
}

fn column_code(column: &Column) -> String {
    format!(
        "Column {{ table: {:?}, id: {}, name: {:?}, ty: ColumnType::{}, target: {:?}, \
         role: Role::{}, about: {:?}, is_counter: {} }}",
        column.table,
        column.id,
        column.name,
        variant(column.ty),
        column.target,
        variant(column.role),
        column.about,
        column.is_counter,
    )
}

/// `TIME_US` becomes `TimeUs`.
fn variant(word: &str) -> String {
    if word == "DIM" {
        return "Dimension".to_string();
    }
    let parts = word.split('_').filter_map(|part| part.split_at_checked(1));
    parts
        .map(|(first, rest)| format!("{first}{}", rest.to_lowercase()))
        .collect()
}
