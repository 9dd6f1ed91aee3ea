//! `tacho bench`: experiments on private servers that anyone can repeat.
//!
//! `command` is the command line, `run` the course of an experiment. `tacho
//! bench` runs this program. It is separate, because no server needs it.

mod access;
mod answers;
mod budget;
mod busy;
mod canceled;
mod cluster;
mod codec;
mod command;
mod compare;
mod cost;
mod document;
mod dry;
mod facts;
mod forest;
mod given;
mod history;
mod install;
mod machine;
mod metric;
mod outline;
mod pgbench;
mod place;
mod plan;
mod plot;
mod primary;
mod process;
mod progress;
mod report;
mod run;
mod scenario;
mod share;
mod statement;
mod stats;
mod store;
mod summary;
mod trial;
mod usage;
mod verdict;
mod waits;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    command::run(&command::Args::parse())
}
