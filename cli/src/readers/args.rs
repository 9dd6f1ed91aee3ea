//! Arguments of the reader functions on a command line, from their description in
//! `tacho-source`: a new function or dimension needs no new line here. Options are the
//! SQL names with hyphens. clap does not parse values, so SQL and the command line
//! report the same errors.

use super::output::error_line;
use super::{EXPLAIN, FUNCTION};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use jiff::tz::TimeZone;
use std::io::Write;
use std::path::{Path, PathBuf};
use tacho_source::arguments::arguments;
use tacho_source::{Arguments, Question, time, whole};
use tacho_tape::locate;
use tacho_tape::query::{self, Argument, Context, Function, Kind, QueryError, QueryResult};

/// The caller of a function. It decides the defaults, and whether `dimension` stands
/// first without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A person: `top wait_event`, ten rows.
    Person,
    /// The server: all arguments by name, without defaults.
    Server,
}

/// The argument that limits memory.
const MEMORY_LIMIT: &str = "memory-limit-mb";
/// The argument with the time zone of the session that asks.
const SESSION_ZONE: &str = "session-tz";
/// Default memory limit of a person's question, in MB; the server's setting has the same default.
const MEMORY_LIMIT_MB: u64 = 1024;

/// Help of `--tape` for all commands that read a history.
pub const TAPE_HELP: &str = "Directory of the history files [default: $TACHO_TAPE, else the history of the data directory \
                             $PGDATA, else of the only server that runs here]";

/// Adds the arguments of a function to a command.
pub fn augment(command: Command, function: &Function, caller: Caller) -> Command {
    let tape = option("tape", "DIR").short('t').help(TAPE_HELP);
    let tape = tape.required(caller == Caller::Server);
    let tape = tape.value_hint(ValueHint::DirPath);
    let now = option("now", "TIME").hide(true);
    // The server reads no help.
    let described = arguments(function, caller == Caller::Person);
    let described = described
        .iter()
        .map(|argument| described_option(argument, caller));
    command
        .arg(tape)
        .arg(now)
        .args(described)
        .arg(match caller {
            Caller::Person => {
                option(MEMORY_LIMIT, "MB").help("Memory limit of the answer in MB [default: 1024]")
            }
            Caller::Server => option(SESSION_ZONE, "ZONE").help("Time zone, unless tz is given"),
        })
}

fn option(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name)
        .long(name.replace('_', "-"))
        .value_name(value)
        .allow_hyphen_values(true)
        .action(ArgAction::Set)
}

fn described_option(argument: &Argument, caller: Caller) -> Arg {
    let name = argument.name;
    let default = argument.default.map(|d| format!(" [default: {d}]"));
    let help = format!("{}{}", argument.help, default.unwrap_or_default());
    let arg = match argument.kind {
        Kind::Switch => switch(name),
        Kind::Dimension if name == "dimension" && caller == Caller::Person => {
            Arg::new(name).value_name(argument.kind.name())
        }
        Kind::Plan if name == "plan_id" && caller == Caller::Person => Arg::new(name)
            .value_name(argument.kind.name())
            .required(true),
        Kind::Filter => option(name, argument.kind.name())
            .help_heading("Filters: a value, a list a,b, (null), or !value, or !a,!b"),
        kind => option(name, kind.name()),
    };
    let short = ["n", "since", "until"].contains(&name);
    let short = name.chars().next().filter(|_| short);
    arg.short(short).help(help)
}

/// A switch that also takes `true` and `false`.
fn switch(name: &'static str) -> Arg {
    Arg::new(name)
        .long(name.replace('_', "-"))
        .value_name("BOOL")
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .hide_possible_values(true)
        .value_parser(clap::value_parser!(bool))
}

/// Parsed arguments. The question borrows from them.
pub struct Parsed {
    /// Directory of the history.
    pub tape: PathBuf,
    /// Time zone of times without an offset, of buckets, and of displayed times.
    pub zone: TimeZone,
    /// The caller.
    pub caller: Caller,
    /// True if the plan is wanted, not the answer.
    pub is_explained: bool,
    matches: ArgMatches,
    question: Question,
}

impl Parsed {
    /// Takes the arguments that clap has found.
    pub fn new(
        matches: ArgMatches,
        function: &'static Function,
        caller: Caller,
    ) -> QueryResult<Parsed> {
        let zone = || match caller {
            Caller::Person => time::readers_zone(),
            Caller::Server => Ok(session_zone(get(&matches, SESSION_ZONE))),
        };
        let is_explained = matches.try_get_one::<bool>(EXPLAIN).ok().flatten() == Some(&true)
            || get(&matches, FUNCTION).is_some();
        // SQL declares no defaults for the arguments of explain().
        let defaults = caller == Caller::Person || is_explained;
        let question = Question::new(function, given(&matches), zone, defaults)?;
        Ok(Parsed {
            tape: locate::tape(get(&matches, "tape").map(Path::new))?,
            zone: question.zone.clone(),
            caller,
            is_explained,
            question,
            matches,
        })
    }

    /// The value of a switch; `None` if the command line lacks it.
    pub fn switch(&self, name: &str) -> Option<bool> {
        self.matches
            .try_get_one::<bool>(name)
            .ok()
            .flatten()
            .copied()
    }

    /// The question that the arguments describe.
    pub fn question(&self) -> QueryResult<Box<dyn query::Question>> {
        self.question.question()
    }

    /// Switches colours on for a chart on a terminal, unless the question sets
    /// `color`.
    pub fn use_color(&mut self) {
        self.question.switch_on("color");
    }

    /// The context of the question.
    pub fn context(&self) -> QueryResult<Context<'_>> {
        let mut context = self.question.context();
        context.at_home = self.caller == Caller::Server;
        context.owner = get(&self.matches, "owner").map(str::to_string);
        context.threads = threads(self.caller);
        let megabytes = self.memory_limit_mb()?;
        context.memory_bytes = megabytes.map(|mb| mb.saturating_mul(1 << 20));
        Ok(context)
    }

    /// Memory limit of the program, in MB; `None` if the server sets none.
    pub fn memory_limit_mb(&self) -> QueryResult<Option<u64>> {
        let Some(text) = get(&self.matches, MEMORY_LIMIT) else {
            return Ok((self.caller == Caller::Person).then_some(MEMORY_LIMIT_MB));
        };
        let number = text.parse().ok().filter(|mb| *mb > 0);
        number.map(Some).ok_or_else(|| {
            QueryError::invalid(format!("invalid value \"{text}\" for {MEMORY_LIMIT}"))
                .hint("Use a whole number of megabytes, at least 1.")
        })
    }

    /// OID of the role that asks, if it may see only its own sessions.
    pub fn owner_oid(&self) -> QueryResult<Option<i64>> {
        let oid = get(&self.matches, "owner-oid");
        oid.map(|oid| whole("owner-oid", oid)).transpose()
    }
}

/// The given values, by name.
fn given(matches: &ArgMatches) -> Arguments {
    let value = |name: &str| {
        let switch = matches.try_get_one::<bool>(name).ok().flatten();
        let text = || get(matches, name).map(str::to_string);
        switch.map(bool::to_string).or_else(text)
    };
    let names = matches.ids().map(clap::Id::as_str);
    names
        .filter_map(|name| Some((name.to_string(), value(name)?)))
        .collect()
}

/// The session's time zone. The server may know zones that this system does not.
fn session_zone(name: Option<&str>) -> TimeZone {
    let Some(name) = name else {
        return TimeZone::UTC;
    };
    time::zone(name).unwrap_or_else(|_| {
        let warning = format!("time zone \"{name}\" of the session is unknown to this program");
        let warning = QueryError::new("01000", warning)
            .detail("Buckets are aligned to UTC.")
            .hint("Set TimeZone, or tz, to an IANA name such as Europe/Berlin.");
        let _ = std::io::stderr().write_all(error_line("WARNING", &warning).as_bytes());
        TimeZone::UTC
    })
}

/// Number of threads. People get all cores. The server has other work, and limits the address
/// space, which each thread takes some of.
fn threads(caller: Caller) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match caller {
        Caller::Person => cores,
        Caller::Server => cores.min(2),
    }
}

fn get<'m>(matches: &'m ArgMatches, name: &str) -> Option<&'m str> {
    let value = matches.try_get_one::<String>(name).ok().flatten();
    value.map(String::as_str)
}
