//! CPU time of others during a run, from /proc/stat: the time of the whole
//! machine less the time of this experiment, and time stolen by the
//! hypervisor.

use super::usage::ticks_of_families;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;

/// An experiment has no verdict if others took more than this share of all CPU
/// time that was used.
pub const MOST_OF_OTHERS: f64 = 0.05;

/// CPU seconds of the experiment, of others and of the hypervisor, and the load average.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// CPU seconds of the experiment: its server, its clients, and this
    /// program.
    pub own_s: f64,
    /// CPU seconds of everybody else on the machine, the kernel's threads among
    /// them.
    pub others_s: f64,
    /// CPU seconds that other virtual machines of the host took.
    pub steal_s: f64,
    /// Load average of a minute, at the start of the run.
    pub load_before: f64,
    /// Load average of a minute, at the end of the run.
    pub load_after: f64,
}

/// Clock ticks of all CPUs since the start of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Machine {
    used: u64,
    stolen: u64,
}

/// First line of /proc/stat: user, nice, system, idle, iowait, irq, softirq,
/// steal. Time of guests is part of user and nice.
fn parse(text: &str) -> Option<Machine> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks = line.split_whitespace().map(|f| f.parse::<u64>().ok());
    let ticks: Vec<u64> = ticks.collect::<Option<_>>()?;
    let [user, nice, system, _, _, irq, softirq, stolen, ..] = ticks[..] else {
        return None;
    };
    Some(Machine {
        used: user + nice + system + irq + softirq,
        stolen,
    })
}

fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().and_then(|load| load.parse().ok());
    first.unwrap_or(0.0)
}

/// A run in progress.
#[derive(Debug)]
pub struct Watch {
    postmaster: Option<u32>,
    machine: Machine,
    own: u64,
    load: f64,
}

impl Watch {
    /// Begins to measure, with the PID of the run's postmaster if one is running.
    pub fn start(postmaster: Option<u32>) -> Result<Self> {
        let (machine, own) = now(postmaster)?;
        let load = load_average();
        Ok(Self {
            postmaster,
            machine,
            own,
            load,
        })
    }

    /// Ends the measurement; the postmaster must still be running.
    pub fn end(self) -> Result<Occupancy> {
        let (machine, own) = now(self.postmaster)?;
        let second = rustix::param::clock_ticks_per_second() as f64;
        let seconds = |before: u64, after: u64| after.saturating_sub(before) as f64 / second;
        let own_s = seconds(self.own, own);
        Ok(Occupancy {
            own_s,
            others_s: (seconds(self.machine.used, machine.used) - own_s).max(0.0),
            steal_s: seconds(self.machine.stolen, machine.stolen),
            load_before: self.load,
            load_after: load_average(),
        })
    }
}

fn now(postmaster: Option<u32>) -> Result<(Machine, u64)> {
    let text = fs::read_to_string("/proc/stat").context("could not read /proc/stat")?;
    let machine = parse(&text).context("could not parse /proc/stat")?;
    let roots = [Some(std::process::id()), postmaster];
    let roots: Vec<u32> = roots.into_iter().flatten().collect();
    Ok((machine, ticks_of_families(&roots)?))
}

/// Occupancy of a whole experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Total {
    /// Share of others, steal included, in all CPU time that was used: 0 to 1.
    pub others: f64,
    /// Share of steal alone: 0 to 1.
    pub steal: f64,
    /// Share of others in the worst run: 0 to 1.
    pub worst: f64,
    /// Load average at the start of the first run.
    pub load_before: f64,
    /// Load average at the end of the last run.
    pub load_after: f64,
}

impl Occupancy {
    fn all_s(&self) -> f64 {
        self.own_s + self.others_s + self.steal_s
    }

    fn others(&self) -> f64 {
        (self.others_s + self.steal_s) / self.all_s().max(f64::MIN_POSITIVE)
    }
}

impl Total {
    /// Adds up runs; `None` without any.
    pub fn of(runs: &[Occupancy]) -> Option<Self> {
        let (first, last) = (runs.first()?, runs.last()?);
        let sum = |part: fn(&Occupancy) -> f64| runs.iter().map(part).sum::<f64>();
        let all = sum(Occupancy::all_s).max(f64::MIN_POSITIVE);
        Some(Self {
            others: sum(|run| run.others_s + run.steal_s) / all,
            steal: sum(|run| run.steal_s) / all,
            worst: runs.iter().map(Occupancy::others).fold(0.0, f64::max),
            load_before: first.load_before,
            load_after: last.load_after,
        })
    }

    /// True if others used too much CPU time for a verdict.
    pub fn busy(&self) -> bool {
        self.others > MOST_OF_OTHERS
    }

    /// One line for the head of the report.
    pub fn line(&self) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let line = format!(
            "CPU time of others: {} of the CPU time used, steal {} of it; at most {} in a run. \
             Load average {:.2} at the start, {:.2} at the end",
            percent(self.others),
            percent(self.steal),
            percent(self.worst),
            self.load_before,
            self.load_after
        );
        match self.busy() {
            true => format!("BUSY MACHINE, NO VERDICTS. {line}"),
            false => line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_used_and_stolen_time_is_apart() {
        let text = "cpu  10 2 30 4000 50 6 7 8 9 1\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let machine = Machine {
            used: 55,
            stolen: 8,
        };
        assert_eq!(parse(text), Some(machine));
        assert_eq!(parse("cpu  1 2\n"), None);
        assert_eq!(parse("intr 1\n"), None);
    }

    fn run(own_s: f64, others_s: f64, steal_s: f64) -> Occupancy {
        Occupancy {
            own_s,
            others_s,
            steal_s,
            load_before: 1.0,
            load_after: 2.0,
        }
    }

    #[test]
    fn an_experiment_is_busy_by_the_sum_of_its_runs() {
        // 2 of 40 s are 5 %, the limit; one run alone has 10 %
        let quiet = Total::of(&[run(18.0, 1.5, 0.5), run(20.0, 0.0, 0.0)]).expect("runs");
        assert_eq!(
            (quiet.others, quiet.worst, quiet.steal),
            (0.05, 0.1, 0.0125)
        );
        assert!(!quiet.busy());
        assert_eq!(
            quiet.line(),
            "CPU time of others: 5.0 % of the CPU time used, steal 1.2 % of it; at most 10.0 % in \
             a run. Load average 1.00 at the start, 2.00 at the end"
        );
        let busy = Total::of(&[run(18.0, 1.5, 0.5), run(19.9, 0.0, 0.1)]).expect("runs");
        assert!(busy.busy() && busy.line().starts_with("BUSY MACHINE, NO VERDICTS. CPU"));
        assert_eq!(Total::of(&[]), None);
    }

    #[test]
    fn work_of_this_process_is_its_own() {
        let roots = [std::process::id()];
        let watch = Watch::start(None).expect("a watch");
        while ticks_of_families(&roots).expect("ticks") == watch.own {
            std::hint::spin_loop();
        }
        let seen = watch.end().expect("the end");
        assert!(seen.own_s > 0.0, "{seen:?}");
    }
}
