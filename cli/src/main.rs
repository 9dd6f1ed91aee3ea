//! `tacho`: writes and reads the performance history of PostgreSQL.
//! Parses the command line, runs the command, maps its end to an exit code:
//! 0 done, 1 failure, 2 usage, 3 connection or permission, 5 locked.

mod bench;
mod catalog;
mod cmd;
mod exchange;
#[cfg(test)]
mod exchange_tests;
mod export;
#[cfg(test)]
mod fuzz_tests;
mod import;
mod memory;
mod reader;
mod report;

use clap::{ArgAction, Parser};
use std::process::ExitCode;

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
    command: cmd::Command,
}

fn main() -> ExitCode {
    match cmd::query::of_server(std::env::args_os().skip(1)) {
        Some(question) => cmd::query::run(&question),
        None => cmd::run(Cli::parse().command),
    }
}
