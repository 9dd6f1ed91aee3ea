//! Behaviour of a connection to a scripted server, which answers, stalls and
//! hangs up.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tacho_dsn::{Connection, Limit, Options};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);
static NEVER: AtomicBool = AtomicBool::new(false);

/// A message of the protocol.
fn message(letter: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32 + 4).to_be_bytes();
    [&[letter][..], &length, payload].concat()
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// A row of one column "a".
fn row(value: &[u8]) -> Vec<u8> {
    let field = [
        &b"a\0"[..],
        &[0; 6],
        &25u32.to_be_bytes(),
        &[0xff; 6],
        &[0; 2],
    ]
    .concat();
    let columns = message(b'T', &[&1u16.to_be_bytes()[..], &field].concat());
    let length = (value.len() as u32).to_be_bytes();
    let values = message(b'D', &[&1u16.to_be_bytes()[..], &length, value].concat());
    [columns, values, message(b'C', b"SELECT 1\0")].concat()
}

fn error(code: &str) -> Vec<u8> {
    let fields = format!("SERROR\0VERROR\0C{code}\0Mno such thing\0DIt is gone.\0HTry again.\0\0");
    message(b'E', fields.as_bytes())
}

/// The server's next step after a query.
enum Then {
    Say(Vec<u8>),
    Stall,
    /// Waits for a cancel request, and ends the question.
    Cancel,
    HangUp,
}

fn read_message(stream: &mut TcpStream, head: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; head + 4];
    stream.read_exact(&mut bytes).ok()?;
    let length = u32::from_be_bytes(bytes[head..].try_into().ok()?) as usize - 4;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).ok()?;
    Some(payload)
}

/// Accepts a client; refuses encryption.
fn let_in(stream: &mut TcpStream) -> Option<()> {
    loop {
        let request = read_message(stream, 0)?;
        if request.len() > 4 {
            break;
        }
        stream.write_all(b"N").ok()?;
    }
    let version = message(b'S', b"server_version\x0015.4\0");
    let key = message(b'K', &[0, 0, 0, 77, 1, 2, 3, 4]);
    stream
        .write_all(&[message(b'R', &[0; 4]), version, key, ready()].concat())
        .ok()
}

/// Starts a server for one client; returns its connection string.
fn server(script: Vec<Then>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().ok()?;
        let_in(&mut stream)?;
        for then in script {
            read_message(&mut stream, 1)?;
            match then {
                Then::Say(bytes) => stream.write_all(&bytes).ok()?,
                Then::Stall => thread::sleep(Duration::from_secs(600)),
                Then::Cancel => {
                    let request = read_message(&mut listener.accept().ok()?.0, 0)?;
                    assert_eq!(request, [4, 210, 22, 46, 0, 0, 0, 77, 1, 2, 3, 4]);
                    stream.write_all(&[error("57014"), ready()].concat()).ok()?;
                }
                Then::HangUp => return None,
            }
        }
        read_message(&mut stream, 1)
    });
    format!("host=127.0.0.1 port={port} user=joe dbname=app")
}

fn connect(conninfo: &str) -> Connection {
    let options = Options::from_argument(conninfo, "tacho").unwrap();
    Connection::open(&options, Limit::within(LONG, &NEVER)).unwrap()
}

fn ask(connection: &mut Connection, within: Duration) -> Result<Vec<Vec<u8>>, (String, String)> {
    let answers = connection.query("select a", Limit::within(within, &NEVER));
    let answers = answers.map_err(|e| (e.code, e.message))?;
    let values = answers.iter().map(|a| a.bytes(0, 0).unwrap().to_vec());
    Ok(values.collect())
}

#[test]
fn an_error_of_the_server_leaves_the_connection_as_it_is() {
    let both = [row(b"1"), row(b"\xff"), ready()].concat();
    let half = [row(b"1"), error("42P01"), ready()].concat();
    let script = vec![
        Then::Say(both),
        Then::Say(half),
        Then::Say([row(b"2"), ready()].concat()),
    ];
    let mut connection = connect(&server(script));
    assert_eq!(
        (connection.server_version(), connection.backend_pid()),
        (150_004, 77)
    );
    assert!(connection.host().starts_with("127.0.0.1:"));
    assert_eq!(
        ask(&mut connection, LONG),
        Ok(vec![b"1".to_vec(), b"\xff".to_vec()])
    );
    let error = connection
        .query("select", Limit::within(LONG, &NEVER))
        .err()
        .unwrap();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("42P01", "no such thing")
    );
    assert_eq!(error.detail.as_deref(), Some("It is gone."));
    assert_eq!(error.hint.as_deref(), Some("Try again."));
    assert_eq!(ask(&mut connection, LONG), Ok(vec![b"2".to_vec()]));
}

#[test]
fn a_server_that_does_not_answer_in_time_is_left() {
    let mut connection = connect(&server(vec![Then::Stall]));
    let (code, message) = ask(&mut connection, SHORT).unwrap_err();
    assert_eq!(code, "57014");
    assert_eq!(message, "server did not answer within 300 ms");
    assert!(!connection.is_open());
    assert_eq!(ask(&mut connection, LONG).unwrap_err().0, "08003");
}

#[test]
fn a_question_that_is_not_answered_in_time_is_ended_on_the_server() {
    let answer = [row(b"2"), ready()].concat();
    let mut connection = connect(&server(vec![Then::Cancel, Then::Say(answer)]));
    let (code, message) = ask(&mut connection, SHORT).unwrap_err();
    assert_eq!(code, "57014");
    assert_eq!(message, "server did not answer within 300 ms");
    assert_eq!(ask(&mut connection, LONG), Ok(vec![b"2".to_vec()]));
}

#[test]
fn a_question_ends_when_it_is_cancelled() {
    static CANCEL: AtomicBool = AtomicBool::new(false);
    let mut connection = connect(&server(vec![Then::Stall]));
    let canceller = thread::spawn(|| {
        thread::sleep(Duration::from_millis(100));
        CANCEL.store(true, Ordering::Relaxed);
    });
    let error = connection
        .query("select 1", Limit::within(LONG, &CANCEL))
        .err()
        .unwrap();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("57014", "canceled")
    );
    canceller.join().unwrap();
}

#[test]
fn a_lost_server_is_reported() {
    let mut connection = connect(&server(vec![Then::HangUp]));
    let (code, message) = ask(&mut connection, LONG).unwrap_err();
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("08006", "connection to server was lost")
    );
}

#[test]
fn a_host_that_takes_no_one_in_does_not_hold_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let open = |conninfo: &str, within| {
        let options = Options::from_argument(conninfo, "tacho").unwrap();
        Connection::open(&options, Limit::within(within, &NEVER))
            .err()
            .unwrap()
    };
    let error = open(&format!("host=127.0.0.1 port={port}"), SHORT);
    assert_eq!(error.code, "57014");
    drop(listener);
    let error = open(&format!("host=127.0.0.1 port={port}"), LONG);
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("08001", "could not connect")
    );
    assert!(error.detail.unwrap().contains("Connection refused"));
}

#[test]
fn a_host_that_stalls_is_passed_by_for_the_next_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stalling = listener.local_addr().unwrap().port();
    let answers = server(vec![Then::Say([row(b"1"), ready()].concat())]);
    let port: u16 = answers
        .split("port=")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let both =
        format!("host=127.0.0.1,127.0.0.1 port={stalling},{port} user=joe connect_timeout=2");
    let mut connection = connect(&both);
    assert_eq!(connection.host(), format!("127.0.0.1:{port}"));
    assert_eq!(ask(&mut connection, LONG), Ok(vec![b"1".to_vec()]));
}
