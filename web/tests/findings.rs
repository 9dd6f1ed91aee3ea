//! Arguments of the findings of a window.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Scratch, Server, WINDOW};

#[test]
fn findings_take_a_window_and_a_zone_alone() {
    let scratch = Scratch::shop("findings-refused");
    let server = Server::known(&scratch.tape(), &[]);
    for (query, said) in [
        ("n=1", "findings has no argument \"n\""),
        ("tz=Mars", "time zone \"Mars\" not recognized"),
        ("server=nobody", "server \"nobody\" does not exist"),
    ] {
        let answer = server.get(&format!("/api/v1/findings?{WINDOW}&{query}"));
        assert_eq!(answer.problem().1, said, "{query}");
    }
}

/// On a busy machine an answer may be older than a second, which is not shared. Then another
/// window is tried.
#[test]
fn the_headline_takes_the_answers_that_panels_have_just_got() {
    const FUNCTIONS: [&str; 4] = ["aas", "blocking", "changes", "markers"];
    let scratch = Scratch::shop("findings-shared");
    let server = Server::known(&scratch.tape(), &[]);
    let asked = || {
        FUNCTIONS.map(|function| {
            let labels = format!("function=\"{function}\",outcome=\"answered\"");
            server.metric(&format!("tacho_web_questions_total{{{labels}}}"))
        })
    };
    let is_shared = |second: &i64| {
        let window = format!("since=2026-09-21T14:13:20Z&until=2026-09-21T14:15:{second}Z");
        let before = asked();
        for question in ["aas?", "blocking?n=10&", "changes?", "markers?"] {
            let path = format!("/api/v1/{question}{window}");
            assert_eq!(server.get(&path).status, 200, "{path}");
        }
        let panels = asked();
        assert_eq!(panels, before.map(|count| count + 1.0));
        let path = format!("/api/v1/findings?{window}");
        assert_eq!(server.get(&path).status, 200);
        asked() == panels
    };
    assert!((10..60).any(|second| is_shared(&second)));
}
