//! `tacho inspect` on files made here.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::process::Command;
use tacho_tape::log::LogHeader;
use tacho_tape::seal::seal_log;
use tacho_tape::storage::OsStorage;
use tacho_tape::testing::{Load, Sampler, log_bytes};

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
         2026-09-21T14:13:23Z: frames with a wrong checksum\n",
        frames[3].len()
    );
    assert!(text.contains(&line), "{text}");
    fs::remove_dir_all(&directory).unwrap();
}
