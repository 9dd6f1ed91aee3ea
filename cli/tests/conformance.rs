//! Runs the cases of `conformance/` with the command line. Every input is
//! imported as a node of one history directory. Rows come from the commands for
//! people, which have SQL's defaults; errors come from `tacho query`, which
//! prints the SQLSTATE.
#![allow(clippy::unwrap_used, missing_docs)]

use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tacho(args: &[String], case: &Value) -> Output {
    let program = env!("CARGO_BIN_EXE_tacho");
    let mut command = Command::new(program);
    command.env("TZ", case["zone"].as_str().unwrap_or("UTC"));
    command.args(args).output().unwrap()
}

fn conformance() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance")
}

/// A directory that is removed at the end of its test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("tacho-conformance-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn case_files() -> Vec<Value> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(conformance().join("cases"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    paths.iter().map(read).collect()
}

fn import(tape: &Path, file: &Value) {
    let input = |name: &Value| {
        let path = conformance().join("inputs").join(name.as_str().unwrap());
        path.to_string_lossy().into_owned()
    };
    let mut args = vec![
        "import".into(),
        "sessions".into(),
        input(&file["input"]),
        format!("--tape={}", tape.display()),
        format!("--node={}", file["node"].as_str().unwrap()),
    ];
    let with = file.get("with").and_then(Value::as_object);
    let with = with.into_iter().flatten();
    args.extend(with.map(|(kind, name)| format!("--with={kind}={}", input(name))));
    let output = tacho(&args, &Value::Null);
    assert!(output.status.success(), "import: {output:?}");
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Arguments as `--name=value`; a null `n` means all.
fn arguments(file: &Value, case: &Value, tape: &Path) -> Vec<String> {
    let mut args = vec![format!("--tape={}", tape.display())];
    let given: &Map<String, Value> = case["arguments"].as_object().unwrap();
    if !given.contains_key("node") {
        args.push(format!("--node={}", file["node"].as_str().unwrap()));
    }
    for (name, value) in given {
        match (name.as_str(), value) {
            ("n", Value::Null) => args.push("--n=all".into()),
            (_, Value::Null) => (),
            (name, value) => args.push(format!("--{}={}", name.replace('_', "-"), text(value))),
        }
    }
    args
}

/// Compares values; numbers compare by their text. An object may have more
/// members than expected.
fn matches(got: &Value, want: &Value) -> bool {
    match (got, want) {
        (Value::Object(got), Value::Object(want)) => want
            .iter()
            .all(|(name, want)| got.get(name).is_some_and(|got| matches(got, want))),
        (Value::Array(got), Value::Array(want)) => {
            got.len() == want.len() && got.iter().zip(want).all(|(got, want)| matches(got, want))
        }
        _ => got == want,
    }
}

fn check_rows(case: &Value, mut args: Vec<String>) -> Result<(), String> {
    let function = case["function"].as_str().unwrap();
    let dimension = args.iter().position(|a| a.starts_with("--dimension="));
    let dimension = dimension.map(|i| args.remove(i)["--dimension=".len()..].to_string());
    args.insert(0, function.replace('_', "-"));
    args.extend(dimension);
    if function == "report" {
        // The command for people writes a page.
        args.insert(0, "query".into());
        args.push("--format=json".into());
        args.extend(
            case["zone"]
                .as_str()
                .map(|zone| format!("--session-tz={zone}")),
        );
    } else {
        args.push("--json".into());
    }
    let output = tacho(&args, case);
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let got: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    let (got, want) = (got.as_array().unwrap(), case["rows"].as_array().unwrap());
    for (i, want) in want.iter().enumerate() {
        for (column, want) in want.as_object().unwrap() {
            let got = got.get(i).map_or(&Value::Null, |row| &row[column]);
            let document = got.as_str().filter(|_| want.is_object());
            let document = document.and_then(|text| serde_json::from_str(text).ok());
            if !matches(document.as_ref().unwrap_or(got), want) {
                return Err(format!("row {i}, {column}: got {got}, expected {want}"));
            }
        }
    }
    if got.len() != want.len() {
        return Err(format!("got {} rows, expected {}", got.len(), want.len()));
    }
    Ok(())
}

fn check_error(case: &Value, mut args: Vec<String>) -> Result<(), String> {
    args.insert(0, case["function"].as_str().unwrap().to_string());
    args.insert(0, "query".into());
    let output = tacho(&args, case);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let fields: Vec<&str> = stderr.trim_end_matches('\n').split('\t').collect();
    let names = ["severity", "sqlstate", "message", "detail", "hint"];
    if fields.len() != names.len() || fields[0] != "ERROR" || output.status.code() != Some(2) {
        return Err(format!("no error of usage: {output:?}"));
    }
    for (name, want) in case["error"].as_object().unwrap() {
        let position = names.iter().position(|n| n == name).unwrap();
        if fields[position] != text(want) {
            return Err(format!("{name}: got {}, expected {want}", fields[position]));
        }
    }
    Ok(())
}

/// The differences between the cases of all files and their answers.
fn failures(files: &[Value], tape: &Path) -> Vec<String> {
    let mut failures = Vec::new();
    for file in files {
        for case in file["cases"].as_array().unwrap() {
            let args = arguments(file, case, tape);
            let checked = match case.get("error") {
                Some(_) => check_error(case, args),
                None => check_rows(case, args),
            };
            if let Err(message) = checked {
                failures.push(format!("{}: {}: {message}", file["input"], case["name"]));
            }
        }
    }
    failures
}

#[test]
fn the_command_line_answers_every_case() {
    let scratch = Scratch::new("cases");
    let files = case_files();
    files.iter().for_each(|file| import(&scratch.0, file));
    let failures = failures(&files, &scratch.0);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Exports a node and imports it into another directory.
fn copy(node: &str, from: &Path, to: &Path) {
    let csv = |kind: &str| to.with_extension(format!("{kind}.csv"));
    let kinds = [
        "sessions",
        "texts",
        "locks",
        "markers",
        "counts",
        "server",
        "server_database",
        "server_slot",
    ];
    for kind in kinds {
        let export = [
            "export".into(),
            kind.into(),
            format!("--tape={}", from.display()),
            format!("--node={node}"),
        ];
        let output = tacho(&export, &Value::Null);
        assert!(output.status.success(), "export {kind}: {output:?}");
        std::fs::write(csv(kind), output.stdout).unwrap();
    }
    let mut args = vec![
        "import".into(),
        "sessions".into(),
        csv("sessions").display().to_string(),
        format!("--tape={}", to.display()),
        format!("--node={node}"),
    ];
    args.extend(
        kinds[1..]
            .iter()
            .map(|kind| format!("--with={kind}={}", csv(kind).display())),
    );
    let output = tacho(&args, &Value::Null);
    assert!(output.status.success(), "import: {output:?}");
    kinds
        .iter()
        .for_each(|kind| std::fs::remove_file(csv(kind)).unwrap());
}

#[test]
fn an_imported_export_answers_every_case() {
    let (scratch, copied) = (Scratch::new("exported"), Scratch::new("imported"));
    let files = case_files();
    for file in &files {
        import(&scratch.0, file);
        copy(file["node"].as_str().unwrap(), &scratch.0, &copied.0);
    }
    let failures = failures(&files, &copied.0);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
