//! A question as an SQL function call. The SQL contains only names that both this
//! program and the server's catalog know; all values are parameters.

use crate::edition::{Edition, Signature};
use crate::value;
use tacho_source::arguments::arguments;
use tacho_source::{Ask, catalog, number, time};
use tacho_tape::query::{self, Argument, Field, Function, Kind, QueryError, QueryResult};

/// Columns with texts of queries, or with names of tables beside other words.
const TEXT_COLUMNS: [&str; 6] = [
    "query_text",
    "inputs",
    "old_hint",
    "old_hint_lacks",
    "old_advice",
    "old_advice_lacks",
];

/// Rules of `changes` whose causes name a table.
pub const TABLE_RULES: [&str; 5] = [
    "rows changed",
    "analyzed",
    "planner input",
    "table scanned",
    "autovacuum",
];

/// A column with names of tables. Without texts it has numbers, as from a tape (5/16400), or is null
/// where the answer of a tape has no such row.
struct Named {
    function: &'static str,
    column: &'static str,
    /// The column with the number, or with the kind of the row. A function that lacks it does not know
    /// names.
    number: &'static str,
    /// The text without names, in SQL; `{TABLE_RULES}` stands for the list of these.
    numbers: &'static str,
}

impl Named {
    fn without_names(&self) -> String {
        let rules = TABLE_RULES.map(|rule| format!("'{rule}'")).join(", ");
        self.numbers.replace("{TABLE_RULES}", &rules)
    }
}

const NAMED: [Named; 6] = [
    Named {
        function: "changes",
        column: "key",
        number: "rule",
        numbers: "case when r.\"rule\" not in ({TABLE_RULES}) then r.\"key\" end",
    },
    Named {
        function: "changes",
        column: "explanation",
        number: "rule",
        numbers: "case when r.\"rule\" not in ({TABLE_RULES}) then r.\"explanation\" end",
    },
    Named {
        function: "tables_history",
        column: "key",
        number: "oid",
        numbers: "coalesce(r.\"database_oid\" || '/' || r.\"oid\", r.\"key\")",
    },
    Named {
        function: "indexes_history",
        column: "key",
        number: "oid",
        numbers: "r.\"database_oid\" || '/' || r.\"oid\"",
    },
    Named {
        function: "indexes_history",
        column: "table_name",
        number: "table_oid",
        numbers: "r.\"database_oid\" || '/' || r.\"table_oid\"",
    },
    Named {
        function: "blocking",
        column: "object",
        number: "lock_relation",
        // The object of a lock on a page or row has the number of the page or row after the table's
        // name.
        numbers: "case when r.\"lock_relation\" is null then r.\"object\" \
            else r.\"locktype\" || ' ' || r.\"lock_database\" || '/' || r.\"lock_relation\" \
            || coalesce(case r.\"locktype\" when 'page' then substring(r.\"object\" from ' block [0-9]+$') \
            when 'tuple' then substring(r.\"object\" from ' [(][0-9]+,[0-9]+[)]$') end, '') end",
    },
];

/// A statement and the values of its parameters; `None` is null.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    pub sql: String,
    pub values: Vec<Option<String>>,
    /// The columns of its rows.
    pub fields: Vec<Field<'static>>,
}

impl Call {
    /// The call for a question; `now_us` is the server's present.
    ///
    /// # Errors
    /// The server lacks the function or an argument, or a value is not
    /// understood.
    pub fn new(
        function: &'static Function,
        ask: &Ask,
        edition: &Edition,
        now_us: i64,
    ) -> QueryResult<Call> {
        let (name, signature) = edition.function(function.name)?;
        let zone = ask.arguments.get("tz").map_or("UTC", String::as_str);
        let zone = time::zone(zone)?;
        let (mut given, mut values) = (Vec::new(), Vec::new());
        for argument in arguments(function, false) {
            let tags = (argument.name == "tags").then(|| tags(ask)).transpose()?;
            let text = match &tags {
                Some(tags) => tags.as_deref(),
                None => ask.arguments.get(argument.name).map(String::as_str),
            };
            let said = argument
                .default_text()
                .filter(|_| signature.takes(argument.name));
            let Some(text) = text.or(said) else {
                continue;
            };
            if !is_taken(&argument, signature, edition)? {
                continue;
            }
            values.push(match (argument.kind, text) {
                (Kind::Zone, "local") => Some(time::zone_name(&zone)),
                (_, text) => parameter(&argument, text, now_us, &zone)?,
            });
            given.push(format!("\"{}\" => ${}", argument.name, values.len()));
        }
        let fields = function.columns(catalog::schema());
        let columns: Vec<String> = fields
            .iter()
            .map(|c| column(function.name, c, signature, ask.texts))
            .collect();
        Ok(Call {
            sql: format!(
                "select {} from {name}({}) r",
                columns.join(", "),
                given.join(", ")
            ),
            values,
            fields,
        })
    }
}

/// The filter `tags`: as given, or with the filters of single keys.
fn tags(ask: &Ask) -> QueryResult<Option<String>> {
    let given = ask.arguments.get_key_value("tags");
    let keys = ask.arguments.iter();
    let mut keys = keys
        .filter(|(name, _)| query::tag_key(name).is_some())
        .peekable();
    if keys.peek().is_none() {
        return Ok(given.map(|(_, tags)| tags.clone()));
    }
    let all = given.into_iter().chain(keys);
    query::tags_in_one_filter(all.map(|(name, text)| (&**name, &**text))).map(Some)
}

/// True if the server's function takes an argument. False for a `tz` that the function lacks. That
/// does no harm: the server returns times as numbers, without a zone.
fn is_taken(argument: &Argument, signature: &Signature, edition: &Edition) -> QueryResult<bool> {
    match (signature.takes(argument.name), argument.kind) {
        (true, _) => Ok(true),
        (false, Kind::Zone) => Ok(false),
        (false, _) => {
            let message = format!(
                "function of the server has no argument \"{}\"",
                argument.name
            );
            let error = QueryError::new("42883", message).detail(edition.described());
            Err(error.hint("Install the same version of tacho on the server and here."))
        }
    }
}

/// A value as the server takes it; null means all.
fn parameter(
    argument: &Argument,
    text: &str,
    now_us: i64,
    zone: &jiff::tz::TimeZone,
) -> QueryResult<Option<String>> {
    Ok(Some(match argument.kind {
        Kind::Time => time::timestamp(time::moment(text, now_us, zone)?).to_string(),
        Kind::Interval => format!("{} microseconds", time::interval(text)?),
        Kind::Number => return Ok(number(argument, text)?.map(|number| number.to_string())),
        _ => text.to_string(),
    }))
}

/// A column; null if the server lacks it, or if it must be hidden.
fn column(function: &str, field: &Field, signature: &Signature, texts: bool) -> String {
    let is_hidden = !texts && TEXT_COLUMNS.contains(&field.0);
    if !signature.has(field.0) || is_hidden {
        return "null".to_string();
    }
    let is_it = |named: &&Named| {
        (named.function, named.column) == (function, field.0) && signature.has(named.number)
    };
    match NAMED.iter().find(is_it).filter(|_| !texts) {
        Some(named) => named.without_names(),
        None => value::expression(field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_230_720_000_000;

    fn ask(function: &str, given: &[(&str, &str)]) -> Ask {
        let owned = |(name, value): &(&str, &str)| ((*name).to_string(), (*value).to_string());
        Ask {
            server: None,
            function: function.to_string(),
            arguments: given.iter().map(owned).collect(),
            texts: true,
            memory_bytes: 1 << 20,
            threads: 1,
        }
    }

    fn call(asked: &Ask, edition: &Edition) -> QueryResult<Call> {
        Call::new(query::find(&asked.function).unwrap(), asked, edition, NOW)
    }

    fn edition() -> Edition {
        Edition::test(&[
            ("status", &["node"], &["metric", "value"]),
            (
                "blocking",
                &["at", "since", "until", "n", "tz", "node"],
                &["pid", "query_id", "query_text", "waited", "first_seen"],
            ),
        ])
    }

    #[test]
    fn values_are_parameters_and_times_are_absolute() {
        let evil = "1); drop table t; --";
        let asked = ask("status", &[("node", evil), ("tz", "Europe/Berlin")]);
        assert_eq!(
            call(&asked, &edition()).unwrap(),
            Call {
                fields: query::find("status").unwrap().fields.to_vec(),
                sql: "select r.\"metric\"::text, r.\"value\"::text from tacho.\"status\"(\"node\" => $1) r".into(),
                values: vec![Some(evil.into())],
            }
        );
        let given = [
            ("since", "04:00"),
            ("until", "5m"),
            ("n", "all"),
            ("tz", "Europe/Berlin"),
        ];
        let call = call(&ask("blocking", &given), &edition()).unwrap();
        let end = " from tacho.\"blocking\"(\"since\" => $1, \"until\" => $2, \"n\" => $3, \"tz\" => $4) r";
        assert!(call.sql.ends_with(end), "{}", call.sql);
        let values: Vec<_> = call.values.iter().map(Option::as_deref).collect();
        assert_eq!(
            values,
            [
                Some("2026-11-21T03:00:00Z"),
                Some("2026-11-21T03:07:00Z"),
                None,
                Some("Europe/Berlin")
            ]
        );
    }

    #[test]
    fn hidden_and_missing_values_are_null() {
        let mut asked = ask("blocking", &[]);
        let shown = call(&asked, &edition()).unwrap();
        assert!(
            shown.sql.contains("r.\"query_text\"::text"),
            "{}",
            shown.sql
        );
        assert!(!shown.sql.contains("mode_held"), "{}", shown.sql);
        asked.texts = false;
        let hidden = call(&asked, &edition()).unwrap();
        assert!(!hidden.sql.contains("query_text"), "{}", hidden.sql);
        let columns = query::find("blocking").unwrap().fields.len();
        let selected = hidden.sql.split(" from tacho.").next().unwrap();
        assert_eq!(selected.split(", ").count(), columns);
        // This program sends its own default, even if the server has another one.
        assert_eq!(hidden.values, [Some("10".to_string())]);
    }

    #[test]
    fn a_hidden_name_of_a_table_is_its_numbers() {
        for named in &NAMED {
            let columns = [named.column, named.number];
            let knows = Edition::test(&[(named.function, &["n", "order_by"], &columns)]);
            let mut asked = ask(named.function, &[]);
            asked.texts = false;
            let hidden = call(&asked, &knows).unwrap().sql;
            let shown = format!("r.\"{}\"::text", named.column);
            assert!(hidden.contains(&named.without_names()), "{hidden}");
            assert!(!hidden.contains(&shown), "{hidden}");
            let lacks = Edition::test(&[(named.function, &["n", "order_by"], &columns[..1])]);
            assert!(call(&asked, &lacks).unwrap().sql.contains(&shown));
            asked.texts = true;
            assert!(
                !call(&asked, &knows)
                    .unwrap()
                    .sql
                    .contains(&named.without_names())
            );
        }
    }

    /// Rules whose sentences name no table. The detail of a marker names what a command changed,
    /// also without texts.
    const OTHER_RULES: [&str; 23] = [
        "change holds lock",
        "deadlock",
        "idle in transaction",
        "session holds lock",
        "replica lost",
        "index dropped",
        "memory setting",
        "commit setting",
        "table changed",
        "code changed",
        "role setting",
        "cpu taken",
        "old snapshot",
        "planner setting",
        "vacuum setting",
        "server started",
        "new query",
        "more connections",
        "more calls",
        "writing setting",
        "index created",
        "other table changed",
        "mark",
    ];

    #[test]
    fn each_rule_of_changes_names_a_table_or_not() {
        let mut listed = [&TABLE_RULES[..], &OTHER_RULES].concat();
        listed.sort_unstable();
        let mut rules: Vec<&str> = query::CHANGE_RULES.iter().map(|rule| rule.name).collect();
        rules.sort_unstable();
        assert_eq!(listed, rules);
        // These sentences are made of the text of a statement, or have the names of tables.
        for rule in [
            "rows changed",
            "analyzed",
            "planner input",
            "table scanned",
            "autovacuum",
        ] {
            assert!(TABLE_RULES.contains(&rule), "{rule}");
        }
    }

    #[test]
    fn filters_of_single_tags_are_one_argument() {
        let knows = Edition::test(&[("aas", &["tags", "scope", "bucket"], &[])]);
        let given = [
            ("tags", "job=mail"),
            ("tag:route", "/a,\"b,c\""),
            ("tag:action", "!show"),
        ];
        let call = call(&ask("aas", &given), &knows).unwrap();
        assert!(call.sql.contains("\"tags\" => $2)"), "{}", call.sql);
        let expected = "\"job=mail\",!\"action=show\",\"route=/a\",\"route=b%2Cc\"";
        assert_eq!(call.values[1].as_deref(), Some(expected));
        let two = ask("aas", &[("tags", "job=mail"), ("tag:job", "web")]);
        let error = Call::new(query::find("aas").unwrap(), &two, &knows, NOW).unwrap_err();
        assert_eq!(
            error.message,
            "no single filter \"tags\" says \"tag:job\" and \"tags\""
        );
    }

    #[test]
    fn functions_that_the_server_lacks_are_named() {
        let error = call(&ask("top", &[]), &edition()).unwrap_err();
        assert_eq!(error.message, "function top() does not exist on the server");
        assert_eq!(error.sqlstate, "42883");
        let detail = "It has the extension tacho 0.1.";
        assert_eq!(error.detail.as_deref(), Some(detail));
        let old = Edition::test(&[("blocking", &["at"], &[])]);
        let error = call(&ask("blocking", &[("since", "1h")]), &old).unwrap_err();
        let message = "function of the server has no argument \"since\"";
        assert_eq!(error.message, message);
    }

    #[test]
    fn a_value_that_is_not_understood_is_refused_here() {
        for (given, message) in [
            (("since", "soon"), "invalid time \"soon\""),
            (("n", "many"), "invalid value \"many\" for n"),
            (("tz", "Atlantis"), "time zone \"Atlantis\" not recognized"),
        ] {
            let error = call(&ask("blocking", &[given]), &edition()).unwrap_err();
            assert_eq!(error.message, message);
        }
    }
}
