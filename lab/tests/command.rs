//! The command line of `tacho-bench`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
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
fn the_lab_lists_its_scenarios_and_calls_itself_tacho_bench() {
    let Output { stdout, status, .. } = bench(&["list"]).output().unwrap();
    let listed = text(&stdout);
    let names = listed.lines().filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split(' ').next());
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/scenarios");
    let files = std::fs::read_dir(directory).unwrap();
    let name = |file: PathBuf| file.file_stem().unwrap().to_str().unwrap().to_owned();
    let known: BTreeSet<String> = files.map(|file| name(file.unwrap().path())).collect();
    assert_eq!((&names, status.code()), (&known, Some(0)));
    let hot = listed.split("\nhot ").nth(1).unwrap();
    let hot: Vec<&str> = hot.lines().take(3).map(str::trim).collect();
    assert_eq!(
        hot,
        [
            "Hot path: CPU of a fixed number of transactions, share of the library",
            "16 min, with --full 4.3 h",
            "needs pg_stat_statements, tacho, perf"
        ]
    );
    let help = text(&bench(&["--help"]).output().unwrap().stdout);
    for name in &names {
        assert!(help.contains(&format!("\n  {name} ")), "{help}");
    }
    assert!(
        help.contains("\n  tacho bench overhead --dry-run\n"),
        "{help}"
    );
    for words in [&["--help"][..], &["-?"], &["setting", "-?"]] {
        let help = text(&bench(words).output().unwrap().stdout);
        assert!(help.contains("Usage: tacho bench "), "{help}");
    }
    let nothing = bench(&[]).output().unwrap();
    let said = "error: no scenario specified\nhint: See tacho bench list and --help.\n";
    assert_eq!(
        (text(&nothing.stderr).as_str(), nothing.status.code()),
        (said, Some(1))
    );
}

#[test]
fn answers_are_timed_against_budgets_with_their_memory() {
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
    assert!(answered.parse::<u64>().unwrap() > 0, "{told}");
    assert!(rss.parse::<f64>().unwrap() > 1.0, "{told}");
}

#[test]
fn answers_need_a_history() {
    let output = bench(&["answers"]).output().unwrap();
    let said = "error: no history specified\nhint: See --day, --year and --churn.\n";
    assert_eq!(
        (text(&output.stderr).as_str(), output.status.code()),
        (said, Some(1))
    );
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let output = bench(&["answers", "--day", empty]).output().unwrap();
    let said = format!("error: directory \"{empty}\" contains no history\n");
    assert_eq!(text(&output.stderr), said);
}

/// A directory with stand-ins for PostgreSQL's programs, of a version.
fn installation(version: &str) -> tempfile::TempDir {
    let bin = tempfile::tempdir().unwrap();
    for name in [
        "postgres",
        "initdb",
        "pg_ctl",
        "pgbench",
        "psql",
        "pg_config",
    ] {
        let script = match name {
            "pg_config" => format!("echo {}", bin.path().display()),
            "postgres" | "pgbench" => format!("echo '{name} (PostgreSQL) {version}'"),
            _ => "exit 1".to_owned(),
        };
        let file = bin.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    bin
}

#[test]
fn a_dry_run_lists_planned_runs_and_missing_tools() {
    let (server, clients, scratch) = (
        installation("15.1"),
        installation("17.2"),
        tempfile::tempdir().unwrap(),
    );
    std::fs::write(server.path().join("tacho.so"), "").unwrap();
    let [bin, clients, place] = [&server, &clients, &scratch].map(|d| d.path().to_str().unwrap());
    let run = |more: &str| {
        let mut command = bench(&["churn", "--dry-run", "--pg-bin", bin, "--scratch", place]);
        let more = more.split(' ').filter(|word| !word.is_empty());
        let Output {
            stdout,
            stderr,
            status,
        } = command.args(more).output().unwrap();
        (text(&stdout), text(&stderr), status.code())
    };
    let expected = |variants: &str, runs: &str, last: &str| {
        format!(
            "churn: Churn of queries: throughput, eviction, exactness\n  \
             {variants} × 3 points × 3 rounds on 1 server: {runs}\n  \
             PostgreSQL 15.1 of {bin}, a private server\n  {last}"
        )
    };
    let missing = "PostgreSQL 15.1 has no \"pg_stat_statements\" (variant \"pg_stat_statements\")";
    // 2 variants × 3 points × 3 rounds of 9.5 s, and 10 s to make the cluster
    let all = format!("pgbench and psql of {clients}\n  missing: {missing}\n  results: R\n");
    assert_eq!(
        run(&format!("--output R --client-bin {clients}")),
        (
            expected("3 variants", "18 runs, about 4 min", &all),
            format!(
                "error: {missing}\nhint: Install it, or leave such variants with --skip-missing.\n"
            ),
            Some(1)
        )
    );
    let (told, said, code) = run("--output R --variants none,tacho");
    let all = expected("2 variants", "18 runs, about 4 min", "results: R\n");
    assert_eq!((told, said, code), (all, String::new(), Some(0)));
    assert_eq!(
        std::fs::read_dir(place).unwrap().count(),
        0,
        "nothing is left"
    );
    let (_, said, _) = run(&format!("--client-bin {place}"));
    assert!(
        said.starts_with("error: program \"psql\" not found in "),
        "{said}"
    );
}

#[test]
fn a_full_device_is_an_error() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let list = bench(&["list"]).stdout(full()).stderr(full()).status();
    assert_eq!(list.unwrap().code(), Some(1));
}
