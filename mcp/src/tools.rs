//! The tools: each asks one or more reader functions. Descriptions are constants of this file, so
//! that no text of a history can be part of one.

use serde_json::{Map, Value, json};
use tacho_source::{Arguments, arguments, catalog};
use tacho_tape::query::{Argument, Function, Kind, QueryError, QueryResult};

/// Argument that names the server.
const SERVER: &str = "server";
/// Argument with a filter for each dimension.
const FILTERS: &str = "filters";
/// Arguments that no tool has: the answer is in UTC, and of all recorders.
const LEFT_OUT: [&str; 2] = ["node", "tz"];

/// A tool.
pub struct Tool {
    pub name: &'static str,
    /// Description of the tool's answer, with units and limits.
    pub about: &'static str,
    /// The questions that make its answer; empty for tools that ask no function.
    pub parts: &'static [Part],
    /// Arguments that a call must have.
    pub required: &'static [&'static str],
}

/// A question of a tool.
pub struct Part {
    /// Name of the question's rows in the tool's answer.
    pub name: &'static str,
    pub function: &'static str,
    /// Arguments that differ from the defaults of the function.
    pub fixed: &'static [(&'static str, &'static str)],
}

const fn part(name: &'static str, function: &'static str) -> Part {
    Part {
        name,
        function,
        fixed: &[],
    }
}

/// Rows of the only part of a tool.
pub const ROWS: &str = "rows";

/// All tools.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "servers",
        about: "Servers that have a history: name, state (recorded, empty, missing, refused, \
                unreachable) and, if recorded, the first and last time of the history. Call it first; \
                every other tool takes its \"server\". Times are UTC. Limit: 25 kB.",
        parts: &[],
        required: &[],
    },
    Tool {
        name: "load",
        about: "Load of a window over time. avg_aas is the average number of active sessions, without \
                unit: compare it with vcpus, the number of CPUs. One row per bucket and class of wait; \
                class CPU* or CPU:… is work on a CPU. coverage_pct is the observed share of the bucket \
                in percent. Limit: 25 kB; a shorter window or a wider bucket gives fewer rows.",
        parts: &[Part {
            name: ROWS,
            function: "timeline",
            fixed: &[("by", "wait_event_type")],
        }],
        required: &[],
    },
    Tool {
        name: "top",
        about: "The keys of a dimension with most load in a window: queries (query_id), waits \
                (wait_event), applications, users, databases and others. avg_aas and peak_aas are \
                average active sessions, pct percent of the load of the window, backend_seconds seconds \
                of sessions, peak_sessions sessions at one moment. \"by\" splits each key by a second \
                dimension. Limit: n keys (default 10), 25 kB.",
        parts: &[part(ROWS, "top")],
        required: &[],
    },
    Tool {
        name: "changes",
        about: "The best first question about an incident: which load changed against normal, and what \
                caused it. Rows are ordered by rank: causes (kind cause) before effects. before and after \
                are average active sessions, pct percent of the whole difference, started the second of \
                the change. explanation is a sentence, next the question to ask after it. Kind note says \
                what is unexplained or was not recorded. \"at\" is half an hour around a moment. \
                Limit: n causes and n keys of a dimension (default 5), 25 kB.",
        parts: &[part(ROWS, "changes")],
        required: &[],
    },
    Tool {
        name: "report",
        about: "One page about a window in Markdown: load, waits, queries, blockers, changes, events and \
                gaps. Loads are average active sessions, times UTC. Limit: 25 kB, the rest is cut and the \
                answer says so.",
        parts: &[part("report", "report")],
        required: &[],
    },
    Tool {
        name: "query",
        about: "One query: its executions (costs; times in milliseconds, calls_per_second, blocks of \
                8 kB), its waits (average active sessions) and its plans (mean time in milliseconds, \
                plan_id). query_id is the number that other tools print, as text. Limit: n rows \
                of each (default 10), 25 kB.",
        parts: &[
            part("costs", "statements_history"),
            Part {
                name: "waits",
                function: "top",
                fixed: &[("dimension", "wait_event")],
            },
            part("plans", "plans"),
        ],
        required: &["query_id"],
    },
    Tool {
        name: "plans",
        about: "Statements that turned to another plan: changed_at, ratio of the mean times (above 1: \
                slower), time_lost and mean times in milliseconds, rows and blocks of 8 kB a call. \
                Limit: n changes (default 10), 25 kB.",
        parts: &[part(ROWS, "plan_changes")],
        required: &[],
    },
    Tool {
        name: "locks",
        about: "Sessions that blocked others. Without \"at\": heads of lock queues in a window with \
                blocked_seconds (seconds that others waited, added up), waiters, the locked object and the \
                query of the head. With \"at\": the tree of waiting sessions at that moment. Ages are \
                intervals such as 00:03:12. Limit: n heads (default 10), 25 kB.",
        parts: &[part(ROWS, "blocking")],
        required: &[],
    },
    Tool {
        name: "sessions",
        about: "Spans of single sessions: start, end, state, wait_event and query of each span, \
                seconds of each span. Use filters to choose sessions (pid, application, query_id). Limit: \
                n sessions, 25 kB.",
        parts: &[part(ROWS, "sessions")],
        required: &[],
    },
    Tool {
        name: "tables",
        about: "Activity of tables and indexes of all databases in a window, most work first (order_by). \
                scans, tuples_* (rows), blks_* (blocks of 8 kB), vacuum and analyze counts are sums of \
                the window. live_tuples and dead_tuples are rows at its end, as the server estimates \
                them. last_* times are UTC. A record, one in five minutes, has the 100 tables and indexes \
                that did most; intervals counts its records, key (other) adds up the rest. key is \
                database/OID if the history has no name. kind, bytes (size) and growth_bytes are null \
                unless tacho.catalog_interval is on. Limit: n rows (default 10), 25 kB.",
        parts: &[part(ROWS, "tables_history")],
        required: &[],
    },
    Tool {
        name: "indexes",
        about: "Size and use of indexes, those without a scan first, then the largest (order_by). No rows mean \
                that tacho.catalog_interval is off. scans and tuples_returned (entries read) are counted from \
                known_from to known_until; without known_until nothing was counted: ask for a longer window. bytes is \
                the size at the end. A unique index or primary key (kind) is a rule for the data, also without \
                scans. A standby counts its own scans. Limit: n rows (default 10), 25 kB.",
        parts: &[part(ROWS, "indexes_history")],
        required: &[],
    },
    Tool {
        name: "errors",
        about: "Statements that failed in a window, by SQLSTATE: condition is its name, such as \
                unique_violation, errors their number, errors_per_second their rate. key is the query_id, and \
                (other) adds up the rest. Errors before a query has an id have no query_text. Limit: n statements \
                with an SQLSTATE (default 10), 25 kB.",
        parts: &[part(ROWS, "errors_history")],
        required: &[],
    },
    Tool {
        name: "markers",
        about: "Events that explain the history: start, stop, gaps of recording, changed settings, changes \
                of the schema (DDL), and marks that people wrote, such as a deploy. marker_time is UTC. Limit: 25 kB; a shorter window \
                has fewer rows.",
        parts: &[part(ROWS, "markers")],
        required: &[],
    },
    Tool {
        name: "explain_wait",
        about: "Explains a wait event of PostgreSQL 15 to 19, such as IO:DataFileRead: what the session \
                waits for, when that is normal, and what to look at next. It needs no server. Limit: 25 kB.",
        parts: &[],
        required: &["name"],
    },
];

impl Tool {
    /// The tool with a name.
    pub fn find(name: &str) -> Option<&'static Tool> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// Functions of its parts, with the arguments that are fixed.
    fn functions<'a>(
        &'a self,
        all: &'static [Function],
    ) -> impl Iterator<Item = (&'static Function, &'a Part)> {
        let function = |part: &'a Part| {
            let found = all.iter().find(|each| each.name == part.function)?;
            Some((found, part))
        };
        self.parts.iter().filter_map(function)
    }

    /// Arguments that a call may have, besides the server and the filters.
    fn arguments(&self, all: &'static [Function]) -> Vec<Argument> {
        let mut found: Vec<Argument> = Vec::new();
        for (function, part) in self.functions(all) {
            let is_fixed = |name| part.fixed.iter().any(|(fixed, _)| *fixed == name);
            for argument in function.arguments {
                let name = argument.name;
                let is_known = found.iter().any(|known| known.name == name);
                let is_plain = argument.kind != Kind::Filters && !LEFT_OUT.contains(&name);
                if is_plain && !is_known && !is_fixed(name) {
                    found.push(*argument);
                }
            }
        }
        found
    }

    fn takes_filters(&self, all: &'static [Function]) -> bool {
        let takes =
            |function: &Function| function.arguments.iter().any(|a| a.kind == Kind::Filters);
        // The tool `query`, the only one with several parts, filters by the query alone: all its
        // functions understand that.
        self.parts.len() == 1 && self.functions(all).any(|(function, _)| takes(function))
    }

    /// JSON schema of the arguments.
    pub fn schema(&self, all: &'static [Function]) -> Map<String, Value> {
        let mut properties = Map::new();
        if !self.parts.is_empty() {
            let about = "Name of the server, as the tool \"servers\" prints it; needed if there are several.";
            properties.insert(
                SERVER.into(),
                json!({"type": "string", "description": about}),
            );
        }
        for argument in self.arguments(all) {
            properties.insert(argument.name.into(), property(&argument));
        }
        if self.takes_filters(all) {
            properties.insert(FILTERS.into(), filters());
        }
        if self.name == "explain_wait" {
            let about = "Name of the event, with or without its type.";
            properties.insert(
                "name".into(),
                json!({"type": "string", "description": about}),
            );
        }
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": self.required,
            "additionalProperties": false,
        });
        schema.as_object().cloned().unwrap_or_default()
    }

    /// Server and arguments of each part of a call.
    ///
    /// # Errors
    /// An argument is not known or has a value of another type, or a required one is missing.
    pub fn call(
        &self,
        all: &'static [Function],
        given: &Map<String, Value>,
    ) -> QueryResult<(Option<String>, Vec<Arguments>)> {
        let schema = self.schema(all);
        let known = schema.get("properties").and_then(Value::as_object);
        let known: Vec<&String> = known.into_iter().flat_map(Map::keys).collect();
        if let Some(unknown) = given.keys().find(|name| !known.contains(name)) {
            let message = format!("tool \"{}\" has no argument \"{unknown}\"", self.name);
            let known: Vec<&str> = known.iter().map(|name| name.as_str()).collect();
            let hint = format!("Available are {}.", known.join(", "));
            return Err(QueryError::invalid(message).hint(hint));
        }
        let missing = self
            .required
            .iter()
            .find(|name| !given.contains_key(**name));
        if let Some(missing) = missing {
            let message = format!("tool \"{}\" needs argument \"{missing}\"", self.name);
            return Err(QueryError::invalid(message));
        }
        let server = given.get(SERVER).map(|value| text(SERVER, value));
        let parts = self.functions(all);
        let parts = parts.map(|(function, part)| of_part(function, part, given));
        Ok((server.transpose()?, parts.collect::<QueryResult<_>>()?))
    }
}

/// The arguments of a part: as fixed, or as given if its function has them.
fn of_part(
    function: &'static Function,
    part: &Part,
    given: &Map<String, Value>,
) -> QueryResult<Arguments> {
    let fixed = part.fixed.iter();
    let mut found: Arguments = fixed
        .map(|(name, value)| ((*name).to_string(), (*value).to_string()))
        .collect();
    found.insert("tz".into(), "UTC".into());
    let known: Vec<&str> = arguments::arguments(function, false)
        .iter()
        .map(|argument| argument.name)
        .collect();
    let filters = given.get(FILTERS).map(|value| {
        let object = value.as_object();
        object.ok_or_else(|| QueryError::invalid("argument \"filters\" is not an object"))
    });
    let filters = filters.transpose()?.into_iter().flatten();
    for (name, value) in given
        .iter()
        .filter(|(name, _)| *name != FILTERS)
        .chain(filters)
    {
        if known.contains(&name.as_str()) {
            found.entry(name.clone()).or_insert(text(name, value)?);
        } else if name != SERVER && given.get(name).is_none() {
            let message = format!("there is no dimension \"{name}\" to filter by");
            let hint = format!("Available are {}.", catalog::dimension_names().join(", "));
            return Err(QueryError::invalid(message).hint(hint));
        }
    }
    Ok(found)
}

/// A value as the text that functions take.
fn text(name: &str, value: &Value) -> QueryResult<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(is) => Ok(is.to_string()),
        _ => Err(QueryError::invalid(format!(
            "argument \"{name}\" is not a text, a number or a boolean"
        ))),
    }
}

fn property(argument: &Argument) -> Value {
    let mut property = match argument.kind {
        Kind::Switch => one_of(&["boolean"]),
        Kind::Number => one_of(&["integer", "string"]),
        _ => one_of(&["string"]),
    };
    let form = match argument.kind {
        Kind::Time => ". RFC 3339, or 03:12, or 2h for two hours ago; UTC",
        Kind::Interval => ". Such as 10s, 5m, 1h",
        _ => "",
    };
    let default = argument
        .default
        .map(|default| format!(" [default: {default}]"));
    let about = format!("{}{form}{}", argument.help, default.unwrap_or_default());
    property.insert("description".into(), about.into());
    property.into()
}

/// Schema of a value of one of several types. A list of names in "type" would be shorter, but some
/// clients do not understand it.
fn one_of(types: &[&str]) -> Map<String, Value> {
    let each: Vec<Value> = types.iter().map(|name| json!({"type": name})).collect();
    match &each[..] {
        [Value::Object(only)] => only.clone(),
        _ => Map::from_iter([("anyOf".to_string(), each.into())]),
    }
}

fn filters() -> Value {
    let names = catalog::dimension_names().join(", ");
    let about = format!(
        "Only samples that match: an object from dimension to value. A value is a key, a list \
         \"a,b\", an exclusion \"!a\", or null without quotes for missing keys. Dimensions: {names}."
    );
    json!({
        "type": "object",
        "description": about,
        "additionalProperties": one_of(&["string", "integer"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_tape::query;

    fn call(name: &str, given: Value) -> Result<(Option<String>, Vec<Arguments>), String> {
        let tool = Tool::find(name).unwrap();
        let given = given.as_object().unwrap();
        tool.call(query::list(), given).map_err(|e| e.message)
    }

    #[test]
    fn every_tool_asks_functions_that_exist() {
        for tool in TOOLS {
            assert_eq!(
                tool.functions(query::list()).count(),
                tool.parts.len(),
                "{}",
                tool.name
            );
            let schema = tool.schema(query::list());
            let properties = schema["properties"].as_object().unwrap();
            for required in tool.required {
                assert!(
                    properties.contains_key(*required),
                    "{}: {required}",
                    tool.name
                );
            }
            assert!(
                tool.about.len() < 700 && tool.about.ends_with('.'),
                "{}",
                tool.name
            );
        }
    }

    /// Units that the description of each tool must name.
    const UNITS: [(&str, &[&str]); 14] = [
        ("servers", &["UTC"]),
        ("load", &["average number of active sessions", "percent"]),
        ("top", &["average active sessions", "percent", "seconds"]),
        ("changes", &["average active sessions", "percent"]),
        ("report", &["average active sessions", "UTC"]),
        (
            "query",
            &["milliseconds", "8 kB", "average active sessions"],
        ),
        ("plans", &["milliseconds", "8 kB"]),
        ("locks", &["seconds", "intervals"]),
        ("sessions", &["seconds"]),
        ("tables", &["rows", "8 kB", "UTC"]),
        ("indexes", &["bytes", "entries"]),
        ("errors", &["number", "rate"]),
        ("markers", &["UTC"]),
        ("explain_wait", &[]),
    ];

    #[test]
    fn every_description_has_units_and_limits() {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        assert_eq!(UNITS.map(|(name, _)| name), names[..]);
        for (tool, (_, units)) in TOOLS.iter().zip(UNITS) {
            let lacks: Vec<_> = units.iter().filter(|u| !tool.about.contains(**u)).collect();
            assert!(lacks.is_empty(), "{}: {lacks:?}", tool.name);
            let (_, limits) = tool.about.split_once("Limit: ").unwrap_or_default();
            assert!(limits.contains("25 kB"), "{}", tool.name);
        }
    }

    #[test]
    fn a_call_gives_each_function_the_arguments_that_it_has() {
        let (server, parts) = call("query", json!({"server": "a", "query_id": 7, "n": 3})).unwrap();
        assert_eq!(server.as_deref(), Some("a"));
        let shown: Vec<String> = parts
            .iter()
            .map(|part| {
                part.iter()
                    .map(|(n, v)| format!("{n}={v}"))
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        let expected = [
            "n=3 query_id=7 tz=UTC",
            "dimension=wait_event n=3 query_id=7 tz=UTC",
            "n=3 query_id=7 tz=UTC",
        ];
        assert_eq!(shown, expected);
        let (_, parts) = call("load", json!({"filters": {"pid": "!7"}, "since": "2h"})).unwrap();
        assert_eq!(parts[0]["pid"], "!7");
        assert_eq!(parts[0]["by"], "wait_event_type");
    }

    #[test]
    fn a_call_with_a_mistake_is_refused_by_name() {
        let refused = |name, given| call(name, given).unwrap_err();
        assert_eq!(
            refused("top", json!({"sql": "select 1"})),
            "tool \"top\" has no argument \"sql\""
        );
        assert_eq!(
            refused("load", json!({"by": "pid"})),
            "tool \"load\" has no argument \"by\""
        );
        assert_eq!(
            refused("query", json!({})),
            "tool \"query\" needs argument \"query_id\""
        );
        assert_eq!(
            refused("top", json!({"filters": {"color": "red"}})),
            "there is no dimension \"color\" to filter by"
        );
        assert_eq!(
            refused("top", json!({"n": ["a"]})),
            "argument \"n\" is not a text, a number or a boolean"
        );
    }
}
