//! A time without a zone is in the reader's: from `--tz`, else `TZ`, else the
//! system. Buckets begin at multiples of their width on that clock. Every local
//! time is shown with its zone.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A tick every half hour of three days in Berlin: the day of 23 hours, the day
/// after it, and the day of 25 hours.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("tacho-zones-{name}-{}", std::process::id());
        let scratch = Scratch(std::env::temp_dir().join(name));
        let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/inputs/days.csv");
        let imported = scratch.tacho("UTC", &["import", "sessions", &input.to_string_lossy()]);
        assert!(imported.status.success(), "{imported:?}");
        scratch
    }

    /// Runs the program with `TZ` = `zone`.
    fn tacho(&self, zone: &str, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tacho"))
            .env("TZ", zone)
            .args(args)
            .arg("--tape")
            .arg(&self.0)
            .output()
            .unwrap()
    }

    fn lines(&self, zone: &str, args: &[&str]) -> Vec<String> {
        let output = self.tacho(zone, args);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_string).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const LONG_DAY: [&str; 2] = [
    "--since=2026-10-24T22:00:00Z",
    "--until=2026-10-25T23:00:00Z",
];

/// The first words of each line after the heading.
fn starts(lines: &[String]) -> Vec<&str> {
    let rows = lines.iter().skip(3);
    rows.map(|line| line.split("  ").next().unwrap()).collect()
}

#[test]
fn a_zone_that_is_not_known_is_an_error() {
    let scratch = Scratch::new("unknown");
    for args in [&["aas", "--json"][..], &["top", "wait_event"]] {
        let output = scratch.tacho("Europe/Atlantis", args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = "error: time zone \"Europe/Atlantis\" not recognized\n\
            detail: It is the value of the environment variable TZ.\n\
            hint: Use an IANA name such as Europe/Berlin, or UTC.\n";
        assert_eq!(said, expected);
    }
    let named = scratch.tacho("Europe/Atlantis", &["aas", "--json", "--tz=UTC"]);
    assert!(named.status.success(), "{named:?}");
}

#[test]
fn days_begin_at_midnight_of_the_reader() {
    let scratch = Scratch::new("day");
    let days = [&["timeline", "--bucket=1d"], &LONG_DAY[..]].concat();
    let lines = scratch.lines("Europe/Berlin", &days);
    assert_eq!(lines[0], "times in Europe/Berlin");
    assert_eq!(starts(&lines), ["2026-10-25 00:00:00+02"]);
    // --tz overrides TZ, and UTC is shown without an offset.
    let lines = scratch.lines("Europe/Berlin", &[&days[..], &["--tz=UTC"]].concat());
    assert_eq!(lines[0], "times in UTC");
    assert_eq!(
        starts(&lines),
        ["2026-10-24 00:00:00", "2026-10-25 00:00:00"]
    );
    assert_eq!(lines, scratch.lines("Etc/UTC", &days));
    let lines = scratch.lines("<+0545>-5:45", &days);
    assert_eq!(lines[0], "times in UTC+05:45");
    assert_eq!(
        starts(&lines),
        ["2026-10-25 00:00:00+05:45", "2026-10-26 00:00:00+05:45"]
    );
}

#[test]
fn the_hour_that_happens_twice_is_two_rows() {
    let scratch = Scratch::new("twice");
    let hours = ["timeline", "--bucket=1h", "--tz=Europe/Berlin"];
    let window = [
        "--since=2026-10-25T00:00:00Z",
        "--until=2026-10-25T03:00:00Z",
    ];
    let lines = scratch.lines("UTC", &[hours, [window[0], window[1], "--n=all"]].concat());
    assert_eq!(
        starts(&lines),
        [
            "2026-10-25 02:00:00+02",
            "2026-10-25 02:00:00+01",
            "2026-10-25 03:00:00+01"
        ]
    );
    let chart = scratch.lines(
        "Europe/Berlin",
        &[&["chart", "--bucket=1h"], &window[..]].concat(),
    );
    assert!(chart[1].ends_with("times in Europe/Berlin"), "{chart:?}");
    assert_eq!(starts(&chart), starts(&lines));
    let page = scratch
        .lines("Europe/Berlin", &[&["report"], &window[..]].concat())
        .concat();
    for label in ["02:30+02", "02:30+01", "03:00+01"] {
        assert!(page.contains(&format!(">{label}</text>")), "{label}");
    }
}

#[test]
fn a_time_without_a_zone_is_the_readers() {
    let scratch = Scratch::new("moment");
    let heading = |zone: &str, args: &[&str]| scratch.lines(zone, args)[0].clone();
    let window = ["--since=2026-03-29 12:00", "--until=2026-03-29 14:00"];
    let top = [&["top"], &window[..]].concat();
    assert_eq!(
        heading("Europe/Berlin", &top),
        "2026-03-29 12:00:00+02 to 14:00:00+02 Europe/Berlin, coverage 100.0000 %"
    );
    let markdown = [&["report", "--format=markdown"], &window[..]].concat();
    assert_eq!(
        heading("Asia/Kathmandu", &markdown),
        "# 2026-03-29 12:00:00+05:45 to 14:00:00+05:45 Asia/Kathmandu"
    );
    // Output for programs is in UTC, with Z.
    let rows = scratch.lines(
        "Europe/Berlin",
        &[&["export", "sessions"], &window[..]].concat(),
    );
    let times = rows
        .iter()
        .skip(1)
        .map(|row| row.split(',').next().unwrap());
    assert_eq!(
        times.collect::<Vec<_>>(),
        [
            "2026-03-29T10:00:00Z",
            "2026-03-29T10:30:00Z",
            "2026-03-29T11:00:00Z",
            "2026-03-29T11:30:00Z"
        ]
    );
}

#[test]
fn the_server_passes_the_zone_of_its_session() {
    let scratch = Scratch::new("session");
    let days = |zone: &str, tz: &str| {
        let query = ["query", "timeline", "--format=copy", "--bucket=86400s"];
        let output = scratch.tacho(
            "Asia/Tokyo",
            &[&query, &LONG_DAY[..], &[zone], &[tz]].concat(),
        );
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let rows = text.lines().skip(1).take_while(|line| *line != "\\.");
        let starts = rows.map(|row| row.split('\t').next().unwrap().to_string());
        let said = String::from_utf8(output.stderr).unwrap();
        (starts.collect::<Vec<_>>(), said)
    };
    let berlin = vec!["2026-10-24 22:00:00.000000+00".to_string()];
    let utc = [
        "2026-10-24 00:00:00.000000+00",
        "2026-10-25 00:00:00.000000+00",
    ];
    let utc = utc.map(str::to_string).to_vec();
    let quiet = String::new();
    let session = "--session-tz=Europe/Berlin";
    assert_eq!(days(session, "--n=10"), (berlin.clone(), quiet.clone()));
    assert_eq!(days(session, "--tz=UTC"), (utc.clone(), quiet.clone()));
    assert_eq!(
        days("--session-tz=Mars/Olympus", "--tz=Europe/Berlin"),
        (berlin, quiet)
    );
    let (starts, said) = days("--session-tz=Mars/Olympus", "--n=10");
    assert_eq!(starts, utc);
    assert_eq!(
        said,
        "WARNING\t01000\ttime zone \"Mars/Olympus\" of the session is unknown to this program\tBuckets are aligned to UTC.\tSet TimeZone, or tz, to an IANA name such as Europe/Berlin.\n"
    );
}
