//! The history that is read without `--tape`, and the short names of options.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tacho_tape::query::list;

/// A data directory with a history of two minutes below it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let scratch = Scratch(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        let _ = fs::remove_dir_all(&scratch.0);
        fs::create_dir_all(scratch.0.join("data")).unwrap();
        let rows = "time,pid,state,wait_event_type,wait_event,query_id\n\
            2026-01-01T00:00:00Z,1,active,IO,DataFileRead,11\n\
            2026-01-01T00:00:01Z,1,active,Lock,tuple,12\n\
            2026-01-01T00:01:00Z,2,active,IO,WALSync,13\n";
        fs::write(scratch.0.join("in.csv"), rows).unwrap();
        let (file, tape) = (scratch.file("in.csv"), scratch.tape());
        let done = tacho(&["import", "sessions", &file, "-t", &tape], &[]);
        assert!(done.status.success(), "{done:?}");
        scratch
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }

    fn tape(&self) -> String {
        self.file("data/tacho")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tacho(args: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command
        .args(args)
        .env_remove("TACHO_TAPE")
        .env_remove("PGDATA");
    command.envs(environment.iter().copied()).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Every command that reads a history, without its directory. Each function is a command; `plan`
/// wants a plan of the history.
fn commands() -> Vec<String> {
    let names = list().iter().map(|f| f.name.replace('_', "-"));
    let functions = names
        .filter(|name| name != "plan")
        .map(|name| match &name[..] {
            "top" | "compare" => format!("{name} wait_event"),
            _ => name,
        });
    let others = ["export sessions", "inspect"].map(str::to_string);
    functions.chain(others).collect()
}

#[test]
fn every_command_that_reads_finds_the_named_history() {
    let scratch = Scratch::new("defaults-commands");
    let (tape, data) = (scratch.tape(), scratch.file("data"));
    for command in commands() {
        let mut words: Vec<&str> = command.split(' ').collect();
        if !["export", "inspect"].contains(&words[0]) {
            words.push("--now=2026-01-01T00:02:00Z");
        }
        let mut named = words.clone();
        if words[0] != "inspect" {
            named.push("--tape");
        }
        named.push(&tape);
        let wanted = tacho(&named, &[]);
        assert!(
            wanted.status.success() && !wanted.stdout.is_empty(),
            "{command}: {wanted:?}"
        );
        let by_tape = tacho(&words, &[("TACHO_TAPE", &tape), ("PGDATA", "/nowhere")]);
        assert_eq!(by_tape, wanted, "{command}");
        let by_data = tacho(&words, &[("TACHO_TAPE", ""), ("PGDATA", &data)]);
        assert_eq!(by_data, wanted, "{command}");
    }
}

#[test]
fn a_history_that_is_elsewhere_than_its_data_directory_is_found() {
    let scratch = Scratch::new("defaults-elsewhere");
    let wanted = tacho(&["inspect", &scratch.tape()], &[]);
    fs::rename(scratch.tape(), scratch.file("history")).unwrap();
    let setting = format!("tacho.directory = '{}'\n", scratch.file("history"));
    fs::write(scratch.file("data/postgresql.conf"), setting).unwrap();
    let found = tacho(&["inspect"], &[("PGDATA", &scratch.file("data"))]);
    assert_eq!(found, wanted);
    fs::remove_file(scratch.file("data/postgresql.conf")).unwrap();
    for command in commands() {
        let words: Vec<&str> = command.split(' ').collect();
        let none = tacho(&words, &[("PGDATA", &scratch.file("data"))]);
        let said = String::from_utf8(none.stderr).unwrap();
        assert!(said.contains(&scratch.tape()), "{command}: {said}");
        assert_eq!(none.status.code(), Some(1), "{command}: {said}");
    }
}

#[test]
fn commands_that_write_and_the_server_must_name_the_directory() {
    let scratch = Scratch::new("defaults-writing");
    let tape = scratch.tape();
    let file = scratch.file("in.csv");
    for words in [
        &["import", "sessions", file.as_str()][..],
        &["query", "aas"],
    ] {
        let refused = tacho(words, &[("TACHO_TAPE", &tape)]);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            said.contains("required arguments were not provided"),
            "{said}"
        );
        assert_eq!(refused.status.code(), Some(2), "{said}");
    }
}

#[test]
fn short_options_mean_the_long_ones() {
    let scratch = Scratch::new("defaults-short");
    let tape = scratch.tape();
    let (since, until) = ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z");
    let long = ["--tape", &tape, "--since", since, "--until", until];
    let short = ["-t", &tape, "-s", since, "-u", until];
    let joined = [
        format!("-t{tape}"),
        format!("-s{since}"),
        format!("-u={until}"),
    ];
    let joined = joined.each_ref().map(String::as_str);
    let tell = |command: &[&str], options: &[&str]| tacho(&[command, options].concat(), &[]);
    for command in [
        &["top", "wait_event", "--json"][..],
        &["samples"],
        &["export", "sessions"],
    ] {
        let wanted = tell(command, &long);
        assert!(
            out(&wanted).contains("tuple") && !out(&wanted).contains("WALSync"),
            "{wanted:?}"
        );
        assert_eq!(tell(command, &short), wanted);
        assert_eq!(tell(command, &joined), wanted);
    }
    for one in [&["--n", "1"][..], &["-n", "1"], &["-n1"]] {
        let answer = out(&tell(
            &["top", "query_id", "--json"],
            &[&long[..], one].concat(),
        ));
        let keys = ["\"key\": \"11\"", "\"key\": \"(other)\""];
        let found = keys.map(|key| answer.matches(key).count());
        let rows = answer.matches("\"key\"").count();
        assert_eq!((found, rows), ([1, 1], 2), "{answer}");
    }
}
