//! `tacho query`: a reader function as the server calls it.

use crate::reader::server;
use std::process::ExitCode;

/// Arguments of `tacho query`.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Name of the function
    function: String,

    /// Its arguments: --tape DIR, --since TIME, …
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Prints the answer in the format of COPY.
pub fn run(args: &Args) -> ExitCode {
    server::run(&args.function, &args.rest)
}
