//! A history with a damaged column answers without the damaged group, and every
//! form of an answer says so.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

const SINCE: &str = "--since=2026-01-01T00:00:00Z";
const UNTIL: &str = "--until=2026-01-01T03:00:00Z";
const WARNING: &str = "warning: skipped a damaged group of the history\ndetail: File \"0000000001.tape\": damaged chunk at offset ";
const LEFT_OUT: &str = " Group 2 was skipped, ticks 3601 to 3660, 2026-01-01 01:00:00+00 to 2026-01-01 01:00:59+00. This time counts as unobserved.\nhint: Run \"tacho inspect\"";

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Position of a column's chunk. By `docs/format.md` the magic is followed by
/// kind, coding, table, column and group.
fn column_at(bytes: &[u8], table: u8, column: u8, group: u8) -> usize {
    let is_it = |chunk: &[u8]| {
        chunk[..5] == [0xF1, b'T', b'C', b'K', 3] && chunk[6..9] == [table, column, group]
    };
    bytes.windows(24).position(is_it).unwrap()
}

impl Scratch {
    /// A minute with two sessions in each of three hours. The column with the
    /// sessions of the second hour's samples is damaged.
    fn damaged(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tacho-hurt-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        let scratch = Scratch(path);
        let mut csv = String::from("time,pid,wait_event_type,wait_event,query_id,database\n");
        for (hour, second) in (0..3).flat_map(|hour| (0..60).map(move |second| (hour, second))) {
            let time = format!("2026-01-01T0{hour}:00:{second:02}Z");
            let _ = writeln!(csv, "{time},1,IO,DataFileRead,{},shop", 11 + hour);
            let _ = writeln!(csv, "{time},2,Lock,tuple,7,shop");
        }
        let file = scratch.0.join("in.csv");
        std::fs::write(&file, csv).unwrap();
        let output = scratch.tacho(&["import", "sessions", file.to_str().unwrap()]);
        assert!(output.status.success(), "{output:?}");
        let tape = scratch.0.join("tape/0000000001.tape");
        let mut bytes = std::fs::read(&tape).unwrap();
        let at = column_at(&bytes, 22, 2, 2);
        bytes[at + 24] ^= 1;
        std::fs::write(&tape, bytes).unwrap();
        scratch
    }

    fn tacho(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(args)
            .arg(format!("--tape={}", self.0.join("tape").display()))
            .output()
            .unwrap()
    }

    /// Asks with a filter, so that samples are read. Returns standard output
    /// and standard error.
    fn ask(&self, args: &[&str]) -> (String, String) {
        let output = self.tacho(&[args, &[SINCE, UNTIL]].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (text(&output.stdout), text(&output.stderr))
    }
}

#[test]
fn a_table_leaves_the_group_out_with_a_warning() {
    let scratch = Scratch::damaged("table");
    let (out, error) = scratch.ask(&["aas", "--database=shop"]);
    assert!(out.contains("backend_seconds  240.0000\n"), "{out}");
    assert!(out.contains("ticks_observed   120\n"), "{out}");
    assert!(error.starts_with(WARNING), "{error}");
    assert!(error.contains(LEFT_OUT), "{error}");
    for function in ["top", "timeline", "sessions", "chart", "summary"] {
        let (out, error) = scratch.ask(&[function, "--database=shop"]);
        assert!(!out.is_empty(), "{function}");
        assert!(error.starts_with(WARNING), "{function}: {error}");
    }
    let (out, error) = scratch.ask(&["samples", "--database=shop", "--n=all", "--json"]);
    assert!(error.starts_with(WARNING), "{error}");
    assert_eq!(out.matches("\"tick\"").count(), 240);
}

#[test]
fn questions_without_the_damaged_column_answer_completely() {
    let scratch = Scratch::damaged("whole");
    // From the totals, which are undamaged.
    let (out, error) = scratch.ask(&["aas"]);
    assert!(out.contains("ticks_observed   180\n"), "{out}");
    assert_eq!(error, "");
    let (_, error) = scratch.ask(&["markers"]);
    assert_eq!(error, "");
}

#[test]
fn json_stays_an_array_and_a_report_tells_the_damage() {
    let scratch = Scratch::damaged("json");
    let (out, error) = scratch.ask(&["top", "--database=shop", "--json"]);
    assert!(out.starts_with("[\n{") && out.ends_with("}\n]\n"), "{out}");
    assert!(error.starts_with(WARNING), "{error}");
    let (out, error) = scratch.ask(&["report", "--database=shop", "--format=json"]);
    assert!(error.starts_with(WARNING), "{error}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let damage = &report["damage"][0];
    assert_eq!(damage["message"], "skipped a damaged group of the history");
    assert_eq!(report["coverage"]["ticks_observed"], 120);
    for format in ["--format=html", "--format=markdown"] {
        let (out, _) = scratch.ask(&["report", "--database=shop", format]);
        assert!(out.contains("Damage: skipped a damaged group of the history. File"));
    }
}

#[test]
fn the_server_gets_a_warning() {
    let scratch = Scratch::damaged("server");
    let (out, error) = scratch.ask(&["query", "top", "--dimension=wait_event", "--database=shop"]);
    assert!(out.ends_with("\\.\n"), "{out}");
    let begin = "WARNING\tXX001\tskipped a damaged group of the history\tFile \"0000000001.tape\": damaged chunk at offset ";
    assert!(error.starts_with(begin), "{error}");
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn every_answer_reports_an_unreadable_file() {
    let scratch = Scratch::damaged("whole-file");
    std::fs::write(
        scratch.0.join("tape/0000000002.tape"),
        b"nothing of a history",
    )
    .unwrap();
    for function in ["aas", "top", "markers", "samples"] {
        let (_, error) = scratch.ask(&[function]);
        let begin = "warning: could not read a file of the history\ndetail: File \"";
        let at = error
            .find(begin)
            .unwrap_or_else(|| panic!("{function}: {error}"));
        assert!(
            error[at..].contains("0000000002.tape\": "),
            "{function}: {error}"
        );
        assert!(
            error[at..].contains(" This time counts as unobserved.\n"),
            "{error}"
        );
    }
}
