//! The page, which Vite builds from `page/`, embedded in the program. A program
//! built without Node has no page and says so in its place.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

#[derive(RustEmbed)]
#[folder = "../page/dist"]
#[allow_missing = true]
struct Files;

/// Text at `/` without a page.
const WITHOUT: &str = "\
tacho web

This program was built without the page. \"make program\" builds it where there
is Node 18 or later (Debian: nodejs, npm). Available paths:

GET /api/v1/servers            servers with their state
GET /api/v1/functions          functions, their arguments and columns, dimensions
GET /api/v1/FUNCTION?server=…  an answer, such as /api/v1/top?since=1h
GET /metrics                   for Prometheus
";

/// For files with a hash in their names: other content gets another name.
const FOR_EVER: &str = "private, max-age=31536000, immutable";
/// Requested each time, and answered with 304 if unchanged.
const EACH_TIME: &str = "private, no-cache";

/// Answers `/`: the page itself.
pub async fn index(headers: HeaderMap) -> Response {
    file("index.html", &headers).unwrap_or_else(|| WITHOUT.into_response())
}

/// Answers `/tacho.svg`: the icon.
pub async fn icon(headers: HeaderMap) -> Response {
    file("tacho.svg", &headers).unwrap_or_else(|| StatusCode::NOT_FOUND.into_response())
}

/// Answers `/assets/NAME`: a script, style or font of the page.
pub async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let found = file(&format!("assets/{name}"), &headers);
    found.unwrap_or_else(|| StatusCode::NOT_FOUND.into_response())
}

/// A file, compressed if the client accepts that. Without a body if the client
/// has it.
fn file(name: &str, headers: &HeaderMap) -> Option<Response> {
    let plain = Files::get(name)?;
    let packed = Files::get(&format!("{name}.gz")).filter(|_| takes_gzip(headers));
    let tag = entity_tag(&plain);
    let lasting = name.starts_with("assets/");
    let mut response = match headers.get(header::IF_NONE_MATCH) {
        Some(known) if known.as_bytes() == tag.as_bytes() => {
            StatusCode::NOT_MODIFIED.into_response()
        }
        _ => body(name, plain, packed),
    };
    let all = response.headers_mut();
    let cached = if lasting { FOR_EVER } else { EACH_TIME };
    all.insert(header::CACHE_CONTROL, HeaderValue::from_static(cached));
    all.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    all.insert(header::ETAG, HeaderValue::from_str(&tag).ok()?);
    Some(response)
}

fn body(name: &str, plain: EmbeddedFile, packed: Option<EmbeddedFile>) -> Response {
    let kind = [(header::CONTENT_TYPE, content_type(name))];
    match packed {
        Some(packed) => {
            let encoding = [(header::CONTENT_ENCODING, "gzip")];
            (kind, encoding, packed.data.into_owned()).into_response()
        }
        None => (kind, plain.data.into_owned()).into_response(),
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let named = parts.next() == Some("gzip");
        named && !parts.any(|quality| matches!(quality, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// Tag of the content, compressed or not.
fn entity_tag(file: &EmbeddedFile) -> String {
    let hash = file.metadata.sha256_hash();
    let digits: Vec<String> = hash
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("W/\"{}\"", digits.concat())
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn gzip_is_sent_to_clients_that_accept_it() {
        let takes = |value| takes_gzip(&given(header::ACCEPT_ENCODING, value));
        assert!(takes("gzip"));
        assert!(takes("deflate, gzip;q=0.5, br"));
        assert!(!takes("br, deflate"));
        assert!(!takes("gzip;q=0"));
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn a_program_with_or_without_a_page_has_something_at_its_root() {
        let answer = index(HeaderMap::new()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let kind = answer.headers().get(header::CONTENT_TYPE).cloned();
        let built = Files::get("index.html").is_some();
        let expected = if built {
            "text/html; charset=utf-8"
        } else {
            "text/plain; charset=utf-8"
        };
        assert_eq!(kind, Some(HeaderValue::from_static(expected)));
    }

    #[tokio::test]
    async fn what_is_known_is_not_sent_again() {
        let Some(first) = file("index.html", &HeaderMap::new()) else {
            return;
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        let again = file("index.html", &headers).map(|answer| answer.status());
        assert_eq!(again, Some(StatusCode::NOT_MODIFIED));
    }

    #[tokio::test]
    async fn no_file_outside_the_page_is_answered() {
        for name in ["../../package.json", "../../../Cargo.toml", "none.js", ""] {
            let answer = asset(Path(name.to_string()), HeaderMap::new()).await;
            assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{name}");
        }
    }
}
