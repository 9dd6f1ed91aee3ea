//! The list's question as a command line, and as an address of `tacho web`.

use crate::view::{List, View, argument};
use tacho_source::Arguments;

/// Quotes a word for a shell.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The command line of a question. `place` has the words that name the server.
/// `tacho` reads files; psql asks a server with a connection.
pub fn command_line(function: &str, arguments: &Arguments, place: &[String]) -> String {
    if let [option, conninfo] = place
        && option == "--dsn"
    {
        let statement = word(&sql(function, arguments));
        return format!("psql {} -c {statement}", word(conninfo));
    }
    let mut words = vec!["tacho".to_string(), function.replace('_', "-")];
    if let Some(dimension) = arguments.get("dimension") {
        words.push(word(dimension));
    }
    words.extend(place.iter().map(|part| word(part)));
    for (name, value) in arguments.iter().filter(|given| given.0 != "dimension") {
        words.push(format!("--{}", name.replace('_', "-")));
        words.push(word(value));
    }
    words.join(" ")
}

/// The statement for a question; all values are texts.
fn sql(function: &str, arguments: &Arguments) -> String {
    let given = |(name, value): (&String, &String)| match (name.as_str(), value.as_str()) {
        ("n", "all") => "n => null".to_string(),
        (name, value) => format!("{name} => '{}'", value.replace('\'', "''")),
    };
    let given: Vec<String> = arguments.iter().map(given).collect();
    format!("select * from tacho.{function}({})", given.join(", "))
}

/// Encodes a value for an address.
fn encoded(text: &str) -> String {
    let byte = |b: u8| match b {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b':' | b',' => {
            char::from(b).to_string()
        }
        b => format!("%{b:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The address of a page with the same content.
pub fn web_address(base: &str, view: &View, moment: Option<i64>) -> String {
    let selection = view.selection();
    let tab = match view.list {
        List::Classes | List::Events => Some("waits"),
        List::Queries | List::Findings | List::Plans | List::Trees => None,
        List::Sessions | List::Spans => Some("sessions"),
        List::Locks => Some("locks"),
        List::Tags => Some("dimensions"),
        List::Alarms => Some("server"),
    };
    let mut given = Vec::new();
    given.extend(view.server.clone().map(|server| ("server", server)));
    given.push(("since", argument(selection.since)));
    given.push(("until", argument(selection.until)));
    given.extend(tab.map(|tab| ("tab", tab.to_string())));
    let filters = view.filters.iter();
    given.extend(filters.map(|f| (f.dimension.as_str(), f.text.clone())));
    let plans = Some(view.plans.join(",")).filter(|_| view.list == List::Trees);
    given.extend(plans.map(|plans| ("plans", plans)));
    given.extend(moment.map(|at| ("at", argument(at))));
    let given: Vec<String> = given
        .iter()
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    format!("{}/?{}", base.trim_end_matches('/'), given.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Filter, Window};
    use jiff::tz::TimeZone;

    const BEGIN: i64 = 1_767_225_600_000_000;

    fn view() -> View {
        let mut view = View::new(TimeZone::UTC);
        view.resize(60);
        view.show(Window {
            since: BEGIN,
            until: BEGIN + 60_000_000,
        });
        view.server = Some("shop prod".into());
        view.enter(List::Events, Filter::key("application", "it's a, b"), false);
        view
    }

    #[test]
    fn a_command_line_is_quoted_for_a_shell() {
        let (function, arguments) = view().listed();
        let place = ["--tape".to_string(), "/var/lib/my tape".to_string()];
        assert_eq!(
            command_line(function, &arguments, &place),
            "tacho top wait_event --tape '/var/lib/my tape' --application '\"it'\\''s a, b\"' \
             --n 100 --since 2026-01-01T00:00:00Z --until 2026-01-01T00:01:00Z"
        );
    }

    #[test]
    fn a_question_to_a_connection_is_shown_for_psql() {
        let (function, mut arguments) = view().listed();
        arguments.insert("n".into(), "all".into());
        let place = ["--dsn".to_string(), "host=db dbname=app".to_string()];
        let shown = command_line(function, &arguments, &place);
        let statement = "select * from tacho.top(application => '\"it''s a, b\"', \
             dimension => 'wait_event', n => null, since => '2026-01-01T00:00:00Z', \
             until => '2026-01-01T00:01:00Z')";
        let statement = statement.replace('\'', "'\\''");
        assert_eq!(shown, format!("psql 'host=db dbname=app' -c '{statement}'"));
    }

    #[test]
    fn addresses_are_readable_by_the_page() {
        assert_eq!(
            web_address("http://127.0.0.1:8432/", &view(), None),
            "http://127.0.0.1:8432/?server=shop%20prod&since=2026-01-01T00:00:00Z\
             &until=2026-01-01T00:01:00Z&tab=waits&application=%22it%27s%20a,%20b%22"
        );
    }
}
