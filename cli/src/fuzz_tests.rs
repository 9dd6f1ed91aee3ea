//! Every parser of text on mutated inputs, see `fuzz.rs` of the tape. Checked:
//! no panic, and a refused input leaves nothing behind.

use crate::exchange::import::target::Target;
use crate::exchange::import::{Input, import};
use crate::readers::args::{Caller, Parsed, augment};
use clap::Command;
use jiff::tz::TimeZone;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tacho_source::time;
use tacho_tape::Snapshot;
use tacho_tape::query;
use tacho_tape::testing::fuzz::{Fuzz, keep};

const WORDS: [&str; 24] = [
    ",",
    "\n",
    "\"",
    "0",
    "-1",
    "9223372036854775807",
    "99999999999999999999",
    "2026-01-01T00:00:00Z",
    "2026-01-01 00:00:01.5+00",
    "9999-12-31T23:59:59Z",
    "-9999-01-01T00:00:00Z",
    "active",
    "failed",
    "tick",
    "time",
    "pid",
    "interval_ms",
    "blocked_by",
    "query_text",
    "client backend",
    "1e300",
    "NaN",
    ":",
    "yesterday",
];

/// A new directory of this process.
fn scratch() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let shared = Path::new("/dev/shm");
    let parent = match shared.is_dir() {
        true => shared.to_path_buf(),
        false => std::env::temp_dir(),
    };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    parent.join(format!("tacho-fuzz-{}-{number}", std::process::id()))
}

/// Imports the parts of an input, sessions first, and returns the outcome.
fn imported(input: &[u8], kinds: &[&str]) -> String {
    let directory = scratch();
    let pieces = input.split(|b| *b == 0);
    let inputs = pieces.zip(kinds).map(|(piece, kind)| Input {
        kind: (*kind).to_string(),
        file: (*kind).to_string(),
        read: Box::new(Cursor::new(piece.to_vec())),
    });
    let target = Target::open(&directory, Some(7), false).unwrap();
    let outcome = match import(inputs.collect(), target, 1_000) {
        Ok(done) => {
            let store = Snapshot::open(&directory).unwrap();
            assert!(store.damage().is_empty(), "{:?}", store.damage());
            let ticks: usize = store.parts(7).map(|p| p.rows("tick")).sum();
            assert_eq!(ticks as u64, done.ticks);
            format!("{} {}", done.samples.min(5), done.ticks.min(5))
        }
        Err(error) => {
            let left = Snapshot::open(&directory).unwrap();
            assert!(left.nodes().is_empty());
            // Without the quoted part, which differs each time.
            error.message.split('"').next().unwrap_or("").to_string()
        }
    };
    std::fs::remove_dir_all(&directory).unwrap();
    outcome
}

fn lines(file: &str, n: usize) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/inputs");
    let text = std::fs::read_to_string(path.join(file)).unwrap();
    text.lines()
        .take(n)
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn fuzz_import() {
    let inputs = [
        "basic.csv",
        "chains.csv",
        "coverage.csv",
        "names.csv",
        "cadence.csv",
    ];
    let fuzz = Fuzz {
        name: "import",
        seeds: inputs.map(|file| lines(file, 12).into_bytes()).to_vec(),
        words: &WORDS,
        mend: keep,
    };
    fuzz.run(|input| imported(input, &["sessions"]));
}

#[test]
fn fuzz_import_of_several_kinds() {
    let seed = "time,tick,pid,backend_start,state\n\
        2026-01-01T00:00:00Z,4,1,2025-12-31T00:00:00Z,active\n\
        2026-01-01T00:00:01Z,5,,,\n\0\
        time,tick,waiter,blocker,locktype\n\
        2026-01-01T00:00:00Z,4,1,2,tuple\n\0\
        time,kind,since,until,detail\n\
        2026-01-01T00:00:00Z,gap,2026-01-01T00:00:00Z,2026-01-01T00:00:01Z,off\n\0\
        time,text_key,query_id,database,query_text\n\
        2026-01-01T00:00:00Z,5,7,shop,select 1\n";
    let fuzz = Fuzz {
        name: "kinds",
        seeds: vec![seed.as_bytes().to_vec()],
        words: &WORDS,
        mend: keep,
    };
    fuzz.run(|input| imported(input, &["sessions", "locks", "markers", "texts"]));
}

#[test]
fn fuzz_times() {
    let seeds = [
        "now",
        "1h",
        "03:12",
        "yesterday 14:00",
        "2026-11-21 03:12",
        "90s",
        "1h30m",
        "1 day",
        "00:01:00",
        "60000000us",
        "2026-03-29T02:30:00+01:00",
        "-5m",
        "Europe/Berlin",
        "-00:00:00.5",
    ];
    let fuzz = Fuzz {
        name: "times",
        seeds: seeds.map(|s| s.as_bytes().to_vec()).to_vec(),
        words: &[
            "9223372036854775807",
            ":",
            "-",
            " ",
            "d",
            "us",
            "99",
            "24:00",
            "T",
            "Z",
            "ago",
        ],
        mend: keep,
    };
    let zones = [TimeZone::UTC, time::zone("Europe/Berlin").unwrap()];
    fuzz.run(|input| {
        let text = String::from_utf8_lossy(input);
        let mut outcome = String::new();
        for now in [0, 1_790_000_000_000_000, i64::MAX, i64::MIN] {
            for zone in &zones {
                let moment = time::moment(&text, now, zone);
                outcome.push_str(&moment.map_or(0, i64::signum).to_string());
            }
        }
        let interval = time::interval(&text).map_or(0, i64::signum);
        format!("{outcome} {interval} {}", time::zone(&text).is_ok())
    });
}

#[test]
fn fuzz_arguments() {
    let seeds = [
        "top\n--since=1h\n--dimension=wait_event\n--n=5",
        "timeline\n--bucket=10s\n--by=query_id\n--scope=all\n--tz=Europe/Berlin",
        "samples\n--wait-event=a,b,!c\n--pid=(null)\n--node=a1",
        "blocking\n--at=03:12\n--order-by=peak",
        "chart\n--width=20\n--ascii\n--color=true",
        "markers\n--until=now",
    ];
    let directory = scratch();
    let store = {
        let target = Target::open(&directory, Some(7), false).unwrap();
        let input = Input {
            kind: "sessions".into(),
            file: String::new(),
            read: Box::new(Cursor::new(lines("basic.csv", 60).into_bytes())),
        };
        import(vec![input], target, 1_000).unwrap();
        Snapshot::open(&directory).unwrap()
    };
    let fuzz = Fuzz {
        name: "arguments",
        seeds: seeds.map(|s| s.as_bytes().to_vec()).to_vec(),
        words: &[
            "\n--",
            "=",
            "!",
            ",",
            "\"",
            "(null)",
            "all",
            "9223372036854775807",
            "0",
            "-1",
            "1us",
            "1d",
        ],
        mend: keep,
    };
    struct Nothing;
    impl query::Sink for Nothing {
        fn begin(&mut self, _: &[query::Field]) -> query::QueryResult<()> {
            Ok(())
        }
        fn row(&mut self, _: Vec<query::Value>) -> query::QueryResult<()> {
            Ok(())
        }
    }
    fuzz.run(|input| {
        let text = String::from_utf8_lossy(input);
        let mut words = text.split('\n');
        let Ok(function) = query::find(words.next().unwrap_or("")) else {
            return "function".into();
        };
        let fixed = ["tacho", "--tape=.", "--now=2026-01-01T01:00:00Z"];
        let command = augment(Command::new("tacho"), function, Caller::Server);
        let matches = match command.try_get_matches_from(fixed.into_iter().chain(words)) {
            Ok(matches) => matches,
            Err(error) => return error.kind().to_string(),
        };
        let parsed = Parsed::new(matches, function, Caller::Server);
        let answer = parsed.and_then(|parsed| {
            let context = parsed.context()?;
            parsed.question()?.run(&context, &store, &mut Nothing)
        });
        let about = answer.map_or_else(|e| e.message, |()| function.name.to_string());
        about.split('"').next().unwrap_or("").to_string()
    });
    std::fs::remove_dir_all(&directory).unwrap();
}
