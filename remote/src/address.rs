//! Parses `--dsn`: `[NAME=]CONNINFO`.

use crate::error;
use tacho_dsn::Options;
use tacho_tape::query::{QueryError, QueryResult};

/// Name, connection string and options of a server. A word before the first `=` is the name,
/// unless it is a keyword of connection strings. A server without a name is named by its
/// service, otherwise by its database, host and port.
///
/// # Errors
/// libpq does not understand the text, it has a password, or the name is empty.
pub fn parse<'a>(text: &'a str, application: &str) -> QueryResult<(String, &'a str, Options)> {
    let (name, conninfo) = named(text)?;
    let options = Options::from_argument(conninfo, application).map_err(error::to_query_error)?;
    let name = name.map_or_else(|| name_of(conninfo, &options), str::to_string);
    Ok((name, conninfo, options))
}

/// The given name, and the connection string.
///
/// # Errors
/// The name is empty.
pub fn named(text: &str) -> QueryResult<(Option<&str>, &str)> {
    match text.split_once('=') {
        Some((name, _)) if name.trim().is_empty() => {
            let error = QueryError::invalid(format!("missing name in \"{text}\""));
            Err(error.hint("Use the form NAME=CONNINFO."))
        }
        Some((name, rest)) if is_name(name) => Ok((Some(name.trim()), rest)),
        _ => Ok((None, text)),
    }
}

/// Whether the word is neither the begin of a URI nor a keyword.
fn is_name(word: &str) -> bool {
    !word.contains(['/', ':']) && !Options::is_keyword(word.trim())
}

fn name_of(conninfo: &str, options: &Options) -> String {
    let given = |keyword| options.given(keyword).filter(|value| !value.is_empty());
    if let Some(service) = given("service") {
        return service.to_string();
    }
    let host = given("host").or_else(|| given("hostaddr"));
    let host = host.map(|host| match given("port") {
        Some(port) => format!("{host}:{port}"),
        None => host.to_string(),
    });
    let port = || given("port").map(|port| format!(":{port}"));
    let database = given("dbname");
    match (database, host.or_else(port)) {
        (Some(database), Some(place)) => format!("{database}@{place}"),
        (Some(database), None) => database.to_string(),
        (None, Some(place)) => place,
        (None, None) if conninfo.is_empty() => "default".to_string(),
        (None, None) => conninfo.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        parse(text, "test").unwrap().0
    }

    #[test]
    fn a_server_is_called_as_it_is_named() {
        for (text, named, described) in [
            ("shop=host=db1 dbname=app", "shop", "host=db1 dbname=app"),
            ("shop=app", "shop", "dbname=app"),
            ("shop prod=service=x", "shop prod", "service=x"),
            ("shop=postgresql://db1/app", "shop", "host=db1 dbname=app"),
            ("shop=", "shop", "the default server"),
        ] {
            let (name, _, options) = parse(text, "test").unwrap();
            assert_eq!(name, named, "{text}");
            assert_eq!(options.describe(), described, "{text}");
        }
    }

    #[test]
    fn a_server_without_a_name_is_called_by_its_connection() {
        for (text, named) in [
            ("service=shop", "shop"),
            ("host=db1 dbname=app", "app@db1"),
            ("host=db1 port=5433", "db1:5433"),
            ("port=5433 dbname=app", "app@:5433"),
            (
                "postgresql://joe@db1:5433/app?sslmode=require",
                "app@db1:5433",
            ),
            ("app", "app"),
            ("", "default"),
            ("user=joe", "user=joe"),
        ] {
            assert_eq!(name(text), named, "{text}");
        }
    }

    #[test]
    fn senseless_arguments_are_refused() {
        let error = parse("=host=db", "test").unwrap_err();
        assert_eq!(error.message, "missing name in \"=host=db\"");
        let error = parse("shop=hots=db", "test").unwrap_err();
        assert_eq!(
            (error.sqlstate, error.message.as_str()),
            ("22023", "invalid connection string")
        );
        let detail = error.detail.unwrap();
        assert_eq!(detail, "invalid connection option \"hots\"");
        let error = parse("shop=host=db password=s3cret", "test").unwrap_err();
        assert_eq!(error.message, "connection string contains \"password\"");
        assert!(!format!("{error:?}").contains("s3cret"));
    }
}
