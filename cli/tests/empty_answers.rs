//! Nothing happened, nothing was recorded, and no history exists: three
//! different answers.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::PathBuf;
use std::process::{Command, Output};

struct Scratch(PathBuf);

impl Scratch {
    /// Ten idle ticks of a second, in the first minute.
    fn idle(name: &str) -> Scratch {
        let scratch = Scratch::empty(name);
        let file = scratch.0.join("in.csv");
        let lines = (0..10).map(|second| format!("2026-01-01T00:00:0{second}Z,\n"));
        std::fs::write(&file, format!("time,pid\n{}", lines.collect::<String>())).unwrap();
        let output = scratch.tacho(&["import", "sessions", file.to_str().unwrap()]);
        assert!(output.status.success(), "{output:?}");
        scratch
    }

    fn empty(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tacho-empty-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn tape(&self) -> PathBuf {
        self.0.join("tape")
    }

    fn tacho(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(args)
            .arg(format!("--tape={}", self.tape().display()))
            .output()
            .unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

const IDLE: [&str; 2] = [
    "--since=2026-01-01T00:00:00Z",
    "--until=2026-01-01T00:00:20Z",
];
const BEFORE: [&str; 2] = [
    "--since=2025-01-01T00:00:00Z",
    "--until=2025-01-01T00:00:20Z",
];
const HALF: &str = "no rows: 50.0000 % of the period was observed";
const NOTHING: &str = "no rows: the period was not observed";

#[test]
fn an_empty_table_shows_the_observed_share() {
    let scratch = Scratch::idle("table");
    for function in [
        "top",
        "samples",
        "sessions",
        "blocking",
        "server-history",
        "markers",
    ] {
        for (window, expected) in [(IDLE, HALF), (BEFORE, NOTHING)] {
            let output = scratch.tacho(&[&[function][..], &window].concat());
            let (out, error) = texts(&output);
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let hint = match expected {
                NOTHING => "hint: Use status to see the times that the history covers.\n",
                _ => "",
            };
            assert!(
                out.ends_with(&format!("({expected})\n{hint}")),
                "{function}: {out}"
            );
            assert_eq!(error, "", "{function}");
        }
    }
    let output = scratch.tacho(&["blocking", "--at=2026-01-01T00:00:05Z"]);
    assert!(
        texts(&output).0.contains(" % of the period was observed)"),
        "{output:?}"
    );
}

#[test]
fn an_empty_array_stays_one_and_the_notice_is_on_standard_error() {
    let scratch = Scratch::idle("json");
    let output = scratch.tacho(&[&["top", "--json"][..], &IDLE].concat());
    assert_eq!(texts(&output), ("[]\n".into(), format!("notice: {HALF}\n")));
    let output = scratch.tacho(&[&["aas", "--json"][..], &BEFORE].concat());
    assert_eq!(texts(&output).1, "", "it has a row that says so");
}

#[test]
fn the_server_gets_a_notice_with_the_period() {
    let scratch = Scratch::idle("server");
    let ask = |window: [&str; 2]| {
        let output = scratch.tacho(&[&["query", "samples"][..], &window].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        texts(&output).1
    };
    assert_eq!(
        ask(IDLE),
        format!(
            "NOTICE\t00000\t{HALF}\tThe period is 2026-01-01 00:00:00+00 to 2026-01-01 00:00:20+00.\t\n"
        )
    );
    assert_eq!(
        ask(BEFORE),
        format!(
            "NOTICE\t00000\t{NOTHING}\tThe period is 2025-01-01 00:00:00+00 to 2025-01-01 00:00:20+00.\tUse status to see the times that the history covers.\n"
        )
    );
}

#[test]
fn a_directory_without_history_is_an_error() {
    let scratch = Scratch::empty("directory");
    let tape = scratch.tape();
    std::fs::create_dir(&tape).unwrap();
    std::fs::write(tape.join("notes.txt"), "none of ours").unwrap();
    let missing = format!("error: directory \"{}\" has no history\n", tape.display());
    for function in ["top", "status", "aas", "report", "export"] {
        let words: &[&str] = if function == "export" {
            &["export", "sessions"]
        } else {
            &[function]
        };
        let output = scratch.tacho(words);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(texts(&output).1.starts_with(&missing), "{output:?}");
        assert_eq!(texts(&output).0, "");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .arg("inspect")
        .arg(&tape)
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("error: no history file at \"{}\"\n", tape.display());
    assert_eq!(texts(&output), (String::new(), expected));
    // The server's own directory may still be empty.
    let output = scratch.tacho(&["query", "aas"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn tables_are_as_wide_as_the_screen() {
    let scratch = Scratch::empty("wide");
    let file = scratch.0.join("in.csv");
    let text = "select a from t where ".repeat(20);
    std::fs::write(
        &file,
        format!("time,pid,query_id,query_text\n2026-01-01T00:00:00Z,1,11,{text}\n"),
    )
    .unwrap();
    scratch.tacho(&["import", "sessions", file.to_str().unwrap()]);
    let longest = |columns: &str, args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args([
                "top",
                "query_id",
                &format!("--tape={}", scratch.tape().display()),
            ])
            .args(IDLE)
            .args(args)
            .env("COLUMNS", columns)
            .output()
            .unwrap();
        let lines = texts(&output).0;
        lines
            .lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap()
    };
    assert_eq!(longest("", &[]), 80, "no terminal");
    assert_eq!(longest("200", &[]), 200);
    assert!(longest("200", &["--wide"]) > text.len());
}
