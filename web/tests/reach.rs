//! Ways to reach the server: under a path, by the printed address, and by clients that
//! do not read.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Scratch, Server, WINDOW, command, refused};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

const TOKEN: &str = "of-a-file-that-stays-the-same";
/// Number of answers that a client asks for and does not read.
const TIMES: usize = 40;

#[test]
fn under_a_path_all_of_it_is_there_and_its_cookie_goes_nowhere_else() {
    let scratch = Scratch::shop("base");
    let token = scratch.token_file(TOKEN, 0o600);
    let args = ["--base-path", "/tools/tacho/", "--token-file", &token];
    let mut server = Server::start(&scratch.tape(), &args);
    assert_eq!(
        server.line,
        format!("http://{}/tools/tacho/", server.address)
    );
    assert_eq!(server.get("/tools/tacho/api/v1/servers").status, 401);
    let answer = server.get(&format!("/tools/tacho/?token={TOKEN}&tab=locks"));
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), Some("/tools/tacho/?tab=locks"));
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("; Path=/tools/tacho/;"), "{cookie}");
    server.cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    let all = server.get("/tools/tacho/api/v1/servers");
    assert_eq!(all.status, 200);
    // A proxy may remove the path.
    assert_eq!(server.get("/api/v1/servers").body, all.body);
    let asked = server.get(&format!("/tools/tacho/api/v1/aas?{WINDOW}"));
    assert_eq!(
        asked.json()["rows"][0]["period_start"],
        "2026-09-21T14:13:20Z"
    );
    let bare = server.get("/tools/tacho?tab=locks");
    assert_eq!(
        (bare.status, bare.header("location")),
        (308, Some("/tools/tacho/?tab=locks"))
    );
    for path in [
        "/tools/tachometer/api/v1/servers",
        "/tools/api/v1/servers",
        "/tools/tacho//api/v1/servers",
    ] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

#[test]
fn a_path_that_is_none_is_refused() {
    let scratch = Scratch::shop("base-refused");
    for path in [
        "tacho", "/a//b", "/../x", "/a b", "/a?b", "//host/x", "/\u{fc}",
    ] {
        let output = refused(&scratch.tape(), &["--base-path", path]);
        assert_eq!(output.status.code(), Some(2), "{path}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("invalid path"), "{path}: {said}");
    }
}

#[test]
fn a_system_without_threads_gives_a_plain_error() {
    let scratch = Scratch::shop("threads");
    let mut command = command(&scratch.tape(), &["--listen", "127.0.0.1:0"]);
    // No system has memory for such a stack.
    let output = command
        .env("RUST_MIN_STACK", (1_u64 << 50).to_string())
        .output();
    let output = output.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("error: could not start threads: "),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_address_is_printed_with_the_token_of_a_file() {
    let scratch = Scratch::shop("print-url");
    let token = scratch.token_file(TOKEN, 0o600);
    let args = ["--print-url", "--token-file", &token, "--base-path=/x"];
    let output = command(&scratch.tape(), &args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed, format!("http://127.0.0.1:8432/x/?token={TOKEN}\n"));
    let output = refused(&scratch.tape(), &["--print-url"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--token-file"), "{said}");
}

#[test]
fn clients_that_do_not_read_are_sent_away() {
    let scratch = Scratch::shop("unread");
    let token = scratch.token_file(TOKEN, 0o600);
    // A Unix socket, for which the system buffers few unread bytes.
    let path = scratch.0.join("web.sock");
    let listen = ["--listen", path.to_str().unwrap(), "--token-file", &token];
    let few = ["--connections", "4", "--read-timeout", "1"];
    let _server = Server::start(&scratch.tape(), &[listen, few].concat());
    let bearer = format!("Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n");
    let ask = |target: &str, times: usize| {
        let mut stream = UnixStream::connect(&path).unwrap();
        let head = format!("GET {target} HTTP/1.1\r\n{bearer}");
        let heads = format!("{head}\r\n").repeat(times - 1);
        let last = format!("{heads}{head}Connection: close\r\n\r\n");
        stream.write_all(last.as_bytes()).unwrap();
        stream
    };
    let read = |mut stream: UnixStream| {
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        said.len()
    };
    let samples = format!("/api/v1/samples?{WINDOW}&n=all");
    // More bytes than the system buffers.
    let whole = TIMES * read(ask(&samples, 1));
    let slow: Vec<_> = (0..4).map(|_| ask(&samples, TIMES)).collect();
    // The slow clients take all places, until one exceeds its time.
    let mut answer = String::new();
    ask("/api/v1/servers", 1)
        .read_to_string(&mut answer)
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    // The client that lost its place did not get everything; others may still have time.
    let cut = slow.into_iter().map(read).filter(|got| *got < whole / 2);
    assert!(cut.count() > 0);
}

#[test]
fn a_directory_that_is_not_there_is_an_error_or_told() {
    let scratch = Scratch::shop("wrong-places");
    let (none, file) = (scratch.0.join("none"), scratch.0.join("file"));
    std::fs::write(&file, "").unwrap();
    let said = |tape: &Path, args: &[&str]| {
        let done = refused(tape, args);
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let hint = "hint: Specify the directory of the history files: the setting tacho.directory, by default tacho in the data directory.\n";
    for (tape, why) in [
        (&none, "No such file or directory (os error 2)"),
        (&file, "Not a directory (os error 20)"),
    ] {
        let shown = tape.display();
        let wanted = format!("error: could not read directory \"{shown}\": {why}\n{hint}");
        assert_eq!(said(tape, &[]), (Some(1), wanted));
    }
    let root = none.to_str().unwrap();
    let both = said(&none, &["--root", root]);
    assert_eq!(both.0, Some(1));
    // With several tapes the others are answered for; a tape without history is answered
    // for from its first tick on.
    std::fs::create_dir(scratch.0.join("empty")).unwrap();
    let empty = scratch.0.join("empty");
    let mut command = command(
        &scratch.tape(),
        &["--listen", "127.0.0.1:0", "--tape", root],
    );
    let command = command.arg("--tape").arg(&empty);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    let told = [next(), next(), next(), next()];
    child.kill().unwrap();
    child.wait().unwrap();
    let empty = format!("warning: directory \"{}\" has no history", empty.display());
    let gone = format!(
        "warning: could not read directory \"{root}\": No such file or directory (os error 2)"
    );
    assert_eq!([&told[0], &told[2]], [&empty, &gone]);
    assert_eq!([&told[1], &told[3]], [hint.trim_end(); 2]);
}
