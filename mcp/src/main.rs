//! `tacho-mcp`: answers of reader functions as tools of the Model Context Protocol, over standard
//! input and output. It only reads, and takes no SQL. Exit codes: 0 the client has closed its end,
//! 1 failure, 2 usage.

mod answer;
mod serve;
mod tools;

use clap::{ArgAction, Parser};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use tacho_remote::SourceOptions;
use tacho_source::memory::Counting;
use tacho_source::{Failure, Source};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Name of our sessions, unless a connection string gives another.
const APPLICATION: &str = "tacho mcp";
/// Divisor of the memory limit: kept columns may use a quarter.
const CACHE_SHARE: u64 = 4;

/// Answers about the performance history of PostgreSQL for programs that speak the Model Context
/// Protocol (standard input and output).
#[derive(Parser)]
#[command(name = "tacho mcp", version, disable_help_flag = true)]
struct Options {
    /// Show this help
    #[arg(long = "help", short = '?', action = ArgAction::Help)]
    help: Option<bool>,

    #[command(flatten)]
    places: SourceOptions,

    /// Answer without texts of queries
    #[arg(long)]
    hide_texts: bool,

    /// Memory that one question may take, a quarter of it for what later ones
    /// may need again
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    memory_limit_mb: u32,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = io::stderr().write_all(failure.lines().as_bytes());
            ExitCode::from(failure.code)
        }
    }
}

/// Answers until the client closes its end.
fn run(options: &Options) -> Result<(), Failure> {
    let memory_bytes = u64::from(options.memory_limit_mb) << 20;
    let source = options
        .places
        .source(memory_bytes / CACHE_SHARE, APPLICATION)?;
    for failure in source.check()? {
        let _ = io::stderr().write_all(failure.lines().as_bytes());
    }
    let source: Arc<dyn Source> = Arc::new(source);
    serve::serve(serve::Desk {
        source,
        texts: !options.hide_texts,
        memory_bytes,
    })
}
