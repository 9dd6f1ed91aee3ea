//! The share of the sessions' CPU time that is spent in a variant's own
//! libraries: samples of the CPU clock by `perf`, of all processes that the
//! postmaster starts meanwhile. What a library makes the server or the kernel do
//! is not in it.

use super::process::{Running, Stop, in_path, run};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Samples a second: no divisor of the server's own intervals.
const FREQUENCY: &str = "997";
/// For perf to begin.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// What cannot be measured here, in words.
pub fn unmeasured() -> Option<String> {
    let missing = !in_path("perf");
    missing.then(|| "shares of libraries are not measured: perf is not installed".to_owned())
}

/// Samples that are being taken.
pub struct Sampling {
    perf: Running,
    data: PathBuf,
}

impl Sampling {
    /// Begins with the sessions that this postmaster starts from now on. None
    /// where there is no perf.
    pub fn start(postmaster: u32, scratch: &Path, stop: &Stop) -> Result<Option<Self>> {
        if unmeasured().is_some() {
            return Ok(None);
        }
        let data = scratch.join("perf.data");
        if data.exists() {
            fs::remove_file(&data)?;
        }
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-e", "cpu-clock", "-F", FREQUENCY])
            .args(["-p", &postmaster.to_string(), "-o"])
            .arg(&data)
            .stdin(Stdio::null());
        let mut sampling = Self {
            perf: Running::start(&mut perf)?,
            data,
        };
        sampling.wait(stop)?;
        Ok(Some(sampling))
    }

    /// Waits until perf has its counters: it writes the head of its file then.
    fn wait(&mut self, stop: &Stop) -> Result<()> {
        let begun = || fs::metadata(&self.data).is_ok_and(|file| file.len() > 0);
        let pauses = PATIENCE.as_millis() / PAUSE.as_millis();
        for _ in 0..pauses {
            if begun() {
                return Ok(());
            }
            self.perf.check()?;
            stop.sleep(PAUSE)?;
        }
        ensure!(begun(), "perf has not begun after {PATIENCE:?}");
        Ok(())
    }

    /// Ends, and returns the share of these libraries in percent.
    pub fn end(self, libraries: &[String], stop: &Stop) -> Result<f64> {
        self.perf.interrupt(stop)?;
        let mut report = Command::new("perf");
        report
            .args(["report", "-q", "--stdio", "--sort", "dso", "-i"])
            .arg(&self.data);
        let text = run(&mut report, stop)?;
        fs::remove_file(&self.data)?;
        share(&text, libraries).context("perf took no sample")
    }
}

/// Percent of `libraries` in lines such as "  1.87%  tacho.so"; none without lines.
fn share(text: &str, libraries: &[String]) -> Option<f64> {
    let parts = text.lines().filter_map(|line| {
        let (percent, file) = line.trim().split_once('%')?;
        Some((percent.parse::<f64>().ok()?, file.trim()))
    });
    let (mut own, mut all) = (0.0, 0.0);
    for (percent, file) in parts {
        let name = file.strip_suffix(".so");
        all += percent;
        own += match libraries
            .iter()
            .any(|library| Some(library.as_str()) == name)
        {
            true => percent,
            false => 0.0,
        };
    }
    (all > 0.0).then(|| 100.0 * own / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_has_its_part_of_what_was_sampled() {
        let text = "    72.00%  postgres\n    6.00%  tacho.so\n     2.00%  [kernel.kallsyms]\n\n";
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            share(text, &names)
        };
        assert_eq!(of(&["tacho"]), Some(7.5));
        assert_eq!(of(&["tach", "postgres"]), Some(0.0));
        assert_eq!(share("\n", &[]), None);
    }
}
