//! `tacho report`: the activity of the database as one page, Markdown or JSON.

use crate::readers::args::{self, Caller, Parsed};
use crate::readers::{execute, report as fail, warn};
use clap::{Arg, ArgMatches, Command, FromArgMatches, ValueHint};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use tacho_source::json::write_error;
use tacho_source::report::{Report, page, text};
use tacho_tape::Error;
use tacho_tape::query::{self, Field, Function, QueryError, QueryResult, Sink, Value};

/// Arguments of `tacho report`.
pub struct Args(ArgMatches);

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Args(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl clap::Args for Args {
    fn augment_args(command: Command) -> Command {
        let Ok(function) = function() else {
            return command;
        };
        args::augment(command, function, Caller::Person)
            .arg(
                Arg::new("format")
                    .long("format")
                    .value_name("FORMAT")
                    .help("html, markdown or json [default: by the name of the file, else html]"),
            )
            .arg(
                Arg::new("output")
                    .long("output")
                    .value_name("FILE")
                    .value_hint(ValueHint::FilePath)
                    .help("File to write [default: standard output]"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn function() -> QueryResult<&'static Function> {
    query::find("report")
}

/// Writes the report.
pub fn run(args: &Args) -> ExitCode {
    match answer(&args.0) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn answer(matches: &ArgMatches) -> QueryResult<()> {
    let value = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let output = value("output");
    let format = format(value("format"), output)?;
    let function = function()?;
    let parsed = Parsed::new(matches.clone(), function, Caller::Person)?;
    let mut document = Document::default();
    execute(&parsed, &mut document)?;
    let text = match format {
        "json" => document.0 + "\n",
        format => {
            let report = Report::new(&document.0, parsed.zone.clone())?;
            if format == "html" {
                page(&report)
            } else {
                text(&report)
            }
        }
    };
    match output {
        None => std::io::stdout()
            .lock()
            .write_all(text.as_bytes())
            .map_err(|e| write_error(&e)),
        Some(file) => std::fs::write(file, text).map_err(|e| {
            let error = Error::io("write file", Path::new(file), e);
            QueryError::from(error)
                .hint("Specify a file in an existing directory that you can write to.")
        }),
    }
}

/// The format: as given, otherwise by the ending of the output file's name.
fn format(format: Option<&str>, output: Option<&str>) -> QueryResult<&'static str> {
    let name = match (format, output.and_then(|file| file.rsplit_once('.'))) {
        (Some(format), _) => format,
        (None, Some((_, "md" | "markdown"))) => "markdown",
        (None, Some((_, "json"))) => "json",
        _ => "html",
    };
    ["html", "markdown", "json"]
        .into_iter()
        .find(|known| *known == name)
        .ok_or_else(|| {
            QueryError::invalid(format!("invalid format \"{name}\""))
                .hint("Available formats are html, markdown, json.")
        })
}

/// A sink that takes the last column of the only row: the document.
#[derive(Default)]
struct Document(String);

impl Sink for Document {
    fn begin(&mut self, _: &[Field]) -> QueryResult<()> {
        Ok(())
    }

    fn row(&mut self, mut values: Vec<Value>) -> QueryResult<()> {
        if let Some(Value::Text(text)) = values.pop() {
            self.0 = text.to_string();
        }
        Ok(())
    }

    fn notice(&mut self, notice: QueryError) {
        if notice.severity() == "WARNING" {
            warn(&notice);
        }
    }
}
