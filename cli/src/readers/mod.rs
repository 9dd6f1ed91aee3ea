//! Readers of the history. They turn arguments into a question, print the
//! answer in a format, and print errors as three lines or in the server's form.

pub mod args;
#[cfg(test)]
mod extremes_tests;
mod interrupt;
pub mod output;
mod progress;
pub mod server;
pub mod table;

use args::{Caller, Parsed};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use progress::Progress;
use std::io::{BufWriter, IsTerminal, Write};
use std::marker::PhantomData;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use table::{Layout, Table};
use tacho_source::json::{self, Json};
use tacho_source::memory;
use tacho_tape::Snapshot;
use tacho_tape::query::{
    self, CANCELED, INSUFFICIENT_PRIVILEGE, QueryError, QueryResult, Sink, plain_lines,
};

/// The switch that asks for a plan, and the SQL function for the same.
const EXPLAIN: &str = "explain";
/// The argument of that function that names the explained function.
const FUNCTION: &str = "function";

/// Layout of a plan.
const PLAN: Layout = Layout::Columns(&[
    ("plan", "plan"),
    ("first_tick", "from"),
    ("last_tick", "to"),
    ("files", "files"),
    ("parts", "parts"),
    ("bytes", "bytes"),
    ("why", "why"),
]);

/// A reader command for people.
pub trait Reader {
    /// Name of the function.
    const FUNCTION: &'static str;
    /// Layout of its answer.
    const LAYOUT: Layout;
}

/// The command line of a reader command.
#[derive(Clone)]
pub struct ReaderArgs<R> {
    matches: ArgMatches,
    reader: PhantomData<R>,
}

impl<R: Reader> FromArgMatches for ReaderArgs<R> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(ReaderArgs {
            matches: matches.clone(),
            reader: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.matches = matches.clone();
        Ok(())
    }
}

impl<R: Reader> Args for ReaderArgs<R> {
    fn augment_args(command: Command) -> Command {
        let json = Arg::new("json")
            .long("json")
            .action(ArgAction::SetTrue)
            .help("Print one JSON array of objects");
        let wide = Arg::new("wide")
            .long("wide")
            .action(ArgAction::SetTrue)
            .help(
                "Do not truncate texts [default: to the width of the terminal, else to 80 columns]",
            );
        let explain = Arg::new(EXPLAIN)
            .long(EXPLAIN)
            .action(ArgAction::SetTrue)
            .help("Print how the answer would be computed, and why, instead of the answer");
        match query::find(R::FUNCTION) {
            Ok(function) => {
                args::augment(command, function, Caller::Person).args([json, wide, explain])
            }
            Err(_) => command,
        }
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Runs a reader command to its exit code.
pub fn run<R: Reader>(args: &ReaderArgs<R>) -> ExitCode {
    match answer::<R>(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

fn answer<R: Reader>(args: &ReaderArgs<R>) -> QueryResult<()> {
    let function = query::find(R::FUNCTION)?;
    let mut parsed = Parsed::new(args.matches.clone(), function, Caller::Person)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    if parsed.switch("json") == Some(true) {
        let mut json = Json::new(&mut out);
        execute(&parsed, &mut json)?;
        return finish(json);
    }
    if wants_color() {
        parsed.use_color();
    }
    let screen = (parsed.switch("wide") != Some(true)).then(table::screen);
    let layout = if parsed.is_explained { PLAN } else { R::LAYOUT };
    let mut table = Table::new(&mut out, layout, parsed.zone.clone(), screen);
    execute(&parsed, &mut table)?;
    table::finish(table)
}

/// Ends an answer in JSON and prints the notices to standard error.
fn finish<W: Write>(json: Json<W>) -> QueryResult<()> {
    for notice in json.finish().map_err(|e| json::write_error(&e))? {
        match notice.severity() {
            "WARNING" => warn(&notice),
            _ => drop(writeln!(std::io::stderr(), "notice: {}", notice.message)),
        }
    }
    Ok(())
}

/// True if output has colours: on terminals, unless the environment says
/// otherwise.
fn wants_color() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    if set("NO_COLOR") {
        return false;
    }
    let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|v| !v.is_empty() && v != "0");
    forced || std::io::stdout().is_terminal()
}

/// Opens the history and answers the question.
pub fn execute(parsed: &Parsed, sink: &mut dyn Sink) -> QueryResult<()> {
    limit_memory(parsed)?;
    let progress = Arc::new(Progress::new());
    let cancel = match parsed.caller {
        Caller::Person => interrupt::on_signal(&progress),
        // For the server no signal is handled: it kills the process instead.
        Caller::Server => Arc::default(),
    };
    let show = |done, all| progress.show(done, all);
    let question = parsed.question()?;
    let mut context = parsed.context()?;
    context.progress = Some(&show);
    context.cancel = &cancel;
    let mut store = opened(parsed)?;
    // The server knows its own directory, which may still be empty.
    if parsed.caller == Caller::Person && store.nodes().is_empty() && store.damage().is_empty() {
        return Err(tacho_source::no_history(&parsed.tape));
    }
    if let Some(oid) = parsed.owner_oid()? {
        store.hide_other_roles(oid);
    }
    let result = match parsed.is_explained {
        true => query::explain(&*question, &context, &store, sink),
        false => question.run(&context, &store, sink),
    };
    progress.clear();
    // The process ends with the answer. Freeing thousands of parts would only
    // delay that.
    std::mem::forget(store);
    result
}

/// Opens the history. The error for a person says which directory to name.
fn opened(parsed: &Parsed) -> QueryResult<Snapshot> {
    let opened = tacho_source::open(&parsed.tape);
    opened.map_err(|error| match parsed.caller {
        Caller::Person => tacho_source::with_step(error, &parsed.tape),
        Caller::Server => error,
    })
}

/// Exit code of an error: 2 for a wrong question, 3 for missing rights.
fn exit_code(error: &QueryError) -> ExitCode {
    match error.sqlstate {
        INSUFFICIENT_PRIVILEGE => ExitCode::from(3),
        state if state.starts_with("22") || state == "42704" => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    }
}

/// The error of a question that exceeds its memory limit.
fn out_of_memory(megabytes: u64) -> QueryError {
    QueryError::new("53200", "tacho program ran out of memory")
        .detail(format!("The limit is {megabytes} MB."))
}

/// Limits the memory of a person's question.
fn limit_memory(parsed: &Parsed) -> QueryResult<()> {
    if let (Caller::Person, Some(megabytes)) = (parsed.caller, parsed.memory_limit_mb()?) {
        let error = out_of_memory(megabytes).hint(
            "Use a shorter window, a wider bucket, a filter or fewer rows, or raise --memory-limit-mb.",
        );
        memory::limit(megabytes.saturating_mul(1 << 20), lines(&error));
    }
    Ok(())
}

/// Prints an error as three lines. A reader that has gone is not a failure. The
/// end by a signal is printed only once.
pub fn report(error: &QueryError) -> ExitCode {
    static CANCEL_IS_TOLD: AtomicBool = AtomicBool::new(false);
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    if error.sqlstate == CANCELED && CANCEL_IS_TOLD.swap(true, Ordering::Relaxed) {
        return exit_code(error);
    }
    let _ = std::io::stderr().write_all(lines(error).as_bytes());
    exit_code(error)
}

/// Prints a warning about a part that the answer leaves out.
pub fn warn(warning: &QueryError) {
    let _ = std::io::stderr().write_all(format_lines("warning", warning).as_bytes());
}

/// An error in the form for people.
fn lines(error: &QueryError) -> String {
    format_lines("error", error)
}

fn format_lines(severity: &str, error: &QueryError) -> String {
    let lines = [
        (severity, Some(&error.message)),
        ("detail", error.detail.as_ref()),
        ("hint", error.hint.as_ref()),
    ];
    let lines = lines.into_iter();
    let lines = lines.filter_map(|(kind, text)| Some(format!("{kind}: {}\n", plain_lines(text?))));
    lines.collect()
}

fn is_broken_pipe(error: &QueryError) -> bool {
    let pipe = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    error.sqlstate == json::BROKEN_OUTPUT
        && (error.message.contains("Broken pipe") || error.message.ends_with(&pipe.to_string()))
}
