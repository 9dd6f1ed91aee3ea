//! `tacho explain wait NAME`: what a wait event means, when it is normal, what to look at next.

use super::say;
use std::io::{self, Write};
use std::process::ExitCode;
use tacho_source::waits::{self, Wait};
use tacho_tape::query::plain_text;

/// Arguments of `tacho explain`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// A wait event of PostgreSQL, or a type of wait events
    Wait {
        /// Such as IO:DataFileRead, DataFileRead or IO; without it, the names of all
        name: Option<String>,

        /// Only names that this major of PostgreSQL lists
        #[arg(long, value_name = "MAJOR", conflicts_with = "name")]
        major: Option<u8>,
    },
}

/// Prints the explanation.
pub fn run(args: &Args) -> ExitCode {
    let Subject::Wait { name, major } = &args.subject;
    let lines: Vec<String> = match name {
        None => names(*major),
        Some(name) => waits::find(name).iter().map(ToString::to_string).collect(),
    };
    if lines.is_empty() {
        return unknown(name.as_deref(), *major);
    }
    // A write error is ignored: a reader that closes the pipe has read enough.
    let _ = writeln!(io::stdout(), "{}", plain(&lines.join("\n")));
    ExitCode::SUCCESS
}

/// Names of all entries, or of the events of a major.
fn names(major: Option<u8>) -> Vec<String> {
    let is_listed = |wait: &&Wait| {
        let majors = wait.majors.as_ref();
        major.is_none_or(|major| majors.is_some_and(|majors| majors.contains(&major)))
    };
    let listed = waits::all().iter().filter(is_listed);
    listed.map(|wait| wait.name.into()).collect()
}

/// The text without control characters, which a name on the command line can have.
fn plain(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(plain_text).collect();
    lines.join("\n")
}

fn unknown(name: Option<&str>, major: Option<u8>) -> ExitCode {
    let name = name.unwrap_or_default();
    if let Some(major) = major {
        say(format_args!(
            "error: wait events of PostgreSQL {major} are not known\n\
             hint: Events of 15 to 19 are explained."
        ));
        return ExitCode::FAILURE;
    }
    let similar = waits::similar(name);
    let hint = match similar.is_empty() {
        true => "Names are as in pg_stat_activity, with or without the type: IO:DataFileRead. \
                 \"tacho explain wait\" prints all."
            .to_string(),
        false => format!("Did you mean {}?", similar.join(" or ")),
    };
    say(format_args!(
        "error: there is no wait event \"{name}\"\nhint: {hint}"
    ));
    ExitCode::FAILURE
}
