//! `tacho report`: the page, the Markdown and the document say the same.
#![allow(clippy::unwrap_used, missing_docs)]

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tacho-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn tacho(&self, args: &[&str]) -> Output {
        let tape = format!("--tape={}", self.0.join("tape").display());
        let program = env!("CARGO_BIN_EXE_tacho");
        let output = Command::new(program).args(args).arg(tape).output();
        output.unwrap()
    }

    fn text(&self, args: &[&str]) -> String {
        let output = self.tacho(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Two sessions for two ticks, a query that looks like markup.
    fn import(&self) {
        let file = self.0.join("in.csv");
        let mut csv =
            "time,pid,state,wait_event_type,wait_event,query_id,query_text,vcpus\n".to_string();
        for second in 0..2 {
            csv.push_str(&format!(
                "2026-01-01T00:00:0{second}Z,1,active,IO,DataFileRead,11,\"select '<b>|&'\",4\n"
            ));
            csv.push_str(&format!(
                "2026-01-01T00:00:0{second}Z,2,active,Lock,tuple,12,update stock,4\n"
            ));
        }
        std::fs::write(&file, csv).unwrap();
        self.text(&["import", "sessions", &file.to_string_lossy()]);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const WINDOW: [&str; 2] = [
    "--since=2026-01-01T00:00:00Z",
    "--until=2026-01-01T00:00:03Z",
];

fn ask<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [words, &WINDOW].concat()
}

#[test]
fn the_page_loads_nothing_and_names_its_picture() {
    let scratch = Scratch::new("report-page");
    scratch.import();
    let page = scratch.text(&ask(&["report"]));
    assert!(page.starts_with("<!doctype html>"));
    for refused in ["<script", "http:", "https:", "src=", "@import", "<b>|"] {
        assert!(!page.contains(refused), "{refused}");
    }
    for wanted in [
        "prefers-color-scheme: dark",
        "@media print",
        "<title id=\"chart-title\">Average active sessions over time</title>",
        "<desc id=\"chart-desc\">Average 2.00 sessions, highest 2.00 at 00:00:00.",
        "fill=\"url(#p-io)\"",
        "fill=\"url(#p-lock)\"",
        "fill=\"url(#p-gap)\"",
        ">4 vCPUs<",
        "select &#39;&lt;b&gt;|&amp;&#39;",
        "Only 66.67 % of the window was observed.",
    ] {
        let found = page.contains(wanted) || page.contains(&wanted.replace("&#39;", "'"));
        assert!(found, "{wanted}");
    }
}

#[test]
fn markdown_keeps_its_table_whatever_a_query_says() {
    let scratch = Scratch::new("report-markdown");
    scratch.import();
    let file = scratch.0.join("report.md");
    let output = format!("--output={}", file.display());
    assert_eq!(scratch.text(&ask(&["report", &output])), "");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(
        text.starts_with("# 2026-01-01 00:00:00 to 00:00:03 UTC\n"),
        "{text}"
    );
    assert!(
        text.contains("| 11 `select '<b>\\|&'` | 1.00 | 50.00 % |"),
        "{text}"
    );
}

#[test]
fn the_totals_are_those_of_aas_to_the_last_digit() {
    let scratch = Scratch::new("report-json");
    scratch.import();
    let json = |text: String| -> Value { serde_json::from_str(&text).unwrap() };
    let report = json(scratch.text(&ask(&["report", "--format=json"])));
    let aas = json(scratch.text(&ask(&["aas", "--json"])));
    for column in [
        "avg_aas",
        "peak_aas",
        "p99_aas",
        "peak_sessions",
        "backend_seconds",
        "vcpus",
    ] {
        assert_eq!(report["load"][column], aas[0][column], "{column}");
    }
    assert_eq!(report["coverage"]["coverage_pct"], aas[0]["coverage_pct"]);
}

#[test]
fn a_format_that_is_none_is_refused() {
    let scratch = Scratch::new("report-format");
    scratch.import();
    let output = scratch.tacho(&ask(&["report", "--format=pdf"]));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: invalid format \"pdf\"\nhint: Available formats are html, markdown, json.\n"
    );
}
