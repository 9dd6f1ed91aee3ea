//! Attacks on each rule about who may ask, over a connection.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Scratch, Server, WINDOW, refused};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

const ROUTES: [&str; 7] = [
    "/",
    "/api/v1/servers",
    "/api/v1/functions",
    "/api/v1/top?since=1h",
    "/api/v1/nothing",
    "/metrics",
    "/nothing",
];
const STRANGER: (u16, &str, &str) = (401, "authentication required", "28000");

fn plain(problem: &(u16, String, String)) -> (u16, &str, &str) {
    (problem.0, &problem.1, &problem.2)
}

#[test]
fn a_page_whose_name_is_made_to_point_here_gets_nothing() {
    let scratch = Scratch::shop("rebinding");
    let trusted = ["--trusted-host", "Tacho.example.org"];
    let server = Server::known(&scratch.tape(), &trusted);
    let ask = |target: &str, hosts: &str| {
        let cookie = &server.cookie;
        server.send(&format!(
            "GET {target} HTTP/1.1\r\n{hosts}{cookie}Connection: close\r\n\r\n"
        ))
    };
    let ours = ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8432"];
    for host in ours.into_iter().chain(["tacho.example.org"]) {
        let answer = ask("/api/v1/servers", &format!("Host: {host}\r\n"));
        assert_eq!(answer.status, 200, "{host}");
    }
    let foreign = [
        "Host: evil.example\r\n",
        "Host: evil.example:8432\r\n",
        "Host: localhost.evil.example\r\n",
        "Host: localhost@evil.example\r\n",
        "Host: evil.example@localhost\r\n",
        "Host: localhost.\r\n",
        "Host: 127.0.0.2\r\n",
        "Host: 0.0.0.0\r\n",
        "Host: \r\n",
        "Host: localhost/x\r\n",
        "",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: evil.example\r\nX-Forwarded-Host: localhost\r\n",
    ];
    for target in ROUTES {
        for hosts in foreign {
            let problem = ask(target, hosts).problem();
            let expected = (421, "host name is not allowed", "28000");
            assert_eq!(plain(&problem), expected, "{target} {hosts:?}");
        }
    }
    let answer = ask("http://evil.example/api/v1/servers", "Host: localhost\r\n");
    assert_eq!(answer.problem().0, 421);
}

#[test]
fn every_request_needs_the_cookie() {
    let scratch = Scratch::shop("stranger");
    let mut server = Server::start(&scratch.tape(), &[]);
    let other = Server::known(&scratch.tape(), &[]);
    let foreign = other.cookie.rsplit_once('=').unwrap().1.trim();
    let port = server.address.rsplit_once(':').unwrap().1;
    let attempts = [
        String::new(),
        format!("Authorization: Bearer {}\r\n", server.token),
        "Authorization: Bearer \r\n".to_string(),
        format!("Cookie: tacho_{port}=\r\n"),
        format!("Cookie: tacho_{port}={}\r\n", server.token),
        format!("Cookie: tacho_{port}={foreign}\r\n"),
        other.cookie.clone(),
    ];
    for route in ROUTES {
        for lines in &attempts {
            let answer = server.get_with(route, lines);
            assert_eq!(plain(&answer.problem()), STRANGER, "{route} {lines:?}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
    for token in ["", "x", &server.token[..63], &other.token] {
        let answer = server.get(&format!("/?token={token}"));
        let expected = (401, "invalid token", "28000");
        assert_eq!(plain(&answer.problem()), expected, "{token}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    // The token works only at `/`.
    let answer = server.get(&format!("/api/v1/servers?token={}", server.token));
    assert_eq!(plain(&answer.problem()), STRANGER);
    let login = format!("/?token={}", server.token);
    let answer = server.get(&login);
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
    let cookie = answer.header("set-cookie").unwrap();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict");
    let (name, value) = pair.split_once('=').unwrap();
    assert_eq!((name, value.len()), (&*format!("tacho_{port}"), 64));
    assert_ne!(value, server.token);
    let again = server.get(&login).problem();
    assert_eq!(plain(&again), (401, "token has already been used", "28000"));
    server.cookie = format!("Cookie: other=1; {pair}; more=2\r\n");
    assert_eq!(server.get("/api/v1/servers").status, 200);
}

#[test]
fn a_token_of_a_file_works_as_long_as_it_stands_there() {
    let scratch = Scratch::shop("token-file");
    let token = "a-token.of_many~characters+/==";
    let file = scratch.token_file(token, 0o640);
    let server = Server::start(&scratch.tape(), &["--token-file", &file]);
    assert_eq!(server.line, format!("http://{}/", server.address));
    for _ in 0..2 {
        let login = "/?token=a-token.of_many~characters%2B%2F%3D%3D";
        assert_eq!(server.get(login).status, 303);
        let bearer = format!("authorization: bearer {token}\r\n");
        assert_eq!(server.get_with("/metrics", &bearer).status, 200);
    }
    for wrong in ["x", &token[1..], &format!("{token}=")] {
        let bearer = format!("Authorization: Bearer {wrong}\r\n");
        let problem = server.get_with("/metrics", &bearer).problem();
        assert_eq!(plain(&problem), STRANGER, "{wrong}");
    }
    for (token, mode, message) in [
        (token, 0o644, "has world access"),
        ("short", 0o600, "does not contain a valid token"),
        ("", 0o600, "does not contain a valid token"),
        (
            "two lines of\nwords",
            0o600,
            "does not contain a valid token",
        ),
    ] {
        let file = scratch.token_file(token, mode);
        let output = refused(&scratch.tape(), &["--token-file", &file]);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = format!("error: token file \"{file}\" {message}\n");
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[test]
fn a_wrong_token_file_is_reported_before_a_taken_port() {
    let scratch = Scratch::shop("token-before-port");
    let server = Server::start(&scratch.tape(), &[]);
    let file = scratch.token_file("short", 0o600);
    let args = ["--listen", &server.address, "--token-file", &file];
    let output = refused(&scratch.tape(), &args);
    let text = String::from_utf8(output.stderr).unwrap();
    let expected = format!("error: token file \"{file}\" does not contain a valid token\n");
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_exchange_goes_on_to_the_view_of_the_address_without_the_token() {
    let scratch = Scratch::shop("exchange");
    let token = "0123456789abcdef";
    let file = scratch.token_file(token, 0o600);
    let server = Server::start(&scratch.tape(), &["--token-file", &file]);
    for (given, leads_to) in [
        ("token=T", "/"),
        ("token=T&", "/"),
        ("token=T&token=x", "/"),
        (
            "token=T&server=a%20b&since=2026-01-01T00:00:00Z",
            "/?server=a+b&since=2026-01-01T00%3A00%3A00Z",
        ),
        (
            "application=%0d%0aSet-Cookie:x&token=T&x",
            "/?application=%0D%0ASet-Cookie%3Ax&x=",
        ),
        ("token=T&u=//evil.example/", "/?u=%2F%2Fevil.example%2F"),
    ] {
        let answer = server.get(&format!(
            "/?{}",
            given.replace("token=T", &format!("token={token}"))
        ));
        assert_eq!(answer.status, 303, "{given}");
        assert_eq!(answer.header("location"), Some(leads_to), "{given}");
    }
}

#[test]
fn other_hosts_reach_it_only_with_a_token_of_a_file() {
    let scratch = Scratch::shop("beyond");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8432"] {
        let output = refused(&scratch.tape(), &["--listen", address]);
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = format!("error: \"{address}\" can be reached from other hosts\n");
        assert!(said.starts_with(&expected), "{said}");
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(output.stdout, b"");
    }
    let token = "0123456789abcdef";
    let file = scratch.token_file(token, 0o600);
    let args = ["--listen", "0.0.0.0:0", "--token-file", &file];
    let server = Server::start(&scratch.tape(), &args);
    let port = server.address.rsplit_once(':').unwrap().1;
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let head = format!(
        "GET /api/v1/servers HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[test]
fn a_socket_is_for_its_user_and_asks_for_the_token_too() {
    let scratch = Scratch::shop("socket");
    let path = scratch.0.join("web.sock");
    let listen = ["--listen", path.to_str().unwrap()];
    // The socket of a killed server is replaced.
    drop(Server::start(&scratch.tape(), &listen));
    assert!(path.exists());
    let server = Server::start(&scratch.tape(), &listen);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let ask = |target: &str| {
        let mut stream = UnixStream::connect(&path).unwrap();
        let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.lines().next().unwrap().to_string()
    };
    assert_eq!(ask("/metrics"), "HTTP/1.1 401 Unauthorized");
    let (_, login) = server.line.rsplit_once(' ').unwrap();
    assert_eq!(ask(login), "HTTP/1.1 303 See Other");
    let second = refused(&scratch.tape(), &listen);
    assert_eq!(second.status.code(), Some(1));
}

#[test]
fn every_answer_tells_browsers_to_trust_nothing() {
    let scratch = Scratch::shop("headers");
    let server = Server::known(&scratch.tape(), &[]);
    let mut answers: Vec<_> = ROUTES.map(|route| server.get(route)).into_iter().collect();
    answers.push(server.get(&format!("/api/v1/top?{WINDOW}")));
    answers.push(server.get_with("/metrics", "Sec-Fetch-Site: cross-site\r\n"));
    answers.push(server.send("GET / HTTP/1.1\r\nHost: evil\r\nConnection: close\r\n\r\n"));
    answers.push(server.get("/?token=x"));
    let post = server
        .head("/api/v1/servers", "")
        .replacen("GET", "POST", 1);
    answers.push(server.send(&post));
    assert_eq!(answers.last().unwrap().header("allow"), Some("GET, HEAD"));
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    let expected = [200, 200, 200, 200, 404, 200, 404, 200, 403, 421, 401, 405];
    assert_eq!(statuses, expected);
    for answer in answers {
        let expected = [
            (
                "content-security-policy",
                "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            ),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
        ];
        for (name, value) in expected {
            assert_eq!(answer.header(name), Some(value), "{answer:?}");
        }
        assert!(answer.header("access-control-allow-origin").is_none());
        let kept = answer.header("cache-control").unwrap();
        assert!(["no-store", "private, no-cache"].contains(&kept), "{kept}");
    }
}

#[test]
fn pages_of_other_sites_and_ports_fetch_nothing() {
    let scratch = Scratch::shop("sites");
    let server = Server::known(&scratch.tape(), &[]);
    let ask = |site: &str, mode: &str| {
        let lines = format!("Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: {mode}\r\n");
        server.get_with("/api/v1/servers", &lines).status
    };
    for site in ["cross-site", "same-site", "", "Same-Origin"] {
        for mode in ["no-cors", "cors", "websocket", ""] {
            assert_eq!(ask(site, mode), 403, "{site} {mode}");
        }
    }
    assert_eq!(ask("same-origin", "cors"), 200);
    assert_eq!(ask("none", "navigate"), 200);
    assert_eq!(ask("cross-site", "navigate"), 200);
}

#[test]
fn texts_are_escaped_cannot_be_obeyed_and_can_be_hidden() {
    let scratch = Scratch::shop("texts");
    let path = format!("/api/v1/top?dimension=query_id&{WINDOW}");
    let open = Server::known(&scratch.tape(), &[]);
    let answer = open.get(&path);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(!answer.text().contains(['\u{202e}', '\u{1b}']));
    let rows = answer.json();
    let rows = rows["rows"].as_array().unwrap();
    let text = |row: &serde_json::Value| row["query_text"].as_str().map(str::to_string);
    let texts: Vec<String> = rows.iter().filter_map(text).collect();
    assert_eq!(texts, [common::TEXT]);
    let closed = Server::known(&scratch.tape(), &["--hide-texts"]);
    for function in [
        "top", "samples", "sessions", "summary", "report", "blocking",
    ] {
        let more = match function {
            "top" => "&dimension=query_id",
            "samples" => "&n=all",
            _ => "",
        };
        let answer = closed.get(&format!("/api/v1/{function}?{WINDOW}{more}"));
        assert_eq!(answer.status, 200, "{function}");
        assert!(!answer.text().contains("secret"), "{function}");
    }
}

#[test]
fn no_path_leads_outside_the_named_directories() {
    let scratch = Scratch::shop("traversal");
    let server = Server::known(&scratch.tape(), &[]);
    for name in ["..", "%2e%2e%2fshop", "/etc", "shop%00", "shop/", ""] {
        let answer = server.get(&format!("/api/v1/status?server={name}"));
        assert_eq!(answer.problem().0, 404, "{name}");
    }
    for path in [
        "/../../etc/passwd",
        "/api/v1/..%2f..%2fetc%2fpasswd",
        "/api/v1/../../metrics",
        "//etc/passwd",
        "/api/v1/%00",
        "/api/v1/aas%20",
        "/api/v1/",
    ] {
        assert_eq!(server.get(path).problem().0, 404, "{path}");
    }
    assert_eq!(server.get("/api/v1/%ff").status, 400);
}

#[test]
fn long_odd_and_broken_requests_leave_it_alive() {
    let scratch = Scratch::shop("odd");
    let mut server = Server::known(&scratch.tape(), &[]);
    for (length, statuses) in [(30_000, [200, 200]), (200_000, [414, 431])] {
        let value = "x".repeat(length);
        let target = format!("/api/v1/aas?application={value}");
        let status = server.get(&target).status;
        assert!(statuses.contains(&status), "{length}: {status}");
    }
    let many: String = (0..2_000).map(|i| format!("a{i}=1&")).collect();
    assert_eq!(server.get(&format!("/api/v1/aas?{many}")).problem().0, 400);
    let twice = server.get("/api/v1/aas?since=1h&since=2h").problem();
    let expected = (
        400,
        "argument \"since\" is specified more than once",
        "22023",
    );
    assert_eq!(plain(&twice), expected);
    let head = server.head("/api/v1/servers", "");
    for cut in 0..head.len() {
        let mut bytes = head.clone().into_bytes();
        bytes[cut] ^= 0x85;
        let mut stream = server.connect();
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(server.is_alive());
    assert_eq!(server.get("/api/v1/servers").status, 200);
}

#[test]
fn silent_clients_are_disconnected() {
    let scratch = Scratch::shop("slow");
    let args = ["--connections", "4", "--head-timeout", "1"];
    let server = Server::known(&scratch.tape(), &args);
    let mut idle: Vec<_> = (0..40).map(|_| server.connect()).collect();
    for stream in &mut idle[..20] {
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: loc");
    }
    // These connections take all places, until each exceeds its time.
    assert_eq!(server.get("/api/v1/servers").status, 200);
    for mut stream in idle {
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert!(!said.starts_with(b"HTTP/1.1 200"));
    }
}
