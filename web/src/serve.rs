//! Connections: so many at once, each with a time to say what it wants.

use crate::options::Listen;
use crate::secret::Secret;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::fs::Mode;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tacho_source::Failure;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Longest head of a request, in bytes.
const HEAD_BYTES: usize = 64 << 10;
/// When the system has no more descriptors, some end meanwhile.
const PATIENCE: Duration = Duration::from_millis(100);

/// Where connections come from.
pub enum Listener {
    /// A port.
    Tcp(TcpListener),
    /// A socket in the file system, removed at the end.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// The address is taken or not ours.
    pub async fn bind(listen: &Listen) -> Result<Listener, Failure> {
        match listen {
            Listen::Tcp(address) => {
                let bound = TcpListener::bind(address).await;
                let failed = |e| Failure::io(&format!("listen on {address}"), &e);
                Ok(Listener::Tcp(bound.map_err(failed)?))
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

    /// The port.
    pub fn port(&self) -> Option<u16> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|a| a.port()),
            Listener::Unix(..) => None,
        }
    }

    /// Where to look, with the token if there is one to show.
    pub fn address(&self, token: Option<&Secret>) -> String {
        let query = token.map(|token| format!("?token={}", token.reveal()));
        let query = query.unwrap_or_default();
        match self {
            Listener::Tcp(listener) => {
                let address = listener.local_addr().map(|a| a.to_string());
                format!("http://{}/{query}", address.unwrap_or_default())
            }
            Listener::Unix(_, path) => format!("{} /{query}", path.display()),
        }
    }

    /// Serves until a signal says to end.
    pub async fn serve(self, router: Router, connections: u16, head: Duration) {
        let places = Arc::new(Semaphore::new(connections.into()));
        tokio::select! {
            () = self.accept(&places, &router, head) => (),
            () = stop() => (),
        }
        if let Listener::Unix(_, path) = &self {
            let _ = std::fs::remove_file(path);
        }
    }

    async fn accept(&self, places: &Arc<Semaphore>, router: &Router, head: Duration) {
        while let Ok(place) = Arc::clone(places).acquire_owned().await {
            let accepted = match self {
                Listener::Tcp(listener) => {
                    let accepted = listener.accept().await;
                    accepted.map(|(stream, _)| spawn(stream, router, head, place))
                }
                Listener::Unix(listener, _) => {
                    let accepted = listener.accept().await;
                    accepted.map(|(stream, _)| spawn(stream, router, head, place))
                }
            };
            if accepted.is_err() {
                tokio::time::sleep(PATIENCE).await;
            }
        }
    }
}

/// Serves a connection. When its client is gone, what it waits for is dropped.
fn spawn(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: &Router,
    head: Duration,
    place: OwnedSemaphorePermit,
) {
    let service = TowerToHyperService::new(router.clone());
    tokio::spawn(async move {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        // Whoever breaks off knows why.
        let _ = connection.await;
        drop(place);
    });
}

/// A socket that nobody listens on any more is in the way.
async fn remove_dead(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
    match is_socket && UnixStream::connect(path).await.is_err() {
        true => std::fs::remove_file(path),
        false => Ok(()),
    }
}

/// The program is asked to end.
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
