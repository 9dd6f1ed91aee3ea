//! The command line of `tacho-bench`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tacho_tape::testing::{Load, Sampler};

fn bench(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho-bench"));
    command.args(args);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn it_lists_its_scenarios_and_knows_itself_as_tacho_bench() {
    let Output { stdout, status, .. } = bench(&["list"]).output().unwrap();
    let listed = text(&stdout);
    let names = listed.lines().filter_map(|line| line.split(' ').next());
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/scenarios");
    let files = std::fs::read_dir(directory).unwrap();
    let name = |file: PathBuf| file.file_stem().unwrap().to_str().unwrap().to_owned();
    let known: BTreeSet<String> = files.map(|file| name(file.unwrap().path())).collect();
    assert_eq!((names, status.code()), (known, Some(0)));
    for words in [&["--help"][..], &["-?"], &["setting", "-?"]] {
        let help = text(&bench(words).output().unwrap().stdout);
        assert!(help.contains("Usage: tacho bench "), "{help}");
    }
    let nothing = bench(&[]).output().unwrap();
    let said = "error: no scenario given\nhint: See tacho bench list and --help.\n";
    assert_eq!(
        (text(&nothing.stderr).as_str(), nothing.status.code()),
        (said, Some(1))
    );
}

#[test]
fn answers_are_timed_against_their_budgets_and_memory_is_told() {
    let tape = tempfile::tempdir().unwrap();
    let tape = tape.path();
    let mut sampler = Sampler::new(7, Load::default());
    sampler.write_tape(tape, 120, &[]).unwrap();
    let tape = tape.to_str().unwrap();
    let words = "answers --times 1 --minutes 0 --questions 60 --churn";
    let words: Vec<&str> = words.split(' ').chain([tape, "--day", tape]).collect();
    let output = bench(&words).output().unwrap();
    let (said, told) = (text(&output.stderr), text(&output.stdout));
    assert!(output.status.success(), "{said}");
    let rows = |table: &str| -> Vec<Vec<String>> {
        let (_, rows) = told.split_once(table).unwrap();
        let rows = rows
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'));
        let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect();
        rows.map(cells).collect()
    };
    let asked: Vec<[String; 2]> = rows("| Question |")
        .into_iter()
        .map(|row| {
            let [_, what, wall, cpu, budget, ..] = &row[..] else {
                panic!("{row:?}")
            };
            assert!(
                [wall, cpu].iter().all(|ms| ms.parse::<f64>().is_ok()),
                "{row:?}"
            );
            [what.clone(), budget.clone()]
        })
        .collect();
    let expected = [
        ["day, 1 h, top wait_event", "1"],
        ["day, 24 h, top wait_event of a query_id", "25"],
        ["day, 24 h, top wait_event by query_id", "40"],
        ["churn, 24 h, top pid", "100"],
    ];
    assert_eq!(asked, expected);
    let minutes = rows("| Minute |");
    assert_eq!(minutes.len(), 1);
    let [_, minute, questions, answered, _, rss, _] = &minutes[0][..] else {
        panic!("{minutes:?}");
    };
    assert_eq!([minute, questions], ["0", "60"]);
    assert!(answered.parse::<u64>().unwrap() > 100, "{told}");
    assert!(rss.parse::<f64>().unwrap() > 1.0, "{told}");
}

#[test]
fn answers_need_a_history() {
    let output = bench(&["answers"]).output().unwrap();
    let said = "error: no history was given\nhint: See --day, --year and --churn.\n";
    assert_eq!(
        (text(&output.stderr).as_str(), output.status.code()),
        (said, Some(1))
    );
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let output = bench(&["answers", "--day", empty]).output().unwrap();
    let said = format!("error: there is no history in \"{empty}\"\n");
    assert_eq!(text(&output.stderr), said);
}

#[test]
fn a_full_device_is_an_error() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let list = bench(&["list"]).stdout(full()).stderr(full()).status();
    assert_eq!(list.unwrap().code(), Some(1));
}
