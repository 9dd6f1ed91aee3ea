//! `tacho inspect` on generated files.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tacho_tape::files::storage::OsStorage;
use tacho_tape::format::frame::Frame;
use tacho_tape::format::log::LogHeader;
use tacho_tape::testing::{Load, Sampler, log_bytes};
use tacho_tape::write::clock::Now;
use tacho_tape::write::seal::seal_log;
use tacho_tape::write::writer::Writer;

/// A new directory with a sealed file and its log; returns the log.
fn history(name: &str) -> (PathBuf, Vec<u8>) {
    let directory = format!("tacho-inspect-{name}-{}", std::process::id());
    let directory = std::env::temp_dir().join(directory);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir(&directory).unwrap();
    let mut sampler = Sampler::new(1, Load::default());
    let mut frames = vec![sampler.hello(&[])];
    frames.extend((0..5).map(|_| sampler.frame().0));
    let log = log_bytes(&LogHeader::default(), &frames);
    fs::write(directory.join("0000000001.open"), &log).unwrap();
    seal_log(&OsStorage::new(&directory), 1, u64::MAX).unwrap();
    fs::write(directory.join("0000000002.open"), &log).unwrap();
    (directory, log)
}

fn sizes(path: &Path, more: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["inspect", "--sizes"])
        .arg(path)
        .args(more)
        .output();
    let output = output.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), text)
}

#[test]
fn sizes_add_up_to_the_files_in_lines_and_in_json() {
    let (directory, log) = history("sizes");
    let open = directory.join("0000000002.open");
    let tape = fs::metadata(directory.join("0000000001.tape")).unwrap();
    let all = tape.len() + log.len() as u64;
    let (code, json) = sizes(&directory, &["--json"]);
    assert_eq!(code, 0, "{json}");
    let uses: serde_json::Value = serde_json::from_str(&json).unwrap();
    let uses = uses.as_array().unwrap();
    let bytes = |of: &serde_json::Value| of["bytes"].as_u64().unwrap();
    assert_eq!(uses.iter().map(bytes).sum::<u64>(), all);
    let has = |kind: &str, table: Option<&str>, name: &str| {
        let is_it = |u: &&serde_json::Value| {
            u["kind"] == kind && u["table"].as_str() == table && u["name"] == name
        };
        uses.iter().any(|u| is_it(&u))
    };
    assert!(has("column", Some("sample"), "session"), "{json}");
    assert!(has("column", Some("run"), "session"), "{json}");
    assert!(has("framing", None, "footer"), "{json}");
    let (code, text) = sizes(&directory, &[]);
    assert_eq!(code, 0, "{text}");
    let last = format!("{all:>12} 100.00  sum of 2 files");
    assert_eq!(text.lines().last(), Some(&*last));
    let number = |line: &str| -> u64 { line[..12].trim().parse().unwrap() };
    let uses = text.lines().filter(|line| line[20..].starts_with("   "));
    assert_eq!(uses.map(number).sum::<u64>(), all, "{text}");
    let first = |line: &str| line[..22].ends_with(' ');
    let tables: Vec<u64> = text.lines().filter(|l| !first(l)).map(number).collect();
    let (sum, tables) = tables.split_last().unwrap();
    assert_eq!(tables.iter().sum::<u64>(), *sum);
    assert!(tables.is_sorted_by(|a, b| a >= b), "{text}");
    // The last byte of a log belongs to a checksum.
    let mut damaged = log.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&open, &damaged).unwrap();
    let (code, text) = sizes(&open, &[]);
    assert_eq!(code, 1);
    assert!(text.contains("(unreadable)\n"), "{text}");
    let last = format!("{:>12} 100.00  sum of 1 file", log.len());
    assert_eq!(text.lines().last(), Some(&*last));
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn readers_of_history_name_a_file_of_a_later_version() {
    let (directory, _) = history("later");
    let tape = directory.join("0000000001.tape");
    let mut bytes = fs::read(&tape).unwrap();
    bytes[4] = 99;
    let crc = tacho_tape::crc::crc32c(&bytes[..40]);
    bytes[40..44].copy_from_slice(&crc.to_le_bytes());
    fs::write(&tape, bytes).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["top", "wait_event", "--tape"])
        .arg(&directory)
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let expected = format!(
        "warning: a history file of a later version of tacho was not read\n\
         detail: File \"{}\": unsupported version 99 of sealed file. This time counts as unobserved.\n\
         hint: Update the tacho program to the version that wrote them.\n",
        tape.display()
    );
    assert!(
        errors.to_lowercase().ends_with(&expected.to_lowercase()),
        "{errors}"
    );
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn damage_is_shown_and_gives_exit_code_1() {
    let directory = std::env::temp_dir().join(format!("tacho-inspect-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir(&directory).unwrap();
    let load = Load {
        sessions: 2,
        trouble: 0,
        active: 100,
        same: 100,
        churn: 0,
        ..Load::default()
    };
    let mut sampler = Sampler::new(1, load);
    let mut frames = vec![sampler.hello(&[])];
    frames.extend((0..5).map(|_| sampler.frame().0));
    let mut header = LogHeader::default();
    header.identity.node = 0xAB;
    let log = log_bytes(&header, &frames);
    let (first, second) = (
        directory.join("0000000001.open"),
        directory.join("0000000002.open"),
    );
    fs::write(&first, &log).unwrap();
    seal_log(&OsStorage::new(&directory), 1, u64::MAX).unwrap();
    fs::write(&second, &log).unwrap();
    let inspect = || {
        let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
            .arg("inspect")
            .arg(&directory)
            .output();
        let output = output.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), text)
    };
    let (code, text) = inspect();
    assert_eq!(code, 0, "{text}");
    let part = "  group 1 ticks 1 to 5, 2026-09-21T14:13:20Z to 2026-09-21T14:13:24Z\n    rows: ";
    assert_eq!(text.matches(part).count(), 2, "{text}");
    assert!(text.starts_with("0000000001.tape sealed "));
    assert!(text.contains("\n  node 00000000000000ab system 0 timeline 0\n"));
    // The third data frame of the log.
    let at = log.len() - frames[4].len() - frames[5].len() - 20;
    let mut damaged = log.clone();
    damaged[at] ^= 1;
    fs::write(&second, &damaged).unwrap();
    let (code, text) = inspect();
    assert_eq!(code, 1);
    let offset = log.len() - frames[3..].iter().map(Vec::len).sum::<usize>();
    let line = format!(
        "  damage at offset {offset}, {} bytes, between 2026-09-21T14:13:21Z and \
         2026-09-21T14:13:23Z: frames have an incorrect checksum\n",
        frames[3].len()
    );
    assert!(text.contains(&line), "{text}");
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn inspect_lists_removed_and_remaining_history() {
    let directory = std::env::temp_dir().join(format!("tacho-removed-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir(&directory).unwrap();
    let mut sampler = Sampler::new(1, Load::default());
    let storage = Arc::new(OsStorage::new(&directory));
    let mut writer = Writer::open(storage, 7).unwrap();
    let mut mono_ms = 0;
    let mut push = |writer: &mut Writer, sampler: &Sampler, bytes: &[u8]| {
        mono_ms += 1_000;
        let wall_ms = sampler.slot_ms;
        let frame = Frame::parse(bytes).unwrap().unwrap();
        let now = Now { wall_ms, mono_ms };
        writer.push(&frame, now);
        for job in writer.seal_jobs() {
            let storage = OsStorage::new(&directory);
            let result = seal_log(&storage, job.number, job.until_sequence);
            writer.sealed(job, result);
        }
        writer.flush(now, true);
    };
    let hello = sampler.hello(&[("retention_age_s", "900"), ("min_free_space_mb", "0")]);
    push(&mut writer, &sampler, &hello);
    let first = directory.join("0000000001.tape");
    let oldest = sampler.slot_ms;
    for _ in 0..2_400 {
        let (frame, _, _) = sampler.frame();
        push(&mut writer, &sampler, &frame);
    }
    drop(writer);
    assert!(!first.exists());
    let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .arg("inspect")
        .arg(&directory)
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let told: Vec<&str> = text.lines().filter(|l| l.contains("removed")).collect();
    let begin = "  history removed at 2026-09-21T14:";
    let why = " bytes: older than tacho.retention_age, ";
    assert!(!told.is_empty(), "{text}");
    for line in &told {
        assert!(line.starts_with(begin) && line.contains(why), "{line}");
    }
    let since = jiff::Timestamp::from_millisecond(oldest).unwrap();
    let since = format!("{why}{since} to ");
    assert!(told[0].contains(&since), "{} has no {since}", told[0]);
    fs::remove_dir_all(&directory).unwrap();
}
