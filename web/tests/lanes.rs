//! The lanes of sessions have the times of `sessions`.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Scratch, Server, WINDOW};
use serde_json::Value;
use std::collections::BTreeMap;

/// The time of each session in `sessions`, in ms, and its number of spans.
fn told(server: &Server) -> BTreeMap<String, (f64, usize)> {
    let answer = server.get(&format!("/api/v1/sessions?{WINDOW}&scope=foreground&n=all"));
    let mut told: BTreeMap<String, (f64, usize)> = BTreeMap::new();
    for row in answer.json()["rows"].as_array().unwrap() {
        if row["kind"] == "sampled" && row["state"] != "idle" {
            let sum = told.entry(key(row)).or_default();
            sum.0 += row["seconds"].as_f64().unwrap() * 1000.0;
            sum.1 += 1;
        }
    }
    told
}

fn key(row: &Value) -> String {
    format!("{} {}", row["pid"], row["backend_start"])
}

fn spans(row: &Value) -> Vec<[i64; 4]> {
    serde_json::from_value(row["spans"].clone()).unwrap()
}

#[test]
fn narrow_columns_are_the_spans_of_sessions_and_wide_ones_have_all_of_their_time() {
    let scratch = Scratch::shop("lanes");
    let server = Server::known(&scratch.tape(), &[]);
    let told = told(&server);
    assert!(!told.is_empty());
    for (width, step) in [(4000, 0), (3, 200_000)] {
        let path = format!("/api/v1/lanes?{WINDOW}&scope=foreground&n=200&width={width}");
        let answer = server.get(&path).json();
        assert_eq!(answer["step_ms"], step);
        assert_eq!(answer["sessions"], told.len());
        let rows = answer["rows"].as_array().unwrap();
        assert_eq!(rows.len(), told.len());
        for row in rows {
            let (busy, count) = told[&key(row)];
            assert_eq!(row["busy_seconds"].as_f64().unwrap() * 1000.0, busy);
            let spans = spans(row);
            let sum: i64 = spans.iter().map(|span| span[3]).sum();
            assert_eq!(sum as f64, busy);
            match step {
                0 => assert_eq!(spans.len(), count),
                _ => assert!(spans.len() <= 3 && spans.iter().all(|span| span[1] % step == 0)),
            }
        }
    }
}

#[test]
fn a_picture_without_a_window_or_with_a_strange_width_is_refused() {
    let scratch = Scratch::shop("lanes-refused");
    let server = Server::known(&scratch.tape(), &[]);
    for (query, said) in [
        (
            "since=2026-09-21".to_string(),
            "argument \"until\" of lanes is missing",
        ),
        (
            format!("{WINDOW}&width=0"),
            "width of lanes must be between 1 and 4000",
        ),
        (
            format!("{WINDOW}&n=all"),
            "n of lanes must be between 1 and 200",
        ),
        (
            format!("{WINDOW}&bucket=1s"),
            "function \"sessions\" has no argument \"bucket\"",
        ),
    ] {
        let (status, message, _) = server.get(&format!("/api/v1/lanes?{query}")).problem();
        assert_eq!((status, message.as_str()), (400, said), "{query}");
    }
}
