//! The cost of one statement without a load. A single-user server executes it
//! repeatedly, so that no other process disturbs. callgrind counts instructions and
//! strace counts system calls, for runs of n and of 3 n executions: the difference
//! divided by 2 n is the cost of one execution. Both numbers repeat to a few in ten
//! thousand, so they are counted once. CPU time is measured in every round.
//!
//! Lines and pages are the misses of callgrind's simulated cache. The cache is large
//! enough for a statement, and holds nothing of the previous one: each statement is
//! followed by enough blanks to replace the whole cache. Counting begins with parse
//! analysis; the blanks are read before.

use super::cluster::Cluster;
use super::process::{Running, Stop, in_path};
use super::scenario::{Cost, Costing};
use super::store::Metrics;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, File};

/// Number of timed executions per counted execution.
const TIMED: u32 = 20;

/// SQL that prints the CPU time of this server, in ns. The sleep before it makes the kernel update
/// the value.
const CLOCK: &str = "select pg_sleep(0.001)\n\
                     select 'ns ' || split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)\n";

/// Number of executions whose lines are counted, and number of blanks after each.
/// The blanks fill the simulated cache twice, because they are read and copied.
const COLD_TIMES: u32 = 2;
const COLD_BLANKS: usize = 1 << 20;

/// Options of callgrind: tiny first caches before one of 2 MiB with lines of `$line`
/// bytes. It counts only functions through which a statement runs once.
macro_rules! misses {
    ($line:literal) => {
        &[
            "--tool=callgrind",
            "--callgrind-out-file=callgrind.out",
            "--cache-sim=yes",
            "--I1=1024,2,64",
            "--D1=1024,2,64",
            concat!("--LL=2097152,16,", $line),
            "--collect-atstart=no",
            "--toggle-collect=pg_analyze_and_rewrite_fixedparams",
            "--toggle-collect=pg_plan_query",
            "--toggle-collect=PortalStart",
            "--toggle-collect=PortalRun",
            "--toggle-collect=PortalDrop",
        ]
    };
}

/// A program that counts what a server's process does, such as instructions or
/// system calls.
struct Counter {
    program: &'static str,
    metric: &'static str,
    /// Name of the counted thing.
    counts: &'static str,
    /// File with the program's result, in the scratch directory.
    result: &'static str,
    arguments: &'static [&'static str],
    /// How often the program counts; the least count is used. A library may repeat something at its
    /// start until the clock has ticked, as pg_stat_kcache does.
    times: u32,
    /// True if the program counts cache misses; other counters are not used then.
    cold: bool,
    /// Finds the number in the text of the result.
    total: fn(&str) -> Option<f64>,
}

const COUNTERS: [Counter; 4] = [
    Counter {
        program: "valgrind",
        metric: "instructions",
        counts: "instructions",
        result: "callgrind.out",
        arguments: &["--tool=callgrind", "--callgrind-out-file=callgrind.out"],
        times: 1, // a second one would double minutes
        cold: false,
        total: instructions,
    },
    Counter {
        program: "strace",
        metric: "syscalls",
        counts: "system calls",
        result: "strace.out",
        arguments: &["-qq", "-c", "-o", "strace.out"],
        times: 5,
        cold: false,
        total: system_calls,
    },
    Counter {
        program: "valgrind",
        metric: "lines",
        counts: "lines of memory",
        result: "callgrind.out",
        arguments: misses!("64"),
        times: 1,
        cold: true,
        total: misses,
    },
    Counter {
        program: "valgrind",
        metric: "pages",
        counts: "pages of memory",
        result: "callgrind.out",
        arguments: misses!("4096"),
        times: 1,
        cold: true,
        total: misses,
    },
];

/// Messages about numbers that cannot be counted here.
pub fn uncounted() -> Vec<String> {
    let missing = COUNTERS.iter().filter(|c| !in_path(c.program));
    missing
        .map(|c| {
            format!(
                "{} are not counted: {} is not installed",
                c.counts, c.program
            )
        })
        .collect()
}

/// A statement on a server with the settings of a variant.
pub struct Measurement<'a> {
    /// The cluster whose data directory is used; its server is stopped.
    pub cluster: &'a Cluster,
    /// Settings of the scenario and the variant.
    pub settings: BTreeMap<String, String>,
    /// Number of executions, and whether lines and pages are counted.
    pub cost: &'a Cost,
    /// The statement.
    pub statement: &'a Costing,
}

impl Measurement<'_> {
    /// Measures the time, and with `counting` also counts.
    pub fn measure(&self, counting: bool, stop: &Stop) -> Result<Metrics> {
        let mut metrics = Metrics::from([("cpu_ns".to_owned(), self.time(stop)?)]);
        let counters = COUNTERS
            .iter()
            .filter(|c| counting && c.cold == self.cost.cold && in_path(c.program));
        for counter in counters {
            let number = self
                .count(counter, stop)
                .with_context(|| format!("could not count {}", counter.counts))?;
            metrics.insert(counter.metric.to_owned(), number);
        }
        Ok(metrics)
    }

    fn time(&self, stop: &Stop) -> Result<f64> {
        let (repeat, n) = (self.repeat(), self.repeat() * TIMED);
        let mut input = self.first() + &self.executions(0, repeat) + CLOCK;
        input += &(self.executions(repeat, n) + CLOCK);
        let said = self.run(&[], &input, stop)?;
        let times: Vec<f64> = said.lines().filter_map(clock).collect();
        match times[..] {
            [begin, end] => Ok((end - begin) / f64::from(n)),
            _ => anyhow::bail!("server did not report its CPU time"),
        }
    }

    fn count(&self, counter: &Counter, stop: &Stop) -> Result<f64> {
        let tool = [&[counter.program], counter.arguments].concat();
        let result = self.cluster.access.scratch.join(counter.result);
        let n = match counter.cold {
            true => COLD_TIMES,
            false => self.repeat(),
        };
        let [few, many] = [n, 3 * n].map(|executions| {
            let mut least = f64::INFINITY;
            for _ in 0..counter.times {
                // This server reads the state that the previous one has saved. The
                // run before makes it the same each time.
                self.run(&[], &(self.first() + &self.executions(0, n)), stop)?;
                let input = match counter.cold {
                    true => self.cold_executions(executions),
                    false => self.executions(0, executions),
                };
                self.run(&tool, &(self.first() + &input), stop)?;
                let total = (counter.total)(&fs::read_to_string(&result)?);
                least = least
                    .min(total.context(format!("{} did not print a number", counter.program))?);
            }
            Ok::<f64, anyhow::Error>(least)
        });
        Ok((many? - few?) / f64::from(2 * n))
    }

    fn repeat(&self) -> u32 {
        self.statement.repeat.unwrap_or(self.cost.repeat)
    }

    /// Input of the server before the executions.
    fn first(&self) -> String {
        let lines = self.statement.first.iter();
        lines.map(|sql| format!("{sql}\n")).collect()
    }

    /// Input of the server with `n` executions of the statement.
    fn executions(&self, from: u32, n: u32) -> String {
        let mut lines = String::new();
        for n in from..from + n {
            let sql = self.statement.sql.replace("{n}", &n.to_string());
            let _ = writeln!(lines, "{sql}");
        }
        lines
    }

    /// Input of the server with executions that find nothing in a cache.
    fn cold_executions(&self, n: u32) -> String {
        let blanks = format!("{}\n", " ".repeat(COLD_BLANKS));
        self.executions(0, n).replace('\n', &blanks)
    }

    fn run(&self, tool: &[&str], input: &str, stop: &Stop) -> Result<String> {
        let file = self.cluster.access.scratch.join("statements.sql");
        fs::write(&file, input)?;
        let mut settings = self.settings.clone();
        settings.extend(self.cost.settings.clone());
        let mut server = self.cluster.alone(&settings, tool)?;
        server.stdin(File::open(&file)?);
        Running::start(&mut server)?
            .finish(stop)
            .with_context(|| format!("a server for \"{}\" alone failed", self.statement.name))
    }
}

/// Total in a file of callgrind.
fn instructions(text: &str) -> Option<f64> {
    let mut lines = text.lines();
    let total = lines.find_map(|l| l.strip_prefix("totals: ").or(l.strip_prefix("summary: ")));
    total?.trim().parse().ok()
}

/// Misses of the last cache in a file of callgrind: of instructions, of reads, of
/// writes.
fn misses(text: &str) -> Option<f64> {
    let line = |name: &str| text.lines().find_map(|l| l.strip_prefix(name));
    let totals = line("totals: ").or_else(|| line("summary: "))?;
    let named = line("events: ")?
        .split_whitespace()
        .zip(totals.split_whitespace());
    let last = named.filter(|(name, _)| ["ILmr", "DLmr", "DLmw"].contains(name));
    last.map(|(_, n)| n.parse::<f64>().ok()).sum()
}

/// Total in a table of strace: % time, seconds, µs a call, calls.
fn system_calls(text: &str) -> Option<f64> {
    let total = text.lines().find(|l| l.ends_with(" total"))?;
    total.split_whitespace().nth(3)?.parse().ok()
}

/// Parses the server's output of [`CLOCK`]: ` 1: ?column? = "ns 38525204" (…)`.
fn clock(line: &str) -> Option<f64> {
    let (_, value) = line.split_once("= \"ns ")?;
    value.split('"').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_found_in_the_output_of_tools() {
        assert_eq!(
            instructions("events: Ir\nsummary: 65471602\n"),
            Some(65_471_602.0)
        );
        assert_eq!(instructions("fn=(1)\n1 2\ntotals: 7\n"), Some(7.0));
        assert_eq!(instructions("events: Ir\n"), None);
        let caches = "events: Ir Dr I1mr ILmr DLmr DLmw\ntotals: 900 50 40 3 20 100\n";
        assert_eq!(misses(caches), Some(123.0));
        assert_eq!(misses("events: Ir\nsummary: 7\n"), Some(0.0));
        let table = "  0.00    0.000000           0         1           rseq\n\
                     ------ ----------- ----------- --------- --------- ------\n\
                     100.00    0.008841           6      1299        27 total\n";
        assert_eq!(system_calls(table), Some(1299.0));
        assert_eq!(system_calls("rseq\n"), None);
    }

    #[test]
    fn the_clock_is_not_taken_for_the_result_of_a_statement() {
        let line = "\t 1: ?column? = \"ns 161075905\"\t(typeid = 25, len = -1)";
        assert_eq!(clock(line), Some(161_075_905.0));
        assert_eq!(clock("\t 1: ?column? = \"1\"\t(typeid = 23)"), None);
    }
}
