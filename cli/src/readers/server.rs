//! `tacho query`: calls of functions by the server. Limits its own resources,
//! answers in COPY format, and reports errors as lines of fields.

use super::args::{self, Caller, Parsed};
use super::output::{Copy, error_line};
use super::{EXPLAIN, FUNCTION, execute, exit_code, finish, is_broken_pipe, out_of_memory};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use rustix::process::{Resource, Rlimit};
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use tacho_source::arguments::check;
use tacho_source::json::{self, Json};
use tacho_source::memory;
use tacho_tape::query::{self, Function, QueryError, QueryResult};

/// Runs `tacho query FUNCTION …`.
pub fn run(function: &str, rest: &[String]) -> ExitCode {
    match answer(function, rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::stderr().write_all(error_line("ERROR", &error).as_bytes());
            exit_code(&error)
        }
    }
}

fn answer(function: &str, rest: &[String]) -> QueryResult<()> {
    let (function, is_explained) = asked(function, rest)?;
    let extra = ["format", "owner", "owner-oid", "memory-limit-mb"];
    let extra = extra.into_iter().chain(is_explained.then_some(FUNCTION));
    let mut command = Command::new("tacho query").disable_help_flag(true);
    command = args::augment(command, function, Caller::Server);
    for name in extra {
        command = command.arg(Arg::new(name).long(name).allow_hyphen_values(true));
    }
    let words = std::iter::once("tacho query").chain(rest.iter().map(String::as_str));
    let matches = command
        .try_get_matches_from(words)
        .map_err(|e| match is_explained {
            true => no_argument(function, &e),
            false => usage(&e),
        })?;
    let value = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    limit_memory(value("memory-limit-mb"))?;
    let format = value("format").unwrap_or("copy").to_string();
    let parsed = Parsed::new(matches, function, Caller::Server)?;
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let written = |result: std::io::Result<()>| result.map_err(|e| json::write_error(&e));
    match format.as_str() {
        "copy" => {
            let mut copy = Copy::new(&mut out);
            execute(&parsed, &mut copy)?;
            written(copy.finish())
        }
        "json" => {
            let mut json = Json::new(&mut out);
            execute(&parsed, &mut json)?;
            finish(json)
        }
        other => Err(QueryError::invalid(format!("invalid format \"{other}\""))
            .hint("Available formats are copy, json.")),
    }
}

/// The function, and whether its plan is wanted: `explain` has the function as an
/// argument.
fn asked(name: &str, rest: &[String]) -> QueryResult<(&'static Function, bool)> {
    if name != EXPLAIN {
        return Ok((query::find(name)?, false));
    }
    let named = rest.iter().filter_map(|word| word.strip_prefix("--"));
    let mut pairs = named.filter_map(|word| word.split_once('='));
    match pairs.find(|(name, _)| *name == FUNCTION) {
        Some((_, function)) => Ok((query::find(function)?, true)),
        None => {
            let names: Vec<&str> = query::list().iter().map(|f| f.name).collect();
            let error = QueryError::invalid("argument \"function\" must not be null");
            Err(error.hint(format!("Available are {}.", names.join(", "))))
        }
    }
}

/// The error of an unknown argument. `explain` accepts the arguments of all
/// functions; the explained function may lack some.
fn no_argument(function: &Function, error: &clap::Error) -> QueryError {
    let given = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(given)) => given.trim_start_matches('-').replace('-', "_"),
        _ => return usage(error),
    };
    let checked = check(function, [given.as_str()]);
    checked.err().unwrap_or_else(|| usage(error))
}

/// The first line of clap's message.
fn usage(error: &clap::Error) -> QueryError {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let query = QueryError::invalid(line.to_string());
    match error.kind() {
        ErrorKind::UnknownArgument => query
            .hint("The library and the program may have different versions. Install both again."),
        _ => query,
    }
}

/// Limits the address space, but never beyond the system's own limit. A program
/// that ends for lack of memory then leaves no core file in the data directory.
fn limit_memory(megabytes: Option<&str>) -> QueryResult<()> {
    let Some(text) = megabytes else {
        return Ok(());
    };
    let megabytes = number(text)?;
    let bytes = megabytes.saturating_mul(1 << 20);
    let error = out_of_memory(megabytes).hint("Use a shorter window or fewer rows.");
    // An eighth is for memory outside the allocator: the program itself, stacks,
    // decompression. These cannot report that memory was refused.
    memory::limit(bytes - bytes / 8, error_line("ERROR", &error));
    let allowed = rustix::process::getrlimit(Resource::As).maximum;
    let bytes = allowed.map_or(bytes, |allowed| allowed.min(bytes));
    for (resource, limit) in [(Resource::As, bytes), (Resource::Core, 0)] {
        let limit = Rlimit {
            current: Some(limit),
            maximum: Some(limit),
        };
        rustix::process::setrlimit(resource, limit)
            .map_err(|e| QueryError::new("53200", format!("could not limit memory: {e}")))?;
    }
    Ok(())
}

fn number(text: &str) -> QueryResult<u64> {
    let parsed = text.parse();
    parsed.map_err(|_| QueryError::invalid(format!("invalid number \"{text}\"")))
}
