//! A directory with files that no recorder made: readers, the writer and
//! `inspect` leave them alone. Also a process with few descriptors, or without
//! threads.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::tacho;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tacho_tape::Snapshot;
use tacho_tape::testing::{Load, Sampler, difference, read, rows_difference};

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Names of history files on other things, a name that is not UTF-8, and empty
/// files.
fn odd_directory() -> Scratch {
    let path = std::env::temp_dir().join(format!("tacho-odd-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    let directory = |name: &str| fs::create_dir(path.join(name)).unwrap();
    directory("0000000001.tape");
    directory("0000000002.open");
    directory("0000000001-0000000004.tape");
    directory("0000000004.tmp");
    symlink("/dev/zero", path.join("0000000005.tape")).unwrap();
    symlink("nowhere", path.join("0000000006.open")).unwrap();
    fs::write(path.join(OsStr::from_bytes(b"\xFF\xFE.tape")), "x").unwrap();
    fs::write(path.join("0000000007.open"), "").unwrap();
    fs::write(path.join("notes.tape"), "x").unwrap();
    Scratch(path)
}

fn names(path: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<Vec<u8>> = entries
        .map(|e| e.unwrap().file_name().as_bytes().to_vec())
        .collect();
    names.sort();
    names
}

#[test]
fn files_that_are_no_history_stay_untouched() {
    let scratch = odd_directory();
    let path = scratch.0.to_str().unwrap();
    let before = names(&scratch.0);
    let load = Load {
        trouble: 0,
        ..Load::default()
    };
    let mut sampler = Sampler::new(5, load);
    let mut input = sampler.hello(&[("min_free_space_mb", "0")]);
    let (mut ticks, mut seen) = (Vec::new(), Vec::new());
    for frame in 0..20 {
        // A step of the clock makes the writer seal the log beside these files.
        sampler.slot_ms += i64::from(frame == 10) * 5_000;
        let (bytes, t, s) = sampler.frame();
        input.extend(bytes);
        ticks.extend(t);
        seen.extend(s);
    }
    seen.sort();
    let written = tacho(&["tape-writer", "--directory", path], &input);
    assert!(written.status.success(), "{written:?}");
    assert_eq!(String::from_utf8_lossy(&written.stderr), "");
    // The empty log is removed: nothing was written to it.
    let after = names(&scratch.0);
    let kept = |name: &&Vec<u8>| name.as_slice() != b"0000000007.open";
    for name in before.iter().filter(kept) {
        assert!(after.contains(name), "{}", String::from_utf8_lossy(name));
    }
    let store = Snapshot::open(&scratch.0).unwrap();
    let (got_ticks, got_seen) = read(store.parts(store.own_node().unwrap()));
    assert_eq!(difference(&got_ticks, &ticks), None);
    assert_eq!(rows_difference(&got_seen, &seen), None);
    assert_eq!(store.damage(), []);
    let inspected = tacho(&["inspect", path], b"");
    assert!(inspected.status.success(), "{inspected:?}");
}

#[test]
fn a_fifo_in_the_place_of_a_file_is_refused_and_not_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let path = std::env::temp_dir().join(format!("tacho-odd-fifo-{}", std::process::id()));
    let scratch = Scratch(path);
    fs::create_dir_all(&scratch.0).unwrap();
    let directory = scratch.0.to_str().unwrap();
    for name in ["lock", "node"] {
        let fifo = scratch.0.join(name);
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let written = tacho(&["tape-writer", "--directory", directory], b"");
        assert_eq!(written.status.code(), Some(1), "{written:?}");
        let said = String::from_utf8(written.stderr).unwrap();
        let expected = format!("\"{}\": it is not a regular file\n", fifo.display());
        assert!(said.ends_with(&expected), "{said}");
        tacho(&["status", "--tape", directory], b"");
        fs::remove_file(&fifo).unwrap();
    }
}

#[test]
fn inspect_reports_damage_of_every_kind_of_file() {
    let path = std::env::temp_dir().join(format!("tacho-odd-inspect-{}", std::process::id()));
    let scratch = Scratch(path);
    let mut sampler = Sampler::new(6, Load::default());
    let mut input = sampler.hello(&[("min_free_space_mb", "0")]);
    (0..5).for_each(|_| input.extend(sampler.frame().0));
    let tape = scratch.0.join("tape");
    fs::create_dir_all(&scratch.0).unwrap();
    let directory = tape.to_str().unwrap();
    assert!(
        tacho(&["tape-writer", "--directory", directory], &input)
            .status
            .success()
    );
    let inspect = || tacho(&["inspect", directory], b"");
    assert!(inspect().status.success());
    // The lock's content does not matter.
    fs::write(tape.join("lock"), "x").unwrap();
    assert!(inspect().status.success());
    let files = ["0000000001.open", "node"];
    for name in files {
        let file = tape.join(name);
        let whole = fs::read(&file).unwrap();
        let mut flipped = whole.clone();
        let middle = whole.len() / 2;
        flipped[middle] ^= 0x10;
        fs::write(&file, &flipped).unwrap();
        let output = inspect();
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        fs::write(&file, &whole).unwrap();
    }
    // An empty sealed file is damage; an empty temporary file is not.
    for (name, code) in [("0000000002.tape", 1), ("0000000002.tmp", 0)] {
        fs::write(tape.join(name), "").unwrap();
        assert_eq!(inspect().status.code(), Some(code), "{name}");
        fs::remove_file(tape.join(name)).unwrap();
    }
}

#[test]
fn a_process_that_may_open_few_files_reads_many() {
    let path = std::env::temp_dir().join(format!("tacho-odd-many-{}", std::process::id()));
    let scratch = Scratch(path);
    let mut days = "time,pid\n".to_string();
    for day in 1..=28 {
        days += &format!("2026-01-{day:02}T00:00:00Z,1\n2026-02-{day:02}T00:00:00Z,1\n");
    }
    let mut lines: Vec<&str> = days.lines().collect();
    lines[1..].sort_unstable();
    let directory = scratch.0.to_str().unwrap();
    let import = ["import", "sessions", "-", "--tape", directory];
    let imported = tacho(&import, lines.join("\n").as_bytes());
    assert!(imported.status.success(), "{imported:?}");
    let script = "ulimit -n 40 && exec \"$1\" query aas --tape \"$2\" \
        --since 2026-01-01 --until 2026-03-01 --format copy";
    let output = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_tacho"), directory])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let (names, row) = (lines.next().unwrap(), lines.next().unwrap());
    let ticks = names.iter().position(|n| *n == "ticks_observed").unwrap();
    assert_eq!(row[ticks], "56", "{text}");
}

#[test]
fn a_process_that_may_start_no_thread_answers() {
    let path = std::env::temp_dir().join(format!("tacho-odd-alone-{}", std::process::id()));
    let scratch = Scratch(path);
    fs::create_dir_all(&scratch.0).unwrap();
    let tape = scratch.0.join("tape");
    let import = ["import", "sessions", "-", "--tape", tape.to_str().unwrap()];
    let imported = tacho(&import, b"time,pid\n2026-01-01T00:00:00Z,1\n");
    assert!(imported.status.success(), "{imported:?}");
    fs::copy(env!("CARGO_BIN_EXE_tacho"), scratch.0.join("tacho")).unwrap();
    // Root may start any number of threads.
    let script = "chmod -R a+rX \"$1\" && cd \"$1\" || exit
        set -- prlimit --nproc=0
        [ \"$(id -u)\" != 0 ] || set -- setpriv --reuid=65534 --clear-groups \"$@\"
        exec \"$@\" ./tacho query aas --tape tape --format copy \
            --since 2026-01-01 --until 2026-01-02";
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(&scratch.0)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.stdout.ends_with(b"\n\\.\n"), "{output:?}");
}
