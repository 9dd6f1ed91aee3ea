//! Gives the program the commit that it is built from, for its reports. A build
//! outside a git repository may set `TACHO_COMMIT` itself.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=TACHO_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("TACHO_COMMIT").is_some() {
        return;
    }
    // git adds a line to this file whenever HEAD moves, so Cargo builds the program again.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"])
        && Path::new(&log).exists()
    {
        println!("cargo:rerun-if-changed={log}");
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo:rustc-env=TACHO_COMMIT={commit}");
    }
}

/// One line that git prints; `None` without git or without a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|line| output.status.success() && !line.is_empty())
}
