//! TLS of the port. The certificates are made by the program openssl.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Answer, Scratch, Server, WINDOW, refused};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const TOKEN: &str = "of-a-file-that-stays-the-same";

/// Makes `NAME.crt` and `NAME.key` for localhost and 127.0.0.1.
fn make_pair(scratch: &Scratch, name: &str) -> [String; 2] {
    let path = |kind: &str| {
        scratch
            .0
            .join(format!("{name}.{kind}"))
            .display()
            .to_string()
    };
    let pair = [path("crt"), path("key")];
    let curve = "ec_paramgen_curve:prime256v1";
    let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
    let subject = format!("/CN={name}");
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "ec", "-pkeyopt", curve, "-nodes", "-days", "2",
        ])
        .args(["-subj", &subject, "-addext", names])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-out", &pair[0], "-keyout", &pair[1]])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    chmod(&pair[1], 0o600);
    pair
}

fn chmod(path: &str, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Options of a server with a pair.
fn options(pair: &[String; 2]) -> Vec<&str> {
    vec!["--tls-cert", &pair[0], "--tls-key", &pair[1]]
}

/// A connection of a client that trusts one certificate.
fn connect(server: &Server, certificate: &str) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(certificate).unwrap())
        .unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(client, server.connect())
}

fn ask(server: &Server, certificate: &str, request: &str) -> Answer {
    let mut stream = connect(server, certificate);
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    Answer::parse(&bytes)
}

/// Asks for a head on a connection that stays open; returns the first line of the answer.
fn ask_again(
    stream: &mut StreamOwned<ClientConnection, TcpStream>,
    server: &Server,
) -> std::io::Result<String> {
    let host = &server.address;
    write!(stream, "HEAD / HTTP/1.1\r\nHost: {host}\r\n\r\n")?;
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut more = [0; 4096];
        match stream.read(&mut more)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend(&more[..count]),
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().next().unwrap_or_default().to_string())
}

#[test]
fn answers_and_cookies_are_for_tls_only() {
    let scratch = Scratch::shop("tls");
    let pair = make_pair(&scratch, "first");
    let mut server = Server::start(&scratch.tape(), &options(&pair));
    assert_eq!(
        server.line,
        format!("https://{}/?token={}", server.address, server.token)
    );
    let login = server.head(&format!("/?token={}", server.token), "");
    let answer = ask(&server, &pair[0], &login);
    assert_eq!(answer.status, 303);
    let cookie = answer.header("set-cookie").unwrap();
    let (value, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict; Secure");
    server.cookie = format!("Cookie: {value}\r\n");
    // This answer takes many TLS records.
    let long = server.head(&format!("/api/v1/sessions?n=1000&{WINDOW}"), "");
    let answer = ask(&server, &pair[0], &long);
    assert_eq!(answer.status, 200);
    assert!(answer.body.len() > 100_000, "{}", answer.body.len());
    answer.json();
    // A client without TLS gets the same answer to every request.
    let plain = server.get("/api/v1/servers");
    let problem = plain.problem();
    assert_eq!(
        (problem.0, &*problem.1, &*problem.2),
        (400, "this port speaks TLS only", "08P01")
    );
    let hint = plain.json()["hint"].to_string();
    assert!(hint.contains("https://"), "{hint}");
    assert_eq!(server.send("\u{0}\u{1}\u{2} no protocol").status, 400);
}

#[test]
fn files_that_cannot_be_used_are_refused_with_a_hint() {
    let scratch = Scratch::shop("tls-refused");
    let pair = make_pair(&scratch, "first");
    let other = make_pair(&scratch, "other");
    let file = |name: &str, text: &str| {
        let path = scratch.0.join(name).display().to_string();
        std::fs::write(&path, text).unwrap();
        chmod(&path, 0o600);
        path
    };
    let empty = file("empty", "");
    let open = file("open", &std::fs::read_to_string(&pair[1]).unwrap());
    let broken = file(
        "broken",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    );
    let [certificate, key] = &pair;
    let no_certificate = "It must have the server's certificate";
    for (certificate, key, mode, error, hint) in [
        (
            certificate,
            &open,
            0o640,
            "has group or world access",
            "Run chmod go= FILE.",
        ),
        (
            certificate,
            &open,
            0o604,
            "has group or world access",
            "Run chmod go= FILE.",
        ),
        (
            certificate,
            &other[1],
            0o600,
            "could not use certificate file",
            "",
        ),
        (
            certificate,
            &empty,
            0o600,
            "invalid key file",
            "without a passphrase",
        ),
        (&empty, key, 0o600, "no certificate in it", no_certificate),
        (
            &broken,
            key,
            0o600,
            "invalid certificate file",
            no_certificate,
        ),
        (
            &"/nowhere/crt".to_string(),
            key,
            0o600,
            "could not read certificate file",
            "",
        ),
    ] {
        chmod(key, mode);
        let output = refused(
            &scratch.tape(),
            &["--tls-cert", certificate, "--tls-key", key],
        );
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(said.contains(error) && said.contains(hint), "{said}");
    }
    for (arguments, error) in [
        (&["--tls-cert", &pair[0]][..], "--tls-key"),
        (&["--tls-key", &pair[1]], "--tls-cert"),
        (
            &[
                "--tls-cert",
                &pair[0],
                "--tls-key",
                &pair[1],
                "--listen",
                "./socket",
            ],
            "a Unix socket has no TLS",
        ),
    ] {
        let output = refused(&scratch.tape(), arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(error), "{said}");
    }
    // other hosts still need a token from a file
    let arguments = [&options(&pair)[..], &["--listen", "0.0.0.0:0"]].concat();
    let said = String::from_utf8(refused(&scratch.tape(), &arguments).stderr).unwrap();
    assert!(said.contains("can be reached from other hosts"), "{said}");
}

#[test]
fn clients_that_do_not_finish_the_handshake_are_sent_away() {
    let scratch = Scratch::shop("tls-slow");
    let pair = make_pair(&scratch, "first");
    let token = scratch.token_file(TOKEN, 0o600);
    let limits = [
        "--connections",
        "4",
        "--head-timeout",
        "1",
        "--token-file",
        &token,
    ];
    let server = Server::start(&scratch.tape(), &[&options(&pair)[..], &limits].concat());
    let mut slow: Vec<_> = (0..40).map(|_| server.connect()).collect();
    for stream in &mut slow[..30] {
        // These bytes begin a record with a handshake message of 512 bytes, which never comes.
        let _ = stream.write_all(&[22, 3, 1, 2, 0, 1]);
    }
    // These connections take all places, until each exceeds its time or its place is needed.
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let request = server.head("/api/v1/servers", &bearer);
    assert_eq!(ask(&server, &pair[0], &request).status, 200);
    for mut stream in slow {
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert_eq!(said, b"");
    }
    assert_eq!(ask(&server, &pair[0], &request).status, 200);
}

/// Sends SIGHUP, and returns the next message of the program.
fn reload(server: &Server, messages: &mut BufReader<ChildStderr>) -> String {
    let id = server.process().to_string();
    let sent = Command::new("kill").args(["-HUP", &id]).status();
    assert!(sent.unwrap().success());
    let mut message = String::new();
    while !message.contains("new connections use") {
        assert_ne!(messages.read_line(&mut message).unwrap(), 0, "{message}");
    }
    message
}

fn replace(from: &str, to: &str) {
    std::fs::write(to, std::fs::read(from).unwrap()).unwrap();
}

#[test]
fn a_signal_loads_a_new_pair_and_open_connections_stay() {
    let scratch = Scratch::shop("tls-reload");
    let [first, second] = ["first", "second"].map(|name| make_pair(&scratch, name));
    let used = make_pair(&scratch, "used");
    let use_file = |pair: &[String; 2], index: usize| replace(&pair[index], &used[index]);
    (0..2).for_each(|index| use_file(&first, index));
    let (server, stderr) = Server::start_with(&scratch.tape(), &options(&used), Stdio::piped());
    let mut messages = BufReader::new(stderr.unwrap());
    let hello =
        |server: &Server, certificate: &str| ask_again(&mut connect(server, certificate), server);
    let mut open = connect(&server, &first[0]);
    let answered = ask_again(&mut open, &server).unwrap();
    assert_eq!(answered, "HTTP/1.1 401 Unauthorized");
    assert!(hello(&server, &second[0]).is_err());

    // Only the certificate is new: the old pair stays.
    use_file(&second, 0);
    let message = reload(&server, &mut messages);
    assert!(
        message.starts_with("warning: could not use certificate file"),
        "{message}"
    );
    assert!(
        message.ends_with("warning: new connections use the earlier certificate\n"),
        "{message}"
    );
    assert_eq!(hello(&server, &first[0]).unwrap(), answered);

    use_file(&second, 1);
    let message = reload(&server, &mut messages);
    let path = Path::new(&used[0]).display();
    assert_eq!(
        message,
        format!("log: new connections use certificate file \"{path}\" as it is now\n")
    );
    assert_eq!(hello(&server, &second[0]).unwrap(), answered);
    assert!(hello(&server, &first[0]).is_err());
    assert_eq!(ask_again(&mut open, &server).unwrap(), answered);

    // Other users may read the new key: the old pair stays.
    chmod(&used[1], 0o644);
    let message = reload(&server, &mut messages);
    assert!(message.contains("has group or world access"), "{message}");
    assert_eq!(hello(&server, &second[0]).unwrap(), answered);
}
