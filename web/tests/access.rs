//! Who asks: users that a trusted proxy names, and the access log.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Scratch, Server, WINDOW, refused};
use serde_json::Value;
use std::path::Path;

const OURS: [&str; 4] = [
    "--user-header",
    "X-Remote-User",
    "--trusted-proxy",
    "127.0.0.1",
];
const TOP: &str = "/api/v1/top?server=shop&dimension=query_id";

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_log_has_user_and_request_and_no_token() {
    let scratch = Scratch::shop("log");
    let log = scratch.0.join("access.log");
    let path = log.display().to_string();
    let args = [&["--access-log", &path][..], &OURS].concat();
    let server = Server::known(&scratch.tape(), &args);
    assert_eq!(server.get(&format!("{TOP}&{WINDOW}")).status, 200);
    let ann = server.get_with(&format!("{TOP}&at=x"), "X-Remote-User: ann\r\n");
    assert_eq!(ann.status, 400);
    // The log was renamed, so the next line makes a new file.
    let old = scratch.0.join("access.log.1");
    std::fs::rename(&log, &old).unwrap();
    assert_eq!(server.get("/").status, 200);
    let all = lines(&old);
    let shown: Vec<String> = all
        .iter()
        .map(|line| {
            let texts = ["user", "method", "path", "server", "since", "status"]
                .map(|n| line[n].to_string());
            texts.join(" ")
        })
        .collect();
    let expected = [
        "null \"GET\" \"/\" null null 303",
        "null \"GET\" \"/api/v1/top\" \"shop\" \"2026-09-21T14:13:20Z\" 200",
        "\"ann\" \"GET\" \"/api/v1/top\" \"shop\" null 400",
    ];
    assert_eq!(shown, expected);
    assert!(
        all.iter()
            .all(|line| line["peer"] == "127.0.0.1" && line["texts"] == true)
    );
    assert!(
        !std::fs::read_to_string(&old)
            .unwrap()
            .contains(&server.token)
    );
    assert_eq!(lines(&log).len(), 1);
}

#[test]
fn a_request_that_was_refused_has_a_line_too() {
    let scratch = Scratch::shop("refused");
    let log = scratch.0.join("access.log");
    let path = log.display().to_string();
    let server = Server::start(&scratch.tape(), &["--access-log", &path, "--hide-texts"]);
    let long = format!("/api/v1/top?server=s%22%0A{}", "x".repeat(500));
    assert_eq!(server.get(&long).status, 401);
    let all = lines(&log);
    assert_eq!(
        (all.len(), &all[0]["status"], &all[0]["texts"]),
        (1, &401.into(), &false.into())
    );
    assert!(all[0]["server"].as_str().unwrap().len() <= 200);
}

#[test]
fn only_a_trusted_proxy_names_the_user() {
    let scratch = Scratch::shop("proxy");
    let get = |server: &Server, lines: &str| server.get_with("/api/v1/servers", lines).status;
    let trusting = Server::start(&scratch.tape(), &OURS);
    assert_eq!(get(&trusting, "X-Remote-User: ann\r\n"), 200);
    for spoofed in [
        "",
        "X-Remote-User: \r\n",
        "X-Remote-User: ann\r\nX-Remote-User: bob\r\n",
        "X_Remote_User: ann\r\n",
        "X-Forwarded-User: ann\r\n",
        "X-Remote-User: \u{fc}\r\n",
    ] {
        assert_eq!(get(&trusting, spoofed), 401, "{spoofed:?}");
    }
    let long = format!("X-Remote-User: {}\r\n", "a".repeat(201));
    assert_eq!(get(&trusting, &long), 401);
    // A page of another site is refused for users of the proxy, too.
    let other = "X-Remote-User: ann\r\nSec-Fetch-Site: cross-site\r\n";
    assert_eq!(get(&trusting, other), 403);

    // From an address other than the proxy the header means nothing.
    let elsewhere = [
        "--user-header",
        "X-Remote-User",
        "--trusted-proxy",
        "127.0.0.9",
        "--trusted-proxy",
        "unix",
    ];
    let careful = Server::start(&scratch.tape(), &elsewhere);
    for spoofed in [
        "X-Remote-User: ann\r\n",
        "X-Remote-User: ann\r\nX-Forwarded-For: 127.0.0.9\r\nForwarded: for=127.0.0.9\r\nX-Real-IP: 127.0.0.9\r\n",
    ] {
        assert_eq!(get(&careful, spoofed), 401, "{spoofed:?}");
    }
    // Without `--user-header` the header means nothing.
    let plain = Server::start(&scratch.tape(), &[]);
    assert_eq!(get(&plain, "X-Remote-User: ann\r\n"), 401);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let scratch = Scratch::shop("options");
    let tape = scratch.tape();
    for (args, error) in [
        (&["--user-header", "X-User"][..], "--trusted-proxy"),
        (&["--trusted-proxy", "127.0.0.1"], "--user-header"),
        (
            &["--user-header", "X User", "--trusted-proxy", "unix"],
            "invalid name of a header",
        ),
        (
            &["--user-header", "X-User", "--trusted-proxy", "proxy"],
            "Write it as 127.0.0.1",
        ),
        (&["--access-log", "/nowhere/log"], "could not write file"),
    ] {
        let output = refused(&tape, args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && text.contains(error),
            "{args:?}: {text}"
        );
    }
}
