//! `--dry-run`: the runs of an experiment, their duration, the servers, and
//! what is missing. Nothing is started or written.

use super::access::LOADED;
use super::outline::{duration_of, shape, spoken};
use super::place::Found;
use super::plan::jobs;
use super::process::Stop;
use super::run::{Missing, Options, Scratch, find, missing, refuse_missing, uncounted};
use super::scenario::Scenario;
use anyhow::Result;
use std::fmt::Write;

/// Prints the outline of an experiment. Fails where the experiment would be
/// refused.
pub fn tell(
    scenario: &Scenario,
    options: &Options,
    stop: &Stop,
    print: impl Fn(&str) -> Result<()>,
) -> Result<()> {
    let scratch = Scratch::new(&options.scratch)?;
    let found = find(scenario, options, &scratch.0, stop)?;
    let missing = missing(scenario, &found);
    print(&text(scenario, options, &found, &missing)?)?;
    refuse_missing(&missing, options)
}

fn text(
    scenario: &Scenario,
    options: &Options,
    found: &[Found],
    missing: &[Missing],
) -> Result<String> {
    let runs = jobs(scenario, found.len(), |i, v| {
        !missing.iter().any(|m| m.is(i, v))
    });
    let mut text = String::new();
    writeln!(text, "{}: {}", scenario.name, scenario.title)?;
    writeln!(
        text,
        "  {} on {}: {} runs, about {}",
        shape(scenario),
        match found.len() {
            1 => "1 server".to_owned(),
            n => format!("{n} servers"),
        },
        runs.len(),
        spoken(duration_of(scenario, &runs, found.len()))
    )?;
    for server in found {
        writeln!(text, "  {}", described(server))?;
    }
    if let Some(clients) = &options.clients {
        writeln!(text, "  pgbench and psql of {}", clients.display())?;
    }
    for missing in missing {
        writeln!(text, "  missing: {}", missing.reason)?;
    }
    for number in uncounted(scenario) {
        writeln!(text, "  missing: {number}")?;
    }
    writeln!(text, "  results: {}", options.output.display())?;
    Ok(text)
}

fn described(server: &Found) -> String {
    match server {
        Found::Installed(installation) => format!(
            "PostgreSQL {} of {}, a private server",
            installation.version,
            installation.bin.display()
        ),
        Found::Given(given) => format!(
            "PostgreSQL {} of --dsn, in a database \"{LOADED}\" of its own",
            given.version
        ),
    }
}
