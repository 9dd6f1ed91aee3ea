//! Histories that `tacho import` has made.
#![allow(clippy::unwrap_used, missing_docs, dead_code)]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// The program `tacho` in the same directory; builds it if it is missing.
fn tacho() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let directory = test.ancestors().nth(2).unwrap();
    let program = directory.join("tacho");
    if !program.exists() {
        let is_release = directory.ends_with("release");
        let release: &[&str] = if is_release { &["--release"] } else { &[] };
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--locked", "--package", "tacho"]);
        assert!(build.args(release).status().unwrap().success());
    }
    program
}

/// A history below a directory, second by second.
pub struct History {
    directory: TempDir,
    /// The next second, seconds since 1970.
    pub at: i64,
    is_begun: bool,
}

impl History {
    pub fn begin(at: i64) -> History {
        History {
            directory: tempfile::tempdir().unwrap(),
            at,
            is_begun: false,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Appends seconds: sessions that compute on four CPUs, and sessions that wait for process 500.
    pub fn add(&mut self, seconds: i64, busy: u32, waiting: u32) {
        self.add_with(seconds, busy, waiting, &[]);
    }

    /// The same with other rows of these seconds, as `tacho import` takes them.
    pub fn add_with(&mut self, seconds: i64, busy: u32, waiting: u32, more: &[&str]) {
        let mut text =
            "time,pid,backend_start,state,wait_event_type,wait_event,query_id,blocked_by,vcpus\n"
                .to_string();
        for second in self.at..self.at + seconds {
            let time = jiff::Timestamp::from_second(second).unwrap();
            let mut row = |pid: u32, state: &str, wait: &str, query: u32, holder: &str| {
                let start = "2025-12-31T00:00:00Z";
                writeln!(
                    text,
                    "{time},{pid},{start},{state},{wait},{query},{holder},4"
                )
                .unwrap();
            };
            for pid in 0..busy {
                row(100 + pid, "active", ",", 11, "");
            }
            for pid in 0..waiting {
                row(600 + pid, "active", "Lock,transactionid", 12, "500");
            }
            row(500, "idle in transaction", "Client,ClientRead", 13, "");
        }
        self.at += seconds;
        self.import(&text, more);
    }

    /// Imports rows of `tacho import sessions`.
    pub fn import(&mut self, text: &str, more: &[&str]) {
        let file = self.path("rows.csv");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(tacho());
        command
            .args(["import", "sessions"])
            .arg(&file)
            .arg("--tape");
        command
            .arg(self.path("shop"))
            .arg("--node=00000000000000aa")
            .args(more);
        if self.is_begun {
            command.arg("--append");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        self.is_begun = true;
    }

    pub fn watch(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho-watch"));
        command
            .arg("--tape")
            .arg(self.path("shop"))
            .args(args)
            .env("TZ", "UTC");
        command.output().unwrap()
    }

    /// Looks once: exit code and output.
    pub fn once(&self, args: &[&str]) -> (i32, String) {
        let output = self.watch(&[&["--once"], args].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.stderr.is_empty(),
            "{:?}",
            String::from_utf8_lossy(&output.stderr)
        );
        (output.status.code().unwrap(), text.trim_end().to_string())
    }

    /// The alarms that the rules would have given, without findings and addresses.
    pub fn replayed(&self, config: &str, since: i64) -> Vec<String> {
        let text = self.replay(config, since);
        let lines = text.lines().filter(|line| !line.starts_with(' '));
        lines.map(str::to_string).collect()
    }

    /// The same with findings and addresses, as it is printed.
    pub fn replay(&self, config: &str, since: i64) -> String {
        let file = self.path("replay.toml");
        std::fs::write(&file, config).unwrap();
        let at = |second| jiff::Timestamp::from_second(second).unwrap().to_string();
        let (since, until) = (at(since), at(self.at));
        let file = file.display().to_string();
        let output = self.watch(&["--config", &file, "--since", &since, "--until", &until]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}
