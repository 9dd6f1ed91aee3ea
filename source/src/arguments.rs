//! Arguments of the reader functions, as text under their SQL names. The registry
//! describes functions with names and defaults, the catalog dimensions. No function is
//! named here, so a new function or dimension needs no new line.

use crate::catalog;
use crate::question::Arguments;
use crate::time::{length, timestamp};
use tacho_tape::query::{self, Argument, Function, Kind, QueryError, QueryResult, Request, Value};

/// psql's options that name a server. tacho's programs take a connection string, and
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

/// Default of `tz`.
const ZONE_DEFAULT: Option<&str> = Some("TZ, else the zone of the system");

/// Arguments of a function, `node` first and `tz` last. If `docs`, the filters and their help are
/// included, which come from the catalog.
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

/// Checks that every name is an argument of the function.
///
/// # Errors
/// The function has no such argument.
pub fn check<'a>(function: &Function, names: impl IntoIterator<Item = &'a str>) -> QueryResult<()> {
    let all = arguments(function, false);
    let is_filter = |name: &str| function.takes("filters") && query::tag_key(name).is_some();
    let unknown = |name: &&str| all.iter().all(|known| known.name != *name) && !is_filter(name);
    match names.into_iter().find(unknown) {
        None => Ok(()),
        Some(name) => {
            let known: Vec<&str> = all.iter().map(|a| a.name).collect();
            let message = format!("function \"{}\" has no argument \"{name}\"", function.name);
            Err(QueryError::invalid(message).hint(format!("Available are {}.", known.join(", "))))
        }
    }
}

/// The arguments of a request as text. Values equal to the default are left out, except
/// the dimension. Times are in UTC.
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

/// A value as text; `None` for a null that has no text.
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
    fn every_function_documents_the_default_zone() {
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
    fn a_key_of_tags_is_an_argument_where_filters_are() {
        let known = |function, name| check(query::find(function).unwrap(), [name]).is_ok();
        assert!(known("top", "tag:route") && known("samples", "tag:route"));
        assert!(!known("status", "tag:route") && !known("top", "tag:") && !known("top", "tag:a b"));
    }

    #[test]
    fn a_request_as_text_leaves_defaults_out() {
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
