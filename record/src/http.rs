//! Health and metrics over HTTP on the loopback interface: `/`, `/health`, `/metrics`. A page of
//! another host can make a browser ask this address (DNS rebinding). Such a request has another
//! host name, and is refused.

use crate::budget;
use crate::health::{self, Condition, HealthTable};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};
use tacho_source::memory;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Maximum number of connections at once.
const MAX_CONNECTIONS: usize = 16;
/// Time for a client to send its request.
const IO_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection is closed after this time, whatever the client does. Scrapers connect again.
const MAX_CONNECTION_TIME: Duration = Duration::from_secs(30);
/// Pause after a failed `accept()`: if descriptors ran out, some become free meanwhile.
const PAUSE: Duration = Duration::from_millis(100);

const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves in a thread of its own until the program ends.
///
/// # Errors
/// The address is taken.
pub fn serve(address: SocketAddr, table: Arc<HealthTable>) -> std::io::Result<()> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let thread = std::thread::Builder::new().name("http".to_string());
    thread.spawn(move || runtime.block_on(accept(listener, table)))?;
    Ok(())
}

async fn accept(listener: std::net::TcpListener, table: Arc<HealthTable>) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(place) = places.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let table = table.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let response = answer(&request, &table);
                async { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(IO_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            // The error is ignored: the client broke off or did not read, and knows it.
            let _ = tokio::time::timeout(MAX_CONNECTION_TIME, connection).await;
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, table: &HealthTable) -> Response<String> {
    let host = request
        .headers()
        .get(HOST)
        .and_then(|host| host.to_str().ok());
    if !host.is_some_and(is_loopback) {
        return response(
            StatusCode::FORBIDDEN,
            TEXT,
            "host name is not allowed; use localhost or a loopback address\n".to_string(),
        );
    }
    if request.method() != Method::GET {
        return response(
            StatusCode::METHOD_NOT_ALLOWED,
            TEXT,
            "method not allowed; use GET\n".to_string(),
        );
    }
    let servers = table.now();
    match request.uri().path() {
        "/" => response(StatusCode::OK, TEXT, health::page(&servers).0),
        "/health" => {
            let (text, is_well) = health::page(&servers);
            let status = if is_well {
                StatusCode::OK
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            };
            response(status, TEXT, text)
        }
        "/metrics" => match metrics(&servers) {
            Ok(text) => response(StatusCode::OK, METRICS, text),
            Err(error) => response(
                StatusCode::INTERNAL_SERVER_ERROR,
                TEXT,
                format!("{error}\n"),
            ),
        },
        _ => response(
            StatusCode::NOT_FOUND,
            TEXT,
            "not found; available are /, /health and /metrics\n".to_string(),
        ),
    }
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// True if the `Host` of a request is `localhost` or a loopback address.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let address = name
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ServerLabel {
    server: String,
}

type Level = Gauge<f64, AtomicU64>;
type Count = Counter<f64, AtomicU64>;

/// A metric that each server has.
struct MetricDef {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    of: fn(&Condition) -> Option<f64>,
}

const COUNTERS: [MetricDef; 6] = [
    MetricDef {
        name: "ticks",
        help: "Ticks taken",
        unit: None,
        of: |c| Some(c.ticks as f64),
    },
    MetricDef {
        name: "late_ticks",
        help: "Ticks taken in a later slot than planned",
        unit: None,
        of: |c| Some(c.late_ticks as f64),
    },
    MetricDef {
        name: "missed_slots",
        help: "Slots without a tick",
        unit: None,
        of: |c| Some(c.missed_slots as f64),
    },
    MetricDef {
        name: "connects",
        help: "Connections made",
        unit: None,
        of: |c| Some(c.connects as f64),
    },
    MetricDef {
        name: "lost_frames",
        help: "Frames lost before they were written",
        unit: None,
        of: |c| Some(c.lost_frames as f64),
    },
    MetricDef {
        name: "tick_wait",
        help: "Total time waited for answers of ticks",
        unit: Some(Unit::Seconds),
        of: |c| Some(c.waited_us as f64 / 1e6),
    },
];

const GAUGES: [MetricDef; 7] = [
    MetricDef {
        name: "connected",
        help: "1 while connected to the server",
        unit: None,
        of: |c| Some(f64::from(u8::from(c.connected.is_some()))),
    },
    MetricDef {
        name: "refused",
        help: "Kinds of questions that the server refuses",
        unit: None,
        of: |c| Some(c.refused.len() as f64),
    },
    MetricDef {
        name: "last_tick_timestamp",
        help: "When the last tick was taken, by this host's clock",
        unit: Some(Unit::Seconds),
        of: last_tick,
    },
    MetricDef {
        name: "last_tick_age",
        help: "Time since the last tick",
        unit: Some(Unit::Seconds),
        of: |c| Some(c.age()?.as_secs_f64()),
    },
    MetricDef {
        name: "output_stuck",
        help: "1 while writing is blocked because the disk is full or hangs",
        unit: None,
        of: |c| Some(f64::from(u8::from(c.is_stuck()))),
    },
    MetricDef {
        name: "unwritten",
        help: "Time for which writing has been blocked",
        unit: Some(Unit::Seconds),
        of: |c| Some(c.unwritten().as_secs_f64()),
    },
    MetricDef {
        name: "waiting_frames",
        help: "Frames that wait to be written",
        unit: None,
        of: |c| Some(c.waiting_frames as f64),
    },
];

fn last_tick(condition: &Condition) -> Option<f64> {
    let age = condition.last_tick?.elapsed();
    let at = SystemTime::now().checked_sub(age)?;
    Some(
        at.duration_since(SystemTime::UNIX_EPOCH)
            .ok()?
            .as_secs_f64(),
    )
}

fn metrics(servers: &[(String, Condition)]) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("tacho_recorder");
    for figure in COUNTERS {
        let family = Family::<ServerLabel, Count>::default();
        each(servers, &figure, |of, value| {
            family.get_or_create(of).inc_by(value);
        });
        register(&mut registry, figure, family);
    }
    for figure in GAUGES {
        let family = Family::<ServerLabel, Level>::default();
        each(servers, &figure, |of, value| {
            family.get_or_create(of).set(value);
        });
        register(&mut registry, figure, family);
    }
    let own = |bytes: u64| {
        let level = Level::default();
        level.set(bytes as f64);
        level
    };
    registry.register_with_unit("memory", "Memory in use", Unit::Bytes, own(memory::used()));
    registry.register_with_unit(
        "memory_limit",
        "Memory limit",
        Unit::Bytes,
        own(budget::bytes()),
    );
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

fn each(
    servers: &[(String, Condition)],
    figure: &MetricDef,
    mut tell: impl FnMut(&ServerLabel, f64),
) {
    for (server, condition) in servers {
        if let Some(value) = (figure.of)(condition) {
            tell(
                &ServerLabel {
                    server: server.clone(),
                },
                value,
            );
        }
    }
}

fn register(
    registry: &mut Registry,
    figure: MetricDef,
    metric: impl prometheus_client::registry::Metric,
) {
    match figure.unit {
        Some(unit) => registry.register_with_unit(figure.name, figure.help, unit, metric),
        None => registry.register(figure.name, figure.help, metric),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_host_are_answered() {
        for host in [
            "localhost",
            "localhost:8433",
            "127.0.0.1:8433",
            "[::1]:8433",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example:8433",
            "10.0.0.1",
            "localhost.evil.example",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn figures_have_their_server_as_label() {
        let condition = Condition {
            ticks: 7,
            waited_us: 1_500,
            ..Condition::default()
        };
        let text = metrics(&[("a".to_string(), condition)]).unwrap();
        let has = |line: &str| text.lines().any(|l| l == line);
        assert!(
            has("tacho_recorder_ticks_total{server=\"a\"} 7.0"),
            "{text}"
        );
        assert!(
            has("tacho_recorder_tick_wait_seconds_total{server=\"a\"} 0.0015"),
            "{text}"
        );
        assert!(has("tacho_recorder_connected{server=\"a\"} 0.0"), "{text}");
        assert!(!text.contains("last_tick_timestamp_seconds{"), "{text}");
    }
}
