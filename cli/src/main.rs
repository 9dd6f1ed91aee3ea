//! `tacho`: writes and reads the performance history of PostgreSQL. Parses the
//! command line, runs the command, maps its result to an exit code: 0 done, 1
//! failure, 2 usage, 3 connection or permission, 5 locked.

mod commands;
mod exchange;
#[cfg(test)]
mod fuzz_tests;
mod programs;
mod readers;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};
use std::ffi::OsString;
use std::process::ExitCode;
use tacho_source::memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Writes and reads the performance history of PostgreSQL.
#[derive(Parser)]
#[command(
    name = "tacho",
    version,
    disable_help_flag = true,
    disable_help_subcommand = true
)]
struct Cli {
    /// Show this help (-h is reserved for the host)
    #[arg(long = "help", short = '?', action = ArgAction::Help, global = true)]
    help: Option<bool>,

    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    match commands::query::of_server(words.iter().skip(1).cloned()) {
        Some(question) => commands::query::run(&question),
        None => match parse(&words) {
            Ok(cli) => commands::run(cli.command),
            Err(error) => programs::run(&words, &error),
        },
    }
}

/// Parses a person's command line. A request for general help, or an empty
/// command line, also lists the programs beside this one.
fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let first = words.get(1).map(|word| word.as_encoded_bytes());
    if first.is_none_or(|word| word.starts_with(b"-")) {
        command = command.after_help(programs::help());
    }
    let mut matches = command.try_get_matches_from(words)?;
    Cli::from_arg_matches_mut(&mut matches)
}
