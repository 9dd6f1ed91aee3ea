//! Texts of any length, whole or shortened.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{QUERY, Scratch, Server, WINDOW, sampler};
use serde_json::{Value, json};

/// A text that nothing else cuts: a million bytes, three per character.
fn long() -> String {
    format!("{}/* end */", "€".repeat(333_330))
}

fn recorded(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let long = long();
    let texts = [(QUERY, &*long)];
    sampler().write_tape(&scratch.tape(), 300, &texts).unwrap();
    scratch
}

fn path(more: &str) -> String {
    format!("/api/v1/top?{WINDOW}&dimension=query_id&n=all{more}")
}

/// The row of the long text, and its number.
fn row(answer: &Value) -> (usize, &Value) {
    let mut rows = answer["rows"].as_array().unwrap().iter().enumerate();
    let key = QUERY.to_string();
    let is_it = |row: &Value| row["key"].as_str() == Some(&key);
    rows.find(|(_, row)| is_it(row)).unwrap()
}

#[test]
fn a_long_text_is_complete_unless_a_length_is_given() {
    let scratch = recorded("texts-long");
    let server = Server::known(&scratch.tape(), &[]);
    for more in ["", "&texts=full", "&texts=1000000"] {
        let answer = server.get(&path(more)).json();
        assert_eq!(row(&answer).1["query_text"], long(), "{more}");
    }
    assert_eq!(server.get(&path("")).json()["shortened"], Value::Null);
    assert_eq!(
        server.get(&path("&texts=1000000")).json()["shortened"],
        json!([])
    );
    // Byte 100 is inside the 34th character.
    let answer = server.get(&path("&texts=100"));
    assert!(answer.body.len() < 20_000);
    let answer = answer.json();
    let (number, row) = row(&answer);
    let text = row["query_text"].as_str().unwrap();
    let mark = text.strip_prefix(&"€".repeat(33)).unwrap();
    assert!(mark.starts_with("… (999999 bytes, "), "{mark}");
    assert_eq!(
        answer["shortened"],
        json!([{"row": number, "column": "query_text", "bytes": long().len()}])
    );
    // Different limits have different tags.
    let tag = |more: &str| server.get(&path(more)).header("etag").unwrap().to_string();
    assert_ne!(tag("&texts=100"), tag("&texts=102"));
}

#[test]
fn texts_of_lanes_end_after_four_hundred_bytes() {
    let scratch = recorded("texts-lanes");
    let server = Server::known(&scratch.tape(), &[]);
    let answer = server.get(&format!("/api/v1/lanes?{WINDOW}")).json();
    let doings = answer["doings"].as_array().unwrap().iter();
    let mut texts = doings.filter_map(|doing| doing["query_text"].as_str());
    assert!(texts.any(|text| text == format!("{}…", "€".repeat(133))));
}

#[test]
fn hidden_texts_stay_hidden_in_every_question() {
    let scratch = recorded("texts-hidden");
    let server = Server::known(&scratch.tape(), &["--hide-texts"]);
    for more in ["", "&texts=full", "&texts=100"] {
        let answer = server.get(&path(more)).json();
        assert_eq!(row(&answer).1["query_text"], Value::Null, "{more}");
    }
}

#[test]
fn a_strange_length_of_texts_is_refused() {
    let scratch = Scratch::shop("texts-refused");
    let server = Server::known(&scratch.tape(), &[]);
    for said in ["", "15", "1000001", "all"] {
        let (status, message, _) = server.get(&path(&format!("&texts={said}"))).problem();
        let expected = "texts must be full or between 16 and 1000000";
        assert_eq!((status, message.as_str()), (400, expected), "{said}");
    }
}
