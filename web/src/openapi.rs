//! `GET /api/v1/openapi.json`: describes the questions as OpenAPI 3.1, from the
//! registry of functions.

use crate::texts::{ARGUMENT, BYTES};
use serde_json::{Map, Value, json};
use tacho_source::arguments::arguments;
use tacho_source::catalog;
use tacho_tape::query::{Argument, Field, Function, Kind, Type};

/// Media types.
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const TEXT: &str = "text/plain";
const HTML: &str = "text/html";
const OPEN_METRICS: &str = "application/openmetrics-text";

/// Paths that are not functions: path, description, media types, and whether it
/// takes `server`.
const OTHERS: &[(&str, &str, &[&str], bool)] = &[
    (
        "/api/v1/servers",
        "Servers with their state",
        &[JSON],
        false,
    ),
    (
        "/api/v1/functions",
        "Functions with their arguments and columns, and dimensions",
        &[JSON],
        false,
    ),
    ("/api/v1/openapi.json", "This description", &[JSON], false),
    (
        "/api/v1/live",
        "Live events of the recording (server-sent events)",
        &[EVENTS],
        true,
    ),
    (
        "/metrics",
        "Figures for Prometheus",
        &[TEXT, OPEN_METRICS],
        false,
    ),
];

/// Errors that any path may answer.
const ERRORS: [(&str, &str); 12] = [
    ("400", "Invalid argument"),
    ("401", "Authentication required"),
    (
        "403",
        "Cross-site request refused, or files may not be read",
    ),
    ("404", "There is no such server or function, or no history"),
    ("405", "Method not allowed"),
    ("408", "Request body was not received in time"),
    ("421", "Host name is not allowed"),
    ("429", "Too many questions at once"),
    ("500", "The history could not be read"),
    ("501", "Not supported by this source"),
    ("502", "There is no connection to the server"),
    ("503", "Out of memory, or canceled"),
];

/// The description of a source's functions.
pub fn describe(functions: &[Function]) -> String {
    let described = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tacho web",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Performance history of PostgreSQL",
        },
        "security": [{"token": []}, {"cookie": []}],
        "paths": paths(functions),
        "components": components(),
    });
    format!("{described}\n")
}

/// Answers about a window of a server that are no function.
const OF_WINDOW: [(&str, &str); 2] = [
    (
        "/api/v1/alarms",
        "Measurements of the server that are bad in a window, the most urgent first",
    ),
    (
        "/api/v1/findings",
        "Main findings of a window, as sentences of the report",
    ),
];

/// All paths with their operations.
fn paths(functions: &[Function]) -> Map<String, Value> {
    let mut paths = Map::new();
    let mut put = |path: &str, methods: Value| paths.insert(path.to_string(), methods);
    for (path, about, kinds, takes_server) in OTHERS {
        let parameters = takes_server.then(server).into_iter().collect();
        let get = operation(about, parameters, content(kinds, &json!({})));
        put(path, json!({ "get": get }));
    }
    let about = "The load of all servers; those with an error first, then by load per CPU";
    let fleet = of_timeline(functions, about, None, &crate::fleet::ARGUMENTS);
    put("/api/v1/fleet", json!({ "get": fleet }));
    for (path, about) in OF_WINDOW {
        let taken = &crate::findings::ARGUMENTS;
        let get = of_timeline(functions, about, Some(server()), taken);
        put(path, json!({ "get": get }));
    }
    put("/api/v1/lanes", json!({ "get": lanes(functions) }));
    for function in functions {
        let mut methods = json!({ "get": asked(function) });
        if function.name == "markers" {
            methods["post"] = marked();
        }
        put(&format!("/api/v1/{}", function.name), methods);
        if function.name == "report" {
            let about = "The report as one HTML file";
            let html = content(&[HTML], &json!({}));
            let page = operation(about, parameters(function), html);
            put("/api/v1/report.html", json!({ "get": page }));
        }
    }
    paths
}

/// An operation and its answers.
fn operation(about: &str, parameters: Vec<Value>, content: Value) -> Value {
    let answered = json!({ "description": about, "content": content });
    json!({
        "summary": about,
        "parameters": parameters,
        "responses": responses("200", answered),
    })
}

fn responses(status: &str, answered: Value) -> Map<String, Value> {
    let schema = json!({ "$ref": "#/components/schemas/Problem" });
    let content = content(&["application/problem+json"], &schema);
    let mut responses = Map::new();
    responses.insert(status.to_string(), answered);
    for (status, about) in ERRORS {
        let problem = json!({ "description": about, "content": content });
        responses.insert(status.to_string(), problem);
    }
    responses
}

/// The media types of an answer, with one schema.
fn content(kinds: &[&str], schema: &Value) -> Value {
    let kinds = kinds.iter().map(|kind| kind.to_string());
    kinds
        .map(|kind| (kind, json!({ "schema": schema })))
        .collect()
}

/// Describes the operation of a path whose arguments are `before`, if given, and those arguments of
/// the function `timeline` that `names` lists.
fn of_timeline(
    functions: &[Function],
    about: &str,
    before: Option<Value>,
    names: &[&str],
) -> Value {
    let timeline = functions
        .iter()
        .find(|function| function.name == "timeline");
    let all = timeline.map_or_else(Vec::new, |function| arguments(function, true));
    let taken = all.iter().filter(|argument| names.contains(&argument.name));
    let parameters = before.into_iter().chain(taken.map(parameter)).collect();
    operation(about, parameters, content(&[JSON], &json!({})))
}

/// The operation of the path with sessions as a picture.
fn lanes(functions: &[Function]) -> Value {
    let about = "Activity of sessions over time as drawn by the page, root blockers first";
    let sessions = functions
        .iter()
        .find(|function| function.name == "sessions");
    let mut parameters = sessions.map_or_else(Vec::new, parameters);
    let (most, width) = (crate::lanes::WIDTH.0, crate::lanes::WIDTH.1);
    let about_width = format!("Columns of the picture, {most} at most ({width} without it)");
    parameters.push(in_query("width", &about_width));
    operation(about, parameters, content(&[JSON], &json!({})))
}

/// Parameters of a function.
fn parameters(function: &Function) -> Vec<Value> {
    let all = arguments(function, true);
    let parameters = std::iter::once(server()).chain(all.iter().map(parameter));
    parameters.collect()
}

/// The operation of a function's path.
fn asked(function: &Function) -> Value {
    let columns = function.columns(catalog::schema());
    let schema = json!({
        "type": "object",
        "required": ["columns", "rows", "notices"],
        "properties": {
            "columns": { "$ref": "#/components/schemas/Columns" },
            "rows": { "type": "array", "items": row(&columns) },
            "notices": { "$ref": "#/components/schemas/Notices" },
            "shortened": { "$ref": "#/components/schemas/Shortened" },
        },
    });
    let mut parameters = parameters(function);
    parameters.push(texts());
    operation(function.about, parameters, content(&[JSON], &schema))
}

/// The operation that writes a marker.
fn marked() -> Value {
    let schema = json!({
        "type": "object",
        "required": ["text"],
        "properties": {
            "server": { "type": "string" },
            "text": {
                "type": "string",
                "description": "Text of the marker, such as deploy 1.4",
                "minLength": 1,
                "maxLength": tacho_tape::write::marks::TEXT_BYTES,
            },
        },
    });
    let accepted = json!({ "description": "Accepted; it is written with the next tick" });
    json!({
        "summary": "Write a marker of this moment",
        "requestBody": { "required": true, "content": content(&[crate::api::FORM], &schema) },
        "responses": responses("202", accepted),
    })
}

/// A parameter of a query string that may be any text.
fn in_query(name: &str, about: &str) -> Value {
    json!({
        "name": name,
        "in": "query",
        "description": about,
        "schema": { "type": "string" },
    })
}

fn server() -> Value {
    in_query(
        "server",
        "Name of a server; may be left out if there is only one",
    )
}

/// The parameter that limits texts.
fn texts() -> Value {
    let (least, most) = (BYTES.start(), BYTES.end());
    let about = format!(
        "Length of texts: full, or a number of bytes ({least} to {most}) after which a text is cut (full without it)"
    );
    in_query(ARGUMENT, &about)
}

fn parameter(argument: &Argument) -> Value {
    let kind = argument.kind.name();
    let about = match argument.default {
        Some(default) => format!("{} ({kind}; {default} without it)", argument.help),
        None => format!("{} ({kind})", argument.help),
    };
    let mut parameter = in_query(argument.name, &about);
    match argument.kind {
        Kind::Switch => parameter["schema"]["enum"] = json!(["true", "false"]),
        Kind::Dimension => parameter["schema"]["enum"] = json!(catalog::dimension_names()),
        _ => (),
    }
    parameter
}

/// The members of a row. Each may be null.
fn row(fields: &[Field]) -> Value {
    let members = fields
        .iter()
        .map(|(name, kind)| (name.to_string(), value(*kind)));
    let properties: Map<String, Value> = members.collect();
    json!({ "type": "object", "properties": properties })
}

fn value(kind: Type) -> Value {
    match kind {
        // JSON readers keep 53 bits of a number, fewer than an id has.
        Type::Text | Type::Interval | Type::Id => json!({ "type": ["string", "null"] }),
        Type::Time => json!({ "type": ["string", "null"], "format": "date-time" }),
        Type::Int => json!({ "type": ["integer", "null"] }),
        Type::Numeric => json!({ "type": ["number", "null"] }),
        Type::Bool => json!({ "type": ["boolean", "null"] }),
    }
}

fn components() -> Value {
    let text = || json!({ "type": "string" });
    let integer = || json!({ "type": "integer" });
    let error = json!({ "message": text(), "detail": text(), "hint": text(), "sqlstate": text() });
    let mut notice = error.clone();
    notice["severity"] = text();
    let mut problem = error;
    problem["type"] = text();
    problem["title"] = text();
    problem["status"] = integer();
    let list = |members: Value| json!({ "type": "array", "items": { "type": "object", "properties": members } });
    json!({
        "schemas": {
            "Columns": list(json!({ "name": text(), "type": text() })),
            "Notices": list(notice),
            "Shortened": list(json!({ "row": integer(), "column": text(), "bytes": integer() })),
            "Problem": {
                "type": "object",
                "required": ["status", "message", "sqlstate"],
                "properties": problem,
            },
        },
        "securitySchemes": {
            "token": { "type": "http", "scheme": "bearer" },
            "cookie": {
                "type": "apiKey",
                "in": "cookie",
                "name": "tacho",
                "description": "Cookie that /?token=… gives in exchange for the token; its name ends in _ and the port",
            },
        },
    })
}
