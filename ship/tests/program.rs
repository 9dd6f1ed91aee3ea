//! The program as people call it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tacho_tape::frame::Frame;
use tacho_tape::recording::Recording;
use tacho_tape::testing::{Load, Sampler};

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho-ship"));
    command.args(args);
    command
}

fn said(done: &Output) -> String {
    String::from_utf8(done.stderr.clone()).unwrap()
}

/// From 14:13 to 15:43; the first hour is sealed.
fn record(directory: &Path) {
    let load = Load {
        interval_ms: 60_000,
        trouble: 0,
        ..Load::default()
    };
    let mut sampler = Sampler::new(1, load);
    let mut recording = Recording::open(directory, Duration::from_secs(1)).unwrap();
    let mut frames = vec![sampler.hello(&[])];
    frames.extend((0..90).map(|_| sampler.frame().0));
    for frame in &frames {
        recording.push(&Frame::parse(frame).unwrap().unwrap());
    }
    let logs = || {
        let files = std::fs::read_dir(directory).unwrap();
        let names = files.map(|file| file.unwrap().file_name());
        names
            .filter(|name| name.to_str().unwrap().ends_with(".open"))
            .count()
    };
    for _ in 0..600 {
        recording.housekeeping();
        if logs() == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    recording.finish();
}

#[test]
fn hours_are_shipped_once_and_again_only_what_is_new() {
    let (tape, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(tape.path());
    let address = format!("file://{}", to.path().display());
    let tape = tape.path().to_str().unwrap();
    let args = [
        "--tape", tape, "--to", &address, "--server", "shop", "--label", "env=prod",
    ];
    let done = program(&args).output().unwrap();
    assert!(
        said(&done).starts_with("shipped hours 1, objects 4, bytes "),
        "{}",
        said(&done)
    );
    assert_eq!(done.status.code(), Some(0));
    let again = program(&args).output().unwrap();
    assert_eq!(said(&again), "shipped hours 0, objects 0, bytes 0\n");
    let day = to.path().join("servers/server=shop/day=2026-09-21");
    let names: Vec<String> = std::fs::read_dir(day)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.len() == 1 && names[0].starts_with("14-"), "{names:?}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |args: &[&str]| {
        let done = program(args).output().unwrap();
        (done.status.code(), said(&done))
    };
    let (code, _) = refused(&["--tape", "/x"]);
    assert_eq!(code, Some(2));
    let (code, text) = refused(&["--tape", "/nonexistent/tape", "--to", "s3://x/y"]);
    let wanted = "error: address \"s3://x/y\" is not understood\nhint: Write file:///DIRECTORY, or give --command.\n";
    assert_eq!((code, text.as_str()), (Some(1), wanted));
    let to = tempfile::tempdir().unwrap();
    let (code, text) = refused(&[
        "--tape",
        "/nonexistent/tape",
        "--to",
        to.path().to_str().unwrap(),
    ]);
    assert_eq!(code, Some(1));
    assert!(text.starts_with("error: could not"), "{text}");
    let salt = to.path().join("salt");
    std::fs::write(&salt, "short").unwrap();
    let salt = salt.to_str().unwrap();
    let to = to.path().to_str().unwrap();
    let (code, text) = refused(&[
        "--tape", "/x", "--to", to, "--redact", "texts", "--salt", salt,
    ]);
    let wanted = format!("error: salt in file \"{salt}\" has fewer than 16 bytes\n");
    assert_eq!((code, text), (Some(1), wanted));
}

/// A program that is ended when the test is.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn one_that_stays_ends_when_it_is_told_to() {
    let (tape, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(tape.path());
    let (tape, place) = (tape.path().to_str().unwrap(), to.path().to_str().unwrap());
    let mut command = program(&["--tape", tape, "--to", place, "--every", "1h"]);
    let mut running = Running(command.stderr(Stdio::null()).spawn().unwrap());
    for _ in 0..600 {
        if to.path().join("servers").is_dir() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let pid = running.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
}
