//! Compares completions and manual pages with the command line.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A share directory with what was generated.
struct Share(PathBuf);

impl Share {
    fn new(name: &str) -> Share {
        let share = Share(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("share-{name}")));
        let _ = fs::remove_dir_all(&share.0);
        let done = tacho(&["generate", share.0.to_str().unwrap()]);
        assert_eq!(done, (String::new(), String::new(), Some(0)));
        share
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// bash's completions of the last word.
    fn completed(&self, words: &str) -> Vec<String> {
        let script = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMP_LINE=\"$*\"; \
                      _tacho tacho \"${!#}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
        let completion = self.0.join("bash-completion/completions/tacho");
        let done = Command::new("bash")
            .args(["--norc", "-fc", script, "bash"])
            .arg(completion)
            .args(words.split(' '))
            .output()
            .unwrap();
        let said = String::from_utf8(done.stdout).unwrap();
        said.lines().map(str::to_string).collect()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tacho(args: &[&str]) -> (String, String, Option<i32>) {
    let done = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(args)
        .output()
        .unwrap();
    let [out, err] = [done.stdout, done.stderr].map(|text| String::from_utf8(text).unwrap());
    (out, err, done.status.code())
}

/// The commands that `tacho --help` lists.
fn commands() -> Vec<String> {
    let (help, _, _) = tacho(&["--help"]);
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names
        .filter(|name| !name.is_empty())
        .map(str::to_string)
        .collect()
}

#[test]
fn bash_completes_commands_and_their_options() {
    let share = Share::new("bash");
    assert_eq!(share.completed("tacho ti"), ["timeline"]);
    assert_eq!(
        share.completed("tacho st"),
        ["status", "statements-history"]
    );
    assert_eq!(share.completed("tacho top --tap"), ["--tape"]);
    assert_eq!(
        share.completed("tacho top --wait"),
        ["--wait-event-type", "--wait-event"]
    );
    assert_eq!(share.completed("tacho export --un"), ["--until"]);
    assert_eq!(
        share.completed("tacho tape"),
        [""],
        "commands of the server are not for people"
    );
}

#[test]
fn every_command_has_a_manual_page_and_completions() {
    let share = Share::new("all");
    let shells = [
        "bash-completion/completions/tacho",
        "zsh/site-functions/_tacho",
        "fish/vendor_completions.d/tacho.fish",
    ];
    let shells = shells.map(|name| share.text(name));
    let commands = commands();
    assert!(
        commands.len() >= 18 && commands.contains(&"top".to_string()),
        "{commands:?}"
    );
    for command in &commands {
        let page = share.text(&format!("man/man1/tacho-{command}.1"));
        let (help, _, _) = tacho(&[command, "--help"]);
        let about = help.lines().next().unwrap().replace('-', "\\-");
        assert!(page.contains(&about), "{command}: {page}");
        assert!(
            shells.iter().all(|shell| shell.contains(command.as_str())),
            "{command}"
        );
    }
    let mut pages: Vec<String> = fs::read_dir(share.0.join("man/man1"))
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let mut wanted: Vec<String> = commands
        .iter()
        .map(|name| format!("tacho-{name}.1"))
        .collect();
    wanted.extend(["tacho.1", "tacho-explain-wait.1"].map(String::from));
    wanted.sort();
    assert_eq!(pages, wanted);
    assert!(share.text("man/man1/tacho-top.1").contains("\\-\\-tape"));
}

/// The help that clap prints for a program other than `tacho`. An option and its description stand
/// on one line, or on several.
const HELP: &str = "\
Looks at things

Usage: tacho-look [OPTIONS] [CONNINFO]

Arguments:
  [CONNINFO]  Where it looks [default: \"\"]

Options:
  -?, --help             Show this help
  -t, --tape <[NAME=]DIR>
          Directory of the
          history files

      --color <COLOURS>  Colours [possible values: many, none]
      --no-texts         Shows no texts
";

#[test]
fn a_program_beside_has_completions_and_a_manual_page() {
    let share = Share::new("beside");
    let bin = share.0.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let program = |name: &str, script: &str| {
        let path = bin.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_string()
    };
    let look = program("tacho-look", &format!("cat <<'END'\n{HELP}END"));
    let generated = |program: &str| tacho(&["generate", share.0.to_str().unwrap(), program]);
    assert_eq!(generated(&look), (String::new(), String::new(), Some(0)));
    assert_eq!(share.completed("tacho loo"), ["look"]);
    let options = [
        "-?",
        "-t",
        "--help",
        "--tape",
        "--color",
        "--no-texts",
        "[CONNINFO]",
    ];
    assert_eq!(share.completed("tacho look -"), options[..6]);
    assert_eq!(share.completed("tacho look --color "), ["many", "none"]);
    assert_eq!(share.completed("tacho top --tap"), ["--tape"]);
    let fish = share.text("fish/vendor_completions.d/tacho.fish");
    assert!(
        fish.contains("-s t -l tape -d 'Directory of the history files'"),
        "{fish}"
    );
    let page = share.text("man/man1/tacho-look.1");
    assert!(
        page.contains("Looks at things") && page.contains("[\\fICONNINFO\\fR]"),
        "{page}"
    );
    assert!(page.contains("[NAME=]DIR"), "{page}");
    assert!(share.text("man/man1/tacho.1").contains("tacho\\-look(1)"));

    let fails = program("tacho-fails", "exit 3");
    let said = format!(
        "error: could not read the options of program \"{fails}\": --help: exit status: 3\n"
    );
    assert_eq!(generated(&fails), (String::new(), said, Some(1)));
    let silent = program("tacho-silent", "echo a program");
    let said = format!(
        "error: could not read the options of program \"{silent}\": the output of --help lists no options\n"
    );
    assert_eq!(generated(&silent), (String::new(), said, Some(1)));
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error() {
    let (_, said, code) = tacho(&["generate", "/dev/null/share"]);
    let wanted = "error: could not write into \"/dev/null/share\": Not a directory (os error 20)\n";
    assert_eq!((said.as_str(), code), (wanted, Some(1)));
}
