//! More queries and wait events than any server has: none is left out, and none
//! is merged with another.
#![allow(clippy::unwrap_used, missing_docs)]

use serde_json::Value;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

const TICKS: u64 = 10;
const SESSIONS: u64 = 10_000;
const WAITS: u64 = 33_000;

struct Scratch(PathBuf);

impl Scratch {
    fn tacho(&self, args: &[&str]) -> Vec<u8> {
        let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(args)
            .arg(format!("--tape={}", self.0.join("tape").display()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    }

    fn rows(&self, args: &[&str]) -> Vec<Value> {
        let window = [
            "--since=2026-01-01T00:00:00Z",
            "--until=2026-01-01T00:01:00Z",
        ];
        let json = self.tacho(&[args, &window, &["--json"]].concat());
        serde_json::from_slice(&json).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// 100,000 samples, each with a query of its own.
fn samples() -> String {
    let mut csv = "time,pid,wait_event_type,wait_event,query_id\n".to_string();
    for tick in 0..TICKS {
        for session in 0..SESSIONS {
            let query = tick * SESSIONS + session + 1;
            let wait = query % WAITS;
            writeln!(
                csv,
                "2026-01-01T00:00:{tick:02}Z,{},Extension,Event{wait},{query}",
                session + 1
            )
            .unwrap();
        }
    }
    csv
}

fn seconds(row: &Value) -> f64 {
    row["backend_seconds"].as_f64().unwrap()
}

#[test]
fn many_names_lose_no_session() {
    let scratch = Scratch(std::env::temp_dir().join(format!("tacho-many-{}", std::process::id())));
    std::fs::create_dir_all(&scratch.0).unwrap();
    let file = scratch.0.join("samples.csv");
    std::fs::write(&file, samples()).unwrap();
    scratch.tacho(&["import", "sessions", &file.to_string_lossy()]);

    let whole = &scratch.rows(&["aas"])[0];
    assert_eq!(seconds(whole), (TICKS * SESSIONS) as f64);
    assert_eq!(whole["peak_sessions"].as_u64(), Some(SESSIONS));

    let queries = scratch.rows(&["top", "query_id", "--n=all"]);
    assert_eq!(queries.len() as u64, TICKS * SESSIONS);
    assert!(queries.iter().all(|row| seconds(row) == 1.0));

    let waits = scratch.rows(&["top", "wait_event", "--n=all"]);
    assert_eq!(waits.len() as u64, WAITS);
    let total: f64 = waits.iter().map(seconds).sum();
    assert_eq!(total, (TICKS * SESSIONS) as f64);

    let one = &scratch.rows(&["aas", "--query-id=77777"])[0];
    assert_eq!(seconds(one), 1.0);
}
