//! Measures how long each function goes on after it is cancelled at a random moment.

use super::answers::{History, Rows, below, cpu, question};
use super::stats::median;
use anyhow::{Result, anyhow, ensure};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tacho_source::catalog;
use tacho_tape::query::{self, CANCELED, Context, Function, QueryError, Value};

const DAY_US: i64 = 86_400_000_000;
/// A cancelled question should end within this time, in ms.
const BUDGET_MS: f64 = 50.0;

/// End of a question.
struct End {
    is_canceled: bool,
    /// Time from the cancellation to the end; without a cancellation the time since the question.
    after: Duration,
    /// CPU time of the process in the time `after`, which says more on a busy machine.
    cpu: Duration,
}

/// Asks every function about the last day and cancels it `times` times. Prints the
/// times as Markdown. Answers that were complete before the cancellation do not
/// count.
pub fn run(
    history: &History,
    times: usize,
    threads: usize,
    print: &impl Fn(&str) -> Result<()>,
) -> Result<()> {
    ensure!(times > 0, "--cancel is 0");
    print(
        "\n| Function, 24 h | answers in ms | canceled | ends after ms | at most | CPU at most | budget |\n",
    )?;
    print("|---|--:|--:|--:|--:|--:|--:|\n")?;
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let mut random = 1;
    for function in query::list() {
        let whole = asked(history, function, threads, None)?.after;
        let (mut ends, mut cpus) = (Vec::new(), 0.0_f64);
        for _ in 0..times {
            let moment = whole.mul_f64(below(&mut random, 1_000) as f64 / 1_000.0);
            let end = asked(history, function, threads, Some(moment))?;
            if end.is_canceled {
                ends.push(milliseconds(end.after));
                cpus = cpus.max(milliseconds(end.cpu));
            }
        }
        let most = ends.iter().copied().fold(0.0, f64::max);
        let (name, whole) = (function.name, milliseconds(whole));
        let (count, middle) = (ends.len(), median(&ends).unwrap_or(0.0));
        print(&format!(
            "| {name} | {whole:.1} | {count} | {middle:.2} | {most:.2} | {cpus:.2} | {BUDGET_MS} |\n"
        ))?;
    }
    Ok(())
}

/// Asks, and cancels at `moment`.
fn asked(
    history: &History,
    function: &Function,
    threads: usize,
    moment: Option<Duration>,
) -> Result<End> {
    let cancel = AtomicBool::new(false);
    let is_top = function.name == "top";
    let question = question(function, |argument| match argument.name {
        "since" | "since_1" | "since_2" => Value::Time(history.end_us - DAY_US),
        "until_1" => Value::Time(history.end_us),
        "dimension" if is_top => Value::Text("wait_event".into()),
        "by" if is_top => Value::Text("query_id".into()),
        _ => Value::Null,
    })?;
    let mut context = Context::new(catalog::schema(), history.end_us);
    context.cancel = &cancel;
    context.threads = threads;
    let answer = || {
        let mut rows = Rows::default();
        let done = query::run_now(&*question, &context, &history.tape, &mut rows);
        (done, Instant::now(), cpu())
    };
    thread::scope(|scope| {
        let (mut from, mut before) = (Instant::now(), cpu());
        let answer = scope.spawn(answer);
        if let Some(moment) = moment {
            thread::sleep(moment);
            cancel.store(true, Ordering::Relaxed);
            (from, before) = (Instant::now(), cpu());
        }
        let lost = |_| anyhow!("a question has failed");
        let (done, ended, after) = answer.join().map_err(lost)?;
        Ok(End {
            is_canceled: match done {
                Ok(()) => false,
                Err(QueryError { sqlstate, .. }) if sqlstate == CANCELED => true,
                Err(error) => return Err(anyhow!(error.message)),
            },
            after: ended.saturating_duration_since(from),
            cpu: after.saturating_sub(before),
        })
    })
}
