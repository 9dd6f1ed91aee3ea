//! The order of runs. Each round has every variant on every point. Rounds are
//! balanced blocks: over as many rounds as there are variants, each variant has
//! each position in a round once. Drift of the machine therefore affects all
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
    /// The value of the setting that the scenario varies. In other scenarios the
    /// name of the layout, of the question, or of the statement whose cost is
    /// measured.
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

impl Job {
    /// True if both are in one block, whose runs are compared to each other.
    pub fn same_block(&self, other: &Self) -> bool {
        (self.installation, self.round, &self.point)
            == (other.installation, other.round, &other.point)
    }
}

impl Point {
    /// The point in words, as in `zipf, 8 clients, 2 cores`.
    pub fn label(&self) -> String {
        let mut parts: Vec<String> = self.workload.iter().cloned().collect();
        parts.extend(self.clients.map(|n| plural(n, "client")));
        parts.extend(self.cores.map(|n| plural(n, "core")));
        parts.extend(self.value.clone());
        parts.join(", ")
    }

    /// The point's value on the horizontal axis of a plot: the value of the
    /// setting, or the number of cores or clients.
    pub fn axis(&self) -> String {
        let number = self.cores.or(self.clients).map(|n| n.to_string());
        self.value.clone().or(number).unwrap_or_default()
    }

    /// Unit of the numbers on the horizontal axis; empty for values of a
    /// setting.
    pub fn counts(&self) -> &'static str {
        match (&self.value, self.cores, self.clients) {
            (None, Some(_), _) => "cores",
            (None, None, Some(_)) => "clients",
            _ => "",
        }
    }

    /// The words about the point in the title of a plot: the workload, and the
    /// clients if cores are on the axis.
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

/// Order of the arms of a server in a block: a row of a Latin square, so that
/// each arm stands in each position once in as many blocks as there are arms.
/// An even square, and an odd one followed by its mirror image, also has each
/// arm behind each other arm equally often (E. J. Williams, 1949).
///
/// Example for four arms: 0132, 1203, 2310, 3021.
fn block(arms: usize, number: usize) -> impl Iterator<Item = usize> {
    // 0, 1, n−1, 2, n−2, …: each difference of neighbours occurs once
    let zigzag = move |position: usize| match position % 2 {
        1 => position.div_ceil(2),
        _ => (arms - position / 2) % arms,
    };
    let mirrored = arms % 2 == 1 && (number / arms) % 2 == 1;
    (0..arms).map(move |position| {
        let position = match mirrored {
            true => arms - 1 - position,
            false => position,
        };
        (zigzag(position) + number) % arms
    })
}

/// All jobs in their order. `has` is true if an installation has a variant.
pub fn jobs(
    scenario: &Scenario,
    installations: usize,
    has: impl Fn(usize, usize) -> bool + Copy,
) -> Vec<Job> {
    let mut jobs = Vec::new();
    let arms = |i: usize| (0..scenario.variants.len()).filter(move |&v| has(i, v));
    let servers: Vec<Vec<usize>> = (0..installations).map(|i| arms(i).collect()).collect();
    let points = points(scenario);
    for round in 1..=scenario.rounds {
        for (at, point) in points.iter().enumerate() {
            let number = round as usize - 1 + at;
            for server in 0..installations {
                let installation = (server + number) % installations;
                let arms = &servers[installation];
                jobs.extend(block(arms.len(), number).map(|arm| Job {
                    installation,
                    variant: arms[arm],
                    point: point.clone(),
                    round,
                }));
            }
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

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
    fn each_arm_has_each_position_and_each_predecessor_equally_often() {
        for arms in 1..=9 {
            let blocks = arms * (1 + arms % 2);
            let mut positions = BTreeMap::new();
            let mut neighbours = BTreeMap::new();
            for number in 0..blocks {
                let order: Vec<usize> = block(arms, number).collect();
                for (position, arm) in order.iter().enumerate() {
                    *positions.entry((*arm, position)).or_insert(0) += 1;
                }
                for pair in order.windows(2) {
                    *neighbours.entry((pair[0], pair[1])).or_insert(0) += 1;
                }
            }
            let each = blocks / arms;
            assert_eq!(positions.len(), arms * arms);
            assert!(
                positions.values().all(|n| *n == each),
                "{arms}: {positions:?}"
            );
            assert_eq!(neighbours.len(), arms * (arms - 1));
            assert!(
                neighbours.values().all(|n| *n == each),
                "{arms}: {neighbours:?}"
            );
        }
    }

    #[test]
    fn a_block_is_one_round_at_one_point_on_one_server() {
        let jobs = jobs(&scenario(), 2, |_, _| true);
        let blocks: Vec<&[Job]> = jobs.chunk_by(Job::same_block).collect();
        assert_eq!(blocks.len(), 2 * 2 * 2);
        for block in blocks {
            let mut variants: Vec<usize> = block.iter().map(|job| job.variant).collect();
            variants.sort_unstable();
            assert_eq!(variants, [0, 1, 2]);
        }
    }

    #[test]
    fn half_of_the_blocks_of_an_odd_square_are_balanced_by_position() {
        let first: Vec<Vec<usize>> = (0..3).map(|n| block(3, n).collect()).collect();
        assert_eq!(first, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
        let next: Vec<Vec<usize>> = (3..6).map(|n| block(3, n).collect()).collect();
        assert_eq!(next, [[2, 1, 0], [0, 2, 1], [1, 0, 2]]);
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
    fn points_are_named_after_the_varying_settings() {
        let points = points(&scenario());
        assert_eq!(points[0].label(), "w, 1 client");
        assert_eq!(
            (points[1].axis(), points[1].group()),
            ("8".into(), "w".into())
        );
        assert_eq!(points[1].counts(), "clients");
    }
}
