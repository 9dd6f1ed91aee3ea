//! Compares the description of the interface with its routes.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Scratch, Server, WINDOW};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};

/// Routes of the page.
const PAGE: [&str; 3] = ["/", "/tacho.svg", "/assets/{name}"];

fn described(server: &Server) -> Value {
    let answer = server.get("/api/v1/openapi.json");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()
}

/// The target of a reference in the description.
fn resolved<'a>(all: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema["$ref"].as_str();
    reference.map_or(schema, |path| {
        all.pointer(path.trim_start_matches('#')).unwrap()
    })
}

/// Checks that a value has the described type.
fn fits(all: &Value, schema: &Value, value: &Value, at: &str) {
    let schema = resolved(all, schema);
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(items) => {
            items
                .iter()
                .for_each(|item| fits(all, &schema["items"], item, at));
            "array"
        }
        Value::Object(members) => {
            for (name, value) in members {
                let known = &schema["properties"][name];
                assert!(!known.is_null(), "{at}: {name} is not described");
                fits(all, known, value, &format!("{at}.{name}"));
            }
            "object"
        }
    };
    let types = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        many => many
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t.as_str().unwrap())
            .collect(),
    };
    let is_number = kind == "integer" && types.contains(&"number");
    assert!(
        is_number || types.contains(&kind),
        "{at}: {value} is no {types:?}"
    );
}

#[test]
fn each_path_that_is_described_answers_as_described() {
    let scratch = Scratch::shop("openapi");
    let server = Server::known(&scratch.tape(), &[]);
    let all = described(&server);
    assert_eq!(all["openapi"], "3.1.0");
    for (path, methods) in all["paths"].as_object().unwrap() {
        let get = &methods["get"];
        let content = get["responses"]["200"]["content"].as_object().unwrap();
        if content.contains_key("text/event-stream") {
            let mut begin = [0; 15];
            let mut stream = server.connect();
            stream.write_all(server.head(path, "").as_bytes()).unwrap();
            stream.read_exact(&mut begin).unwrap();
            assert_eq!(&begin, b"HTTP/1.1 200 OK");
            continue;
        }
        let names = get["parameters"].as_array().unwrap().iter();
        let names: BTreeSet<&str> = names.map(|p| p["name"].as_str().unwrap()).collect();
        let window = if names.contains("since") { WINDOW } else { "" };
        let answer = server.get(&format!("{path}?{window}"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let kind = answer
            .header("content-type")
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        assert!(content.contains_key(kind), "{path}: {kind}");
        let schema = &content[kind]["schema"];
        if !schema["type"].is_null() {
            fits(&all, schema, &answer.json(), path);
        }
        // Arguments that are not described are refused.
        if names.contains("server") {
            let problem = server.get(&format!("{path}?{window}&nothing=1"));
            assert_eq!(problem.status, 400, "{path}");
            fits(
                &all,
                &all["components"]["schemas"]["Problem"],
                &problem.json(),
                path,
            );
        }
    }
}

#[test]
fn each_route_function_and_argument_is_described() {
    let scratch = Scratch::shop("openapi-routes");
    let server = Server::known(&scratch.tape(), &[]);
    let all = described(&server);
    let paths = all["paths"].as_object().unwrap();
    let routes = include_str!("../src/routes.rs").lines();
    let routes = routes.filter_map(|line| line.trim().strip_prefix(".route(\""));
    let routes: Vec<&str> = routes.map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(routes.len() > 6, "{routes:?}");
    for route in routes
        .iter()
        .filter(|r| !PAGE.contains(r) && !r.contains('{'))
    {
        assert!(paths.contains_key(*route), "{route}");
    }
    let listed = server.get("/api/v1/functions").json();
    for function in listed["functions"].as_array().unwrap() {
        let name = function["name"].as_str().unwrap();
        let get = &paths[&format!("/api/v1/{name}")]["get"];
        let named = |all: &Value| -> Vec<String> {
            let all = all.as_array().unwrap().iter();
            all.map(|one| one["name"].as_str().unwrap().to_string())
                .collect()
        };
        let mut expected = named(&function["arguments"]);
        expected.insert(0, "server".to_string());
        expected.push("texts".to_string());
        assert_eq!(named(&get["parameters"]), expected, "{name}");
        let rows =
            &get["responses"]["200"]["content"]["application/json"]["schema"]["properties"]["rows"];
        let columns: BTreeSet<String> = named(&function["columns"]).into_iter().collect();
        let properties = rows["items"]["properties"].as_object().unwrap();
        assert_eq!(properties.keys().cloned().collect::<BTreeSet<_>>(), columns);
    }
    // Nothing else is written.
    let written = paths
        .iter()
        .filter(|(_, methods)| !methods["post"].is_null());
    let written: Vec<&String> = written.map(|(path, _)| path).collect();
    assert_eq!(written, ["/api/v1/markers"]);
}
