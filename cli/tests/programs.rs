//! `tacho NAME` runs `tacho-NAME`, as git does.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory with a copy of the program, so that the programs beside it are
/// known.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("programs-{name}"));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("elsewhere")).unwrap();
        // A hard link if possible: the program is large.
        let (from, to) = (env!("CARGO_BIN_EXE_tacho"), directory.join("tacho"));
        fs::hard_link(from, &to)
            .or_else(|_| fs::copy(from, &to).map(|_| ()))
            .unwrap();
        Place(directory)
    }

    /// A script below the directory that prints its name and its arguments.
    fn script(&self, file: &str, mode: u32) {
        let path = self.0.join(file);
        let text = format!(
            "#!/bin/sh\necho \"{file}\"\nfor word; do echo \"<$word>\"; done\necho \"$SAID\"\nexit 7\n"
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn tacho(&self, args: &[&str]) -> Output {
        Command::new(self.0.join("tacho"))
            .args(args)
            .env("PATH", format!(".:{}", self.0.join("elsewhere").display()))
            .env("SAID", "as it was")
            .current_dir(self.0.join("elsewhere"))
            .output()
            .unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_program_beside_gets_its_words_and_environment_and_gives_its_exit_code() {
    let place = Place::new("beside");
    place.script("tacho-some-2", 0o755);
    place.script("elsewhere/tacho-some-2", 0o755);
    let ran = place.tacho(&["some-2", "--help", "a b", "", "-?", "--", "x"]);
    let said = "tacho-some-2\n<--help>\n<a b>\n<>\n<-?>\n<-->\n<x>\nas it was\n";
    assert_eq!((out(&ran).as_str(), ran.status.code()), (said, Some(7)));
}

#[test]
fn metrics_equal_the_metrics_of_web() {
    let place = Place::new("metrics");
    place.script("tacho-web", 0o755);
    let ran = place.tacho(&["metrics", "--tape", "a"]);
    let said = "tacho-web\n<--metrics>\n<--tape>\n<a>\nas it was\n";
    assert_eq!((out(&ran).as_str(), ran.status.code()), (said, Some(7)));
}

#[test]
fn a_program_that_is_not_beside_is_taken_from_path() {
    let place = Place::new("path");
    place.script("elsewhere/tacho-far", 0o755);
    let ran = place.tacho(&["far"]);
    let said = ("elsewhere/tacho-far\nas it was\n", Some(7));
    assert_eq!((out(&ran).as_str(), ran.status.code()), said);
}

#[test]
fn a_command_of_its_own_comes_before_a_program() {
    let place = Place::new("own");
    place.script("tacho-status", 0o755);
    let ran = place.tacho(&["status", "--help"]);
    assert!(
        out(&ran).contains("Contents of the history"),
        "{}",
        out(&ran)
    );
}

#[test]
fn an_error_about_a_missing_program_lists_the_searched_places() {
    let place = Place::new("none");
    // Neither a file without the right to execute, nor one in a relative entry of
    // PATH.
    place.script("tacho-none", 0o644);
    place.script("tacho-gone", 0o755);
    fs::rename(
        place.0.join("tacho-gone"),
        place.0.join("elsewhere/tacho-gone"),
    )
    .unwrap();
    let only_relative = Command::new(place.0.join("tacho"))
        .arg("gone")
        .env("PATH", ".:")
        .current_dir(place.0.join("elsewhere"))
        .output()
        .unwrap();
    for (name, ran) in [("none", place.tacho(&["none"])), ("gone", only_relative)] {
        let said = format!(
            "error: unknown command \"{name}\"\n\
             detail: Program \"tacho-{name}\" is neither in \"{}\" nor in PATH.\n\
             hint: See \"tacho --help\" for the commands. Programs such as tacho-live are built by \
             \"make program\" and not installed with the server.\n",
            place.0.display()
        );
        assert_eq!((err(&ran), ran.status.code()), (said, Some(2)));
    }
}

#[test]
fn an_error_about_missing_tacho_bench_has_the_command_to_build_it() {
    let place = Place::new("bench");
    let ran = place.tacho(&["bench", "list"]);
    assert_eq!(
        (err(&ran), ran.status.code()),
        (
            format!(
                "error: unknown command \"bench\"\n\
                 detail: Program \"tacho-bench\" is neither in \"{}\" nor in PATH.\n\
                 hint: It is not installed: run \"make lab\" in the source, then \
                 target/release/tacho bench.\n",
                place.0.display()
            ),
            Some(2)
        )
    );
}

#[test]
fn an_error_about_missing_tacho_fleet_has_the_command_to_install_it() {
    let place = Place::new("fleet");
    let ran = place.tacho(&["fleet", "top"]);
    let said = err(&ran);
    let hint = "\nhint: It is a Python package: install directory \"fleet\" of the source with pip, in an environment whose programs are in PATH.\n";
    assert!(said.ends_with(hint), "{said}");
    assert_eq!(ran.status.code(), Some(2));
}

#[test]
fn a_mistyped_command_is_recognised() {
    let ran = Place::new("typo").tacho(&["tmeline"]);
    assert!(
        err(&ran).ends_with("hint: Did you mean \"explain\" or \"timeline\"?\n"),
        "{}",
        err(&ran)
    );
}

#[test]
fn a_path_is_never_run() {
    let place = Place::new("never");
    place.script("tacho-x", 0o755);
    for word in ["./x", "../tacho-x", "X", "x/", "a/../x"] {
        let ran = place.tacho(&[word]);
        let said = format!("error: unrecognized subcommand '{word}'");
        assert!(err(&ran).starts_with(&said), "{}", err(&ran));
        assert_eq!((out(&ran).as_str(), ran.status.code()), ("", Some(2)));
    }
}

#[test]
fn help_names_the_programs_beside_it() {
    let place = Place::new("help");
    let ran = place.tacho(&["--help"]);
    let said = "\nNo program tacho-NAME is installed beside this one.\n";
    assert!(out(&ran).ends_with(said), "{}", out(&ran));
    place.script("tacho-web", 0o755);
    place.script("tacho-bench", 0o755);
    place.script("tacho-notes", 0o644);
    place.script("tacho-Odd.d", 0o755);
    place.script("elsewhere/tacho-far", 0o755);
    fs::create_dir(place.0.join("tacho-directory")).unwrap();
    let said = "\nPrograms beside this one (tacho-NAME):\n  bench\n  web\n";
    let ran = place.tacho(&["-?"]);
    assert!(out(&ran).ends_with(said), "{}", out(&ran));
    let nothing = place.tacho(&[]);
    assert!(err(&nothing).ends_with(said), "{}", err(&nothing));
    assert_eq!(nothing.status.code(), Some(2));
    let about_one = place.tacho(&["top", "--help"]);
    assert!(!out(&about_one).contains("Programs"), "{}", out(&about_one));
}

#[test]
fn options_of_psql_get_a_hint_with_the_right_command() {
    let place = Place::new("psql");
    for option in ["-h", "-d", "-p", "-U", "--host", "--dsn"] {
        let ran = place.tacho(&["top", option, "db"]);
        let said = err(&ran);
        assert_eq!(ran.status.code(), Some(2), "{said}");
        let first = format!(
            "error: this command reads history and does not connect to a server: \"{option}\"\n"
        );
        assert!(said.starts_with(&first), "{said}");
        for line in [
            "hint: Watch a server with: tacho live --dsn \"host=HOST dbname=DB user=USER\"\n",
            "hint: Record a server with: tacho record \"host=HOST dbname=DB user=USER\" --tape DIR\n",
            "hint: Then: tacho top --tape DIR\n",
        ] {
            assert!(said.contains(line), "{said}");
        }
    }
    let other = err(&place.tacho(&["top", "--nonsense"]));
    assert!(
        other.contains("unexpected argument '--nonsense'"),
        "{other}"
    );
}
