//! `tacho plans` names the type of each plan by its recorded trees.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tacho");
/// Flags of a tree, as in `docs/format.md`.
const UNKNOWN: u8 = 0;
const GENERIC: u8 = 4;
const CUSTOM: u8 = 8;

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(args: &[&str]) -> Output {
    let output = Command::new(PROGRAM).args(args).env("TZ", "UTC").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A tree of one sequential scan.
fn tree(flags: u8) -> String {
    let bytes = vec![1, flags, 0, 9, 0, 0, 0, 1, 4, 0, 50, 1, 1, b't', 0];
    String::from_utf8(bytes).unwrap()
}

/// Two hours of query 7 in two databases. It runs by one plan, 71, whose trees are `trees`: day, time of
/// day, database, flags.
fn history(name: &str, trees: &[(&str, &str, u8)]) -> Scratch {
    let path = std::env::temp_dir().join(format!("tacho-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    let mut sessions = "time,pid,backend_start,backend_type,database,username,state,cpu,query_id,query_text,plan_id\n".to_string();
    let mut statements = "time,elapsed_ms,user_oid,username,database_oid,database,query_id,toplevel,calls,total_exec_time_ms,rows\n".to_string();
    for day in 1..=5 {
        for second in 0..60 {
            for (pid, database) in [(1, "shop"), (2, "crm")] {
                writeln!(sessions, "2026-01-0{day}T00:00:{second:02}Z,{pid},2025-12-31T00:00:00Z,client backend,{database},app,active,running,7,select $1,71").unwrap();
            }
        }
        writeln!(statements, "2026-01-0{day}T00:01:00Z,60000,,,,,,,,,").unwrap();
        for (oid, database) in [(5, "shop"), (6, "crm")] {
            writeln!(
                statements,
                "2026-01-0{day}T00:01:00Z,60000,10,app,{oid},{database},7,1,60,6000,60"
            )
            .unwrap();
        }
    }
    let mut rows = "time,plan_id,query_id,database,username,tree\n".to_string();
    for (time, database, flags) in trees {
        writeln!(
            rows,
            "2026-01-{time}Z,71,7,{database},app,\"{}\"",
            tree(*flags)
        )
        .unwrap();
    }
    let scratch = Scratch(path);
    let path = &scratch.0;
    let with = |kind: &str, text: &str| format!("--with={kind}={}", write(path, kind, text));
    run(&[
        "import",
        "sessions",
        &write(path, "sessions", &sessions),
        "--tape",
        &path.join("tape").display().to_string(),
        &with("statements", &statements),
        &with("plan_tree", &rows),
    ]);
    scratch
}

/// Database and type of each row, in a window of one day.
fn types(scratch: &Scratch, day: u32) -> Vec<(String, String)> {
    let tape = scratch.0.join("tape").display().to_string();
    let since = format!("2026-01-0{day}T00:00:00Z");
    let until = format!("2026-01-0{day}T01:00:00Z");
    let output = run(&[
        "plans",
        "--tape",
        &tape,
        "--since",
        &since,
        "--until",
        &until,
        "--query-id",
        "7",
        "--json",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = answer.as_array().unwrap_or_else(|| panic!("{text}"));
    let named = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap_or("-").to_string();
    let mut found: Vec<_> = rows
        .iter()
        .map(|row| (named(row, "database"), named(row, "plan_type")))
        .collect();
    found.sort();
    found
}

#[test]
fn a_plan_has_the_type_of_the_last_tree_of_its_own_statement() {
    let trees = [
        ("02T00:00:00", "shop", GENERIC),
        ("03T00:00:00", "shop", CUSTOM),
        ("03T00:00:01", "shop", UNKNOWN),
        ("05T00:00:00", "shop", GENERIC),
    ];
    let scratch = history("plan-types", &trees);
    let of = |day| types(&scratch, day);
    let shop = |name: &str| [("crm".into(), "-".into()), ("shop".into(), name.into())];
    assert_eq!(of(1), shop("-"), "the tree is after the window");
    assert_eq!(of(2), shop("generic"));
    assert_eq!(of(3), shop("custom"), "a later tree without a type");
    assert_eq!(of(4), shop("custom"), "the tree of the day before");
    assert_eq!(of(5), shop("generic"));
}
