//! With little memory a question gets the same answer as with much, or a clear
//! refusal.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

const TICKS: u64 = 4;
const SESSIONS: u64 = 5_000;
const NOW: &str = "--now=2026-01-01T00:01:00Z";

struct Scratch(PathBuf);

impl Scratch {
    fn tacho(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(args)
            .arg(format!("--tape={}", self.0.join("tape").display()))
            .output()
            .unwrap()
    }

    fn ask(&self, function: &[&str], megabytes: &str) -> Output {
        let json = match function[0] {
            "report" => "--format=json",
            _ => "--json",
        };
        self.tacho(&[function, &[NOW, json, "--memory-limit-mb", megabytes]].concat())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// 20,000 samples, each with a query of its own.
fn history(name: &str) -> Scratch {
    let path = std::env::temp_dir().join(format!("tacho-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir(&path).unwrap();
    let scratch = Scratch(path);
    let mut csv = "time,pid,wait_event_type,wait_event,query_id,query_text\n".to_string();
    for tick in 0..TICKS {
        for session in 1..=SESSIONS {
            let query = tick * SESSIONS + session;
            writeln!(
                csv,
                "2026-01-01T00:00:{tick:02}Z,{session},IO,DataFileRead,{query},select {query}"
            )
            .unwrap();
        }
    }
    let file = scratch.0.join("samples.csv");
    std::fs::write(&file, csv).unwrap();
    let imported = scratch.tacho(&["import", "sessions", file.to_str().unwrap()]);
    assert!(imported.status.success(), "{imported:?}");
    scratch
}

fn refusal(megabytes: &str) -> String {
    format!(
        "error: tacho program ran out of memory\n\
         detail: The limit is {megabytes} MB.\n\
         hint: Use a shorter window, a wider bucket, a filter or fewer rows, or raise --memory-limit-mb.\n"
    )
}

const FUNCTIONS: [&[&str]; 17] = [
    &["status"],
    &["periods"],
    &["aas"],
    &[
        "timeline",
        "--since=2026-01-01T00:00:00Z",
        "--bucket=1m",
        "--by=query_id",
        "--n=all",
    ],
    &["top", "query_id", "--by=wait_event", "--n=all"],
    &["compare", "query_id", "--n=all"],
    &["changes", "--n=all"],
    &["samples", "--n=all"],
    &["sessions", "--n=all"],
    &["blocking", "--n=all"],
    &["chart", "--by=query_id"],
    &["summary"],
    &["markers"],
    &["server-history"],
    &["statements-history", "--n=all"],
    &["latency-history"],
    &["report"],
];
/// Functions that keep something for each sample.
const GREEDY: [&str; 7] = [
    "timeline", "top", "compare", "samples", "sessions", "chart", "report",
];

#[test]
fn a_question_with_little_memory_is_answered_or_refused_in_words() {
    let scratch = history("memory");
    for function in FUNCTIONS {
        let whole = scratch.ask(function, "4096");
        assert!(whole.status.success(), "{function:?}: {whole:?}");
        for megabytes in ["1", "6"] {
            let output = scratch.ask(function, megabytes);
            let text = String::from_utf8(output.stderr).unwrap();
            match output.status.code() {
                Some(0) => assert_eq!(output.stdout, whole.stdout, "{function:?}"),
                Some(1) => {
                    let of_sums = text.contains("answer exceeds the memory limit of a query");
                    assert!(
                        of_sums || text == refusal(megabytes),
                        "{function:?}: {text}"
                    );
                }
                other => panic!("{function:?}: {other:?} {text}"),
            }
            if megabytes == "1" && GREEDY.contains(&function[0]) {
                assert_eq!(output.status.code(), Some(1), "{function:?}");
            }
        }
    }
}

/// A table of the samples. Its rows alone would take more than 20 MB.
#[test]
fn a_table_of_many_rows_takes_no_memory_for_them() {
    let scratch = history("memory-table");
    let table = |more: &[&str]| scratch.tacho(&[&["samples", "--n=all", NOW], more].concat());
    let whole = table(&["--memory-limit-mb=4096"]);
    let lines = String::from_utf8(whole.stdout.clone()).unwrap();
    assert_eq!(lines.lines().count() as u64, 3 + TICKS * SESSIONS);
    let little = table(&["--memory-limit-mb=16"]);
    assert!(little.status.success(), "{little:?}");
    assert!(little.stdout == whole.stdout);
}

#[test]
fn a_limit_that_is_no_number_of_megabytes_is_refused() {
    let scratch = history("no-memory");
    for megabytes in ["0", "-1", "x", "18446744073709551616"] {
        let output = scratch.ask(&["aas"], megabytes);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(
            String::from_utf8(output.stderr).unwrap(),
            format!(
                "error: invalid value \"{megabytes}\" for memory-limit-mb\n\
                 hint: Use a whole number of megabytes, at least 1.\n"
            )
        );
    }
}
