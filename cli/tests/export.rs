//! `tacho export`: an imported export answers like the original, for random
//! histories of a recorder.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tacho_tape::files::storage::OsStorage;
use tacho_tape::testing::{Load, Random, Sampler};
use tacho_tape::write::seal::seal_log;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tacho-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tacho(args: &[&str], tape: &Path) -> Output {
    let program = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(args)
        .arg("--tape")
        .arg(tape)
        .output();
    program.unwrap()
}

fn export(kind: &str, tape: &Path) -> String {
    let output = tacho(&["export", kind], tape);
    assert!(output.status.success(), "{kind}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// All answers of the readers about a history.
fn answers(tape: &Path) -> Vec<String> {
    let window = ["--since=2026-09-01", "--until=2026-10-01", "--format=copy"];
    let questions: [&[&str]; 6] = [
        &["query", "samples", "--scope=all", "--n=1000000"],
        &["query", "top", "--dimension=wait_event", "--by=query_id"],
        &["query", "timeline", "--bucket=10m", "--by=pid"],
        &["query", "aas"],
        &["query", "blocking"],
        &["query", "markers"],
    ];
    let answer = |question: &&[&str]| {
        let output = tacho(&[question, &window[..]].concat(), tape);
        assert!(output.status.success(), "{question:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    questions.iter().map(answer).collect()
}

/// Sealed logs of a random sampler, whose clock is set now and then.
fn record(tape: &Path, seed: u64) {
    let mut random = Random(seed);
    let load = Load {
        sessions: 1 + random.below(9) as usize,
        active: 20 + random.below(80),
        same: random.below(100),
        ticks_per_frame: 1 + random.below(3) as usize,
        ..Load::default()
    };
    let mut sampler = Sampler::new(seed, load);
    std::fs::create_dir(tape).unwrap();
    let storage = OsStorage::new(tape);
    for number in 1..=4 {
        let mut log = sampler.begin_log(7);
        sampler.stopping = random.chance(50);
        (0..20 + random.below(60)).for_each(|_| log.extend(sampler.frame().0));
        std::fs::write(tape.join(format!("{number:010}.open")), log).unwrap();
        seal_log(&storage, number, u64::MAX).unwrap();
        sampler.slot_ms += [0, 90_000, 3_600_000, -40_000][random.below(4) as usize];
    }
}

#[test]
fn an_imported_export_gives_the_same_answers() {
    for seed in 1..=12 {
        let scratch = Scratch::new(&format!("export-{seed}"));
        let (tape, copy) = (scratch.path("tape"), scratch.path("copy"));
        record(&tape, seed);
        let mut args = vec!["import".to_string(), "sessions".into()];
        for kind in ["sessions", "markers", "counts", "texts"] {
            let csv = scratch.path(kind);
            std::fs::write(&csv, export(kind, &tape)).unwrap();
            let csv = csv.display();
            args.push(match kind {
                "sessions" => csv.to_string(),
                kind => format!("--with={kind}={csv}"),
            });
        }
        args.push("--node=7".into());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = tacho(&args, &copy);
        assert!(output.status.success(), "seed {seed}: {output:?}");
        let (was, is) = (answers(&tape), answers(&copy));
        for (was, is) in was.iter().zip(&is) {
            let mut lines = was.lines().zip(is.lines()).enumerate();
            let first = lines.find(|(_, (was, is))| was != is);
            assert_eq!(first, None, "seed {seed}");
            assert_eq!(was.lines().count(), is.lines().count(), "seed {seed}");
        }
        // The sessions of a tick may have another order.
        for kind in ["sessions", "markers", "counts"] {
            let [was, is] = [&tape, &copy].map(|tape| {
                let text = export(kind, tape);
                let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
                lines.sort();
                lines
            });
            let first = was.iter().zip(&is).find(|(was, is)| was != is);
            assert_eq!(first, None, "seed {seed}: {kind}");
            assert_eq!(was.len(), is.len(), "seed {seed}: {kind}");
        }
    }
}

const SESSIONS: &str = "time,tick,pid,backend_start,state,wait_event_type,wait_event,blocked_by,xmin\n\
    2026-09-02 00:00:00Z,5,1,2026-09-01 00:00:00Z,active,Lock,tuple,2,77\n\
    2026-09-02 00:00:00Z,5,2,2026-09-01 00:00:00Z,idle in transaction,Client,ClientRead,,78\n\
    2026-09-02 00:00:01Z,6,,,,,,,\n\
    2026-09-02 00:00:00.5Z,8,1,2026-09-01 00:00:00Z,active,IO,DataFileRead,,77\n";
const LOCKS: &str = "time,tick,waiter,waiter_start,blocker,blocker_start,hard,locktype,field1,mode_requested\n\
    2026-09-02T00:00:00Z,5,1,2026-09-01T00:00:00Z,2,2026-09-01T00:00:00Z,1,tuple,16384,7\n\
    2026-09-02T00:00:00.5Z,8,1,,,,,relation,1259,1\n";

fn imported(scratch: &Scratch, locks: &str) -> (PathBuf, Output) {
    let (tape, csv) = (scratch.path("tape"), scratch.path("sessions.csv"));
    let other = scratch.path("locks.csv");
    std::fs::write(&csv, SESSIONS).unwrap();
    std::fs::write(&other, locks).unwrap();
    let with = format!("--with=locks={}", other.display());
    let file = csv.display().to_string();
    let output = tacho(&["import", "sessions", &file, &with], &tape);
    (tape, output)
}

#[test]
fn locks_belong_to_the_ticks_of_the_sessions() {
    let scratch = Scratch::new("export-locks");
    let (tape, output) = imported(&scratch, LOCKS);
    assert!(output.status.success(), "{output:?}");
    let text = export("locks", &tape);
    let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
    let cell = |row: usize, name: &str| {
        rows[row][rows[0].iter().position(|n| *n == name).unwrap()].to_string()
    };
    assert_eq!(rows.len(), 3);
    assert_eq!(cell(1, "tick"), "5");
    assert_eq!(cell(1, "blocker"), "2");
    assert_eq!(cell(1, "blocker_start"), "2026-09-01T00:00:00Z");
    assert_eq!(cell(1, "locktype"), "tuple");
    assert_eq!(cell(2, "waiter_start"), "2026-09-01T00:00:00Z");
    assert_eq!(cell(2, "blocker"), "");
    // Numbered ticks: a missed one, and a clock that was set back.
    let sessions = export("sessions", &tape);
    let ticks: Vec<&str> = sessions
        .lines()
        .map(|l| l.split(',').nth(1).unwrap())
        .collect();
    assert_eq!(ticks, ["tick", "5", "5", "6", "8"]);
}

#[test]
fn a_lock_of_no_tick_is_named_by_file_and_line() {
    let scratch = Scratch::new("export-no-tick");
    let (tape, output) = imported(&scratch, &LOCKS.replace(",8,", ",7,"));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("locks.csv, line 3: time matches no tick of the imported sessions\n"),
        "{text}"
    );
    let files = std::fs::read_dir(tape).unwrap();
    let tapes = files.filter(|f| f.as_ref().unwrap().path().extension().is_some());
    assert_eq!(tapes.count(), 0);
}

#[test]
fn an_export_has_only_rows_of_its_window() {
    let scratch = Scratch::new("export-window");
    let (tape, _) = imported(&scratch, LOCKS);
    let window = [
        "--since=2026-09-02 00:00:01Z",
        "--until=2026-09-02 00:00:02Z",
    ];
    let output = tacho(&[&["export", "sessions"], &window[..]].concat(), &tape);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(
        text.lines()
            .nth(1)
            .unwrap()
            .starts_with("2026-09-02T00:00:01Z,6,")
    );
}

#[test]
fn a_kind_that_is_not_known_is_refused() {
    let scratch = Scratch::new("export-kind");
    let (tape, _) = imported(&scratch, LOCKS);
    let output = tacho(&["export", "moods"], &tape);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.starts_with("error: unknown kind \"moods\"\nhint: Available are "),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(2));
    let output = tacho(&["export", "sessions", "--since", "soon"], &tape);
    assert_eq!(output.status.code(), Some(2));
    let output = tacho(&["export", "sessions", "--node", "xyz"], &tape);
    assert_eq!(output.status.code(), Some(2));
}

/// Further columns of a row of statements, and their values.
const OLD: (&str, &str) = (
    "calls,total_exec_time,square_exec_time",
    "2,123456789012345678,250",
);
const NEW: (&str, &str) = (
    "calls,total_exec_time_ms,square_exec_time_ms2",
    "2,1234567890123456.78,2.50",
);

/// Imports a statement and exports it again: values by column.
fn statement_of(name: &str, (columns, values): (&str, &str)) -> Vec<(String, String)> {
    let scratch = Scratch::new(&format!("units-{name}"));
    let csv = scratch.path("statements");
    let row = "2026-01-01T00:01:00Z,60000,7";
    let text = format!("time,elapsed_ms,query_id,{columns}\n{row},{values}\n");
    std::fs::write(&csv, text).unwrap();
    let tape = scratch.path("tape");
    let output = tacho(&["import", "statements", csv.to_str().unwrap()], &tape);
    assert!(output.status.success(), "{output:?}");
    let exported = export("statements", &tape);
    let lines: Vec<&str> = exported.lines().collect();
    let pairs = lines[0].split(',').zip(lines[1].split(','));
    let given = pairs.filter(|pair| !pair.1.is_empty());
    given.map(|(c, v)| (c.to_string(), v.to_string())).collect()
}

#[test]
fn times_of_an_export_are_in_the_unit_that_its_columns_name() {
    let of = |(columns, values): (&'static str, &'static str)| -> Vec<(String, String)> {
        let pairs = columns.split(',').zip(values.split(','));
        pairs.map(|(c, v)| (c.to_string(), v.to_string())).collect()
    };
    let new = statement_of("new", NEW);
    assert_eq!(new[3..], of(NEW));
    // Names without a unit, as in earlier exports.
    assert_eq!(statement_of("old", OLD), new);
}
