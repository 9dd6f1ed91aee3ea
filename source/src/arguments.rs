//! The arguments of the reader functions as text, described from the registry,
//! which has the names and defaults of functions, and the catalog: a new function
//! or dimension needs no line here, and no function is named here. Names are those
//! of SQL.

use crate::catalog;
use crate::question::Arguments;
use crate::time::{length, timestamp};
use tacho_tape::query::{Argument, Function, Kind, QueryError, QueryResult, Request, Value};

/// Options by which psql names a server. tacho's programs take a connection string, and
/// answer these options with the command to run.
pub const CONNECTION_OPTIONS: [&str; 9] = [
    "-h",
    "--host",
    "-p",
    "--port",
    "-U",
    "--username",
    "-d",
    "--dbname",
    "--dsn",
];

/// What `tz` is where it is not given.
const ZONE_DEFAULT: Option<&str> = Some("TZ, else that of the system");

/// The arguments of a function, `node` first and `tz` last. `docs` asks for the
/// help of filters too, which is looked up in the catalog.
pub fn arguments(function: &Function, docs: bool) -> Vec<Argument> {
    let filter = |(name, help)| Argument::new(name, Kind::Filter, help, None);
    let mut all = Vec::new();
    for argument in function.arguments {
        match (argument.kind, docs) {
            (Kind::Filters, true) => {
                all.extend(catalog::dimensions().iter().copied().map(filter));
            }
            (Kind::Filters, false) => {
                all.extend(catalog::dimension_names().iter().map(|n| filter((*n, ""))));
            }
            _ => all.push(*argument),
        }
    }
    let help = match function.takes_zone() {
        true => "Time zone of buckets and times, such as Europe/Berlin, or local",
        false => "Time zone of times",
    };
    all.push(Argument::new("tz", Kind::Zone, help, ZONE_DEFAULT));
    all
}

/// Every name is that of an argument of the function.
///
/// # Errors
/// One is not.
pub fn check<'a>(function: &Function, names: impl IntoIterator<Item = &'a str>) -> QueryResult<()> {
    let all = arguments(function, false);
    let unknown = |name: &&str| all.iter().all(|known| known.name != *name);
    match names.into_iter().find(unknown) {
        None => Ok(()),
        Some(name) => {
            let known: Vec<&str> = all.iter().map(|a| a.name).collect();
            let message = format!("function \"{}\" has no argument \"{name}\"", function.name);
            Err(QueryError::invalid(message).hint(format!("Available are {}.", known.join(", "))))
        }
    }
}

/// What a request says, as text, but for what is meant without a word: of that the
/// dimension alone is said. Times are those of UTC.
pub fn texts<R: Request>(request: &R) -> Arguments {
    let mut all = Arguments::new();
    request.put(&mut |name, value| {
        let argument = R::ARGUMENTS.iter().find(|argument| argument.name == name);
        let (kind, default) = argument.map_or((Kind::Filter, Value::Null), |argument| {
            (argument.kind, argument.default_value())
        });
        if value != default || kind == Kind::Dimension {
            all.extend(text(kind, value).map(|text| (name.to_string(), text)));
        }
    });
    all
}

/// A value as text; none of a null that no text says.
fn text(kind: Kind, value: Value) -> Option<String> {
    Some(match (kind, value) {
        (Kind::Number, Value::Null) => "all".to_string(),
        (Kind::Time, Value::Int(us)) => timestamp(us).to_string(),
        (Kind::Interval, Value::Int(us)) => length(us),
        (_, Value::Int(number)) => number.to_string(),
        (_, Value::Text(text)) => text.to_string(),
        (_, Value::Bool(true)) => "true".to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_tape::query;

    #[test]
    fn a_function_has_the_arguments_of_its_sql() {
        let names = |name| -> Vec<&str> {
            let function = query::find(name).unwrap();
            arguments(function, true).iter().map(|a| a.name).collect()
        };
        assert_eq!(names("status"), ["node", "tz"]);
        let top = names("top");
        assert_eq!(top[..4], ["node", "dimension", "since", "until"]);
        assert!(top.contains(&"root_blocker") && top.contains(&"by_leader"));
        assert!(names("compare").contains(&"since_1"));
        for function in query::list() {
            let mut names = names(function.name);
            names.sort_unstable();
            let all = names.len();
            names.dedup();
            assert_eq!(names.len(), all, "{}", function.name);
        }
    }

    #[test]
    fn every_function_says_which_zone_is_the_default() {
        for function in query::list() {
            let all = arguments(function, true);
            let zone = all.iter().find(|a| a.name == "tz").unwrap();
            assert_eq!(zone.default, ZONE_DEFAULT, "{}", function.name);
        }
    }

    #[test]
    fn an_argument_that_is_not_there_is_named_with_those_that_are() {
        let function = query::find("status").unwrap();
        assert_eq!(check(function, ["node", "tz"]), Ok(()));
        let error = check(function, ["sinse"]).unwrap_err();
        assert_eq!(
            error.message,
            "function \"status\" has no argument \"sinse\""
        );
        assert_eq!(error.sqlstate, "22023");
        assert_eq!(error.hint.as_deref(), Some("Available are node, tz."));
    }

    #[test]
    fn a_request_says_as_text_what_is_not_meant_anyway() {
        let top = query::Top {
            since: Some(1_767_225_600_000_000),
            bucket: Some(500_000),
            n: None,
            filters: vec![("pid".to_string(), "!7".to_string())],
            by_leader: true,
            ..query::Top::default()
        };
        let said: Vec<String> = texts(&top)
            .iter()
            .map(|(n, v)| format!("{n}={v}"))
            .collect();
        let expected = [
            "bucket=500000us",
            "by_leader=true",
            "dimension=wait_event",
            "n=all",
            "pid=!7",
            "since=2026-01-01T00:00:00Z",
        ];
        assert_eq!(said, expected);
        assert!(texts(&query::Sessions::default()).is_empty());
    }
}
