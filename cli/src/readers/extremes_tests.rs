//! Every argument of every function at its extremes. The result is an answer or
//! a clear error, and the program never ends.

use super::args::{self, Caller, Parsed};
use crate::exchange::import::target::Target;
use crate::exchange::import::{Input, import};
use clap::Command;
use std::io::Cursor;
use std::path::PathBuf;
use tacho_source::arguments::arguments;
use tacho_tape::Snapshot;
use tacho_tape::query::{self, Field, Function, Kind, QueryError, QueryResult, Sink, Value};

const TIMES: [&str; 13] = [
    "-9999-01-01T00:00:00Z",
    "-009999-01-02T02:00:00Z",
    "0001-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
    "2026-01-01T00:00:30Z",
    "9999-12-30T22:00:00Z",
    "9999-12-31",
    "9223372036854775807us",
    "-9223372036854775808us",
    "3000000d",
    "106751991d",
    "yesterday 99:99",
    "",
];
const INTERVALS: [&str; 13] = [
    "-1us",
    "0",
    "1us",
    "5s",
    "1d",
    "7d",
    "36525d",
    "36526d",
    "8000000d",
    "106751991d",
    "9223372036854775807us",
    "9223372036854775807:59:59",
    "-9223372036854775808us",
];
const NUMBERS: [&str; 8] = [
    "-9223372036854775808",
    "-1",
    "0",
    "1",
    "9223372036854775807",
    "9223372036854775808",
    "1e9",
    "",
];
const TEXTS: [&str; 12] = [
    "-9223372036854775808",
    "9223372036854775807",
    "18446744073709551616",
    "(null)",
    "!(null)",
    "!",
    ",",
    "\"",
    "",
    "all",
    "ffffffffffffffff",
    "\u{1f600}:\u{0}",
];
const ZONES: [Option<&str>; 3] = [None, Some("Europe/Berlin"), Some("Pacific/Kiritimati")];

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A history of two minutes.
fn history(name: &str) -> (Scratch, Snapshot) {
    let path = std::env::temp_dir().join(format!("tacho-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let scratch = Scratch(path);
    let input = Input {
        kind: "sessions".into(),
        file: "basic".into(),
        read: Box::new(Cursor::new(include_str!(
            "../../../conformance/inputs/basic.csv"
        ))),
    };
    let target = Target::open(&scratch.0, Some(7), false).unwrap();
    import(vec![input], target, 1_000).unwrap();
    let store = Snapshot::open(&scratch.0).unwrap();
    (scratch, store)
}

/// The arguments of a function, with the values to try.
fn tried(function: &Function) -> Vec<(String, &'static [&'static str])> {
    let mut all: Vec<(String, &[&str])> = vec![("now".to_string(), &TIMES)];
    for argument in arguments(function, false) {
        let values: &[&str] = match argument.kind {
            Kind::Time => &TIMES,
            Kind::Interval => &INTERVALS,
            Kind::Number => &NUMBERS,
            Kind::Switch | Kind::Zone => continue,
            _ => &TEXTS,
        };
        all.push((argument.name.replace('_', "-"), values));
    }
    all
}

/// A sink that fails when it has more rows than anyone would read.
#[derive(Default)]
struct Rows(usize);

impl Sink for Rows {
    fn begin(&mut self, _: &[Field]) -> QueryResult<()> {
        Ok(())
    }

    fn row(&mut self, _: Vec<Value>) -> QueryResult<()> {
        self.0 += 1;
        match self.0 {
            2_000 => Err(QueryError::canceled()),
            _ => Ok(()),
        }
    }
}

/// Asks. An error must name something in the question.
fn ask(store: &Snapshot, function: &'static Function, zone: Option<&str>, given: &[(&str, &str)]) {
    let mut words = vec!["query".to_string(), "--tape=x".to_string()];
    let takes_zone = function.takes_zone();
    words.extend(
        zone.filter(|_| takes_zone)
            .map(|zone| format!("--tz={zone}")),
    );
    let option = |(name, value): &(&str, &str)| format!("--{}={value}", name.replace('_', "-"));
    words.extend(given.iter().map(option));
    if given.iter().all(|(name, _)| *name != "now") {
        words.push("--now=2026-01-01T00:02:00Z".to_string());
    }
    let command = args::augment(Command::new("query"), function, Caller::Server);
    let matches = command.try_get_matches_from(&words).unwrap();
    let result = Parsed::new(matches, function, Caller::Server).and_then(|parsed| {
        let question = parsed.question()?;
        let mut context = parsed.context()?;
        context.threads = 1;
        question.run(&context, store, &mut Rows::default())
    });
    if let Err(error) = result {
        let class = &error.sqlstate[..2];
        assert!(
            class == "22" || ["42704", query::CANCELED].contains(&error.sqlstate),
            "{} {words:?}: {error:?}",
            function.name
        );
    }
}

#[test]
fn each_argument_at_its_extremes_is_answered_or_refused() {
    let (_scratch, store) = history("extremes");
    for function in query::list() {
        for (name, values) in tried(function) {
            for value in values {
                for zone in ZONES {
                    ask(&store, function, zone, &[(&name, value)]);
                }
            }
        }
    }
}

#[test]
fn times_and_widths_at_their_extremes_together_are_answered_or_refused() {
    let (_scratch, store) = history("extreme-pairs");
    let pairs = [
        ("since", "until"),
        ("since", "bucket"),
        ("since", "now"),
        ("until", "bucket"),
        ("now", "bucket"),
        ("at", "now"),
        ("since-1", "bucket"),
        ("since-1", "until-1"),
        ("since-2", "until-2"),
        ("bucket", "n"),
    ];
    for function in query::list() {
        let all = tried(function);
        let values = |wanted: &str| {
            let found = all.iter().find(|(name, _)| *name == wanted);
            found.map_or(&[][..], |(_, values)| values)
        };
        for (first, second) in pairs {
            for a in values(first).iter().step_by(2) {
                for b in values(second).iter().step_by(2) {
                    for zone in &ZONES[..2] {
                        ask(&store, function, *zone, &[(first, a), (second, b)]);
                    }
                }
            }
        }
    }
}
