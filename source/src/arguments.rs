//! The arguments of the reader functions, described from the registry, which
//! has the defaults of functions, and the catalog: a new function or dimension
//! needs no line here, and no function is named here. Names are those of SQL.

use crate::catalog;
use tacho_tape::query::{Argument, Function, QueryError, QueryResult, STATEMENT_FILTERS};

/// What an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A recorder: an id, or `all`.
    Node,
    /// The name of a dimension.
    Dimension,
    /// A moment, see [`crate::time::moment`].
    Time,
    /// A length of time, see [`crate::time::interval`].
    Interval,
    /// A whole number.
    Number,
    /// What rows are ordered by.
    Order,
    /// Which samples count.
    Scope,
    /// A name of a time zone.
    Zone,
    /// `true` or `false`.
    Switch,
    /// A value, a list, or an exclusion, of metrics or of what they belong to.
    Metric,
    /// The same of a dimension, or of what statements are known by.
    Filter,
}

impl Kind {
    /// What stands for the value in a description.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Node => "ID",
            Kind::Dimension => "DIMENSION",
            Kind::Time => "TIME",
            Kind::Interval => "INTERVAL",
            Kind::Number => "N",
            Kind::Order => "ORDER",
            Kind::Scope => "SCOPE",
            Kind::Zone => "ZONE",
            Kind::Switch => "BOOL",
            Kind::Metric | Kind::Filter => "FILTER",
        }
    }
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name in SQL.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it is, in one line.
    pub help: &'static str,
    /// What is meant without it; `None` of a filter, and where a function says
    /// nothing of it.
    pub default: Option<&'static str>,
}

/// What `tz` is where it is not given.
const ZONE_DEFAULT: Option<&str> = Some("TZ, else that of the system");

/// The arguments of a function, `node` first and `tz` last where the function
/// has no place for it. `docs` asks for the help of filters too, which is
/// looked up in the catalog.
pub fn arguments(function: &Function, docs: bool) -> Vec<Described> {
    let mut all = vec![new(
        "node",
        Kind::Node,
        "Recorder: an id, or all: their mean by time observed",
        Some("the newest"),
    )];
    for argument in function.arguments {
        match argument {
            Argument::Filters => add_filters(&mut all, function, docs),
            Argument::StatementFilters => all.extend(STATEMENT_FILTERS.map(filter)),
            Argument::Windows => all.extend(windows()),
            Argument::Metrics => all.extend(metrics()),
            argument => all.extend(single(function, *argument)),
        }
    }
    if !function.arguments.contains(&Argument::Zone) {
        all.push(new("tz", Kind::Zone, "Time zone of times", ZONE_DEFAULT));
    }
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

const fn new(
    name: &'static str,
    kind: Kind,
    help: &'static str,
    default: Option<&'static str>,
) -> Described {
    Described {
        name,
        kind,
        help,
        default,
    }
}

fn filter((name, help): (&'static str, &'static str)) -> Described {
    new(name, Kind::Filter, help, None)
}

/// An argument that is one value.
fn single(function: &Function, argument: Argument) -> Option<Described> {
    let (name, kind, help, default) = match argument {
        Argument::Dimension => ("dimension", Kind::Dimension, "", None),
        Argument::At => ("at", Kind::Time, "", None),
        Argument::Since => (
            "since",
            Kind::Time,
            "Begin: 1h, 03:12, \"yesterday 14:00\", RFC 3339",
            Some("1h before the end"),
        ),
        Argument::Until => ("until", Kind::Time, "End, exclusive", Some("now")),
        Argument::Bucket => (
            "bucket",
            Kind::Interval,
            "Width of a bucket, such as 10s, 5m, 1d",
            None,
        ),
        Argument::By => ("by", Kind::Dimension, "Split by a dimension", None),
        Argument::N => ("n", Kind::Number, "", None),
        Argument::OrderBy => ("order_by", Kind::Order, "", None),
        Argument::Width => ("width", Kind::Number, "Columns of a full bar", Some("40")),
        Argument::Color => (
            "color",
            Kind::Switch,
            "Colours",
            Some("on a terminal, unless NO_COLOR is set"),
        ),
        Argument::Ascii => ("ascii", Kind::Switch, "No block characters", None),
        Argument::Zone => (
            "tz",
            Kind::Zone,
            "Time zone of buckets and times, such as Europe/Berlin, or local",
            ZONE_DEFAULT,
        ),
        Argument::Windows | Argument::Metrics | Argument::Filters | Argument::StatementFilters => {
            return None;
        }
    };
    Some(match function.said(argument) {
        Some(said) => new(name, kind, said.help, said.default),
        None => new(name, kind, help, default),
    })
}

fn windows() -> [Described; 4] {
    [
        (
            "since_1",
            "Begin of the earlier window",
            "a day before the later one",
        ),
        ("until_1", "Its end, exclusive", "as long as the later one"),
        ("since_2", "Begin of the later window", "1h before its end"),
        ("until_2", "Its end, exclusive", "now"),
    ]
    .map(|(name, help, default)| new(name, Kind::Time, help, Some(default)))
}

fn metrics() -> [Described; 2] {
    [
        ("metric", "Metrics: a name, a list a,b, or !name"),
        ("object", "Databases, replicas or slots"),
    ]
    .map(|(name, help)| new(name, Kind::Metric, help, None))
}

fn add_filters(all: &mut Vec<Described>, function: &Function, docs: bool) {
    let said = function.said(Argument::Filters);
    all.push(new(
        "scope",
        Kind::Scope,
        said.map_or("load, foreground or all", |said| said.help),
        said.map_or(Some("load"), |said| said.default),
    ));
    let help = "Leave parallel workers out";
    all.push(new("by_leader", Kind::Switch, help, None));
    match docs {
        true => all.extend(catalog::dimensions().iter().copied().map(filter)),
        false => all.extend(catalog::dimension_names().iter().map(|n| filter((n, "")))),
    }
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
}
