//! A window saved as a file: its name, what it shows, and what it hides.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Scratch, Server, WINDOW};

#[test]
fn a_window_is_a_file_to_be_saved() {
    let scratch = Scratch::shop("report");
    let server = Server::known(&scratch.tape(), &[]);
    let answer = server.get(&format!("/api/v1/report.html?server=shop&{WINDOW}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let saved = "attachment; filename=\"tacho-shop-20260921T141320Z.html\"";
    assert_eq!(answer.header("content-disposition"), Some(saved));
    let page = answer.text();
    assert!(page.starts_with("<!doctype html>"), "{page}");
    assert!(page.ends_with("</html>\n"), "{page}");
    assert!(
        page.contains("2026-09-21 14:13:20 to 14:23:20 UTC"),
        "{page}"
    );
    let local = server.get(&format!("/api/v1/report.html?{WINDOW}&tz=Europe/Berlin"));
    assert!(
        local
            .text()
            .contains("2026-09-21 16:13:20+02 to 16:23:20+02 Europe/Berlin")
    );
}

#[test]
fn texts_of_the_page_are_escaped_or_hidden() {
    let scratch = Scratch::shop("report-texts");
    let path = format!("/api/v1/report.html?{WINDOW}");
    let server = Server::known(&scratch.tape(), &[]);
    let page = server.get(&path).text();
    assert!(
        page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"),
        "{page}"
    );
    assert!(!page.contains("<script"), "{page}");
    assert!(!page.contains(['\u{202e}', '\u{1b}']), "{page}");
    let hiding = Server::known(&scratch.tape(), &["--hide-texts"]);
    let page = hiding.get(&path);
    assert_eq!(page.status, 200);
    assert!(!page.text().contains("secret"), "{}", page.text());
}

#[test]
fn unknown_and_senseless_arguments_are_refused() {
    let scratch = Scratch::shop("report-refused");
    let server = Server::known(&scratch.tape(), &[]);
    let problem = |query: &str| {
        let (status, message, sqlstate) = server
            .get(&format!("/api/v1/report.html?{query}"))
            .problem();
        (status, message, sqlstate)
    };
    let said =
        |status, message: &str, sqlstate: &str| (status, message.to_string(), sqlstate.to_string());
    assert_eq!(
        problem("server=nobody"),
        said(404, "server \"nobody\" does not exist", "42704")
    );
    assert_eq!(problem("tz=Mars").0, 400);
    assert_eq!(problem("format=json").0, 400);
    let nobody = Server::start(&scratch.tape(), &[]);
    assert_eq!(
        nobody.get(&format!("/api/v1/report.html?{WINDOW}")).status,
        401
    );
}
