//! The share of the sessions' CPU time that a variant's libraries take. `perf` samples
//! the CPU clock of all processes that the postmaster starts meanwhile. Each sample
//! has its stack up to the library. The stack distinguishes a library's own
//! instructions from work that the library makes the server and the kernel do. Work
//! that the server would do without the library (`standard_ExecutorRun` and the like)
//! counts as neither. This hides work that a library requested from the server's own
//! functions: the executor's clock for pg_stat_statements counts as the server's.

use super::process::{Running, Stop, in_path, run};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Bytes of stack per sample: enough frames to reach the library from the innermost
/// function. If a stack is cut before the library, the server was deep in its own work.
const STACK: &str = "dwarf,1024";
/// Server functions that a library's hook calls to continue normal work.
const SERVERS_OWN: [&str; 2] = ["standard_", "ProcessUtility"];
/// Samples per second: not a divisor of the server's own intervals.
const FREQUENCY: &str = "997";
/// Time for perf to begin.
const START_TIMEOUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Message if shares cannot be measured here.
pub fn unmeasured() -> Option<String> {
    let missing = !in_path("perf");
    missing.then(|| "shares of libraries are not measured: perf is not installed".to_owned())
}

/// Sampling in progress.
pub struct Sampling {
    perf: Running,
    data: PathBuf,
}

impl Sampling {
    /// Samples the sessions that this postmaster starts from now on. `None` where
    /// there is no perf.
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
            .args(["--call-graph", STACK])
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
        let pauses = START_TIMEOUT.as_millis() / PAUSE.as_millis();
        for _ in 0..pauses {
            if begun() {
                return Ok(());
            }
            self.perf.check()?;
            stop.sleep(PAUSE)?;
        }
        ensure!(begun(), "perf did not start within {START_TIMEOUT:?}");
        Ok(())
    }

    /// Ends, and returns the share of these libraries.
    pub fn end(self, libraries: &[String], stop: &Stop) -> Result<Share> {
        self.perf.interrupt(stop)?;
        let mut script = Command::new("perf");
        script
            .args(["script", "-F", "ip,sym,dso", "-i"])
            .arg(&self.data);
        let text = run(&mut script, stop)?;
        fs::remove_file(&self.data)?;
        share(&text, libraries).context("perf recorded no sample")
    }
}

/// Percent of all samples.
#[derive(Debug, PartialEq)]
pub struct Share {
    /// Percent of the samples that were in the libraries.
    pub own: f64,
    /// Percent of the samples that were in the libraries, or in the server and the
    /// kernel on their behalf.
    pub caused: f64,
}

/// The originator of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Owner {
    Server,
    Library,
    ForLibrary,
}

/// The share of `libraries` in stacks printed by `perf script`: innermost function
/// first, stacks separated by an empty line. `None` without a stack.
fn share(text: &str, libraries: &[String]) -> Option<Share> {
    let owners: Vec<Owner> = text
        .split("\n\n")
        .filter(|stack| !stack.trim().is_empty())
        .map(|stack| owner(&frames(stack), libraries))
        .collect();
    let percent = |of: &[Owner]| {
        let theirs = owners.iter().filter(|owner| of.contains(owner)).count();
        100.0 * theirs as f64 / owners.len() as f64
    };
    (!owners.is_empty()).then(|| Share {
        own: percent(&[Owner::Library]),
        caused: percent(&[Owner::Library, Owner::ForLibrary]),
    })
}

/// Function and file of each line such as "  12782 walk_unlocked (/usr/lib/tacho.so)".
/// An inlined function belongs to the next function that is not inlined.
fn frames(stack: &str) -> Vec<(&str, &str)> {
    let parts = stack.lines().filter_map(|line| {
        let (_, rest) = line.trim().split_once(' ')?;
        let (function, file) = rest.rsplit_once(" (")?;
        Some((function, file.strip_suffix(')')?))
    });
    parts.filter(|&(_, file)| file != "inlined").collect()
}

/// The originator: the innermost library on the stack, unless it had called the server
/// to continue its normal work.
fn owner(frames: &[(&str, &str)], libraries: &[String]) -> Owner {
    let theirs = |file: &str| {
        let name = Path::new(file).file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.strip_suffix(".so"));
        libraries
            .iter()
            .any(|library| Some(library.as_str()) == name)
    };
    match frames.iter().position(|&(_, file)| theirs(file)) {
        None => Owner::Server,
        Some(0) => Owner::Library,
        Some(at)
            if SERVERS_OWN
                .iter()
                .any(|own| frames[at - 1].0.starts_with(own)) =>
        {
            Owner::Server
        }
        Some(_) => Owner::ForLibrary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACKS: &str = "
\tffffffff815ea003 do_syscall_64 ([kernel.kallsyms])
\t          101234 __libc_pread64 (/usr/lib/libc.so.6)
\t           17482 run_queue_ns (inlined)
\t           17482 usage_begin (/pg/lib/tacho.so)
\t          250000 standard_ExecutorRun (/pg/bin/postgres)


\t           127ca same_key (inlined)
\t           127ca walk_unlocked (/pg/lib/tacho.so)

\t          250000 ExecScan (/pg/bin/postgres)
\t          250010 standard_ExecutorRun (/pg/bin/postgres)
\t           17f00 on_executor_run (/pg/lib/tacho.so)

\t          250000 heap_getnext (/pg/bin/postgres)
\tffffffffffffffff [unknown] ([unknown])
";

    #[test]
    fn a_library_has_what_it_runs_and_what_is_run_for_it_but_not_what_it_stands_before() {
        let of = |name: &str| share(STACKS, &[name.to_owned()]);
        let (own, caused) = (25.0, 50.0);
        assert_eq!(of("tacho"), Some(Share { own, caused }));
        let (own, caused) = (0.0, 0.0);
        assert_eq!(of("tach"), Some(Share { own, caused }));
        assert_eq!(share("\n", &["tacho".to_owned()]), None);
    }
}
