//! TLS of the port: certificate and key are two files, read at the start and again on SIGHUP.
//!
//! A connection keeps the pair with which it began. A new pair that cannot be used is reported,
//! and the old one remains. Handshakes have the time limit of a request's head (`serve.rs`).

use crate::lock::lock;
use crate::options::Options;
use rustix::process::geteuid;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tacho_source::Failure;
use tokio::net::TcpStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// First byte of a TLS connection: the type of a record with handshake messages.
const HANDSHAKE: u8 = 22;
/// The only protocol above TLS.
const HTTP: &[u8] = b"http/1.1";

/// Certificate and key of the port.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    config: Mutex<Arc<ServerConfig>>,
}

/// A new connection.
pub enum Greeted {
    /// The handshake is done.
    Tls(Box<TlsStream<TcpStream>>),
    /// The client does not speak TLS. No byte was read.
    Plain(TcpStream),
}

impl Tls {
    /// Loads the pair of the command line; `None` without `--tls-cert`.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn new(options: &Options) -> Result<Option<Tls>, Failure> {
        let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) else {
            return Ok(None);
        };
        Ok(Some(Tls {
            config: Mutex::new(load(certificate, key)?),
            certificate: certificate.clone(),
            key: key.clone(),
        }))
    }

    /// Greets a client. A client that says nothing is waited for without end.
    ///
    /// # Errors
    /// The handshake failed, or the client left.
    pub async fn greet(&self, stream: TcpStream) -> io::Result<Greeted> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first != [HANDSHAKE] {
            return Ok(Greeted::Plain(stream));
        }
        let acceptor = TlsAcceptor::from(Arc::clone(&lock(&self.config)));
        Ok(Greeted::Tls(Box::new(acceptor.accept(stream).await?)))
    }

    /// Reads both files again, and returns a message for the log.
    fn reload(&self) -> String {
        match load(&self.certificate, &self.key) {
            Ok(config) => {
                *lock(&self.config) = config;
                let name = self.certificate.display();
                format!("log: new connections use certificate file \"{name}\" as it is now\n")
            }
            Err(failure) => format!(
                "{}warning: new connections use the earlier certificate\n",
                failure.warning()
            ),
        }
    }
}

/// The signal SIGHUP, which makes the program read the files again. Without TLS the signal keeps
/// its meaning: it ends the program.
pub struct Reloads(Option<(Arc<Tls>, Signal)>);

impl Reloads {
    /// Handles SIGHUP from now on, if there is TLS.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn new(tls: Option<&Arc<Tls>>) -> Result<Reloads, Failure> {
        let failed = |e| Failure::io("handle SIGHUP", &e);
        let handled = tls.map(|tls| Ok((Arc::clone(tls), signal(SignalKind::hangup())?)));
        Ok(Reloads(handled.transpose().map_err(failed)?))
    }

    /// Reads both files at each signal, for as long as the program runs.
    pub async fn run(self) {
        if let Reloads(Some((tls, mut hangups))) = self {
            while hangups.recv().await.is_some() {
                crate::complain(&tls.reload());
            }
        }
        std::future::pending().await
    }
}

/// Reads a pair. TLS 1.2 and 1.3 are allowed.
fn load(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Failure> {
    let chain = chain(certificate)?;
    let private = private(key)?;
    let pair = |e| {
        let (certificate, key) = (certificate.display(), key.display());
        Failure::usage(format!(
            "could not use certificate file \"{certificate}\" with key file \"{key}\": {e}"
        ))
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(pair)?;
    config.alpn_protocols = vec![HTTP.to_vec()];
    Ok(Arc::new(config))
}

/// The certificates of a file, the server's own first.
fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|e| Failure::io(&format!("read certificate file \"{name}\""), &e))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let wrong = |detail: &str| {
        Failure::usage(format!("invalid certificate file \"{name}\": {detail}"))
            .hint("It must have the server's certificate in PEM format, then the certificates of intermediate authorities.")
    };
    match chain {
        Ok(chain) if chain.is_empty() => Err(wrong("no certificate in it")),
        Ok(chain) => Ok(chain),
        Err(e) => Err(wrong(&e.to_string())),
    }
}

/// The key of a file that no other user may read.
fn private(path: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    let name = path.display();
    let failed = |e: io::Error| Failure::io(&format!("read key file \"{name}\""), &e);
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if is_open_to_others(metadata.mode(), metadata.uid(), geteuid().as_raw()) {
        let failure = format!("key file \"{name}\" has group or world access");
        return Err(Failure::usage(failure).hint("Run chmod go= FILE."));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|e| {
        Failure::usage(format!("invalid key file \"{name}\": {e}"))
            .hint("It must have a private key in PEM format without a passphrase.")
    })
}

/// True if other users may read a key. As for PostgreSQL, a key of root may be readable by a group
/// that the program's user is in.
fn is_open_to_others(mode: u32, owner: u32, user: u32) -> bool {
    let forbidden = match owner == 0 && user != 0 {
        true => 0o037,
        false => 0o077,
    };
    mode & forbidden != 0
}

#[cfg(test)]
mod tests {
    use super::is_open_to_others;

    #[test]
    fn a_key_is_for_its_user_or_for_a_group_that_root_chose() {
        let (root, user, other) = (0, 1000, 1001);
        for (mode, owner, open) in [
            (0o600, user, false),
            (0o400, user, false),
            (0o640, user, true),
            (0o604, user, true),
            (0o640, root, false),
            (0o660, root, true),
            (0o644, root, true),
            (0o640, other, true),
        ] {
            let found = is_open_to_others(0o100_000 | mode, owner, user);
            assert_eq!(found, open, "{mode:o} of {owner}");
        }
        assert!(is_open_to_others(0o100_640, root, root));
    }
}
