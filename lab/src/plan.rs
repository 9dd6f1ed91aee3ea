//! The order of runs. Each round has every variant on every point, in an order
//! that rotates from round to round. Drift of the machine therefore affects all
//! alike.

use super::scenario::Scenario;
use serde::{Deserialize, Serialize};

/// Properties of a run besides the variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Name of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Number of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Number of cores of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Value of the setting; or name of the layout, of the question, or of the
    /// statement whose cost is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// One planned measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Index of the installation.
    pub installation: usize,
    /// Index of the variant.
    pub variant: usize,
    /// The point of the scenario.
    pub point: Point,
    /// Number of the round, from 1.
    pub round: u32,
}

impl Point {
    /// The parts of the point, as in `zipf, 8 clients, 2 cores`.
    pub fn label(&self) -> String {
        let mut parts: Vec<String> = self.workload.iter().cloned().collect();
        parts.extend(self.clients.map(|n| plural(n, "client")));
        parts.extend(self.cores.map(|n| plural(n, "core")));
        parts.extend(self.value.clone());
        parts.join(", ")
    }

    /// The part on a horizontal axis.
    pub fn axis(&self) -> String {
        let number = self.cores.or(self.clients).map(|n| n.to_string());
        self.value.clone().or(number).unwrap_or_default()
    }

    /// Unit of the numbers on that axis.
    pub fn counts(&self) -> &'static str {
        match (&self.value, self.cores, self.clients) {
            (None, Some(_), _) => "cores",
            (None, None, Some(_)) => "clients",
            _ => "",
        }
    }

    /// The part in the title of a plot.
    pub fn group(&self) -> String {
        match (&self.workload, self.clients, self.cores) {
            (Some(workload), Some(clients), Some(_)) => {
                format!("{workload}, {}", plural(clients, "client"))
            }
            (Some(workload), ..) => workload.clone(),
            _ => String::new(),
        }
    }
}

fn plural(n: u32, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Points of a scenario, in the order of the report.
pub fn points(scenario: &Scenario) -> Vec<Point> {
    if let Some(statement) = &scenario.statement {
        return named(statement.values.iter());
    }
    if let Some(codec) = &scenario.codec {
        return named(codec.layouts.iter().map(|l| &l.name));
    }
    if let Some(history) = &scenario.history {
        return named(history.questions.iter().map(|q| &q.name));
    }
    let costs = scenario.cost.iter().flat_map(|cost| &cost.statements);
    let costs = named(costs.map(|statement| &statement.name));
    let Some(load) = &scenario.pgbench else {
        return costs;
    };
    let cores: Vec<Option<u32>> = match load.cores.is_empty() {
        true => vec![None],
        false => load.cores.iter().copied().map(Some).collect(),
    };
    let mut points = Vec::new();
    for workload in &load.workloads {
        for &clients in &load.clients {
            points.extend(cores.iter().map(|&cores| Point {
                workload: Some(workload.name.clone()),
                clients: Some(clients),
                cores,
                value: None,
            }));
        }
    }
    points.extend(costs);
    points
}

fn named<'a>(names: impl Iterator<Item = &'a String>) -> Vec<Point> {
    let point = |name: &String| Point {
        value: Some(name.clone()),
        ..Point::default()
    };
    names.map(point).collect()
}

/// All jobs. `has` tells whether an installation has a variant.
pub fn jobs(
    scenario: &Scenario,
    installations: usize,
    has: impl Fn(usize, usize) -> bool,
) -> Vec<Job> {
    let mut jobs = Vec::new();
    let subjects: Vec<(usize, usize)> = (0..installations)
        .flat_map(|i| (0..scenario.variants.len()).map(move |v| (i, v)))
        .filter(|&(i, v)| has(i, v))
        .collect();
    let points = points(scenario);
    for round in 1..=scenario.rounds {
        for (at, point) in points.iter().enumerate() {
            let mut order = subjects.clone();
            if !order.is_empty() {
                let turn = (round as usize - 1 + at) % order.len();
                order.rotate_left(turn);
            }
            jobs.extend(order.into_iter().map(|(installation, variant)| Job {
                installation,
                variant,
                point: point.clone(),
                round,
            }));
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        let text = r#"
            name = "t"
            title = "T"
            question = "?"
            rounds = 2
            [pgbench]
            seconds = 1
            warmup = 0
            clients = [1, 8]
            workload = [{ name = "w", builtin = "select-only" }]
            [[variant]]
            name = "none"
            [[variant]]
            name = "a"
            [[variant]]
            name = "b"
        "#;
        Scenario::parse(text, false).expect("valid")
    }

    #[test]
    fn each_variant_meets_each_point_once_a_round_in_turning_order() {
        let jobs = jobs(&scenario(), 1, |_, _| true);
        assert_eq!(jobs.len(), 2 * 2 * 3);
        let order: Vec<usize> = jobs.iter().map(|j| j.variant).collect();
        assert_eq!(order, [0, 1, 2, 1, 2, 0, 1, 2, 0, 2, 0, 1]);
        assert!(jobs[..6].iter().all(|j| j.round == 1));
    }

    #[test]
    fn a_variant_that_an_installation_lacks_is_left_out_there_only() {
        let jobs = jobs(&scenario(), 2, |installation, variant| {
            (installation, variant) != (1, 2)
        });
        assert_eq!(jobs.len(), 2 * 2 * 5);
        assert!(jobs.iter().all(|j| (j.installation, j.variant) != (1, 2)));
    }

    #[test]
    fn points_are_named_by_what_varies() {
        let points = points(&scenario());
        assert_eq!(points[0].label(), "w, 1 client");
        assert_eq!(
            (points[1].axis(), points[1].group()),
            ("8".into(), "w".into())
        );
        assert_eq!(points[1].counts(), "clients");
    }
}
