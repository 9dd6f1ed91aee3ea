//! The subcommands: one file, one variant and one match arm each.

mod aas;
mod blocking;
mod changes;
mod chart;
mod compare;
mod errors_history;
mod explain;
mod export;
mod generate;
mod import;
mod indexes_history;
mod inspect;
mod latency_history;
mod mark;
mod markers;
mod periods;
mod plan;
mod plan_changes;
mod plans;
mod queries;
pub mod query;
mod report;
mod samples;
mod server_history;
mod sessions;
mod statements_history;
mod status;
mod summary;
mod tables_history;
mod tape_writer;
mod timeline;
mod top;

use clap::Subcommand;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use tacho_tape::query::plain_lines;

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Contents of the history
    Status(status::Args),
    /// Load of the last minute, hour, day, week and month
    Periods(periods::Args),
    /// Load of a window
    Aas(aas::Args),
    /// Load bucket by bucket
    Timeline(timeline::Args),
    /// Largest keys of a dimension
    Top(top::Args),
    /// Compare two windows: what grew, shrank, is new or gone
    Compare(compare::Args),
    /// What changed: causes beside the effects that they can explain
    Changes(changes::Args),
    /// Single samples, newest first
    Samples(samples::Args),
    /// Activity of sessions over time
    Sessions(sessions::Args),
    /// Blocking sessions: heads of lock queues, or the tree of one moment
    Blocking(blocking::Args),
    /// Queries with their load and their cost
    Queries(queries::Args),
    /// Cost of statements over time
    StatementsHistory(statements_history::Args),
    /// Errors of statements by SQLSTATE
    ErrorsHistory(errors_history::Args),
    /// Activity of tables and indexes: scans, rows, blocks, vacuums
    TablesHistory(tables_history::Args),
    /// Size and use of indexes: those that nothing has used first
    IndexesHistory(indexes_history::Args),
    /// Execution times of statements over time
    LatencyHistory(latency_history::Args),
    /// Calls, time, rows and blocks of each plan of a statement
    Plans(plans::Args),
    /// Statements that turned to another plan, and the time that this cost
    PlanChanges(plan_changes::Args),
    /// The nodes of a plan, as EXPLAIN prints them
    Plan(plan::Args),
    /// Stacked load as text
    Chart(chart::Args),
    /// Summary of a window
    Summary(summary::Args),
    /// Report of a window as HTML, Markdown or JSON
    Report(report::Args),
    /// Write a marker of this moment, such as "deploy 1.4"
    Mark(mark::Args),
    /// Events: starts, gaps, changed settings and marks
    Markers(markers::Args),
    /// Measurements of the server: load, pressure, databases, log, replicas
    ServerHistory(server_history::Args),
    /// Meaning of a wait event: when it is normal, what to look at next
    Explain(explain::Args),
    /// Write history as text: every stored column of one kind of rows
    Export(export::Args),
    /// Import history from text files
    Import(import::Args),
    /// Contents of history files, and damage in them
    Inspect(inspect::Args),
    /// Write completions for bash, zsh and fish, and manual pages
    Generate(generate::Args),
    /// Answer a question of the server
    #[command(hide = true)]
    Query(query::Args),
    /// Write the history: frames on standard input, acknowledgements on standard output
    #[command(hide = true)]
    TapeWriter(tape_writer::Args),
}

/// Runs a command to its exit code.
pub fn run(command: Command) -> ExitCode {
    match command {
        Command::Status(args) => status::run(&args),
        Command::Periods(args) => periods::run(&args),
        Command::Aas(args) => aas::run(&args),
        Command::Timeline(args) => timeline::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Changes(args) => changes::run(&args),
        Command::Samples(args) => samples::run(&args),
        Command::Sessions(args) => sessions::run(&args),
        Command::Blocking(args) => blocking::run(&args),
        Command::Queries(args) => queries::run(&args),
        Command::StatementsHistory(args) => statements_history::run(&args),
        Command::ErrorsHistory(args) => errors_history::run(&args),
        Command::TablesHistory(args) => tables_history::run(&args),
        Command::IndexesHistory(args) => indexes_history::run(&args),
        Command::LatencyHistory(args) => latency_history::run(&args),
        Command::Plans(args) => plans::run(&args),
        Command::PlanChanges(args) => plan_changes::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Chart(args) => chart::run(&args),
        Command::Summary(args) => summary::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Mark(args) => mark::run(&args),
        Command::Markers(args) => markers::run(&args),
        Command::ServerHistory(args) => server_history::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Query(args) => query::run(&args),
        Command::TapeWriter(args) => tape_writer::run(&args),
    }
}

/// Prints a line to standard error. Errors are ignored.
pub fn say(line: impl Display) {
    let line = plain_lines(&line.to_string());
    let _ = writeln!(std::io::stderr(), "{line}");
}
