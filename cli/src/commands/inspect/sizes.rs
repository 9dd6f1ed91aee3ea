//! `tacho inspect --sizes`: the use of each byte in history files.

use super::{Lines, files_at};
use crate::commands::say;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::path::Path;
use tacho_tape::query::sizes::{Sizes, Use};

/// Prints the bytes by table and column; false if some cannot be read.
pub(super) fn show(path: &Path, as_json: bool, out: &mut Lines) -> bool {
    let Some(files) = files_at(path) else {
        return false;
    };
    let mut sizes = Sizes::default();
    let mut whole = true;
    for file in &files {
        if let Err(error) = sizes.add(file) {
            say(format_args!("error: {error}"));
            whole = false;
        }
    }
    match as_json {
        true => out.line(document(&sizes)),
        false if sizes.files > 0 => print(&sizes, out),
        false => (),
    }
    let is_unreadable = |used: &Use| matches!(used, Use::Unreadable(_));
    whole && !sizes.uses.keys().any(is_unreadable)
}

/// Group and name of a use, as printed.
fn names(used: &Use) -> (&str, &str) {
    match used {
        Use::Column { table, column } => (table, column),
        Use::Framing(what) => ("(framing)", what),
        Use::Unreadable(what) => ("(unreadable)", what),
    }
}

/// An object for each use.
fn document(sizes: &Sizes) -> Value {
    let uses = sizes.uses.iter().map(|(used, bytes)| {
        let (kind, table) = match used {
            Use::Column { table, .. } => ("column", Some(table)),
            Use::Framing(_) => ("framing", None),
            Use::Unreadable(_) => ("unreadable", None),
        };
        json!({"kind": kind, "table": table, "name": names(used).1, "bytes": bytes})
    });
    Value::Array(uses.collect())
}

/// The uses of one table, or all framing.
#[derive(Default)]
struct Group<'a> {
    name: &'a str,
    bytes: u64,
    /// Names and bytes of the uses in the group.
    uses: Vec<(&'a str, u64)>,
}

/// Groups of uses, largest first.
fn groups(sizes: &Sizes) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (used, &bytes) in &sizes.uses {
        let (name, of) = names(used);
        if groups.last().is_none_or(|last| last.name != name) {
            groups.push(Group {
                name,
                ..Group::default()
            });
        }
        if let Some(last) = groups.last_mut() {
            last.bytes += bytes;
            last.uses.push((of, bytes));
        }
    }
    groups.sort_by_key(|group| Reverse(group.bytes));
    for group in &mut groups {
        group.uses.sort_by_key(|used| Reverse(used.1));
    }
    groups
}

fn print(sizes: &Sizes, out: &mut Lines) {
    let mut line = |bytes: u64, name: &str| {
        let share = 100.0 * bytes as f64 / sizes.bytes as f64;
        out.line(format_args!("{bytes:>12} {share:>6.2}  {name}"));
    };
    for group in groups(sizes) {
        line(group.bytes, group.name);
        for (name, bytes) in group.uses {
            line(bytes, &format!("  {name}"));
        }
    }
    let files = match sizes.files {
        1 => "1 file".into(),
        files => format!("{files} files"),
    };
    line(sizes.bytes, &format!("sum of {files}"));
}
