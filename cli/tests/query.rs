//! `tacho query`: behaviour that the server relies on, besides the answers
//! themselves.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tacho_tape::files::directory::Recorded;

const WINDOW: [&str; 2] = [
    "--since=2026-01-01T00:00:00.000000Z",
    "--until=2026-01-01T00:02:00.000000Z",
];

struct Scratch(PathBuf);

impl Scratch {
    /// A directory with the input `basic.csv` of the conformance cases.
    fn basic(name: &str) -> Scratch {
        let scratch = Scratch::empty(name);
        scratch.import("basic", &[]);
        scratch
    }

    fn empty(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tacho-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }

    fn import(&self, input: &str, args: &[&str]) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let input = root.join(format!("../conformance/inputs/{input}.csv"));
        let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(["import", "sessions"])
            .arg(input)
            .arg("--tape")
            .arg(&self.0)
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn query(&self, function: &str, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(["query", function, "--format", "copy", "--tape"])
            .arg(&self.0)
            .args(WINDOW)
            .args(args)
            .output()
            .unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The first fields of each row.
fn rows(output: &Output, fields: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().skip(1).filter(|line| *line != "\\.");
    let cut = |line: &str| line.split('\t').take(fields).collect::<Vec<_>>().join(" ");
    lines.map(cut).collect()
}

#[test]
fn an_answer_begins_with_names_and_ends_with_a_mark() {
    let scratch = Scratch::basic("query-copy");
    let output = scratch.query("markers", &[]);
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "marker_time\tkind\tperiod_start\tperiod_end\tdetail\tcommand\tobject_class\tobject_oid\t\
         object_name\tdatabase\tusername\tapplication\tclient_addr\told_value\tnew_value\t\
         outcome\tleft_out\n\\.\n"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn an_owner_sees_own_sessions_and_texts_only() {
    let scratch = Scratch::basic("query-owner");
    let output = scratch.query("top", &["--dimension=query_id", "--owner=bob"]);
    assert_eq!(
        rows(&output, 3),
        ["12 \\N update stock", "(no query id) \\N \\N"]
    );
    let output = scratch.query("samples", &["--scope=all", "--owner=nobody"]);
    assert_eq!(rows(&output, 3), [] as [&str; 0]);
    let output = scratch.query("aas", &["--owner=bob", "--username=ann"]);
    assert!(rows(&output, 5)[0].ends_with("00:01:00 0.0000"));
}

#[test]
fn without_n_all_keys_come() {
    let scratch = Scratch::basic("query-all");
    let output = scratch.query("samples", &["--scope=all"]);
    assert_eq!(rows(&output, 1).len(), 52);
}

#[test]
fn a_memory_limit_is_obeyed() {
    let scratch = Scratch::basic("query-limits");
    let output = scratch.query("aas", &["--memory-limit-mb=512"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn an_argument_of_another_version_is_an_error() {
    let scratch = Scratch::basic("query-version");
    let output = scratch.query("aas", &["--future=1"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.starts_with("ERROR\t22023\tunexpected argument '--future' found\t\tThe library"),
        "{text}"
    );
}

#[test]
fn the_server_means_its_own_node_and_a_person_the_newest() {
    let scratch = Scratch::empty("query-home");
    scratch.import("basic", &["--node", "a1"]);
    scratch.import("storm", &["--node", "b2"]);
    let asked = |function: &str| rows(&scratch.query(function, &[]), 5)[0].clone();
    let shown = || {
        let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(["status", "--json", "--tape"])
            .arg(&scratch.0)
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let node = |id: &str| format!("{id:0>16}");
    let record = |id: &str| {
        let recorded = Recorded {
            node: u64::from_str_radix(id, 16).unwrap(),
            ..Recorded::default()
        };
        std::fs::write(scratch.0.join("node"), recorded.text()).unwrap();
    };

    let _ = std::fs::remove_file(scratch.0.join("node"));
    let newest = asked("aas");
    record("b2");
    assert_eq!(asked("aas"), newest);
    record("a1");
    assert_ne!(asked("aas"), newest);
    assert_eq!(
        asked("aas"),
        rows(&scratch.query("aas", &["--node=a1"]), 5)[0]
    );
    let chart = |args: &[&str]| rows(&scratch.query("chart", args), 3);
    assert_eq!(chart(&[]), chart(&["--node=a1"]));
    assert!(shown().contains(&node("b2")), "{}", shown());

    // A node without history of its own observes nothing; other nodes do not
    // stand in.
    record("c3");
    assert!(rows(&scratch.query("aas", &[]), 3)[0].ends_with(" none"));
}

#[test]
fn all_nodes_together_are_their_mean_by_time_observed() {
    let scratch = Scratch::empty("query-nodes");
    let inputs = Scratch::empty("query-nodes-inputs");
    std::fs::create_dir(&inputs.0).unwrap();
    // One node: 4 s with three sessions. The other: 2 s without sessions.
    let at = |tick: i32, pid: &str| format!("2026-01-01T00:00:0{tick}Z,{pid}\n");
    let busy = (0..4).flat_map(|tick| ["1", "2", "3"].map(|pid| at(tick, pid)));
    let idle = (0..2).map(|tick| at(tick, ""));
    for (node, rows) in [("a1", busy.collect::<String>()), ("b2", idle.collect())] {
        let file = inputs.0.join(node);
        std::fs::write(&file, format!("time,pid\n{rows}")).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(["import", "sessions"])
            .arg(&file)
            .args(["--node", node, "--tape"])
            .arg(&scratch.0)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let of = |node: &str| {
        let output = scratch.query("aas", &[node]);
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines = text.lines().map(|line| line.split('\t'));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let wanted = [
            "avg_aas",
            "backend_seconds",
            "peak_sessions",
            "ticks_observed",
        ];
        let values = names.zip(values).filter(|(name, _)| wanted.contains(name));
        values
            .map(|(_, value)| value.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("--node=a1"), ["3.0000", "3", "12.0000", "4"]);
    assert_eq!(of("--node=b2"), ["0.0000", "0", "0.0000", "2"]);
    // 12 s of load in 6 s observed.
    assert_eq!(of("--node=all"), ["2.0000", "3", "12.0000", "6"]);
}

#[test]
fn a_plan_is_printed_in_80_columns_and_as_json() {
    let scratch = Scratch::basic("explain");
    let tape = scratch.0.to_str().unwrap();
    let tacho = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.args(words).args(["--explain", "--tape", tape]);
        command.args(WINDOW).output().unwrap()
    };
    for (words, plan, why) in [
        (["top", "pid"], "one pass", "no totals for these keys"),
        (["timeline", "--tz=UTC"], "totals", "answered from totals"),
        (["aas", "--pid=101"], "one pass", "totals have no filters"),
    ] {
        let output = tacho(&words);
        let table = String::from_utf8(output.stdout).unwrap();
        assert!(
            table.lines().all(|line| line.chars().count() <= 80),
            "{table}"
        );
        let mut lines = table.lines().skip_while(|line| !line.starts_with("plan"));
        let titles: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        let expected = ["plan", "from", "to", "files", "parts", "bytes", "why"];
        assert_eq!(titles, expected, "{table}");
        let row = lines.next().unwrap();
        assert!(row.starts_with(plan) && row.ends_with(why), "{table}");
        assert_eq!(lines.next(), None, "{table}");
        let json = tacho(&[words[0], words[1], "--json"]);
        let json = String::from_utf8(json.stdout).unwrap();
        assert!(json.contains(&format!("\"plan\": \"{plan}\"")), "{json}");
        assert!(
            json.contains("\"scan\": 1,") && json.contains("\"files\": 1,"),
            "{json}"
        );
    }
    // A function that adds up no samples has the columns that it reads.
    let table = tacho(&["samples", "--tz=UTC"]).stdout;
    let table = String::from_utf8(table).unwrap();
    assert!(
        table.contains("columns") && table.contains("reads "),
        "{table}"
    );
}
