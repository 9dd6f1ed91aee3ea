//! Output without a reader: no panic, and an exit code that reports the
//! findings.
#![allow(clippy::unwrap_used, missing_docs)]

use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{Read, pipe};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct Scratch(PathBuf);

impl Scratch {
    /// A tape of a minute, larger than a pipe's buffer.
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tacho-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        let mut csv = String::from("time,pid,application\n");
        for second in 0..60 {
            for pid in 1..=50 {
                csv += &format!("2026-01-01 00:00:{second:02}Z,{pid},service number {pid}\n");
            }
        }
        fs::write(path.join("in.csv"), csv).unwrap();
        let scratch = Scratch(path);
        let mut imported = scratch.tacho("import sessions {}/in.csv --tape {}/tape");
        assert!(imported.output().unwrap().status.success());
        scratch
    }

    /// The program with these words; `{}` stands for the directory.
    fn tacho(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        let words = words.replace("{}", self.0.to_str().unwrap());
        command.args(words.split(' '));
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const WINDOW: &str = "--tape {}/tape --since 2026-01-01 --until 2026-01-02";

fn commands() -> Vec<String> {
    let asked = ["top application", "samples --n 100000", "export sessions"];
    let mut commands: Vec<String> = asked.map(|c| format!("{c} {WINDOW}")).to_vec();
    commands.push("inspect {}/tape".into());
    commands
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let scratch = Scratch::new("reader-away");
    for words in commands() {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output = scratch.tacho(&words).stdout(writer).output().unwrap();
        assert_eq!(stderr(&output), "", "{words}");
        assert_eq!(output.status.code(), Some(0), "{words}");
    }
}

#[test]
fn damage_sets_the_exit_code_for_every_reader() {
    let scratch = Scratch::new("reader-away-damage");
    let file = scratch.0.join("tape/0000000001.tape");
    let mut bytes = fs::read(&file).unwrap();
    // The end of the file, which every reader reads.
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    for words in ["inspect {}/tape", "export sessions --tape {}/tape"] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let status = scratch.tacho(words).stdout(writer).status();
        assert_eq!(status.unwrap().code(), Some(1), "{words}");
    }
}

#[test]
fn a_signal_ends_who_waits_for_its_reader() {
    let scratch = Scratch::new("slow-reader");
    for format in ["", " --json"] {
        let words = format!("samples --n 100000 {WINDOW}{format}");
        let mut command = scratch.tacho(&words);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut begin = [0; 1];
        let mut answer = child.stdout.take().unwrap();
        answer.read_exact(&mut begin).unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let expected = "error: canceling query due to user request\n";
        assert_eq!(stderr(&output), expected, "{words}");
        assert_eq!(output.status.code(), Some(1), "{words}");
    }
}

#[test]
fn a_full_device_is_an_error() {
    let scratch = Scratch::new("full-device");
    for words in commands() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = scratch.tacho(&words).stdout(full).output().unwrap();
        let expected = "error: could not write output: No space left on device";
        assert!(stderr(&output).starts_with(expected), "{words}: {output:?}");
        assert_eq!(output.status.code(), Some(1), "{words}");
    }
}

#[test]
fn a_closed_standard_error_changes_no_answer() {
    let scratch = Scratch::new("full-messages");
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let import = "import sessions {}/in.csv --tape {}/other";
    let first = scratch.tacho(import).stderr(full()).status().unwrap();
    assert_eq!(first.code(), Some(0));
    let second = scratch.tacho(import).stderr(full()).status().unwrap();
    assert_eq!(second.code(), Some(1));
    let missing = scratch.tacho("inspect {}/none").stderr(full()).status();
    assert_eq!(missing.unwrap().code(), Some(1));
}

#[test]
fn an_export_through_a_pipe_can_be_imported() {
    let scratch = Scratch::new("piped");
    let export = |tape: &str| {
        let mut text = String::new();
        let words = format!("export sessions --tape {{}}/{tape}");
        let mut child = scratch
            .tacho(&words)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert!(child.wait().unwrap().success());
        text
    };
    let exported = scratch
        .tacho("export sessions --tape {}/tape")
        .stdout(Stdio::piped())
        .spawn();
    let mut exported = exported.unwrap();
    let mut import = scratch.tacho("import sessions - --tape {}/copy");
    let import = import
        .stdin(exported.stdout.take().unwrap())
        .output()
        .unwrap();
    assert_eq!(stderr(&import), "imported 3000 samples in 60 ticks\n");
    assert!(exported.wait().unwrap().success());
    assert_eq!(export("copy"), export("tape"));
}
