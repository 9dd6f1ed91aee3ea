//! Progress of an experiment on standard error: a line for each run.

use super::metric::METRICS;
use super::store::Metrics;
use std::time::{Duration, Instant};

/// Counts runs and estimates the end.
#[derive(Debug)]
pub struct Progress {
    started: Instant,
    done: usize,
    all: usize,
}

impl Progress {
    /// Begins to measure the time of `all` runs.
    pub fn new(all: usize) -> Self {
        Self {
            started: Instant::now(),
            done: 0,
            all,
        }
    }

    /// Prints the numbers of a run, and how long the rest will take.
    pub fn done(&mut self, name: &str, metrics: &Metrics) {
        self.done += 1;
        let left = remaining(self.started.elapsed(), self.done, self.all);
        eprintln!("{}", line(self.done, self.all, name, metrics, left));
    }
}

fn remaining(spent: Duration, done: usize, all: usize) -> Duration {
    spent * u32::try_from(all - done).unwrap_or(u32::MAX) / u32::try_from(done).unwrap_or(1)
}

fn line(done: usize, all: usize, name: &str, metrics: &Metrics, left: Duration) -> String {
    let main = METRICS.iter().find(|m| metrics.contains_key(m.name));
    let main = main.map_or_else(String::new, |m| {
        format!(": {:.*} {}", m.decimals, metrics[m.name], m.label)
    });
    let left = left.as_secs().div_ceil(5) * 5;
    let left = format!("{}:{:02} left", left / 60, left % 60);
    format!("[{done}/{all}] {name}{main}; {left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_is_estimated_from_spent_time() {
        let spent = Duration::from_secs(30);
        assert_eq!(remaining(spent, 3, 9), Duration::from_secs(60));
        let metrics = Metrics::from([("tps".into(), 1234.4), ("cpu_s".into(), 2.0)]);
        assert_eq!(
            line(
                3,
                9,
                "15.1 none, round 1",
                &metrics,
                Duration::from_secs(61)
            ),
            "[3/9] 15.1 none, round 1: 1234 transactions/s; 1:05 left"
        );
    }
}
