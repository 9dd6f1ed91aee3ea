//! Decides who may ask. Every request passes here, and every answer gets its
//! headers here.
//!
//! - `Host` must be a name of this server. A page elsewhere whose name points
//!   here (DNS rebinding) sends its own name.
//! - Requests that a browser makes for another site or port are refused, except
//!   when a user follows a link.
//! - The token is exchanged for a cookie at `/?token=…`. A token made at the
//!   start works only once, because addresses stay in browser histories. A
//!   token from a file also works as `Authorization: Bearer …`.

use crate::access::{Log, Users};
use crate::options::{Listen, Options};
use crate::problem::Problem;
use crate::secret::Secret;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::uri::Authority;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tacho_source::Failure;
use tacho_tape::query::QueryError;

/// Headers of every answer.
pub const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];
/// SQLSTATE for an unknown client.
const NOT_KNOWN: &str = "28000";

/// The rules of a server.
pub struct Door {
    hosts: Vec<String>,
    token: Secret,
    /// True if the token is from a file. Otherwise the token works once.
    given: bool,
    spent: AtomicBool,
    cookie: String,
    /// True if the port speaks TLS: then browsers must not send the cookie without TLS.
    secure: bool,
    /// Prefix of all paths, such as `/tacho`; may be empty.
    base: String,
    session: Secret,
    /// The header and the proxies that name users; `None` without `--user-header`.
    users: Option<Users>,
    log: Option<Log>,
}

impl Door {
    /// The rules by the command line, the token from a file if there is one,
    /// and the port.
    ///
    /// # Errors
    /// The system has no random numbers for a token, or an option makes no sense.
    pub fn new(
        options: &Options,
        given: Option<Secret>,
        listen: &Listen,
        port: Option<u16>,
    ) -> Result<Door, Failure> {
        let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "[::1]"]
            .map(str::to_string)
            .to_vec();
        if let Listen::Tcp(address) = listen
            && !address.ip().is_unspecified()
        {
            let address = Authority::try_from(address.to_string()).ok();
            hosts.extend(address.map(|a| a.host().to_string()));
        }
        let trusted = options.trusted_host.iter();
        hosts.extend(trusted.map(|host| host.to_ascii_lowercase()));
        Ok(Door {
            hosts,
            given: given.is_some(),
            token: given.map_or_else(Secret::random, Ok)?,
            spent: AtomicBool::new(false),
            // Cookies do not distinguish ports: each of two servers on a host
            // has its own name.
            cookie: port.map_or("tacho".to_string(), |port| format!("tacho_{port}")),
            secure: options.tls_cert.is_some(),
            base: options.base()?,
            session: Secret::random()?,
            users: Users::new(options)?,
            log: Log::new(options)?,
        })
    }

    /// The token to print; `None` if users have it from a file.
    pub fn token(&self) -> Option<&Secret> {
        (!self.given).then_some(&self.token)
    }

    /// True if the host in a request is a name of this server.
    fn knows_host(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let ours = |name: &str| {
            let authority = Authority::try_from(name).ok();
            let host = authority.map(|a| a.host().to_ascii_lowercase());
            !name.contains('@') && host.is_some_and(|host| self.hosts.contains(&host))
        };
        let mut names = headers.get_all(header::HOST).iter();
        let header = names.next().and_then(|name| name.to_str().ok());
        let target = uri.authority().is_none_or(|a| ours(a.as_str()));
        header.is_some_and(ours) && names.next().is_none() && target
    }

    /// True if the client has the cookie, or the token of the file.
    fn knows(&self, headers: &HeaderMap) -> bool {
        let texts = |name| headers.get_all(name).iter().filter_map(|v| v.to_str().ok());
        let mut cookies = texts(header::COOKIE).flat_map(|line| line.split(';'));
        let has_cookie = cookies.any(|pair| {
            let value = pair.trim().split_once('=');
            value.is_some_and(|(name, value)| name == self.cookie && self.session.is(value))
        });
        let mut bearers = texts(header::AUTHORIZATION)
            .filter_map(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        has_cookie || (self.given && bearers.any(|(_, token)| self.token.is(token.trim())))
    }

    /// The user that a trusted proxy names.
    fn user<'a>(&self, request: &'a Request) -> Option<&'a str> {
        let users = self.users.as_ref()?;
        users.user(request.headers(), request.extensions())
    }

    /// Exchanges the token for a cookie, and redirects to the view in the
    /// address.
    fn exchange(&self, token: &str, uri: &Uri) -> Response {
        let known = self.token.is(token);
        if !known || (!self.given && self.spent.swap(true, Ordering::Relaxed)) {
            return stranger(if known {
                "token has already been used"
            } else {
                "invalid token"
            });
        }
        let (name, value) = (&self.cookie, self.session.reveal());
        let base = &self.base;
        let secure = if self.secure { "; Secure" } else { "" };
        let cookie = format!("{name}={value}; Path={base}/; HttpOnly; SameSite=Strict{secure}");
        let found = [
            (header::LOCATION, format!("{base}{}", without_token(uri))),
            (header::SET_COOKIE, cookie),
        ];
        (StatusCode::SEE_OTHER, found).into_response()
    }

    /// The answer to a client that is not let in; `None` lets it in.
    fn refused(&self, request: &Request) -> Option<Response> {
        let (headers, uri) = (request.headers(), request.uri());
        if !self.knows_host(headers, uri) {
            let error = QueryError::new(NOT_KNOWN, "host name is not allowed").hint(
                "Use localhost or the address it listens on, or allow the name with --trusted-host.",
            );
            return Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, error).into_response());
        }
        if is_of_another_site(request.method(), headers) {
            let error = QueryError::new(NOT_KNOWN, "cross-site request refused");
            return Some(Problem::new(StatusCode::FORBIDDEN, error).into_response());
        }
        if let ("/", Some(token)) = (uri.path(), token_of(uri)) {
            return Some(self.exchange(&token, uri));
        }
        let is_known = self.user(request).is_some() || self.knows(headers);
        (!is_known).then(|| stranger("authentication required"))
    }
}

/// True if a page of another site or port makes the request. Following a link is allowed, sending a
/// form is not. Programs other than browsers send no such headers.
fn is_of_another_site(method: &Method, headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).map(HeaderValue::as_bytes);
    let site = value("sec-fetch-site");
    let own = site.is_none_or(|site| site == b"same-origin" || site == b"none");
    if method.is_safe() {
        return !own && value("sec-fetch-mode") != Some(b"navigate");
    }
    let origins = headers
        .get_all(header::ORIGIN)
        .iter()
        .map(HeaderValue::as_bytes);
    let host = value("host").unwrap_or_default();
    let is_other = |origin: &[u8]| {
        let of = origin
            .strip_prefix(b"http://")
            .or(origin.strip_prefix(b"https://"));
        of.is_none_or(|of| !of.eq_ignore_ascii_case(host))
    };
    !own || origins.into_iter().any(is_other)
}

fn token_of(uri: &Uri) -> Option<String> {
    let mut pairs = form_urlencoded::parse(uri.query()?.as_bytes());
    let token = pairs.find(|(name, _)| name == "token");
    token.map(|(_, token)| token.into_owned())
}

/// The address without the token: browsers may keep it in their histories.
fn without_token(uri: &Uri) -> String {
    let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let mut view = form_urlencoded::Serializer::for_suffix("/?".to_string(), 2);
    view.extend_pairs(pairs.filter(|(name, _)| name != "token"));
    let address = view.finish();
    address.strip_suffix('?').unwrap_or(&address).to_string()
}

fn stranger(message: &str) -> Response {
    let error = QueryError::new(NOT_KNOWN, message).hint(
        "Open the address that tacho web printed when it started, or send the token of --token-file as Authorization: Bearer.",
    );
    Problem::new(StatusCode::UNAUTHORIZED, error)
        .header(header::WWW_AUTHENTICATE, "Bearer")
        .into_response()
}

/// Lets a request in, or refuses it.
pub async fn pass(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let log = door.log.as_ref();
    let line = log.map(|log| (log, log.begin(&request, door.user(&request))));
    let answer = dressed(match door.refused(&request) {
        Some(refused) => refused,
        None => next.run(request).await,
    });
    if let Some((log, line)) = line {
        log.end(line, answer.status().as_u16());
    }
    answer
}

/// Adds the headers that every answer has.
pub fn dressed(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}
