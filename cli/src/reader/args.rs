//! Arguments of the reader functions, made from the registry, which has their
//! defaults, and the catalog: a new function or dimension needs no line here,
//! and no function is named here. Names are those of SQL
//! with hyphens. Values are parsed here and not by clap, so that SQL and the
//! command line report the same errors.

use super::server::error_line;
use super::{encoding, time};
use crate::catalog;
use clap::builder::StyledStr;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use jiff::tz::TimeZone;
use std::io::Write;
use std::path::PathBuf;
use tacho_tape::query::{Argument, Function, QueryError, QueryResult, STATEMENT_FILTERS, Spec};

/// Who calls: defaults and the place of `dimension` differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A person: `top wait_event`, ten rows.
    Person,
    /// The server: every argument by name, none is added.
    Server,
}

/// The argument that limits memory.
const MEMORY_LIMIT: &str = "memory-limit-mb";
/// The argument that says the time zone of the session that asks.
const SESSION_ZONE: &str = "session-tz";
/// What people's questions may take if they do not say; the server says as much.
const MEMORY_LIMIT_MB: u64 = 1024;

/// Adds the arguments of a function to a command.
pub fn augment(command: Command, function: &Function, caller: Caller) -> Command {
    let mut command = command
        .arg(
            option("tape", "DIR", "Directory of the history files")
                .required(true)
                .value_hint(ValueHint::DirPath),
        )
        .arg(option(
            "node",
            "ID",
            "Recorder: an id, or all: their mean by time observed [default: the newest]",
        ))
        .arg(option("now", "TIME", "The present").hide(true));
    for argument in function.arguments {
        command = add(command, *argument, function, caller);
    }
    if caller == Caller::Person && !function.arguments.contains(&Argument::Zone) {
        command = command.arg(option(
            "tz",
            "ZONE",
            "Time zone of times [default: TZ, else that of the system]",
        ));
    }
    command.arg(match caller {
        Caller::Person => option(
            MEMORY_LIMIT,
            "MB",
            "Most memory the answer may take [default: 1024]",
        ),
        Caller::Server => option(SESSION_ZONE, "ZONE", "Time zone where tz is not given"),
    })
}

fn option(name: &'static str, value: &'static str, help: impl Into<StyledStr>) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value)
        .help(help)
        .allow_hyphen_values(true)
        .action(ArgAction::Set)
}

/// A switch that also takes `true` and `false`.
fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("BOOL")
        .help(help)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .hide_possible_values(true)
        .value_parser(clap::value_parser!(bool))
}

/// Help that the function gives, with the default.
fn help(function: &Function, argument: Argument) -> String {
    let Some(said) = function.said(argument) else {
        return String::new();
    };
    let default = said.default.map(|d| format!(" [default: {d}]"));
    format!("{}{}", said.help, default.unwrap_or_default())
}

fn add(command: Command, argument: Argument, function: &Function, caller: Caller) -> Command {
    let said = || help(function, argument);
    let arg = match argument {
        Argument::Dimension if caller == Caller::Person => {
            Arg::new("dimension").value_name("DIMENSION").help(said())
        }
        Argument::Dimension => option("dimension", "DIMENSION", "What to group by"),
        Argument::At => option("at", "TIME", said()),
        Argument::Since => option(
            "since",
            "TIME",
            "Begin: 1h, 03:12, \"yesterday 14:00\", RFC 3339 [default: 1h before the end]",
        ),
        Argument::Until => option("until", "TIME", "End, exclusive [default: now]"),
        Argument::Bucket => option(
            "bucket",
            "INTERVAL",
            "Width of a bucket, such as 10s, 5m, 1d",
        ),
        Argument::By => option("by", "DIMENSION", "Split by a dimension"),
        Argument::N => option("n", "N", said()),
        Argument::OrderBy => option("order-by", "ORDER", said()),
        Argument::Width => option("width", "N", "Columns of a full bar [default: 40]"),
        Argument::Color => switch(
            "color",
            "Colours [default: on a terminal, unless NO_COLOR is set]",
        ),
        Argument::Ascii => switch("ascii", "No block characters"),
        Argument::Zone => option(
            "tz",
            "ZONE",
            "Time zone of buckets and times, such as Europe/Berlin, or local",
        ),
        Argument::Metrics => {
            return command
                .arg(option(
                    "metric",
                    "FILTER",
                    "Metrics: a name, a list a,b, or !name",
                ))
                .arg(option("object", "FILTER", "Databases, replicas or slots"));
        }
        Argument::Windows => return add_windows(command),
        Argument::Filters => return add_filters(command, function, caller),
        Argument::StatementFilters => {
            return add_named(command, STATEMENT_FILTERS.into_iter());
        }
    };
    command.arg(arg)
}

fn add_windows(command: Command) -> Command {
    let helps = [
        (
            "since-1",
            "Begin of the earlier window [default: a day before the later one]",
        ),
        (
            "until-1",
            "Its end, exclusive [default: as long as the later one]",
        ),
        (
            "since-2",
            "Begin of the later window [default: 1h before its end]",
        ),
        ("until-2", "Its end, exclusive [default: now]"),
    ];
    command.args(helps.map(|(name, help)| option(name, "TIME", help)))
}

fn add_filters(command: Command, function: &Function, caller: Caller) -> Command {
    let scope = match function.said(Argument::Filters) {
        Some(_) => help(function, Argument::Filters),
        None => "load, foreground or all [default: load]".to_string(),
    };
    let command = command
        .arg(option("scope", "SCOPE", scope))
        .arg(switch("by-leader", "Leave parallel workers out"));
    match caller {
        Caller::Person => add_named(command, catalog::dimensions().iter().copied()),
        // It reads no help.
        Caller::Server => add_named(command, catalog::dimension_names().iter().map(|n| (*n, ""))),
    }
}

fn add_named(
    mut command: Command,
    filters: impl Iterator<Item = (&'static str, &'static str)>,
) -> Command {
    for (name, doc) in filters {
        let arg = Arg::new(name)
            .long(name.replace('_', "-"))
            .value_name("FILTER")
            .help(doc)
            .allow_hyphen_values(true)
            .help_heading("Filters: a value, a list a,b, (null), or !value, or !a,!b");
        command = command.arg(arg);
    }
    command
}

/// Parsed arguments; the question borrows from them.
pub struct Parsed {
    /// Directory of the history.
    pub tape: PathBuf,
    /// Zone of times without an offset, of buckets, and of times shown.
    pub zone: TimeZone,
    /// Who asks.
    pub caller: Caller,
    matches: ArgMatches,
    calendar: Option<time::Calendar>,
    now_us: i64,
    function: &'static Function,
}

impl Parsed {
    /// Takes what clap has found.
    pub fn new(
        matches: ArgMatches,
        function: &'static Function,
        caller: Caller,
    ) -> QueryResult<Parsed> {
        let text = |name: &str| get(&matches, name);
        let zone = match (text("tz"), caller) {
            (Some(name), _) => time::zone(name)?,
            (None, Caller::Person) => time::local(),
            (None, Caller::Server) => session_zone(text(SESSION_ZONE)),
        };
        let clock = jiff::Timestamp::now().as_microsecond();
        let utc = TimeZone::UTC;
        let now = text("now")
            .map(|now| time::moment(now, clock, &utc))
            .transpose()?;
        Ok(Parsed {
            tape: PathBuf::from(text("tape").unwrap_or(".")),
            calendar: (!time::is_utc(&zone)).then(|| time::Calendar(zone.clone())),
            zone,
            now_us: now.unwrap_or(clock),
            matches,
            caller,
            function,
        })
    }

    /// A switch.
    pub fn switch(&self, name: &str) -> Option<bool> {
        self.matches
            .try_get_one::<bool>(name)
            .ok()
            .flatten()
            .copied()
    }

    fn text(&self, name: &str) -> Option<&str> {
        get(&self.matches, name)
    }

    fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_string)
    }

    fn moment(&self, name: &str) -> QueryResult<Option<i64>> {
        let text = self.text(name);
        text.map(|text| time::moment(text, self.now_us, &self.zone))
            .transpose()
    }

    /// The question.
    pub fn spec(&self) -> QueryResult<Spec<'_>> {
        let mut spec = Spec::new(catalog::schema(), self.now_us);
        spec.at_us = self.moment("at")?;
        let windows = self.function.arguments.contains(&Argument::Windows);
        let names = if windows {
            ["since-2", "until-2"]
        } else {
            ["since", "until"]
        };
        spec.since_us = self.moment(names[0])?;
        spec.until_us = self.moment(names[1])?;
        spec.before = (self.moment("since-1")?, self.moment("until-1")?);
        spec.bucket_us = self.text("bucket").map(time::interval).transpose()?;
        spec.zone = self.calendar.as_ref().map(|c| c as _);
        spec.node = self.owned("node");
        spec.at_home = self.caller == Caller::Server;
        spec.metric = self.owned("metric");
        spec.object = self.owned("object");
        spec.scope = self.given("scope", Argument::Filters);
        spec.by_leader = self.switch("by-leader").unwrap_or(false);
        spec.dimension = self.given("dimension", Argument::Dimension);
        spec.by = self.owned("by");
        spec.order_by = self.given("order-by", Argument::OrderBy);
        spec.n = match self.given("n", Argument::N).as_deref() {
            Some("all") => None,
            n => number("n", n)?,
        };
        spec.width = number("width", self.text("width"))?;
        spec.color = self.switch("color").unwrap_or(false);
        spec.ascii = self.switch("ascii").unwrap_or(false);
        spec.owner = self.owned("owner");
        spec.decode = encoding::decode;
        spec.threads = threads(self.caller);
        let megabytes = self.memory_limit_mb()?;
        spec.memory_bytes = megabytes.map(|mb| mb.saturating_mul(1 << 20));
        for name in self.filters() {
            if let Some(filter) = self.owned(name) {
                spec.filters.push((name.to_string(), filter));
            }
        }
        Ok(spec)
    }

    /// Megabytes the program may use.
    pub fn memory_limit_mb(&self) -> QueryResult<Option<u64>> {
        let Some(text) = self.text(MEMORY_LIMIT) else {
            return Ok((self.caller == Caller::Person).then_some(MEMORY_LIMIT_MB));
        };
        let number = text.parse().ok().filter(|mb| *mb > 0);
        number.map(Some).ok_or_else(|| {
            QueryError::invalid(format!("invalid value \"{text}\" for {MEMORY_LIMIT}"))
                .hint("Give a whole number of megabytes, at least 1.")
        })
    }

    /// OID of the role that may see only what is its own.
    pub fn owner_oid(&self) -> QueryResult<Option<i64>> {
        number("owner-oid", self.text("owner-oid"))
    }

    /// An argument, or what its function means without it when a person asks.
    fn given(&self, name: &str, argument: Argument) -> Option<String> {
        let default = || match self.caller {
            Caller::Person => self.function.said(argument)?.default,
            Caller::Server => None,
        };
        self.text(name).or_else(default).map(str::to_string)
    }

    /// The filters that the function takes.
    fn filters(&self) -> Vec<&'static str> {
        let takes = |argument| self.function.arguments.contains(&argument);
        match (takes(Argument::Filters), takes(Argument::StatementFilters)) {
            (true, _) => catalog::dimension_names().to_vec(),
            (_, true) => STATEMENT_FILTERS.map(|(name, _)| name).to_vec(),
            _ => Vec::new(),
        }
    }
}

/// A whole number, if it is given.
fn number(name: &str, text: Option<&str>) -> QueryResult<Option<i64>> {
    let parsed = text.map(|text| {
        text.parse().map_err(|_| {
            QueryError::invalid(format!("invalid value \"{text}\" for {name}"))
                .hint("Give a whole number.")
        })
    });
    parsed.transpose()
}

/// The session's time zone. The server may know zones that the system of the
/// program does not.
fn session_zone(name: Option<&str>) -> TimeZone {
    let Some(name) = name else {
        return TimeZone::UTC;
    };
    time::zone(name).unwrap_or_else(|_| {
        let warning = format!("the time zone \"{name}\" of the session is not known here");
        let warning = QueryError::new("01000", warning)
            .detail("Buckets begin as in UTC.")
            .hint("Set TimeZone, or tz, to an IANA name such as Europe/Berlin.");
        let _ = std::io::stderr().write_all(error_line("WARNING", &warning).as_bytes());
        TimeZone::UTC
    })
}

/// People get all cores. The server has other work, and each thread costs
/// address space, which it limits.
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
