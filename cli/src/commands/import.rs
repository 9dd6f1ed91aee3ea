//! `tacho import`: history from text files.

use super::say;
use crate::exchange::import::target::Target;
use crate::exchange::import::{ImportError, ImportResult, Input, import};
use crate::programs::USAGE;
use clap::ValueHint;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tacho_source::time;
use tacho_tape::format::schema::INTERVAL_LIMIT_MS;

/// Arguments of `tacho import`.
#[derive(clap::Args)]
pub struct Args {
    /// sessions: a header with time and any of the columns that `tacho export` writes; or another kind
    #[arg(value_name = "KIND")]
    kind: String,

    /// The file; - is standard input. A line with an empty pid is a tick without active sessions
    file: PathBuf,

    /// Rows of another kind, such as locks, that belong to the same ticks
    #[arg(long, value_name = "KIND=FILE")]
    with: Vec<String>,

    /// Directory of the history files
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    tape: PathBuf,

    /// Sampling interval: the weight of a tick
    #[arg(long, default_value = "1s")]
    interval: String,

    /// Add later times to an existing history; times that it has already are refused, known texts are skipped
    #[arg(long)]
    append: bool,

    /// Recorder of this history, in hexadecimal [default: a new one]
    #[arg(long, value_name = "ID")]
    node: Option<String>,

    /// System identifier of the recorded server: answers combine this history with what that server records
    #[arg(long, value_name = "NUMBER")]
    system: Option<u64>,
}

/// Imports, and prints the numbers of rows.
pub fn run(args: &Args) -> ExitCode {
    match args.import() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("error: {error}"));
            if let Some(hint) = &error.hint {
                say(format_args!("hint: {hint}"));
            }
            match error.is_usage {
                true => ExitCode::from(USAGE),
                false => ExitCode::FAILURE,
            }
        }
    }
}

impl Args {
    fn import(&self) -> ImportResult<()> {
        let node = self.node.as_deref().map(node).transpose()?;
        let interval_us = time::interval(&self.interval).unwrap_or(0);
        let is_valid = (1..INTERVAL_LIMIT_MS).contains(&(interval_us / 1000));
        if !is_valid || interval_us % 1000 != 0 {
            return Err(
                ImportError::usage(format!("invalid interval \"{}\"", self.interval))
                    .hint("Use whole milliseconds, such as 1s or 10ms."),
            );
        }
        let inputs = self.inputs()?;
        let mut target = Target::open(&self.tape, node, self.append)?;
        if let Some(system) = self.system {
            target.belongs_to(system)?;
        }
        let imported = import(inputs, target, interval_us / 1000)?;
        say(format_args!("imported {imported}"));
        Ok(())
    }

    fn inputs(&self) -> ImportResult<Vec<Input>> {
        let mut inputs = vec![input(&self.kind, &self.file)?];
        for with in &self.with {
            let (kind, file) = with.split_once('=').ok_or_else(|| {
                ImportError::usage(format!("invalid value \"{with}\" for --with"))
                    .hint("Use the form KIND=FILE, such as locks=locks.csv.")
            })?;
            inputs.push(Input {
                file: file.to_string(),
                ..input(kind, Path::new(file))?
            });
        }
        Ok(inputs)
    }
}

fn input(kind: &str, file: &Path) -> ImportResult<Input> {
    let read: Box<dyn Read> = match file.as_os_str() == "-" {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(file).map_err(|e| {
            ImportError::new(format!("could not open file \"{}\": {e}", file.display()))
        })?),
    };
    Ok(Input {
        kind: kind.to_string(),
        file: String::new(),
        read,
    })
}

fn node(text: &str) -> ImportResult<u64> {
    let id = u64::from_str_radix(text, 16).ok().filter(|id| *id != 0);
    id.ok_or_else(|| {
        ImportError::usage(format!("invalid node \"{text}\""))
            .hint("Use up to 16 hexadecimal digits.")
    })
}
