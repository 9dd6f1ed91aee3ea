//! `tacho report`: page, Markdown and document have the same content.
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
        let mut command = Command::new(program);
        let output = command.env("TZ", "UTC").args(args).arg(tape).output();
        output.unwrap()
    }

    fn text(&self, args: &[&str]) -> String {
        let output = self.tacho(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Two sessions for two ticks, with a query that looks like markup.
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

/// A query that clients began to send: the sentence of the story, and a row of the section.
#[test]
fn a_cause_is_in_the_story_and_in_a_section_of_all_formats() {
    let scratch = Scratch::new("report-cause");
    let mut csv = "time,pid,state,query_id,query_text,vcpus\n".to_string();
    for second in 0..120 {
        let time = format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60);
        match second {
            60.. => csv.push_str(&format!("{time},1,active,11,select 1,4\n")),
            _ => csv.push_str(&format!("{time},,,,,4\n")),
        }
    }
    let file = scratch.0.join("in.csv");
    std::fs::write(&file, csv).unwrap();
    scratch.text(&["import", "sessions", &file.to_string_lossy()]);
    let window = [
        "--since=2026-01-01T00:01:00Z",
        "--until=2026-01-01T00:02:00Z",
    ];
    let report = |more: &[&str]| scratch.text(&[&["report"], &window[..], more].concat());
    let cause = "clients began to run query 11, from 0.00 to 1.00 sessions";
    let markdown = report(&["--format=markdown"]);
    let sentence =
        "- Since 00:01:00 clients began to run \"select 1\", from 0.00 to 1.00 sessions.\n";
    assert!(markdown.contains(sentence), "{markdown}");
    let row = format!("\n| 00:01:00 | cause | new query | 100.00 % | {cause} |\n");
    let section = markdown.split("## What changed\n").nth(1).unwrap();
    assert!(section.contains(&row), "{markdown}");
    let page = report(&[]);
    assert!(page.contains("<h2>What changed</h2>") && page.contains(cause));
    assert!(page.contains("Share of the difference to the load from 00:00:00 to 00:01:00."));
    let document: Value = serde_json::from_str(&report(&["--format=json"])).unwrap();
    assert_eq!(document["findings"][0]["rule"], "new query");
    assert_eq!(document["findings"][0]["explains"], "11");
    let filtered = report(&["--format=json", "--query-id=11"]);
    let document: Value = serde_json::from_str(&filtered).unwrap();
    assert_eq!(document["findings"], Value::Array(Vec::new()));
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

/// The first error in a page's tags. Elements must be closed in order,
/// attributes quoted, and texts without `<` and bare `&`.
fn markup_trouble(page: &str) -> Option<String> {
    const EMPTY: [&str; 6] = ["meta", "br", "hr", "col", "img", "link"];
    let mut open: Vec<&str> = Vec::new();
    let Some(mut rest) = page.strip_prefix("<!doctype html>") else {
        return Some("no document type".to_string());
    };
    while let Some(at) = rest.find('<') {
        let entity = |text: &&str| !text.split(' ').next().unwrap_or("").contains(';');
        if let Some(bare) = rest[..at].split('&').skip(1).find(entity) {
            return Some(format!("a bare & before {bare}"));
        }
        let Some(end) = rest[at..].find('>') else {
            return Some(format!("an open tag at {}", &rest[at..]));
        };
        let tag = &rest[at + 1..at + end];
        if tag.contains('<') || tag.matches('"').count() % 2 != 0 {
            return Some(format!("no tag: <{tag}>"));
        }
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next()?;
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return Some(format!("<{tag}> within {open:?}"));
            }
        } else if !tag.ends_with('/') && !EMPTY.contains(&name) {
            open.push(name);
        }
        rest = &rest[at + end + 1..];
    }
    (!open.is_empty()).then(|| format!("not closed: {open:?}"))
}

#[test]
fn the_page_is_well_formed() {
    let scratch = Scratch::new("report-markup");
    scratch.import();
    assert_eq!(markup_trouble(&scratch.text(&ask(&["report"]))), None);
    let moment = ["report", "--at=2026-01-01T00:00:01Z"];
    assert_eq!(markup_trouble(&scratch.text(&moment)), None);
    for bad in [
        "<p>",
        "<p><b></p></b>",
        "x < y",
        "a & b<br>",
        "<a href=\"x>",
    ] {
        assert_ne!(
            markup_trouble(&format!("<!doctype html>{bad}")),
            None,
            "{bad}"
        );
    }
}

/// A chart with the given environment.
fn chart(scratch: &Scratch, environment: &[(&str, &str)]) -> String {
    let tape = format!("--tape={}", scratch.0.join("tape").display());
    let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(ask(&["chart", "--bucket=1s", &tape]))
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn charts_have_colours_when_asked_for_and_fit_into_80_columns() {
    let scratch = Scratch::new("report-chart");
    scratch.import();
    let colour = "\u{1b}[";
    assert!(!chart(&scratch, &[]).contains(colour), "not on a terminal");
    assert!(chart(&scratch, &[("CLICOLOR_FORCE", "1")]).contains(colour));
    let both = [("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")];
    assert!(!chart(&scratch, &both).contains(colour), "NO_COLOR wins");
    let plain = chart(&scratch, &[]);
    assert_eq!(plain, chart(&scratch, &[("LC_ALL", "C")]), "in any locale");
    for line in plain.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn no_query_text_breaks_a_table_of_markdown() {
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
fn markdown_names_the_source_of_load_and_unobserved_time() {
    let scratch = Scratch::new("report-whose");
    let file = scratch.0.join("in.csv");
    let mut csv = "time,pid,state,database,username,application\n".to_string();
    for second in [0, 1, 5] {
        let time = format!("2026-01-01T00:00:0{second}Z");
        csv.push_str(&format!(
            "{time},1,active,shop,app,web\n{time},2,active,shop,root_1,<b>job|</b>\n"
        ));
    }
    std::fs::write(&file, csv).unwrap();
    let markers = scratch.0.join("markers.csv");
    let gap =
        "2026-01-01T00:00:05Z,gap,2026-01-01T00:00:02Z,2026-01-01T00:00:05Z,writer lost | 3\n";
    std::fs::write(&markers, format!("time,kind,since,until,detail\n{gap}")).unwrap();
    let with = format!("--with=markers={}", markers.display());
    scratch.text(&["import", "sessions", &file.to_string_lossy(), &with]);
    let window = [
        "--since=2026-01-01T00:00:00Z",
        "--until=2026-01-01T00:00:06Z",
    ];
    let report = [&["report", "--format=markdown"][..], &window].concat();
    let text = scratch.text(&report);
    let parts: Vec<&str> = text.split("\n## ").skip(1).map(str::trim_end).collect();
    let expected = [
        "Waits\n\n| wait | load | busiest minute | share | meaning |\n|---|---|---|---|---|\n\
         | CPU\\* | 2.00 | 2.00 | 100.00 % | The session is active without a wait event. \
         The operating system was not asked whether it had a CPU. |",
        "Queries\n\n| query | load | share |\n|---|---|---|\n\
         | (no query id) | 2.00 | 100.00 % |",
        "Load by database, user and application\n\n| kind | name | load | share |\n|---|---|---|---|\n\
         | database | shop | 2.00 | 100.00 % |\n\
         | user | app | 1.00 | 50.00 % |\n\
         | user | root_1 | 1.00 | 50.00 % |\n\
         | application | &lt;b&gt;job\\|&lt;/b&gt; | 1.00 | 50.00 % |\n\
         | application | web | 1.00 | 50.00 % |",
        "Events\n\n| at | what | detail |\n|---|---|---|\n\
         | 2026-01-01 00:00:05 | gap | writer lost \\| 3 |",
        "Not observed\n\n| from | to | why |\n|---|---|---|\n\
         | 00:00:02 | 00:00:05 | writer lost \\| 3 |",
    ];
    assert_eq!(parts, expected);
}

#[test]
fn totals_equal_aas_to_the_last_digit() {
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
