//! Programs beside this one: `tacho NAME …` runs `tacho-NAME` from the directory of
//! this program, or from `PATH`. Heavy parts are programs of their own, because
//! they have dependencies that the server's host does not need.

use crate::commands::say;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use rustix::fs::Access;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use tacho_source::arguments::CONNECTION_OPTIONS;

const PREFIX: &str = "tacho-";
/// Commands that stand for options of programs: command, program, option.
const SHORT: [(&str, &str, &str); 1] = [("metrics", "web", "--metrics")];
/// Exit code for an invalid command line.
pub const USAGE: u8 = 2;

/// Replaces this process by the program named in a command line that clap does not
/// know. The words after the name and the environment stay as they are. Returns
/// only with an error; for other mistakes this is clap's.
pub fn run(words: &[OsString], error: &clap::Error) -> ExitCode {
    let name = words.get(1).and_then(|word| named(word));
    if let Some(text) = connection_hint(name, error) {
        say(text);
        return ExitCode::from(USAGE);
    }
    let (ErrorKind::InvalidSubcommand, Some(name)) = (error.kind(), name) else {
        error.exit();
    };
    let short = SHORT.iter().find(|short| short.0 == name);
    let program = format!("{PREFIX}{}", short.map_or(name, |short| short.1));
    let option = short.map(|short| OsStr::new(short.2));
    let Some(path) = search_path()
        .into_iter()
        .find_map(|place| found(&place, &program))
    else {
        say(missing(name, &program, error));
        return ExitCode::from(USAGE);
    };
    let words = option
        .into_iter()
        .chain(words[2..].iter().map(OsString::as_os_str));
    let failed = Command::new(&path).arg0(&path).args(words).exec();
    say(format_args!(
        "error: could not run \"{}\": {failed}",
        path.display()
    ));
    ExitCode::FAILURE
}

/// Message for psql's options that name a server: commands read history, and what
/// to run instead. `None` for other errors.
fn connection_hint(name: Option<&str>, error: &clap::Error) -> Option<String> {
    let given = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(given))) => given,
        _ => return None,
    };
    CONNECTION_OPTIONS.contains(&given.as_str()).then(|| {
        let name = name.unwrap_or("top");
        format!(
            "error: this command reads history and does not connect to a server: \"{given}\"\n\
             detail: tacho live and tacho record connect to a server, by a connection string as psql takes it.\n\
             hint: Watch a server with: tacho live --dsn \"host=HOST dbname=DB user=USER\"\n\
             hint: Record a server with: tacho record \"host=HOST dbname=DB user=USER\" --tape DIR\n\
             hint: Then: tacho {name} --tape DIR"
        )
    })
}

/// The part of `tacho --help` that lists the programs beside this one.
pub fn help() -> String {
    let names = own_directory().map_or_else(BTreeSet::new, |directory| installed(&directory));
    match names.is_empty() {
        true => "No program tacho-NAME is installed beside this one.".into(),
        false => {
            let names: Vec<String> = names.iter().map(|name| format!("  {name}")).collect();
            format!(
                "Programs beside this one (tacho-NAME):\n{}",
                names.join("\n")
            )
        }
    }
}

/// The word, if it can be the name of a program: never a path or an option.
fn named(word: &OsStr) -> Option<&str> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let name = word.to_str()?;
    (!name.is_empty() && !name.starts_with('-') && name.chars().all(plain)).then_some(name)
}

/// The directory of this program; symbolic links are followed.
fn own_directory() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    program.parent().map(Path::to_path_buf)
}

/// Directories of programs, in the order of the search. Relative entries of `PATH`
/// are left out: the program that runs must not depend on the current directory.
fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path).filter(|place| place.is_absolute());
    own_directory().into_iter().chain(path).collect()
}

/// The program in a directory, if it exists and is executable.
fn found(directory: &Path, program: &str) -> Option<PathBuf> {
    let path = directory.join(program);
    let runs = path.is_file() && rustix::fs::access(&path, Access::EXEC_OK).is_ok();
    runs.then_some(path)
}

/// The names of the programs in a directory.
fn installed(directory: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = files.filter_map(|file| {
        let file = file.file_name();
        let name = named(OsStr::new(file.to_str()?.strip_prefix(PREFIX)?))?.to_string();
        found(directory, file.to_str()?).map(|_| name)
    });
    names.collect()
}

/// The error for a name that is neither a command nor a program.
fn missing(name: &str, program: &str, error: &clap::Error) -> String {
    let beside = own_directory().unwrap_or_default();
    let hint = match similar(error) {
        Some(known) => format!("Did you mean {known}?"),
        None if name == "fleet" => {
            "It is a Python package: install directory \"fleet\" of the source with pip, in an \
                 environment whose programs are in PATH."
                .into()
        }
        None if name == "bench" => {
            "It is not installed: run \"make lab\" in the source, then target/release/tacho \
                 bench."
                .into()
        }
        None => "See \"tacho --help\" for the commands. Programs such as tacho-live are built by \
                 \"make program\" and not installed with the server."
            .into(),
    };
    format!(
        "error: unknown command \"{name}\"\n\
         detail: Program \"{program}\" is neither in \"{}\" nor in PATH.\n\
         hint: {hint}",
        beside.display()
    )
}

/// Commands similar to a mistyped one, as clap suggests them.
fn similar(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::SuggestedSubcommand)? {
        ContextValue::String(known) => Some(format!("\"{known}\"")),
        ContextValue::Strings(known) => {
            let known: Vec<String> = known.iter().map(|known| format!("\"{known}\"")).collect();
            (!known.is_empty()).then(|| known.join(" or "))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_a_path_nor_an_option() {
        for name in ["bench", "web-2", "0"] {
            assert_eq!(named(OsStr::new(name)), Some(name));
        }
        for word in [
            "", "-x", "--help", "../x", "a/b", "a.b", "Bench", "a b", "ä", "a\n",
        ] {
            assert_eq!(named(OsStr::new(word)), None, "{word}");
        }
    }
}
