//! More connections than places: silent and stuck clients do not keep others
//! waiting, and clients that are being answered are not disturbed.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Answer, Scratch, Server, WINDOW};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Number of clients that connect and stay silent.
const SILENT: usize = 10_000;
/// An event that has not happened by then counts as missing.
const LONG: Duration = Duration::from_secs(60);
/// Pause between two bytes of a slow body.
const DROP: Duration = Duration::from_millis(50);
/// Number of answers that a client asks for and takes slowly.
const TIMES: usize = 40;
/// No time limit ends during a test.
const HOURS: [&str; 4] = ["--head-timeout", "36000", "--read-timeout", "36000"];

fn connect(server: &Server) -> TcpStream {
    let address = server.address.parse().unwrap();
    let stream = TcpStream::connect_timeout(&address, LONG).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// Asks on a connection of its own.
fn status(server: &Server) -> u16 {
    let mut stream = connect(server);
    let head = server.head("/api/v1/servers", "");
    stream.write_all(head.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    Answer::parse(&bytes).status
}

/// Asks on an existing connection and reads the answer; false if the connection has
/// ended.
fn stays(server: &Server, stream: &mut TcpStream) -> bool {
    let head = server.head("/api/v1/servers", "");
    let head = head.replace("Connection: close\r\n", "");
    let mut got = Vec::new();
    let mut bytes = [0; 4096];
    let _ = stream.write_all(head.as_bytes());
    while !got.ends_with(b"}\n") {
        match stream.read(&mut bytes) {
            Ok(read @ 1..) => got.extend_from_slice(&bytes[..read]),
            _ => return false,
        }
    }
    true
}

/// 10,000 connections, or as many as this system allows a test.
fn crowd() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let most = usize::try_from(limit.maximum.unwrap_or(u64::MAX)).unwrap();
    SILENT.min(most - 200)
}

#[test]
fn ten_thousand_silent_clients_delay_no_answer() {
    let scratch = Scratch::shop("crowd");
    let server = Server::known(&scratch.tape(), &HOURS);
    let mut listener = connect(&server);
    listener
        .write_all(server.head("/api/v1/live", "").as_bytes())
        .unwrap();
    let mut first = [0; 12];
    listener.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let mut silent = Vec::new();
    for n in 1..=crowd() {
        let mut stream = connect(&server);
        if n % 2 == 0 {
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: loc");
        }
        silent.push(stream);
        if n % 500 == 0 {
            assert_eq!(status(&server), 200, "beside {n}");
        }
    }
    // The oldest connections have ended, the newest have a place.
    let oldest = silent[0].read(&mut [0]).map_err(|e| e.kind());
    assert!(matches!(oldest, Ok(0) | Err(ErrorKind::ConnectionReset)));
    let newest = silent.last_mut().unwrap();
    newest.set_nonblocking(true).unwrap();
    let waits = newest.read(&mut [0]).map_err(|e| e.kind());
    assert_eq!(waits, Err(ErrorKind::WouldBlock));
    // A listener is always busy.
    assert_eq!(server.metric("tacho_web_listeners"), 1.0);
}

#[test]
fn the_connection_that_has_been_idle_longest_ends_for_another() {
    let scratch = Scratch::shop("idle");
    let args = [&HOURS[..], &["--connections", "3"]].concat();
    let server = Server::known(&scratch.tape(), &args);
    // A connection from the server's start may still have a place.
    let [mut first, mut second, mut third] = loop {
        let mut all = [(); 3].map(|()| connect(&server));
        let mut stay = || all.iter_mut().all(|stream| stays(&server, stream));
        if stay() && stay() {
            break all;
        }
    };
    assert!(stays(&server, &mut first));
    // A new client stays: by the order of last answers, the second has to go.
    let mut fourth = connect(&server);
    assert!(stays(&server, &mut fourth));
    assert!(!stays(&server, &mut second));
    for stream in [&mut first, &mut third, &mut fourth] {
        assert!(stays(&server, stream));
    }
}

#[test]
fn connections_end_only_as_places_are_needed() {
    let scratch = Scratch::shop("fresh");
    let args = [&HOURS[..], &["--connections", "64"]].concat();
    let server = Server::known(&scratch.tape(), &args);
    let mut all = loop {
        let mut all: Vec<_> = (0..64).map(|_| connect(&server)).collect();
        let mut stay = || all.iter_mut().all(|stream| stays(&server, stream));
        if stay() && stay() {
            break all;
        }
    };
    let mut comes = connect(&server);
    assert!(stays(&server, &mut comes));
    let ended = all.iter_mut().map(|stream| !stays(&server, stream));
    assert_eq!(ended.filter(|ended| *ended).count(), 1);
}

/// Announces a marker and sends nothing of it.
fn half(server: &Server, bytes: usize) -> TcpStream {
    let mut stream = connect(server);
    let form = "Content-Type: application/x-www-form-urlencoded";
    let lines = format!("{form}\r\nContent-Length: {bytes}\r\n");
    let head = server.head("/api/v1/markers", &lines);
    let head = head.replacen("GET", "POST", 1);
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

#[test]
fn half_sent_requests_delay_no_answer() {
    let scratch = Scratch::shop("half");
    let args = [&HOURS[..], &["--connections", "3"]].concat();
    let server = Server::known(&scratch.tape(), &args);
    let mut halves = Vec::new();
    for _ in 0..3 {
        halves.push(half(&server, 9));
        // The server has accepted the half when it answers a later connection.
        assert_eq!(status(&server), 200);
    }
    // A connection with a whole body has a complete request.
    let newest = halves.last_mut().unwrap();
    newest.write_all(b"text=mark").unwrap();
    let mut bytes = Vec::new();
    newest.read_to_end(&mut bytes).unwrap();
    // No recorder runs here.
    assert_eq!(Answer::parse(&bytes).problem().0, 409);
}

#[test]
fn there_is_as_much_time_for_a_body_as_for_a_head() {
    let scratch = Scratch::shop("late");
    let server = Server::known(&scratch.tape(), &["--head-timeout", "1"]);
    let (silent, mut drips) = (half(&server, 9), half(&server, 400));
    // A client that sends a byte now and then still has an incomplete request.
    drips.set_read_timeout(Some(DROP)).unwrap();
    while drips.write_all(b"x").is_ok() && drips.peek(&mut [0]).is_err() {}
    drips.set_read_timeout(Some(LONG)).unwrap();
    for mut stream in [silent, drips] {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let late = (
            408,
            "request body was not received in time".to_string(),
            "08006".to_string(),
        );
        assert_eq!(Answer::parse(&bytes).problem(), late);
    }
}

#[test]
fn slow_readers_delay_no_answer() {
    let scratch = Scratch::shop("drops");
    let token = scratch.token_file("of-a-file-that-stays-the-same", 0o600);
    // A Unix socket, for which the system buffers few unread bytes.
    let path = scratch.0.join("web.sock");
    let listen = ["--listen", path.to_str().unwrap(), "--token-file", &token];
    let few = ["--connections", "4", "--read-timeout", "2"];
    let _server = Server::start(&scratch.tape(), &[listen, few].concat());
    let ask = |target: &str, times: usize| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let bearer = "Authorization: Bearer of-a-file-that-stays-the-same\r\n";
        let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{bearer}");
        let heads = format!("{head}\r\n").repeat(times - 1);
        let all = format!("{heads}{head}Connection: close\r\n\r\n");
        stream.write_all(all.as_bytes()).unwrap();
        stream
    };
    let is_answered = AtomicBool::new(false);
    let samples = format!("/api/v1/samples?{WINDOW}&n=all");
    let slow: Vec<_> = (0..4).map(|_| ask(&samples, TIMES)).collect();
    let drip = |mut stream: UnixStream| {
        let (mut bytes, mut all) = (vec![0; 16 << 10], 0);
        while let Ok(got @ 1..) = stream.read(&mut bytes) {
            all += got;
            if !is_answered.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(40));
            }
        }
        all
    };
    std::thread::scope(|scope| {
        let drip = &drip;
        let slow: Vec<_> = slow
            .into_iter()
            .map(|s| scope.spawn(move || drip(s)))
            .collect();
        let mut answer = String::new();
        let _ = ask("/api/v1/servers", 1).read_to_string(&mut answer);
        is_answered.store(true, Ordering::Relaxed);
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        let got: Vec<usize> = slow.into_iter().map(|s| s.join().unwrap()).collect();
        // One of the clients lost its place to another.
        let whole = got.iter().max().unwrap();
        let cut = got.iter().filter(|got| *got < whole).count();
        assert!(cut > 0, "{got:?}");
    });
}
