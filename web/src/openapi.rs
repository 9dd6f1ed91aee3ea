//! `GET /api/v1/openapi.json`: describes the questions as OpenAPI 3.1, from the
//! registry of functions.

use crate::texts::{ARGUMENT, BYTES};
use tacho_source::arguments::arguments;
use tacho_source::catalog;
use tacho_tape::query::json::{Object, array, quote};
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
        "Servers that can be asked",
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
        "What is recorded at this moment, as server-sent events",
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
    ("400", "An argument makes no sense"),
    ("401", "Who asks is not known"),
    (
        "403",
        "A page of another origin asks, or files may not be used",
    ),
    ("404", "There is no such server or function, or no history"),
    ("405", "This is not done here"),
    ("408", "The body did not come in time"),
    ("421", "This server is not known by that name"),
    ("429", "Too many ask at once"),
    ("500", "The history could not be read"),
    ("501", "This cannot be done here"),
    ("502", "There is no connection to the server"),
    ("503", "It takes too much memory, or was cancelled"),
];

/// The description of a source's functions.
pub fn describe(functions: &[Function]) -> String {
    let mut paths = Object::default();
    for (path, about, kinds, takes_server) in OTHERS {
        let parameters = takes_server.then(server).into_iter().collect();
        let get = operation(about, parameters, &content(kinds, "{}"));
        paths.put(path, &object(&[("get", &get)]));
    }
    let about = "The load of all servers, the one in most trouble first";
    let fleet = of_timeline(functions, about, None, &crate::fleet::ARGUMENTS);
    paths.put("/api/v1/fleet", &fleet);
    let about = "What a window shows first, as sentences of the report";
    let findings = of_timeline(
        functions,
        about,
        Some(server()),
        &crate::findings::ARGUMENTS,
    );
    paths.put("/api/v1/findings", &findings);
    paths.put("/api/v1/lanes", &lanes(functions));
    for function in functions {
        let mut methods = Object::default();
        methods.put("get", &asked(function));
        if function.name == "markers" {
            methods.put("post", &marked());
        }
        paths.put(&format!("/api/v1/{}", function.name), &methods.json());
        if function.name == "report" {
            let about = "The same as one file of HTML, to be saved";
            let page = operation(about, parameters(function), &content(&[HTML], "{}"));
            paths.put("/api/v1/report.html", &object(&[("get", &page)]));
        }
    }
    let info = object(&[
        ("title", &quote("tacho web")),
        ("version", &quote(env!("CARGO_PKG_VERSION"))),
        ("description", &quote("Performance history of PostgreSQL")),
    ]);
    let described = object(&[
        ("openapi", &quote("3.1.0")),
        ("info", &info),
        ("security", "[{\"token\": []}, {\"cookie\": []}]"),
        ("paths", &paths.json()),
        ("components", &components()),
    ]);
    described + "\n"
}

fn object(members: &[(&str, &str)]) -> String {
    let mut object = Object::default();
    for (name, value) in members {
        object.put(name, value);
    }
    object.json()
}

/// An operation and its answers.
fn operation(about: &str, parameters: Vec<String>, content: &str) -> String {
    let answered = object(&[("description", &quote(about)), ("content", content)]);
    object(&[
        ("summary", &quote(about)),
        ("parameters", &array(parameters)),
        ("responses", &responses("200", &answered)),
    ])
}

fn responses(status: &str, answered: &str) -> String {
    let mut responses = Object::default();
    responses.put(status, answered);
    let schema = "{\"$ref\": \"#/components/schemas/Problem\"}";
    for (status, about) in ERRORS {
        let content = content(&["application/problem+json"], schema);
        let problem = object(&[("description", &quote(about)), ("content", &content)]);
        responses.put(status, &problem);
    }
    responses.json()
}

fn content(kinds: &[&str], schema: &str) -> String {
    let mut content = Object::default();
    for kind in kinds {
        content.put(kind, &object(&[("schema", schema)]));
    }
    content.json()
}

/// A question with some arguments of `timeline`, and one before them.
fn of_timeline(
    functions: &[Function],
    about: &str,
    before: Option<String>,
    names: &[&str],
) -> String {
    let timeline = functions
        .iter()
        .find(|function| function.name == "timeline");
    let all = timeline.map_or_else(Vec::new, |function| arguments(function, true));
    let taken = all.iter().filter(|argument| names.contains(&argument.name));
    let parameters = before.into_iter().chain(taken.map(parameter)).collect();
    let get = operation(about, parameters, &content(&[JSON], "{}"));
    object(&[("get", &get)])
}

/// The path with sessions as a picture.
fn lanes(functions: &[Function]) -> String {
    let about = "The lives of sessions as a picture shows them: heads of queues first";
    let sessions = functions
        .iter()
        .find(|function| function.name == "sessions");
    let mut parameters = sessions.map_or_else(Vec::new, parameters);
    let (most, width) = (crate::lanes::WIDTH.0, crate::lanes::WIDTH.1);
    let about_width = format!("Columns of the picture, {most} at most ({width} without it)");
    parameters.push(object(&[
        ("name", "\"width\""),
        ("in", "\"query\""),
        ("description", &quote(&about_width)),
        ("schema", "{\"type\": \"string\"}"),
    ]));
    let get = operation(about, parameters, &content(&[JSON], "{}"));
    object(&[("get", &get)])
}

/// Parameters of a function.
fn parameters(function: &Function) -> Vec<String> {
    let all = arguments(function, true);
    let parameters = std::iter::once(server()).chain(all.iter().map(parameter));
    parameters.collect()
}

/// The path of a function.
fn asked(function: &Function) -> String {
    let columns = function.columns(catalog::schema());
    let rows = object(&[("type", "\"array\""), ("items", &row(&columns))]);
    let properties = object(&[
        ("columns", "{\"$ref\": \"#/components/schemas/Columns\"}"),
        ("rows", &rows),
        ("notices", "{\"$ref\": \"#/components/schemas/Notices\"}"),
        (
            "shortened",
            "{\"$ref\": \"#/components/schemas/Shortened\"}",
        ),
    ]);
    let schema = object(&[
        ("type", "\"object\""),
        ("required", "[\"columns\", \"rows\", \"notices\"]"),
        ("properties", &properties),
    ]);
    let mut parameters = parameters(function);
    parameters.push(texts());
    operation(function.about, parameters, &content(&[JSON], &schema))
}

/// The operation that writes a marker.
fn marked() -> String {
    let text = object(&[
        ("type", "\"string\""),
        ("description", &quote("What happened, such as deploy 1.4")),
        ("minLength", "1"),
        (
            "maxLength",
            &tacho_tape::write::marks::TEXT_BYTES.to_string(),
        ),
    ]);
    let properties = object(&[("server", "{\"type\": \"string\"}"), ("text", &text)]);
    let schema = object(&[
        ("type", "\"object\""),
        ("required", "[\"text\"]"),
        ("properties", &properties),
    ]);
    let body = object(&[
        ("required", "true"),
        ("content", &content(&[crate::api::FORM], &schema)),
    ]);
    let accepted = object(&[(
        "description",
        &quote("The history has it with the next tick"),
    )]);
    object(&[
        ("summary", &quote("Write a marker of this moment")),
        ("requestBody", &body),
        ("responses", &responses("202", &accepted)),
    ])
}

fn server() -> String {
    object(&[
        ("name", &quote("server")),
        ("in", "\"query\""),
        (
            "description",
            &quote("Which server; may be left out where there is one"),
        ),
        ("schema", "{\"type\": \"string\"}"),
    ])
}

/// The parameter that limits texts.
fn texts() -> String {
    let (least, most) = (BYTES.start(), BYTES.end());
    let about = format!(
        "How much of each text is told: full, or so many bytes ({least} to {most}) and a mark; shortened has where (full without it)"
    );
    object(&[
        ("name", &quote(ARGUMENT)),
        ("in", "\"query\""),
        ("description", &quote(&about)),
        ("schema", "{\"type\": \"string\"}"),
    ])
}

fn parameter(argument: &Argument) -> String {
    let mut schema = Object::default();
    schema.put("type", "\"string\"");
    match argument.kind {
        Kind::Switch => {
            schema.put("enum", "[\"true\", \"false\"]");
        }
        Kind::Dimension => {
            let names = catalog::dimension_names().iter();
            schema.put("enum", &array(names.map(|name| quote(name))));
        }
        _ => (),
    }
    let about = match argument.default {
        Some(default) => format!(
            "{} ({}; {default} without it)",
            argument.help,
            argument.kind.name()
        ),
        None => format!("{} ({})", argument.help, argument.kind.name()),
    };
    object(&[
        ("name", &quote(argument.name)),
        ("in", "\"query\""),
        ("description", &quote(&about)),
        ("schema", &schema.json()),
    ])
}

/// The members of a row. Each may be null.
fn row(fields: &[Field]) -> String {
    let mut properties = Object::default();
    for (name, kind) in fields {
        properties.put(name, value(*kind));
    }
    object(&[("type", "\"object\""), ("properties", &properties.json())])
}

fn value(kind: Type) -> &'static str {
    match kind {
        Type::Text | Type::Interval => "{\"type\": [\"string\", \"null\"]}",
        Type::Time => "{\"type\": [\"string\", \"null\"], \"format\": \"date-time\"}",
        // JSON readers keep 53 bits of a number.
        Type::Id => "{\"type\": [\"string\", \"null\"]}",
        Type::Int => "{\"type\": [\"integer\", \"null\"]}",
        Type::Numeric => "{\"type\": [\"number\", \"null\"]}",
        Type::Bool => "{\"type\": [\"boolean\", \"null\"]}",
    }
}

fn components() -> String {
    let text = "{\"type\": \"string\"}";
    let column = object(&[
        ("type", "\"object\""),
        ("properties", &object(&[("name", text), ("type", text)])),
    ]);
    let error = [
        ("message", text),
        ("detail", text),
        ("hint", text),
        ("sqlstate", text),
    ];
    let notice = [&error[..], &[("severity", text)]].concat();
    let notice = object(&[("type", "\"object\""), ("properties", &object(&notice))]);
    let status = ("status", "{\"type\": \"integer\"}");
    let problem = [&error[..], &[("type", text), ("title", text), status]].concat();
    let problem = object(&[
        ("type", "\"object\""),
        ("required", "[\"status\", \"message\", \"sqlstate\"]"),
        ("properties", &object(&problem)),
    ]);
    let integer = "{\"type\": \"integer\"}";
    let shortened = [("row", integer), ("column", text), ("bytes", integer)];
    let shortened = object(&[("type", "\"object\""), ("properties", &object(&shortened))]);
    let list = |items: &str| object(&[("type", "\"array\""), ("items", items)]);
    let schemas = object(&[
        ("Columns", &list(&column)),
        ("Notices", &list(&notice)),
        ("Shortened", &list(&shortened)),
        ("Problem", &problem),
    ]);
    let cookie = object(&[
        ("type", "\"apiKey\""),
        ("in", "\"cookie\""),
        ("name", "\"tacho\""),
        (
            "description",
            &quote("As the token is exchanged for at /?token=…; its name ends in _ and the port"),
        ),
    ]);
    let schemes = object(&[
        ("token", "{\"type\": \"http\", \"scheme\": \"bearer\"}"),
        ("cookie", &cookie),
    ]);
    object(&[("schemas", &schemas), ("securitySchemes", &schemes)])
}
