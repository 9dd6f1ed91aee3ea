//! `tacho generate`: shell completions and manual pages. They are made from the
//! description of the command line, and for programs beside this one from their
//! `--help`. `make install` and `make install-programs` run it.

use super::say;
use crate::Cli;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, CommandFactory, ValueHint};
use clap_complete::{Shell, generate};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};

/// Files below a `share` directory in which the shells look for completions of
/// `tacho`.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/tacho"),
    (Shell::Zsh, "zsh/site-functions/_tacho"),
    (Shell::Fish, "fish/vendor_completions.d/tacho.fish"),
];

/// Arguments of `tacho generate`.
#[derive(clap::Args)]
pub struct Args {
    /// A share directory, such as /usr/local/share
    #[arg(value_hint = ValueHint::DirPath)]
    share: PathBuf,

    /// Programs tacho-NAME that `tacho NAME` runs
    #[arg(value_hint = ValueHint::FilePath)]
    programs: Vec<PathBuf>,
}

/// Writes the files; replaces existing ones.
pub fn run(args: &Args) -> ExitCode {
    let mut command = command();
    for program in &args.programs {
        match beside(program) {
            Ok(known) => command = command.subcommand(known),
            Err(error) => {
                let program = program.display();
                say(format_args!(
                    "error: could not read the options of program \"{program}\": {error}"
                ));
                return ExitCode::FAILURE;
            }
        }
    }
    let man = args.share.join("man/man1");
    match completions(&args.share, &command).and_then(|()| manual(&man, command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let share = args.share.display();
            say(format_args!(
                "error: could not write into \"{share}\": {error}"
            ));
            ExitCode::FAILURE
        }
    }
}

fn completions(share: &Path, command: &Command) -> io::Result<()> {
    for (shell, name) in COMPLETIONS {
        let path = share.join(name);
        fs::create_dir_all(path.parent().unwrap_or(share))?;
        let mut command = command.clone();
        generate(shell, &mut command, "tacho", &mut File::create(path)?);
    }
    Ok(())
}

/// Writes a page for the program, and one for each command.
fn manual(directory: &Path, command: Command) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(command, directory)
}

/// The command line for people: without the server's commands.
fn command() -> Command {
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|each| !each.is_hide_set());
    let subcommands: Vec<Command> = shown.cloned().collect();
    Command::new("tacho")
        .about(all.get_about().cloned().unwrap_or_default())
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .args(all.get_arguments().cloned().collect::<Vec<_>>())
        .subcommands(subcommands)
}

/// Describes a program `tacho-NAME` as a command.
fn beside(program: &Path) -> io::Result<Command> {
    let other = |what: &str| io::Error::other(what.to_string());
    let file = program.file_name().and_then(|name| name.to_str());
    let name = file.and_then(|name| name.strip_prefix("tacho-"));
    let name = name.ok_or_else(|| other("its name must have the form tacho-NAME"))?;
    let done = process::Command::new(program).arg("--help").output()?;
    if !done.status.success() {
        return Err(other(&format!("--help: {}", done.status)));
    }
    described(name, &String::from_utf8_lossy(&done.stdout))
        .ok_or_else(|| other("the output of --help lists no options"))
}

/// The command that a help text of clap describes; `None` if it names no
/// option.
fn described(name: &str, help: &str) -> Option<Command> {
    let about = help.lines().next().unwrap_or_default().to_string();
    let mut heads: Vec<(&str, String)> = Vec::new();
    for line in help.lines().skip(1) {
        let text = line.trim();
        match line.len() - line.trim_start().len() {
            2 | 6 if text.starts_with(['-', '[', '<']) => {
                let (head, help) = text.split_once("  ").unwrap_or((text, ""));
                heads.push((head, help.trim().to_string()));
            }
            8.. if !text.is_empty() => {
                if let Some((_, help)) = heads.last_mut() {
                    help.push(' ');
                    help.push_str(text);
                }
            }
            _ => (),
        }
    }
    let args: Vec<Arg> = heads.iter().map(|(head, help)| arg(head, help)).collect();
    let has_options = args.iter().any(|arg| !arg.is_positional());
    let command = Command::new(name.to_string()).about(about);
    let command = command.disable_help_flag(true).disable_version_flag(true);
    has_options.then(|| command.args(args))
}

/// An argument from its line of help, such as `-t, --tape <DIR>`, `--no-texts`
/// or `[CONNINFO]`, and its description.
fn arg(head: &str, help: &str) -> Arg {
    let help = help.trim();
    let value = head.find(['<', '[']).map(|at| &head[at..]);
    let named = within(within(value.unwrap_or_default(), '[', ']'), '<', '>');
    let hint = match named.rsplit(']').next() {
        Some("DIR") => ValueHint::DirPath,
        Some("FILE") => ValueHint::FilePath,
        _ => ValueHint::Unknown,
    };
    let long = head
        .split("--")
        .nth(1)
        .and_then(|long| long.split(' ').next());
    let short = head.strip_prefix('-').and_then(|rest| rest.chars().next());
    let id = long.unwrap_or(named).to_string();
    let arg = Arg::new(id.clone()).help(help.to_string());
    let arg = match long {
        Some(_) => arg.long(id).short(short.filter(|short| *short != '-')),
        None => arg,
    };
    let Some(value) = value else {
        return arg.action(ArgAction::SetTrue);
    };
    let arg = arg.value_name(named.to_string()).value_hint(hint);
    let arg = match long.is_some() && value.starts_with('[') {
        true => arg.num_args(0..=1),
        false => arg,
    };
    let values = help.split("[possible values: ").nth(1);
    match values.and_then(|values| values.split(']').next()) {
        Some(values) => {
            let values: Vec<String> = values.split(", ").map(str::to_string).collect();
            arg.value_parser(PossibleValuesParser::new(values))
        }
        None => arg,
    }
}

/// Removes the brackets around a text.
fn within(text: &str, open: char, close: char) -> &str {
    let inner = text.strip_prefix(open);
    inner
        .and_then(|text| text.strip_suffix(close))
        .unwrap_or(text)
}
