//! `tacho import sessions`: all or nothing, lines named by number.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tacho-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }

    fn tape(&self) -> &Path {
        &self.0
    }

    /// Names of the history files.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name != "lock")
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(args: &[&str], tape: &Path, input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(args)
        .arg("--tape")
        .arg(tape)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A child that refuses the input early closes the pipe.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn import(tape: &Path, more: &[&str], input: &str) -> Output {
    let mut args = vec!["import", "sessions", "-"];
    args.extend(more);
    run(&args, tape, input)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `avg_aas` and ticks of the first of January 2026.
fn load(tape: &Path) -> String {
    let window = ["--since=2026-01-01", "--until=2026-01-02", "--format=copy"];
    let output = run(&[&["query", "aas"], &window[..]].concat(), tape, "");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let (names, row) = (lines.next().unwrap(), lines.next().unwrap());
    let get = |name| row[names.iter().position(|n| *n == name).unwrap()];
    format!("{} {}", get("avg_aas"), get("ticks_observed"))
}

const GOOD: &str = "time,pid\n2026-01-01T00:00:00Z,1\n2026-01-01T00:00:01Z,\n";

#[test]
fn a_file_is_imported_once() {
    let scratch = Scratch::new("import-once");
    assert_eq!(
        stderr(&import(scratch.tape(), &[], GOOD)),
        "imported 1 samples in 2 ticks\n"
    );
    assert_eq!(load(scratch.tape()), "0.5000 2");
    let again = import(scratch.tape(), &[], GOOD);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("has history already\nhint: Use --append"));
    assert_eq!(load(scratch.tape()), "0.5000 2");
}

#[test]
fn later_times_are_appended() {
    let scratch = Scratch::new("import-append");
    import(scratch.tape(), &["--node=a1"], GOOD);
    let later = "time,pid\n2026-01-01T00:00:02Z,1\n2026-01-01T00:00:02Z,2\n";
    let output = import(scratch.tape(), &["--append"], later);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(load(scratch.tape()), "1.0000 3");
    let earlier = import(scratch.tape(), &["--append"], GOOD);
    assert_eq!(
        stderr(&earlier),
        "error: line 2: time is not later than the time before it\nhint: Lines must be sorted by time.\n"
    );
    assert_eq!(load(scratch.tape()), "1.0000 3");
}

#[test]
fn a_bad_line_is_named_and_nothing_is_written() {
    let cases = [
        (
            "time,pid\n2026-01-01T00:00:00Z,x\n",
            "line 2: invalid value \"x\" for column \"pid\"",
        ),
        (
            "time,pid\nnow,1\n",
            "line 2: invalid value \"now\" for column \"time\"",
        ),
        (
            "time,pid\n2026-01-01T00:00:00Z\n",
            "line 2: expected 2 fields, found 1",
        ),
        ("pid\n1\n", "line 1: column \"time\" is missing"),
        ("time,mood\n", "line 1: column \"mood\" is not known"),
        ("time,time\n", "line 1: column \"time\" occurs twice"),
        ("", "the input is empty"),
        (
            "time,pid\n2026-01-01T00:00:00Z,1\n2026-01-01T01:00:00Z,1\n2026-01-01T01:00:00Z,1\n",
            "line 4: process 1 occurs twice at one time",
        ),
        (
            "time,pid\n2026-01-01T00:00:01Z,1\n2026-01-01T00:00:00Z,1\n",
            "line 3: time is not later than the time before it",
        ),
        (
            "time,pid\n2026-01-01T00:00:00Z,1\n2026-01-01T00:00:00.5Z,1\n",
            "line 3: time is 500 ms after the time before it, less than the interval",
        ),
        (
            "time,pid,state\n2026-01-01T00:00:00Z,1,bored\n",
            "line 2: invalid value \"bored\" for column \"state\"",
        ),
    ];
    for (input, message) in cases {
        let scratch = Scratch::new("import-bad");
        let output = import(scratch.tape(), &[], input);
        assert_eq!(output.status.code(), Some(1), "{input}");
        let first = stderr(&output);
        assert_eq!(first.lines().next().unwrap(), format!("error: {message}"));
        assert_eq!(scratch.files(), [] as [&str; 0], "{input}");
    }
}

#[test]
fn a_pid_may_repeat_with_another_start() {
    let scratch = Scratch::new("import-start");
    let input = "time,pid,backend_start\n\
        2026-01-01T00:00:00Z,1,2025-12-31T00:00:00Z\n\
        2026-01-01T00:00:00Z,1,2025-12-31T00:00:01Z\n";
    let output = import(scratch.tape(), &["--interval", "10s"], input);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(load(scratch.tape()), "2.0000 1");
}

#[test]
fn a_directory_in_use_is_refused() {
    let scratch = Scratch::new("import-lock");
    std::fs::create_dir(scratch.tape()).unwrap();
    let lock = std::fs::File::create(scratch.tape().join("lock")).unwrap();
    lock.lock().unwrap();
    let output = import(scratch.tape(), &[], GOOD);
    assert!(stderr(&output).contains("is in use by another process"));
}
