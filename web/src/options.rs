//! The command line, and its refusals.

use crate::secret::Secret;
use clap::{ArgAction, Parser, ValueHint};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tacho_remote::{SourceOptions, Sources};
use tacho_source::Failure;

/// Cached columns may use a quarter of the memory limit, and at most 64 MiB.
const CACHE_SHARE: u64 = 4;
const CACHE_BYTES: u64 = 64 << 20;

/// Name of our sessions, unless a connection string gives another.
const APPLICATION: &str = "tacho web";

/// Serves the page, and answers questions about the history by HTTP.
#[derive(Parser)]
#[command(name = "tacho web", version, disable_help_flag = true)]
pub struct Options {
    /// Show this help
    #[arg(long = "help", short = '?', action = ArgAction::Help)]
    help: Option<bool>,

    #[command(flatten)]
    places: SourceOptions,

    /// Address and port, or the path of a Unix socket (mode 0600)
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8432")]
    listen: String,

    /// File with a lasting token, which other users must not be able to read [default: a
    /// token for each start, which works once]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,

    /// File with the certificate of the port in PEM format, then its intermediate
    /// certificates; the port then speaks TLS. SIGHUP reads it and the key again
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// File with the private key of --tls-cert, which other users must not be able to read
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Another host name that browsers may use, such as the name of a proxy; may be
    /// repeated
    #[arg(long, value_name = "HOST")]
    pub trusted_host: Vec<String>,

    /// File to which each request adds a line of JSON: who, server, window, status
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub access_log: Option<PathBuf>,

    /// Header in which a proxy of --trusted-proxy names the user; such a request needs no
    /// token
    #[arg(long, value_name = "HEADER", requires = "trusted_proxy")]
    pub user_header: Option<String>,

    /// Address of a proxy that checks users, or unix; may be repeated
    #[arg(long, value_name = "ADDRESS", requires = "user_header")]
    pub trusted_proxy: Vec<String>,

    /// Leave texts of queries out of all answers
    #[arg(long)]
    pub hide_texts: bool,

    /// Maximum number of simultaneous questions; more get status 429
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub questions: u16,

    /// MB of memory for all questions together; a quarter of it, at most 64, is a cache
    /// for later questions
    #[arg(long, value_name = "MB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub memory_limit_mb: u32,

    /// Maximum number of connections; beyond it the one that has been idle longest ends
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub connections: u16,

    /// Seconds for a client to send the head of a request, and again for its body; also
    /// for its TLS handshake
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..))]
    head_timeout: u16,

    /// Seconds for which a client may take nothing of its answer
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..))]
    read_timeout: u16,

    /// Path of the page behind a reverse proxy, such as /tacho; the proxy may pass it on
    /// or remove it
    #[arg(long, value_name = "PATH", default_value = "/")]
    base_path: String,

    /// Print the address with the token of --token-file, and end
    #[arg(long)]
    pub print_url: bool,

    /// Print metrics once and end, as `tacho metrics`
    #[arg(long)]
    pub metrics: bool,
}

/// The address to listen on.
pub enum Listen {
    /// An address and port.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Options {
    /// The address to listen on. Outside this host it needs a token from a file.
    ///
    /// # Errors
    /// The address is invalid, or a token is missing.
    pub fn listen(&self) -> Result<Listen, Failure> {
        if self.listen.contains('/') {
            if self.tls_cert.is_some() {
                let refused = "a Unix socket has no TLS".to_string();
                return Err(Failure::usage(refused)
                    .hint("Leave out --tls-cert and --tls-key, or listen on a port."));
            }
            return Ok(Listen::Unix(PathBuf::from(&self.listen)));
        }
        let address = self.listen.parse::<SocketAddr>().map_err(|_| {
            Failure::usage(format!("invalid address \"{}\"", self.listen))
                .hint("Write it as 127.0.0.1:8432, [::1]:8432 or /run/tacho/web.sock.")
        })?;
        if !address.ip().is_loopback() && self.token_file.is_none() {
            let refused = format!("\"{address}\" can be reached from other hosts");
            return Err(Failure::usage(refused).hint(
                "Name a file with a token (--token-file), or listen on 127.0.0.1 behind a proxy.",
            ));
        }
        Ok(Listen::Tcp(address))
    }

    /// The scheme of the server's addresses.
    pub fn scheme(&self) -> &'static str {
        match self.tls_cert {
            Some(_) => "https",
            None => "http",
        }
    }

    /// Time for a client to send the head of a request.
    pub fn head_timeout(&self) -> Duration {
        Duration::from_secs(self.head_timeout.into())
    }

    /// Longest time in which a client takes nothing of an answer.
    pub fn read_timeout(&self) -> Duration {
        Duration::from_secs(self.read_timeout.into())
    }

    /// Prefix of all paths, without a slash at its end; may be empty.
    ///
    /// # Errors
    /// The option is not a path.
    pub fn base(&self) -> Result<String, Failure> {
        let base = self.base_path.trim_end_matches('/');
        let plain = |c: char| c.is_ascii_alphanumeric() || "._~-".contains(c);
        let is_part =
            |part: &str| !part.is_empty() && part.chars().all(plain) && part.contains(|c| c != '.');
        let mut parts = base.split('/');
        match base.is_empty() || (parts.next() == Some("") && parts.all(is_part)) {
            true => Ok(base.to_string()),
            false => Err(
                Failure::usage(format!("invalid path \"{}\"", self.base_path))
                    .hint("Write it as /tacho."),
            ),
        }
    }

    /// The source of answers.
    ///
    /// # Errors
    /// As [`SourceOptions::source`].
    pub fn source(&self) -> Result<Arc<Sources>, Failure> {
        let sources = self.places.source(self.cache_bytes(), APPLICATION)?;
        Ok(Arc::new(sources))
    }

    /// Maximum number of clients of live events. The other connections are for questions.
    pub fn listeners(&self) -> usize {
        usize::from(self.connections.div_ceil(2))
    }

    /// Bytes of columns that are kept for later questions.
    fn cache_bytes(&self) -> u64 {
        let share = (u64::from(self.memory_limit_mb) << 20) / CACHE_SHARE;
        share.min(CACHE_BYTES)
    }

    /// The token from the file; `None` without `--token-file`.
    ///
    /// # Errors
    /// The file could not be read, others may read it, or it holds no token.
    pub fn token(&self) -> Result<Option<Secret>, Failure> {
        let read = |path: &PathBuf| Secret::read(path);
        self.token_file.as_ref().map(read).transpose()
    }
}
