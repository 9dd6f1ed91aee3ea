//! The document is parsed as it was written, and needs few scans.

use super::build::document;
use super::value::{Document, Wait};
use crate::Snapshot;
use crate::format::schema::Schema;
use crate::query::ask::context::{Context, Explained, Run};
use crate::query::ask::damage::Damage;
use crate::query::rows::parse::Window;
use crate::query::{Numeric, Report};
use crate::testing::memory::MemoryStorage;
use crate::testing::schema;
use crate::write::merge_tests::{go, sealed_files};
use std::sync::LazyLock;

/// A merged file of two logs, and a sealed file of another log.
fn history() -> MemoryStorage {
    let (storage, _) = sealed_files(1, 3, 130);
    go(&storage, 2).unwrap().unwrap();
    storage
}

/// Makes a document about a whole history.
fn ask(storage: &MemoryStorage, mut asked: Report, explained: Option<&Explained>) -> Document {
    let store = Snapshot::open_storage(storage).unwrap();
    let node = &store.nodes()[0];
    let window = Window {
        since: 1_000 * node.first_ms,
        until: 1_000 * node.last_ms + 1_000_000,
    };
    asked.at = Some(window.until - 1_000_000);
    let run = Run {
        context: &Context::new(catalog(), window.until),
        store: &store,
        damage: &Damage::default(),
        explained,
    };
    document(&asked, run, window).unwrap()
}

/// A report with `n` lines in each part.
fn report(n: Option<i64>, filters: &[(&str, &str)]) -> Report {
    Report {
        n,
        filters: owned(filters),
        ..Report::default()
    }
}

fn catalog() -> &'static Schema {
    static CATALOG: LazyLock<Schema> = LazyLock::new(schema);
    &CATALOG
}

fn owned(filters: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, text): &(&str, &str)| (name.to_string(), text.to_string());
    filters.iter().map(owned).collect()
}

fn made(n: Option<i64>, filters: &[(&str, &str)]) -> Document {
    ask(&history(), report(n, filters), None)
}

#[test]
fn a_written_document_is_read_again() {
    for filters in [&[][..], &[("wait_event_type", "!IO")]] {
        let document = made(Some(3), filters);
        assert!(document.queries.len() > 1 && document.compat.is_some());
        let read = Document::parse(&document.json().unwrap()).unwrap();
        assert_eq!(read, document);
    }
}

/// The waits of the largest queries do not depend on `n`.
#[test]
fn the_number_of_queries_changes_no_figure_of_one() {
    let (few, all) = (made(Some(2), &[]), made(None, &[]));
    let own = few
        .queries
        .iter()
        .filter(|query| query.key.as_deref() != Some("(other)"));
    let mut compared = 0;
    for query in own {
        let same = all.queries.iter().find(|one| one.key == query.key).unwrap();
        let waits = query
            .waits
            .iter()
            .filter(|wait| wait.key.as_deref() != Some("(other)"));
        for wait in waits {
            assert!(same.waits.contains(wait), "{wait:?}");
            compared += 1;
        }
    }
    assert!(compared > 2, "{few:?}");
}

#[test]
fn figures_and_texts_are_written_as_rows_are() {
    let mut document = made(Some(1), &[]);
    document.queries.truncate(1);
    document.queries[0].waits = vec![
        Wait {
            key: Some("a\"\\\u{8}\u{9b}/\n\u{202e}é".into()),
            avg_aas: Some(Numeric(90_071_992_547_409_930_001)),
        },
        Wait {
            key: None,
            avg_aas: Some(Numeric(-12_345)),
        },
    ];
    let waits = r#""waits": [{"key": "a\"\\\u0008\u009b/\n\u202eé", "avg_aas": 9007199254740993.0001}, {"key": null, "avg_aas": -1.2345}]"#;
    let json = document.json().unwrap();
    assert!(json.contains(waits), "{json}");
    assert_eq!(Document::parse(&json).unwrap(), document);
}

#[test]
fn unknown_fields_of_another_version_are_ignored() {
    let json = r#"{"planet": "Mars", "load": {"avg_aas": 1.50000, "moons": [2]}, "compat": null}"#;
    let document = Document::parse(json).unwrap();
    let mut expected = Document::default();
    expected.load.avg_aas = Some(Numeric(15_000));
    assert_eq!(document, expected);
    for broken in [
        "",
        "7",
        r#"{"load": {"avg_aas": "1.5"}}"#,
        r#"{"load": {"avg_aas": 1e300}}"#,
        r#"{"markers": [{"marker_time": "today"}]}"#,
    ] {
        let error = Document::parse(broken).unwrap_err();
        assert!(
            error.message.starts_with("could not parse report: "),
            "{error:?}"
        );
    }
}

/// Number of windows that a report scans. Planning observes no window. Therefore the report tries
/// two earlier windows, and finds no extreme minutes.
fn scans(filters: &[(&str, &str)]) -> i64 {
    let explained = Explained::default();
    ask(&history(), report(Some(3), filters), Some(&explained));
    explained.state().scans
}

#[test]
fn a_report_is_made_of_few_scans() {
    // The scans are: load, two earlier windows, timeline, waits, queries, databases with users and
    // applications, waits of queries. Then: two windows of changes, classes by minute, the usual
    // load, and two windows for the findings, each by totals and by samples.
    assert_eq!(scans(&[]), 16);
    // With filters there are no findings. Without totals, one scan has waits, queries, databases, users and applications.
    assert_eq!(scans(&[("wait_event_type", "!IO")]), 9);
}
