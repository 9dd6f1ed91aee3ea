//! Who asks: the address of the other end, the user that a trusted proxy names, and the access log
//! with a line of JSON for each request.

use crate::options::Options;
use axum::extract::Request;
use axum::http::header::{HeaderMap, HeaderName};
use axum::http::{Extensions, Method, Uri};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tacho_source::Failure;
use tacho_tape::query::Value;
use tacho_tape::query::json::{Object, quote, value};

/// Maximum length of a user's name, and of a value in the log, in bytes.
const LONGEST: usize = 200;
/// Name of the other end of a Unix socket.
const UNIX: &str = "unix";

/// The other end of a connection; `None` for a Unix socket.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub Option<IpAddr>);

impl Peer {
    fn of(extensions: &Extensions) -> Option<Peer> {
        extensions.get().copied()
    }

    fn name(self) -> String {
        self.0.map_or_else(|| UNIX.to_string(), |ip| ip.to_string())
    }
}

/// The header in which trusted proxies name the user.
pub struct Users {
    header: HeaderName,
    /// Addresses of the trusted proxies, or `unix` for proxies on a Unix socket.
    proxies: Vec<String>,
}

impl Users {
    /// The header and the proxies from the command line; `None` without `--user-header`.
    ///
    /// # Errors
    /// The header has no valid name, or a proxy is no address.
    pub fn new(options: &Options) -> Result<Option<Users>, Failure> {
        let Some(name) = &options.user_header else {
            return Ok(None);
        };
        let header = HeaderName::try_from(name)
            .map_err(|_| Failure::usage(format!("invalid name of a header \"{name}\"")))?;
        let proxy = |text: &String| match (text == UNIX, text.parse::<IpAddr>()) {
            (true, _) => Ok(UNIX.to_string()),
            (_, Ok(ip)) => Ok(ip.to_canonical().to_string()),
            (_, Err(_)) => {
                let failure = Failure::usage(format!("invalid address \"{text}\" of a proxy"));
                Err(failure.hint("Write it as 127.0.0.1, ::1 or unix."))
            }
        };
        let proxies = options.trusted_proxy.iter().map(proxy);
        Ok(Some(Users {
            header,
            proxies: proxies.collect::<Result<_, _>>()?,
        }))
    }

    /// The user that a trusted proxy names, if it names one. The header of any other peer means
    /// nothing.
    pub fn user<'a>(&self, headers: &'a HeaderMap, extensions: &Extensions) -> Option<&'a str> {
        let peer = Peer::of(extensions)?;
        let name = peer
            .0
            .map_or(UNIX.to_string(), |ip| ip.to_canonical().to_string());
        if !self.proxies.contains(&name) {
            return None;
        }
        let mut values = headers.get_all(&self.header).iter();
        let user = values.next()?.to_str().ok()?.trim();
        let is_one = values.next().is_none() && !user.is_empty() && user.len() <= LONGEST;
        is_one.then_some(user)
    }
}

/// The access log. The file is opened for each line, so that it can be renamed at any time.
pub struct Log {
    path: PathBuf,
    /// True if answers may have texts of queries.
    texts: bool,
}

/// The part of a line that the request gives.
pub struct Line {
    object: Object,
    begun: Instant,
}

impl Log {
    /// The log from the command line; `None` without `--access-log`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(options: &Options) -> Result<Option<Log>, Failure> {
        let Some(path) = &options.access_log else {
            return Ok(None);
        };
        let what = format!("write file \"{}\"", path.display());
        open(path).map_err(|e| Failure::io(&what, &e))?;
        Ok(Some(Log {
            path: path.clone(),
            texts: !options.hide_texts,
        }))
    }

    /// Begins the line of a request. The line has the path, the server and the
    /// window of its address, and never a token.
    pub fn begin(&self, request: &Request, user: Option<&str>) -> Line {
        let mut object = Object::default();
        let now = jiff::Timestamp::now().as_microsecond();
        let peer = Peer::of(request.extensions()).map(Peer::name);
        let user = user.map(quote);
        object
            .put("time", &value(&Value::Time(now)))
            .put("peer", &quote(&peer.unwrap_or_default()))
            .put("user", user.as_deref().unwrap_or("null"))
            .put("method", &quote(method(request.method())))
            .put("path", &quote(cut(request.uri().path())));
        for name in ["server", "since", "until", "at"] {
            let given = argument(request.uri(), name);
            let given = given.map(|given| quote(cut(&given)));
            object.put(name, given.as_deref().unwrap_or("null"));
        }
        object.put("texts", &self.texts.to_string());
        Line {
            object,
            begun: Instant::now(),
        }
    }

    /// Writes the line with the status of the answer. An error is ignored: a full disk must not
    /// end the answers.
    pub fn end(&self, mut line: Line, status: u16) {
        let ms = line.begun.elapsed().as_millis();
        line.object
            .put("status", &status.to_string())
            .put("ms", &ms.to_string());
        let text = line.object.json() + "\n";
        // The line is one write, so that lines of several requests do not mix.
        let _ = open(&self.path).and_then(|mut file| file.write_all(text.as_bytes()));
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o640).open(path)
}

/// Name of the method, cut at `LONGEST` bytes: an unknown method may have any name.
fn method(method: &Method) -> &str {
    cut(method.as_str())
}

fn argument(uri: &Uri, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(uri.query()?.as_bytes());
    let found = pairs.find(|(known, _)| known == name);
    found.map(|(_, value)| value.into_owned())
}

fn cut(text: &str) -> &str {
    let end = (0..=LONGEST.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}
