//! Errors as `application/problem+json` (RFC 9457), with the fields of a
//! PostgreSQL error: message, detail, hint, SQLSTATE.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tacho_tape::query::json::{Object, quote};
use tacho_tape::query::{CANCELED, INSUFFICIENT_PRIVILEGE, QueryError};

/// An error as an answer.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    error: QueryError,
    headers: Vec<(header::HeaderName, &'static str)>,
}

impl Problem {
    /// An error, with the HTTP status that belongs to its SQLSTATE.
    pub fn of(error: QueryError) -> Problem {
        Problem::new(status(error.sqlstate), error)
    }

    /// An error with a status.
    pub fn new(status: StatusCode, error: QueryError) -> Problem {
        Problem {
            status,
            error,
            headers: Vec::new(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: header::HeaderName, value: &'static str) -> Problem {
        self.headers.push((name, value));
        self
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The error alone.
    pub fn into_error(self) -> QueryError {
        self.error
    }

    fn json(&self) -> String {
        let mut object = Object::default();
        object
            .put("type", "\"about:blank\"")
            .put(
                "title",
                &quote(self.status.canonical_reason().unwrap_or("Error")),
            )
            .put("status", self.status.as_str());
        put_error(&mut object, &self.error);
        object.json() + "\n"
    }
}

/// Adds message, detail, hint and SQLSTATE; leaves out missing ones.
pub fn put_error(object: &mut Object, error: &QueryError) {
    object.put("message", &quote(&error.message));
    for (name, text) in [("detail", &error.detail), ("hint", &error.hint)] {
        if let Some(text) = text {
            object.put(name, &quote(text));
        }
    }
    object.put("sqlstate", &quote(error.sqlstate));
}

fn status(sqlstate: &str) -> StatusCode {
    match sqlstate {
        INSUFFICIENT_PRIVILEGE => StatusCode::FORBIDDEN,
        "25006" => StatusCode::FORBIDDEN,
        "42704" | "42883" | "58P01" => StatusCode::NOT_FOUND,
        "55000" => StatusCode::CONFLICT,
        "0A000" => StatusCode::NOT_IMPLEMENTED,
        CANCELED => StatusCode::SERVICE_UNAVAILABLE,
        state if state.starts_with("53") => StatusCode::SERVICE_UNAVAILABLE,
        // The asked server is gone.
        state if state.starts_with("08") || state.starts_with("57P") => StatusCode::BAD_GATEWAY,
        state if state.starts_with("22") => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.json()).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        for (name, value) in self.headers {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
