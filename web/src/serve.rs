//! Connections: a limited number at once. Each has a time limit for its TLS handshake and for
//! sending a request.

use crate::access::Peer;
use crate::guard;
use crate::options::{Listen, Options};
use crate::places::{Awaited, Held, Place, Places, Seat};
use crate::problem::Problem;
use crate::secret::Secret;
use crate::slow::Impatient;
use crate::tls::{Greeted, Tls};
use axum::Router;
use axum::http::header::CONNECTION;
use axum::http::{Request, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::fs::Mode;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tacho_source::Failure;
use tacho_tape::query::QueryError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

/// Maximum length of the head of a request, in bytes.
const HEAD_BYTES: usize = 64 << 10;
/// Maximum number of connections in the system's queue before they are accepted.
const AT_THE_DOOR: u32 = 4096;
/// Pause after a failed `accept()`: if descriptors ran out, some become free meanwhile.
const PATIENCE: Duration = Duration::from_millis(100);

/// SQLSTATE for a client that does not speak TLS.
const PROTOCOL_VIOLATION: &str = "08P01";

/// Limits of connections, their base path, and their TLS.
#[derive(Clone)]
pub struct Limits {
    /// Maximum number of connections at once.
    pub connections: usize,
    /// Maximum time for a client to send the head of a request.
    pub head: Duration,
    /// Maximum time for which a client may take nothing of an answer.
    pub read: Duration,
    /// Prefix of all paths, such as `/tacho`; may be empty.
    pub base: Arc<str>,
    /// TLS of a port.
    pub tls: Option<Arc<Tls>>,
}

impl Limits {
    /// The limits from the command line.
    pub fn new(options: &Options, base: String, tls: Option<Arc<Tls>>) -> Limits {
        Limits {
            connections: options.connections.into(),
            head: options.head_timeout(),
            read: options.read_timeout(),
            base: base.into(),
            tls,
        }
    }
}

/// The address to open, with the token if it is to be shown.
pub fn address(scheme: &str, listen: &Listen, base: &str, token: Option<&Secret>) -> String {
    let query = token.map(|token| format!("?token={}", token.reveal()));
    let query = query.unwrap_or_default();
    match listen {
        Listen::Tcp(address) => format!("{scheme}://{address}{base}/{query}"),
        Listen::Unix(path) => format!("{} {base}/{query}", path.display()),
    }
}

/// The socket that accepts connections.
pub enum Listener {
    /// A port.
    Tcp(TcpListener),
    /// A socket in the file system, removed at the end.
    Unix(UnixListener, PathBuf),
}

/// Hint for a port that is taken.
const TAKEN: &str = "Another program listens there, perhaps another tacho web. Choose another port: --listen 127.0.0.1:8433, or 0 for a free one.";

impl Listener {
    /// Binds the address.
    ///
    /// # Errors
    /// The address is taken or not ours.
    pub async fn bind(listen: &Listen) -> Result<Listener, Failure> {
        match listen {
            Listen::Tcp(address) => {
                let failed = |e: io::Error| {
                    let failure = Failure::io(&format!("listen on {address}"), &e);
                    match e.kind() {
                        io::ErrorKind::AddrInUse => failure.hint(TAKEN),
                        _ => failure,
                    }
                };
                Ok(Listener::Tcp(bind(*address).map_err(failed)?))
            }
            Listen::Unix(path) => {
                let failed = |e| Failure::io(&format!("listen on \"{}\"", path.display()), &e);
                remove_dead(path).await.map_err(failed)?;
                // Only this user may connect, from the first moment on.
                let before = rustix::process::umask(Mode::from_raw_mode(0o177));
                let bound = UnixListener::bind(path);
                rustix::process::umask(before);
                Ok(Listener::Unix(bound.map_err(failed)?, path.clone()))
            }
        }
    }

    /// The port; `None` for a Unix socket.
    pub fn port(&self) -> Option<u16> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|a| a.port()),
            Listener::Unix(..) => None,
        }
    }

    /// The actual address: the system may have chosen the port.
    pub fn listens(&self, wanted: Listen) -> Listen {
        match self {
            Listener::Tcp(listener) => listener.local_addr().map_or(wanted, Listen::Tcp),
            Listener::Unix(..) => wanted,
        }
    }

    /// Serves until a signal says to end.
    pub async fn serve(self, router: Router, limits: &Limits) {
        let places = Places::new(limits.connections, limits.read);
        tokio::select! {
            () = self.accept(&places, &router, limits) => (),
            () = stop() => (),
        }
        if let Listener::Unix(_, path) = &self {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Accepts a connection before it waits for a place: only then is a place
    /// needed.
    async fn accept(&self, places: &Arc<Places>, router: &Router, limits: &Limits) {
        loop {
            match self {
                Listener::Tcp(listener) => match listener.accept().await {
                    Ok((stream, address)) => {
                        let peer = Peer(Some(address.ip()));
                        let place = places.take().await;
                        match &limits.tls {
                            Some(tls) => spawn_tls(tls, stream, peer, router, limits, place),
                            None => spawn(stream, peer, router, limits, place),
                        }
                    }
                    Err(_) => sleep(PATIENCE).await,
                },
                Listener::Unix(listener, _) => match listener.accept().await {
                    Ok((stream, _)) => {
                        spawn(stream, Peer(None), router, limits, places.take().await);
                    }
                    Err(_) => sleep(PATIENCE).await,
                },
            }
        }
    }
}

/// The system's queue must be long enough for many clients at once. Beyond the
/// usual 128 the system drops new connections for a second.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(AT_THE_DOOR)
}

/// Serves a connection until it ends or its place is needed. If the client leaves,
/// its running request is dropped.
pub fn spawn(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: &Router,
    limits: &Limits,
    place: Place,
) {
    let connection = answers(stream, peer, router.clone(), limits, place.seat());
    tokio::spawn(place.serve(connection));
}

/// As `spawn`, after a TLS handshake. Until the client sends a request, the connection counts as
/// idle.
fn spawn_tls(
    tls: &Arc<Tls>,
    stream: TcpStream,
    peer: Peer,
    router: &Router,
    limits: &Limits,
    place: Place,
) {
    let (tls, router, limits) = (Arc::clone(tls), router.clone(), limits.clone());
    let seat = Arc::clone(place.seat());
    let connection = async move {
        match timeout(limits.head, tls.greet(stream)).await {
            Ok(Ok(Greeted::Tls(stream))) => answers(stream, peer, router, &limits, &seat).await,
            Ok(Ok(Greeted::Plain(stream))) => {
                answers(stream, peer, plain_router(), &limits, &seat).await;
            }
            // The client left, was too slow, or has received a TLS alert.
            Ok(Err(_)) | Err(_) => (),
        }
    };
    tokio::spawn(place.serve(connection));
}

/// The only answer to clients that do not speak TLS.
fn plain_router() -> Router {
    Router::new().fallback(async || {
        let error = QueryError::new(PROTOCOL_VIOLATION, "this port speaks TLS only")
            .hint("Begin the address with https://.");
        let answer = Problem::new(StatusCode::BAD_REQUEST, error);
        guard::dressed(answer.header(CONNECTION, "close").into_response())
    })
}

/// Answers the requests of a connection.
fn answers<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: Peer,
    router: Router,
    limits: &Limits,
    seat: &Arc<Seat>,
) -> impl Future<Output = ()> + Send + use<S> {
    let service = TowerToHyperService::new(router);
    let (base, head) = (limits.base.clone(), limits.head);
    let seat = Arc::clone(seat);
    let stream = Impatient::new(stream, limits.read, Arc::clone(&seat));
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let turn = seat.asked();
        let request = request.map(|body| Awaited::new(body, head, Arc::clone(&seat)));
        let answer = under(Arc::clone(&base), request, service.clone());
        async { Ok::<_, Infallible>(Held::answer(answer.await?, turn)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    async {
        // The error is ignored: a client that breaks off knows why.
        let _ = connection.await;
    }
}

/// Answers requests below the base path, and requests from which a proxy has
/// removed the base path. The base path itself redirects to its page, whose
/// addresses are relative.
async fn under(
    base: Arc<str>,
    mut request: Request<Awaited>,
    service: TowerToHyperService<Router>,
) -> Result<Response, Infallible> {
    let uri = request.uri();
    if !base.is_empty()
        && let Some(rest) = uri.path().strip_prefix(&*base)
    {
        let query = uri
            .query()
            .map_or(String::new(), |query| format!("?{query}"));
        if rest.is_empty() {
            let there = Redirect::permanent(&format!("{base}/{query}"));
            return Ok(guard::dressed(there.into_response()));
        }
        let rest = format!("{rest}{query}");
        if rest.starts_with('/')
            && let Ok(path) = rest.parse()
        {
            let mut parts = uri.clone().into_parts();
            parts.path_and_query = Some(path);
            *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        }
    }
    service.call(request).await
}

/// Removes a socket that no process listens on: it would block the path.
async fn remove_dead(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
    match is_socket && UnixStream::connect(path).await.is_err() {
        true => std::fs::remove_file(path),
        false => Ok(()),
    }
}

/// Waits for a signal to end the program.
async fn stop() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        // Without handlers the signals end the program.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => (),
        _ = terminate.recv() => (),
    }
}
