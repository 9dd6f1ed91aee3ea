//! `tacho doctor`: looks at a server, at a cluster of this host, or at a directory of
//! history. It says for each thing whether it works, and names the step that helps. Exit
//! codes: 0 nothing is missing, 1 something is missing, 2 something is broken or the
//! command line is invalid.

mod cluster;
mod cost;
mod facts;
mod history;
mod lake;
mod page;
mod preload;
mod report;
mod server;
mod subject;

use clap::{ArgAction, Parser};
use report::Report;
use std::io::{self, Write};
use std::process::ExitCode;
use subject::Subject;
use tacho_record::finding::State;
use tacho_source::Failure;
use tacho_source::memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Checks a server and its history, and shows how to fix what is missing.
#[derive(Parser)]
#[command(name = "tacho doctor", version, disable_help_flag = true)]
struct Options {
    /// Show this help
    #[arg(long = "help", short = '?', action = ArgAction::Help)]
    help: Option<bool>,

    /// A data directory, a history directory, a directory of tacho ship, a cluster by Debian's
    /// name, or a psql connection string without a password [default: PGDATA, else all clusters of
    /// this host]
    #[arg(value_name = "DIR|CLUSTER|CONNINFO", conflicts_with = "cluster")]
    subject: Option<String>,

    /// A cluster of this host by Debian's name, such as 15/main
    #[arg(long, value_name = "VERSION/NAME")]
    cluster: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let subjects = match Subject::all(options.cluster.as_deref(), options.subject.as_deref()) {
        Ok(subjects) => subjects,
        Err(failure) => return fail(&failure),
    };
    let reports: Vec<Report> = subjects.iter().map(Subject::examine).collect();
    let text = match options.json {
        true => report::json(&reports),
        false => report::text(&reports),
    };
    if let Err(error) = io::stdout().write_all(text.as_bytes()) {
        return fail(&Failure::io("print the findings", &error));
    }
    ExitCode::from(match report::worst(&reports) {
        State::Works | State::Partial => 0,
        State::Missing => 1,
        State::Broken => 2,
    })
}

fn fail(failure: &Failure) -> ExitCode {
    let _ = io::stderr().write_all(failure.lines().as_bytes());
    ExitCode::from(2)
}
