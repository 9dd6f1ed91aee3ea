//! The command line of `tacho-bench`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs::File;
use std::process::{Command, Output};

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
    let names: Vec<&str> = listed.lines().filter_map(|l| l.split(' ').next()).collect();
    let known = "overhead churn analyze history codec recording instructions";
    assert_eq!((names.join(" ").as_str(), status.code()), (known, Some(0)));
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
fn a_full_device_is_an_error() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let list = bench(&["list"]).stdout(full()).stderr(full()).status();
    assert_eq!(list.unwrap().code(), Some(1));
}
