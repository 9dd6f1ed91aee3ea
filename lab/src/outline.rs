//! Outline of a scenario before anything runs: number of runs, duration, and
//! needs. `tacho bench list`, `--help` and `--dry-run` print it.

use super::plan::{Job, jobs, points};
use super::scenario::{BUILT_IN, Form, Scenario};
use anyhow::Result;
use std::fmt::Write;
use std::time::Duration;

/// Seconds to make a cluster of scale 1.
const CLUSTER_S: f64 = 10.0;
/// Seconds to fill each further scale of pgbench's tables.
const SCALE_S: f64 = 0.3;
/// Seconds to start and stop a server.
const RESTART_S: f64 = 2.5;
/// Seconds to switch a running server by a reload.
const RELOAD_S: f64 = 0.7;
/// Seconds to count instructions and system calls of a statement, in round 1.
const COUNT_S: f64 = 20.0;
/// Seconds to count lines and pages of a statement, in round 1.
const COUNT_COLD_S: f64 = 60.0;
/// Seconds to time a statement that was counted before.
const TIME_S: f64 = 2.0;
/// Seconds of a run whose scenario does not say how long it takes.
const UNKNOWN_S: f64 = 10.0;

/// Guess of the duration on `installations` servers that have every variant.
pub fn duration(scenario: &Scenario, installations: usize) -> Duration {
    let runs = jobs(scenario, installations, |_, _| true);
    duration_of(scenario, &runs, installations)
}

/// Guess of the duration of these runs on `installations` servers.
pub fn duration_of(scenario: &Scenario, runs: &[Job], installations: usize) -> Duration {
    let seconds: f64 = runs.iter().map(|job| run_s(scenario, job)).sum();
    let fill = CLUSTER_S + SCALE_S * f64::from(scenario.scale);
    Duration::from_secs_f64(seconds + fill * installations as f64)
}

/// Seconds of one run.
fn run_s(scenario: &Scenario, job: &Job) -> f64 {
    let costs = scenario.cost.as_ref();
    let costed = job.point.workload.is_none();
    if let (Some(cost), true) = (costs, costed) {
        return match (job.round, cost.cold) {
            (1, true) => COUNT_COLD_S,
            (1, false) => COUNT_S,
            _ => TIME_S,
        };
    }
    let switch = if scenario.reload { RELOAD_S } else { RESTART_S };
    match (scenario.run_s, &scenario.pgbench) {
        (Some(seconds), _) => seconds,
        (None, Some(load)) if load.transactions == 0 => {
            f64::from(load.warmup + load.seconds) + switch
        }
        _ => UNKNOWN_S,
    }
}

/// Writes a duration in words: `45 s`, `12 min` or `3.5 h`.
pub fn spoken(duration: Duration) -> String {
    match duration.as_secs() {
        s if s < 90 => format!("{s} s"),
        s if s < 90 * 60 => format!("{} min", s.div_ceil(60)),
        s => format!("{:.1} h", s as f64 / 3600.0),
    }
}

/// Libraries, programs and options that a scenario needs besides PostgreSQL.
pub fn needs(scenario: &Scenario) -> Vec<String> {
    let mut needs: Vec<String> = Vec::new();
    let mut add = |need: &str| {
        if !needs.iter().any(|known| known == need) {
            needs.push(need.to_owned());
        }
    };
    let libraries = scenario.variants.iter().flat_map(|v| &v.preload);
    libraries.for_each(|library| add(library));
    for form in scenario.variants.iter().filter_map(|v| v.form) {
        match form {
            Form::Edition => add("--edition"),
            Form::Ash1 | Form::Ash2 => add("--pg-ash"),
            _ => (),
        }
    }
    let load = scenario.pgbench.as_ref();
    if load.is_some_and(|load| load.shares) {
        add("perf");
    }
    if load.is_some_and(|load| !load.cores.is_empty()) {
        add("taskset");
    }
    if let Some(cost) = &scenario.cost {
        add("valgrind");
        if !cost.cold {
            add("strace");
        }
    }
    needs
}

/// The numbers whose product is the number of runs:
/// `7 variants × 3 points × 6 rounds`.
pub fn shape(scenario: &Scenario) -> String {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!(
        "{} × {} × {}",
        plural(scenario.variants.len(), "variant"),
        plural(points(scenario).len(), "point"),
        plural(scenario.rounds as usize, "round")
    )
}

/// All built-in scenarios, with duration and needs.
pub fn list() -> Result<String> {
    let mut text = String::new();
    for (name, _) in BUILT_IN {
        let (small, full) = (Scenario::load(name, false)?, Scenario::load(name, true)?);
        let [short, long] = [&small, &full].map(|s| spoken(duration(s, 1)));
        writeln!(text, "{name:13} {}", small.title)?;
        writeln!(text, "{:13} {short}, with --full {long}", "")?;
        let needs = needs(&small);
        if !needs.is_empty() {
            writeln!(text, "{:13} needs {}", "", needs.join(", "))?;
        }
    }
    Ok(text)
}

/// The scenarios and examples, for `--help`.
pub fn help() -> String {
    let mut text = "Scenarios:\n".to_owned();
    for (name, _) in BUILT_IN {
        // A scenario that cannot be read is left out; a test reads every one.
        if let Ok(scenario) = Scenario::load(name, false) {
            let _ = writeln!(
                text,
                "  {name:13} {} ({})",
                scenario.title,
                spoken(duration(&scenario, 1))
            );
        }
    }
    text + "\nExamples:\n  \
            tacho bench overhead --dry-run\n  \
            tacho bench churn --variants pg_stat_statements,tacho --workloads 5k --rounds 8\n  \
            tacho bench hot --pg-bin /usr/lib/postgresql/16/bin,/usr/lib/postgresql/17/bin \
            --client-bin /usr/lib/postgresql/17/bin"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(more: &str) -> Scenario {
        let text = format!(
            r#"
            name = "t"
            title = "T"
            question = "?"
            rounds = 2
            scale = 10
            {more}
            [pgbench]
            seconds = 5
            warmup = 1
            clients = [1, 8]
            workload = [{{ name = "w", builtin = "select-only" }}]
            [[variant]]
            name = "none"
            [[variant]]
            name = "tacho"
            preload = ["tacho"]
        "#
        );
        Scenario::parse(&text, false).expect("valid")
    }

    #[test]
    fn the_duration_counts_every_run_and_every_restart() {
        // 8 runs of 1 + 5 + 2.5 s, and 10 + 10 × 0.3 s for the cluster
        let restarted = duration(&scenario(""), 1);
        assert_eq!(restarted, Duration::from_secs_f64(8.0 * 8.5 + 13.0));
        let reloaded = duration(&scenario("reload = true"), 1);
        assert_eq!(reloaded, Duration::from_secs_f64(8.0 * 6.7 + 13.0));
        assert_eq!(duration(&scenario(""), 2), restarted * 2);
        let declared = duration(&scenario("run_s = 7.5"), 1);
        assert_eq!(declared, Duration::from_secs_f64(8.0 * 7.5 + 13.0));
    }

    #[test]
    fn durations_are_spoken_in_one_unit() {
        let spoken = |s| spoken(Duration::from_secs(s));
        assert_eq!(
            [89, 90, 5_399, 5_400].map(spoken),
            ["89 s", "2 min", "90 min", "1.5 h"]
        );
    }

    #[test]
    fn needs_are_libraries_options_and_programs_each_once() {
        let of = |name: &str| needs(&Scenario::load(name, false).expect("valid"));
        let hot = of("hot");
        assert_eq!(hot, ["pg_stat_statements", "tacho", "perf"]);
        assert_eq!(of("history"), ["tacho", "--edition"]);
        let recording = of("recording");
        assert_eq!(recording, ["tacho", "pg_wait_sampling", "--pg-ash"]);
        let lines = of("lines");
        assert_eq!(
            lines,
            [
                "pg_stat_statements",
                "pg_stat_kcache",
                "pg_stat_plans",
                "auto_explain",
                "tacho",
                "valgrind"
            ]
        );
        let plans = of("plans");
        assert_eq!(
            plans,
            [
                "tacho",
                "pg_stat_statements",
                "pg_stat_plans",
                "auto_explain",
                "valgrind",
                "strace"
            ]
        );
        assert_eq!(of("analyze"), Vec::<String>::new());
    }
}
