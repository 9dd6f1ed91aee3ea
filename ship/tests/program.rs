//! The program, called from the command line.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs::{File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tacho_tape::format::frame::Frame;
use tacho_tape::testing::{Load, Sampler};
use tacho_tape::write::recording::Recording;

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho-ship"));
    command.args(args);
    command
}

fn said(done: &Output) -> String {
    String::from_utf8(done.stderr.clone()).unwrap()
}

/// Takes the lock that a writer holds while it writes.
fn lock(directory: &Path) -> File {
    let lock = File::open(directory.join("lock")).unwrap();
    lock.lock().unwrap();
    lock
}

/// Records from 14:13 to 15:43; the first hour is sealed.
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
fn hours_are_shipped_once_and_new_rows_later() {
    let (tape, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(tape.path());
    let held = lock(tape.path());
    let address = format!("file://{}", to.path().display());
    let path = tape.path().to_str().unwrap();
    let args = [
        "--tape", path, "--to", &address, "--server", "shop", "--label", "env=prod",
    ];
    let ship = || {
        let done = program(&args).output().unwrap();
        assert_eq!(done.status.code(), Some(0));
        said(&done)
    };
    let files = std::fs::read_dir(tape.path()).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let log = files.find(|path| path.extension().is_some_and(|end| end == "open"));
    let log = log.unwrap();
    let note = format!(
        "note: held back from 2026-09-21 15:00:00Z on: a process is writing file \"{}\"\n",
        log.display()
    );
    let shipped = format!("{note}shipped hours 1, objects 4, bytes ");
    let first = ship();
    assert!(first.starts_with(&shipped), "{first}");
    let nothing = "shipped hours 0, objects 0, bytes 0\n";
    assert_eq!(ship(), note + nothing);
    let day = to.path().join("servers/server=shop/day=2026-09-21");
    let hours = || {
        let files = std::fs::read_dir(&day).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut hours: Vec<String> = names.map(|name| name[..3].to_string()).collect();
        hours.sort();
        hours
    };
    assert_eq!(hours(), ["14-"]);
    // After its server's death a log counts as sealed.
    drop(held);
    let rest = ship();
    assert!(
        rest.starts_with("shipped hours 1, objects 4, bytes "),
        "{rest}"
    );
    assert_eq!(hours(), ["14-", "15-"]);
    assert_eq!(ship(), nothing);
    assert!(log.exists());
}

#[test]
fn a_lock_that_cannot_be_read_holds_back_the_log() {
    let (tape, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(tape.path());
    let lock = tape.path().join("lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let [from, to] = [tape.path(), to.path()].map(|path| path.to_str().unwrap());
    let done = program(&["--tape", from, "--to", to]).output().unwrap();
    let note = format!(
        "note: cannot tell whether a process is writing logs: could not open file \"{}\": it is not a regular file\n",
        lock.display()
    );
    assert!(said(&done).contains(&note), "{}", said(&done));
    assert!(said(&done).contains("shipped hours 1, "), "{}", said(&done));
    std::fs::remove_dir(&lock).unwrap();
    let copy = program(&["--tape", from, "--to", to]).output().unwrap();
    assert!(
        said(&copy).contains("\nnote: cannot tell whether"),
        "{}",
        said(&copy)
    );
    assert!(said(&copy).contains("shipped hours 0, "), "{}", said(&copy));
}

#[test]
fn a_directory_without_history_is_an_error() {
    let (empty, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = to.path().join("file");
    std::fs::write(&file, "").unwrap();
    let hint = "hint: Specify the directory of the history files: the setting tacho.directory, by default tacho in the data directory.\n";
    let path = |path: &Path| path.to_str().unwrap().to_string();
    for (tape, wanted) in [
        (
            path(empty.path()),
            "error: directory \"{}\" has no history\n",
        ),
        (
            "/nonexistent/tape".into(),
            "error: could not read directory \"{}\": No such file or directory (os error 2)\n",
        ),
        (
            path(&file),
            "error: could not read directory \"{}\": Not a directory (os error 20)\n",
        ),
    ] {
        for more in [&[][..], &["--tell-retention"]] {
            if !more.is_empty() && tape != path(empty.path()) {
                continue;
            }
            let to = path(to.path());
            let args = [&["--tape", &tape, "--to", &to], more].concat();
            let done = program(&args).output().unwrap();
            assert_eq!(said(&done), wanted.replace("{}", &tape) + hint);
            assert_eq!(done.status.code(), Some(1));
        }
    }
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn senseless_arguments_are_refused() {
    let refused = |args: &[&str]| {
        let done = program(args).output().unwrap();
        (done.status.code(), said(&done))
    };
    let (code, _) = refused(&["--tape", "/x"]);
    assert_eq!(code, Some(2));
    let (code, text) = refused(&["--tape", "/nonexistent/tape", "--to", "ftp://x/y"]);
    let wanted = "error: invalid address \"ftp://x/y\"\nhint: Use file:///DIRECTORY or s3://BUCKET/PREFIX, or specify --command.\n";
    assert_eq!((code, text.as_str()), (Some(1), wanted));
    let (code, text) = refused(&["--tape", "/x", "--to", "s3://key:secret@bucket/y"]);
    let wanted = "error: address must not contain credentials\nhint: Credentials are taken from the environment or from the instance.\n";
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
    let to = to.path().to_str().unwrap();
    let with_salt = |text: &str, mode: u32| {
        std::fs::write(&salt, text).unwrap();
        std::fs::set_permissions(&salt, Permissions::from_mode(mode)).unwrap();
        let salt = salt.to_str().unwrap();
        refused(&[
            "--tape", "/x", "--to", to, "--redact", "texts", "--salt", salt,
        ])
    };
    let name = salt.display();
    let wanted = format!("error: salt in file \"{name}\" has fewer than 16 bytes\n");
    assert_eq!(with_salt("0123456789abcde\r\n", 0o600), (Some(1), wanted));
    let wanted = format!(
        "error: salt in file \"{name}\" has group or world access\ndetail: Its mode is 0640; it must be 0600 or less.\n"
    );
    assert_eq!(with_salt("0123456789abcdef", 0o640), (Some(1), wanted));
}

#[test]
fn a_salt_is_the_same_with_the_end_of_its_line() {
    let (tape, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(tape.path());
    let salt = to.path().join("salt");
    let shipped = |text: &str| {
        std::fs::write(&salt, text).unwrap();
        std::fs::set_permissions(&salt, Permissions::from_mode(0o600)).unwrap();
        let [tape, to, salt] = [tape.path(), to.path(), &salt].map(|path| path.to_str().unwrap());
        let args = ["--tape", tape, "--to", to, "--redact", "texts"];
        let done = program(&[&args[..], &["--salt", salt]].concat()).output();
        said(&done.unwrap())
    };
    let first = shipped("0123456789abcdef");
    assert!(first.starts_with("shipped hours 2,"), "{first}");
    let again = shipped("0123456789abcdef\n");
    assert_eq!(again, "shipped hours 0, objects 0, bytes 0\n");
    let other = shipped("0123456789abcdefg");
    assert!(
        other.contains("was shipped with a different redaction"),
        "{other}"
    );
}

/// Ends the program at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_running_shipper_ends_on_a_signal() {
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

#[test]
fn a_command_that_hangs_ends_with_the_program() {
    let (tape, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(tape.path());
    let begun = to.path().join("begun");
    let put = format!("touch {}; sleep 1000 # %f %n", begun.display());
    let tape = tape.path().to_str().unwrap();
    let args = ["--tape", tape, "--command", &put, "--list", "true %n"];
    let mut command = program(&args);
    let mut running = Running(command.stderr(Stdio::piped()).spawn().unwrap());
    for _ in 0..600 {
        if begun.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let pid = running.0.id().to_string();
    let told = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(told.unwrap().success());
    assert_eq!(running.0.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    let mut stderr = running.0.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    let wanted = "error: command was terminated: tacho ship received a signal to stop\ndetail: ";
    assert!(said.starts_with(wanted), "{said}");
}
