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
