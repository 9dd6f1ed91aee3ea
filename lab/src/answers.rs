//! Questions asked in this process about tapes that stay open. Measured: the
//! time of each question when its data is in memory, and the memory of a
//! process that answers for minutes.

use super::canceled;
use super::machine::Machine;
use super::stats::median;
use anyhow::{Context, Result, anyhow, ensure};
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tacho_source::catalog;
use tacho_tape::query::{
    self, Argument, Field, Function, Given, QueryError, QueryResult, Question, Sink, Top, Value,
};
use tacho_tape::{Shared, Tape};

/// Arguments of `tacho bench answers`.
#[derive(clap::Args)]
pub struct Args {
    /// History of a day; its last hour and its whole day are queried
    #[arg(long, value_name = "DIR")]
    day: Option<PathBuf>,
    /// History of a year; its last hour is queried
    #[arg(long, value_name = "DIR")]
    year: Option<PathBuf>,
    /// History where each sample is of another process; its last day is queried
    #[arg(long, value_name = "DIR")]
    churn: Option<PathBuf>,
    /// Repetitions of each question, after one to warm up
    #[arg(long, default_value_t = 21)]
    times: usize,
    /// Threads per question
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Minutes of mixed questions of the first directory given
    #[arg(long)]
    minutes: Option<u64>,
    /// Number of mixed questions
    #[arg(long, default_value_t = 10_000)]
    questions: u64,
    /// Cancellations of each function at random moments, with the first directory given;
    /// measures how long it takes to end
    #[arg(long, value_name = "TIMES")]
    cancel: Option<usize>,
}

/// The kind of history that a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HistoryKind {
    Day,
    Year,
    Churn,
}

impl HistoryKind {
    fn name(self) -> &'static str {
        match self {
            HistoryKind::Day => "day",
            HistoryKind::Year => "year",
            HistoryKind::Churn => "churn",
        }
    }
}

/// A question about the end of a history.
struct Asked {
    of: HistoryKind,
    hours: i64,
    /// Dimension by which `top` groups.
    dimension: &'static str,
    /// Dimension by which `top` splits the keys.
    by: Option<&'static str>,
    /// The largest key of this dimension is the filter.
    filter: Option<&'static str>,
    /// Budget of the question, in ms.
    budget_ms: f64,
}

const ASKED: [Asked; 5] = [
    Asked {
        of: HistoryKind::Day,
        hours: 1,
        dimension: "wait_event",
        by: None,
        filter: None,
        budget_ms: 1.0,
    },
    Asked {
        of: HistoryKind::Day,
        hours: 24,
        dimension: "wait_event",
        by: None,
        filter: Some("query_id"),
        budget_ms: 25.0,
    },
    Asked {
        of: HistoryKind::Day,
        hours: 24,
        dimension: "wait_event",
        by: Some("query_id"),
        filter: None,
        budget_ms: 40.0,
    },
    Asked {
        of: HistoryKind::Year,
        hours: 1,
        dimension: "wait_event",
        by: None,
        filter: None,
        budget_ms: 5.0,
    },
    Asked {
        of: HistoryKind::Churn,
        hours: 24,
        dimension: "pid",
        by: None,
        filter: None,
        budget_ms: 100.0,
    },
];

const HOUR_US: i64 = 3_600_000_000;

/// A sink that counts rows, and keeps the key of the first row.
#[derive(Default)]
pub struct Rows {
    count: u64,
    first: Option<String>,
}

impl Sink for Rows {
    fn begin(&mut self, _: &[Field]) -> QueryResult<()> {
        Ok(())
    }

    fn row(&mut self, row: Vec<Value>) -> QueryResult<()> {
        if let (0, Some(Value::Text(key))) = (self.count, row.into_iter().next()) {
            self.first = Some(key.to_string());
        }
        self.count += 1;
        Ok(())
    }
}

fn failed(error: QueryError) -> anyhow::Error {
    anyhow!(error.message)
}

/// An open history, and the end of its last tick in µs.
pub struct History {
    pub tape: Tape,
    pub end_us: i64,
}

impl History {
    fn open(directory: &Path) -> Result<History> {
        let tape = Tape::open(directory, &Shared::default());
        let snapshot = tape.refresh();
        let snapshot = snapshot.map_err(|error| anyhow!(error.to_string()))?;
        let newest = snapshot.nodes().into_iter().next();
        let newest = newest.with_context(|| {
            format!("directory \"{}\" contains no history", directory.display())
        })?;
        Ok(History {
            tape,
            end_us: 1_000 * newest.last_ms + 1_000_000,
        })
    }

    fn answer(&self, question: &dyn Question, threads: usize) -> Result<Rows> {
        let mut rows = Rows::default();
        let mut context = query::Context::new(catalog::schema(), self.end_us);
        context.threads = threads;
        query::run_now(question, &context, &self.tape, &mut rows).map_err(failed)?;
        Ok(rows)
    }
}

/// Asks, and prints times as Markdown.
pub fn run(args: &Args, print: impl Fn(&str) -> Result<()>) -> Result<()> {
    let directories = [
        (HistoryKind::Day, &args.day),
        (HistoryKind::Year, &args.year),
        (HistoryKind::Churn, &args.churn),
    ];
    let given = |of: HistoryKind| {
        let found = directories.iter().find(|(known, _)| *known == of);
        found.and_then(|(_, directory)| directory.as_deref())
    };
    let first = directories.iter().find_map(|(_, d)| d.as_deref());
    let first = first.context("no history specified\nhint: See --day, --year and --churn.")?;
    ensure!(args.times > 0, "--times is 0");
    print(&format!("{}\n\n", Machine::here().line()))?;
    print("| Question | wall ms | CPU ms | budget ms | ratio |\n|---|--:|--:|--:|--:|\n")?;
    for asked in &ASKED {
        if let Some(directory) = given(asked.of) {
            print(&timed(args, &History::open(directory)?, asked)?)?;
        }
    }
    if let Some(times) = args.cancel {
        canceled::run(&History::open(first)?, times, args.threads, &print)?;
    }
    match args.minutes {
        Some(minutes) => mixed(args, &History::open(first)?, minutes, print),
        None => Ok(()),
    }
}

/// CPU time of this process.
pub fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A line of the table, with medians.
fn timed(args: &Args, history: &History, asked: &Asked) -> Result<String> {
    let mut top = Top {
        since: Some(history.end_us - asked.hours * HOUR_US),
        ..Top::default()
    };
    if let Some(name) = asked.filter {
        top.dimension = Some(name.to_owned());
        let largest = history.answer(&top, args.threads)?.first;
        let filter = |key| (name.to_owned(), key);
        top.filters = largest.into_iter().map(filter).collect();
    }
    top.dimension = Some(asked.dimension.to_owned());
    top.by = asked.by.map(str::to_owned);
    let rows = history.answer(&top, args.threads)?;
    ensure!(
        rows.count > 0,
        "the last hours of the history have no samples"
    );
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..args.times {
        let (begun, before) = (Instant::now(), cpu());
        history.answer(&top, args.threads)?;
        walls.push(begun.elapsed().as_secs_f64() * 1e3);
        cpus.push((cpu() - before).as_secs_f64() * 1e3);
    }
    let (wall, cpu) = (median(&walls), median(&cpus));
    let (wall, cpu) = wall.zip(cpu).context("nothing was measured")?;
    let by = asked.by.map(|by| format!(" by {by}")).unwrap_or_default();
    let of = asked
        .filter
        .map(|of| format!(" of a {of}"))
        .unwrap_or_default();
    let (name, hours, top) = (asked.of.name(), asked.hours, asked.dimension);
    Ok(format!(
        "| {name}, {hours} h, top {top}{by}{of} | {wall:.2} | {cpu:.2} | {} | {:.2} |\n",
        asked.budget_ms,
        wall / asked.budget_ms
    ))
}

/// Asks random questions for some minutes. Prints once a minute how much memory
/// the process uses.
fn mixed(
    args: &Args,
    history: &History,
    minutes: u64,
    print: impl Fn(&str) -> Result<()>,
) -> Result<()> {
    let mut random = 1_u64;
    let begun = Instant::now();
    let length = Duration::from_secs(60 * minutes);
    print("\n| Minute | questions | rows | CPU s | RSS MiB |\n|--:|--:|--:|--:|--:|\n")?;
    let (mut asked, mut rows) = (0, 0);
    for minute in 0..=minutes {
        let until = (args.questions * minute).checked_div(minutes);
        let until = until.unwrap_or(args.questions);
        while asked < until {
            rows += history.answer_any(args.threads, &mut random)?;
            asked += 1;
            let share = asked as f64 / args.questions.max(1) as f64;
            let next = length.mul_f64(share.min(1.0));
            std::thread::sleep(next.saturating_sub(begun.elapsed()));
        }
        let (cpu, rss) = (cpu().as_secs_f64(), resident_mib()?);
        print(&format!(
            "| {minute} | {asked} | {rows} | {cpu:.1} | {rss:.1} |\n"
        ))?;
    }
    Ok(())
}

impl History {
    /// Answers a random question about a random piece of the last day.
    fn answer_any(&self, threads: usize, random: &mut u64) -> Result<u64> {
        let mut below = |n: usize| below(random, n);
        let functions = query::list();
        let function = &functions[below(functions.len())];
        // `samples` and `sessions` have a row for each sample or span, so they get a short piece.
        let hours = match function.name {
            "samples" | "sessions" => 1,
            _ => 24,
        };
        let length = (1 + below(60 * hours)) as i64 * 60_000_000;
        let until = self.end_us - below(24 * 60) as i64 * 60_000_000;
        let dimensions = catalog::dimension_names();
        let dimension = dimensions[below(dimensions.len())];
        let question = question(function, |argument| match argument.name {
            "since" | "since_1" | "since_2" => Value::Time(until - length),
            "until" | "until_1" | "until_2" => Value::Time(until),
            "dimension" if function.name == "top" => Value::Text(dimension.into()),
            "n" => Value::Int(10),
            _ => Value::Null,
        })?;
        Ok(self.answer(&*question, threads)?.count)
    }
}

/// A question to any function, with these values of its arguments.
pub fn question(
    function: &Function,
    value: impl Fn(&Argument) -> Value,
) -> Result<Box<dyn Question>> {
    let mut given = Given {
        value: &|argument| Ok(value(argument)),
        filters: Vec::new(),
    };
    function.question(&mut given).map_err(failed)
}

/// A random number below `n`.
pub fn below(random: &mut u64, n: usize) -> usize {
    *random = random
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) as usize % n.max(1)
}

/// Resident memory of this process in MiB.
fn resident_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status").context("could not read /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    kib.map(|kib| kib / 1024.0)
        .context("could not read the memory use of the process")
}
