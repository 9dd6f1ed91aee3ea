//! `tacho mark`: writes a marker of this moment, for later readers of the history.

use crate::readers::args::TAPE_HELP;
use crate::readers::report;
use clap::ValueHint;
use std::path::PathBuf;
use std::process::ExitCode;
use tacho_tape::locate;
use tacho_tape::write::marks;

/// Arguments of `tacho mark`.
#[derive(clap::Args)]
pub struct Args {
    /// Text of the marker, such as "deploy 1.4"
    text: String,

    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, help = TAPE_HELP)]
    tape: Option<PathBuf>,
}

/// Leaves the marker for the writer of the history.
pub fn run(args: &Args) -> ExitCode {
    let tape = locate::tape(args.tape.as_deref());
    match tape.and_then(|tape| marks::write_mark(&tape, &args.text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}
