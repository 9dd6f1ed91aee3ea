//! The verdict about the primary figure, and the reasons against one. No
//! verdict counts as not shown.

use super::busy::Total;
use super::document::{Block, Table};
use super::forest::{self, Row};
use super::metric::find;
use super::plan::points;
use super::primary::{NULL_PAIRS, Primary};
use super::stats::Estimate;
use super::store::Results;
use super::trial::{CONFIDENCE, Outcome, Trial, blocks_for, equal, five_numbers, trial};
use std::collections::BTreeSet;

/// The section of the report about the primary figure. Without a declared figure it says so.
pub fn primary(results: &Results, complete: bool) -> Vec<Block> {
    let heading = Block::Heading(2, "Primary figure".into());
    let Some(primary) = &results.experiment.scenario.primary else {
        let none = "None is declared, so this page has no verdict: what the tables show is \
                    worth a question, not an answer.";
        return vec![heading, Block::Text(none.into())];
    };
    let mut table = Table::new(
        &["cost ratio", "server"],
        &[
            "blocks",
            "ratio",
            "lower 95 %",
            "upper 95 %",
            "spread",
            "blocks for the power",
        ],
    );
    table.head.push(("verdict".into(), false));
    let common = common_reasons(results, complete);
    let (mut nulls, mut bars) = (Vec::new(), Vec::new());
    for version in &results.experiment.versions {
        let found = Figure::of(results, primary, version);
        let reasons = [common.clone(), found.reasons(results, version)].concat();
        table
            .rows
            .extend(found.rows(primary, version, reasons.is_empty()));
        nulls.extend(found.null_line(version));
        bars.extend(found.bars(primary, version));
        if !reasons.is_empty() {
            nulls.push(format!(
                "{version}: no verdict, because {}",
                reasons.join("; ")
            ));
        }
    }
    vec![
        heading,
        Block::Text(declared(primary, results)),
        Block::Table(table),
        Block::Picture(forest::ratios(
            "cost ratio to the peer, lower and upper 95 % bound, margin dashed",
            &bars,
            Some(primary.margin),
        )),
        Block::List(nulls),
    ]
}

/// Reasons against a verdict that all servers share.
fn common_reasons(results: &Results, complete: bool) -> Vec<String> {
    let mut reasons = Vec::new();
    if !complete {
        reasons.push("the experiment is incomplete".into());
    }
    match occupancy(results) {
        None => reasons.push("the CPU time of others is not known".into()),
        Some(total) if total.busy() => reasons.push("the machine was busy with others".into()),
        Some(_) => (),
    }
    reasons
}

/// CPU time of others over all runs; `None` if a run does not know it.
pub fn occupancy(results: &Results) -> Option<Total> {
    let runs = results.runs.iter().map(|run| run.occupancy);
    let runs: Option<Vec<_>> = runs.collect();
    Total::of(&runs?)
}

/// True if the report may call anything better or worse. This holds for results from before the CPU
/// time of others was recorded, too.
pub fn quiet(results: &Results) -> bool {
    !occupancy(results).is_some_and(|total| total.busy())
}

/// The declaration in words.
fn declared(primary: &Primary, results: &Results) -> String {
    let label = find(&primary.metric).map_or("", |metric| metric.label);
    let needed = blocks_for(primary.spread, primary.margin, primary.power);
    format!(
        "Declared before the run: ratio of \"{label}\" between {} and {}, at {}. It is shown not \
         to cost more if the upper 95 % bound of the ratio is at most {}. No verdict counts as \
         not shown. {} is {} once more: the ratio of those two is the null. A power of {:.0} % \
         with an expected spread of {:.1} % takes {} blocks; this experiment has {}. Bounds \
         are one-sided, by Student's t of the logarithms of the ratios of blocks.",
        primary.variant,
        primary.peer,
        primary.point,
        primary.margin,
        primary.equal,
        primary.peer,
        primary.power * 100.0,
        primary.spread * 100.0,
        needed.map_or("more than a million".into(), |n| n.to_string()),
        results.experiment.scenario.rounds
    )
}

/// Ratios of one server.
struct Figure {
    /// Cost of the variant divided by the cost of its peer, by round.
    ratios: Vec<f64>,
    /// Cost of the second arm of the peer divided by the cost of the peer, by
    /// round. The true ratio is 1, so these ratios show the noise.
    null: Vec<f64>,
}

impl Figure {
    fn of(results: &Results, primary: &Primary, version: &str) -> Self {
        let value = |variant: &str, round: u32| {
            let mut runs = results.runs.iter();
            let run = runs.find(|run| {
                run.version == version
                    && run.variant == variant
                    && run.round == round
                    && run.point.label() == primary.point
            })?;
            run.metrics.get(&primary.metric).copied()
        };
        let ratio = |variant: &str, round: u32| {
            let base = value(&primary.peer, round)?;
            Some(primary.cost_ratio(value(variant, round)?, base))
        };
        let rounds = 1..=results.experiment.scenario.rounds;
        let of = |variant: &str| rounds.clone().filter_map(|r| ratio(variant, r)).collect();
        Self {
            ratios: of(&primary.variant),
            null: of(&primary.equal),
        }
    }

    /// Reasons against a verdict.
    fn reasons(&self, results: &Results, version: &str) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.ratios.len() < 2 {
            reasons.push("the two variants were not both measured at that point".into());
        }
        if self.null.len() < NULL_PAIRS {
            reasons.push(format!(
                "the null has {} pairs, and {NULL_PAIRS} are needed",
                self.null.len()
            ));
        } else if !equal(&self.null) {
            reasons.push("the null fails: equal arms differ, so the method is biased here".into());
        }
        reasons.extend(unbalanced(results, version));
        reasons
    }

    fn rows(&self, primary: &Primary, version: &str, allowed: bool) -> Vec<Vec<String>> {
        let verdict = |trial: &Trial| match (allowed, trial.outcome(primary.margin)) {
            (false, _) => "no verdict".to_owned(),
            (true, Outcome::Shown) => format!("shown: at most {} ×", primary.margin),
            (true, Outcome::Exceeded) => format!("COSTS MORE than {} ×", primary.margin),
            (true, Outcome::Open) => "no verdict: the margin lies between the bounds".to_owned(),
        };
        let null = |_: &Trial| match equal(&self.null) {
            true => "null: holds 1".to_owned(),
            false => "null: FAILS".to_owned(),
        };
        let row = |variant: &str, ratios: &[f64], words: &dyn Fn(&Trial) -> String| {
            let trial = trial(ratios)?;
            let needed = blocks_for(trial.spread, primary.margin, primary.power);
            let number = |ratio: f64| format!("{ratio:.4}");
            Some(vec![
                format!("{variant} to {}", primary.peer),
                version.to_owned(),
                trial.blocks.to_string(),
                number(trial.ratio),
                number(trial.low),
                number(trial.high),
                format!("{:.2} %", trial.spread * 100.0),
                needed.map_or("> a million".into(), |n| n.to_string()),
                words(&trial),
            ])
        };
        let rows = [
            row(&primary.variant, &self.ratios, &verdict),
            row(&primary.equal, &self.null, &null),
        ];
        rows.into_iter().flatten().collect()
    }

    /// Rows of the chart.
    fn bars(&self, primary: &Primary, version: &str) -> Vec<Row> {
        let arms = [
            (&primary.variant, &self.ratios),
            (&primary.equal, &self.null),
        ];
        let bar = |(variant, (name, ratios)): (usize, (&String, &Vec<f64>))| {
            let trial = trial(ratios)?;
            Some(Row {
                name: format!("{version} · {name}"),
                variant,
                ratio: Estimate {
                    median: trial.ratio,
                    low: trial.low,
                    high: trial.high,
                    confidence: 2.0 * CONFIDENCE - 1.0,
                },
            })
        };
        arms.into_iter().enumerate().filter_map(bar).collect()
    }

    /// One line with the distribution of the ratios between the two arms of the peer (the null);
    /// `None` without pairs.
    fn null_line(&self, version: &str) -> Option<String> {
        let [least, lower, median, upper, greatest] = five_numbers(&self.null)?;
        Some(format!(
            "{version}, null of {} pairs: {least:.4} to {greatest:.4}, half of them from \
             {lower:.4} to {upper:.4}, median {median:.4}",
            self.null.len()
        ))
    }
}

/// Reason against a verdict if the variants do not stand in each position of
/// a block equally often.
fn unbalanced(results: &Results, version: &str) -> Option<String> {
    let runs = results.runs.iter().filter(|run| run.version == version);
    let arms: BTreeSet<&str> = runs.map(|run| run.variant.as_str()).collect();
    let (arms, rounds) = (arms.len(), results.experiment.scenario.rounds as usize);
    let uneven = arms > 0 && rounds % arms != 0;
    uneven.then(|| format!("{rounds} rounds of {arms} variants are not balanced"))
}

/// Number of runs of the whole experiment.
pub fn expected(results: &Results) -> usize {
    let scenario = &results.experiment.scenario;
    let subjects = results.experiment.versions.len() * scenario.variants.len();
    let left_out = results.experiment.left_out.len();
    (subjects - left_out.min(subjects)) * points(scenario).len() * scenario.rounds as usize
}

#[cfg(test)]
mod tests {
    use super::super::busy::Occupancy;
    use super::super::document::markdown;
    use super::super::plan::points;
    use super::super::scenario::Scenario;
    use super::super::store::{Metrics, Run};
    use super::super::summary::tests::results as other_results;
    use super::*;

    const OWN: Occupancy = Occupancy {
        own_s: 10.0,
        others_s: 0.0,
        steal_s: 0.0,
        load_before: 0.1,
        load_after: 2.0,
    };

    /// Blocks of three arms with these cost ratios and noise of up to 0.2 %.
    fn results(rounds: u32, ratio: f64, null: f64) -> Results {
        let text = format!(
            r#"
            name = "t"
            title = "T"
            question = "?"
            rounds = {rounds}
            [pgbench]
            seconds = 1
            warmup = 0
            clients = [1]
            workload = [{{ name = "w", builtin = "select-only" }}]
            [[variant]]
            name = "peer"
            [[variant]]
            name = "again"
            [[variant]]
            name = "ours"
            [primary]
            metric = "cpu_us"
            point = "w, 1 client"
            variant = "ours"
            peer = "peer"
            equal = "again"
            margin = 1.01
            power = 0.9
            spread = 0.01
        "#
        );
        let mut results = other_results(&[], &[]);
        results.experiment.scenario = Scenario::parse(&text, false).expect("valid");
        let point = points(&results.experiment.scenario).remove(0);
        for round in 1..=rounds {
            // The noise alternates, so that an even number of rounds does not change a mean.
            let noise = if round % 2 == 0 { 1.002 } else { 1.0 / 1.002 };
            let drift = f64::from(100 + round);
            for (variant, cost) in [
                ("peer", 1.0),
                ("again", null * noise),
                ("ours", ratio * noise),
            ] {
                results.runs.push(Run {
                    version: "15.1".into(),
                    variant: variant.into(),
                    point: point.clone(),
                    round,
                    metrics: Metrics::from([("cpu_us".into(), drift * cost)]),
                    waits: Default::default(),
                    occupancy: Some(OWN),
                });
            }
        }
        results
    }

    fn page(results: &Results) -> String {
        markdown(&primary(results, results.runs.len() == expected(results)))
    }

    #[test]
    fn a_variant_that_costs_nothing_is_shown_and_one_of_2_percent_is_not() {
        let green = page(&results(24, 1.0, 1.0));
        assert!(
            green.contains(
                "| ours to peer | 15.1 | 24 | 1.0000 | 0.9993 | 1.0007 | 0.20 % | 3 | \
                 shown: at most 1.01 × |"
            ),
            "{green}"
        );
        assert!(
            green.contains("| again to peer | 15.1 | 24 | 1.0000 | "),
            "{green}"
        );
        assert!(green.contains("0.20 % | 3 | null: holds 1 |"), "{green}");
        assert!(
            green.contains(
                "- 15.1, null of 24 pairs: 0.9980 to 1.0020, half of them from 0.9980 to 1.0020"
            ),
            "{green}"
        );
        assert!(
            green.contains("takes 11 blocks; this experiment has 24."),
            "{green}"
        );
        let red = page(&results(24, 1.02, 1.0));
        assert!(red.contains("| COSTS MORE than 1.01 × |"), "{red}");
        let open = page(&results(24, 1.01, 1.0));
        assert!(
            open.contains("| no verdict: the margin lies between the bounds |"),
            "{open}"
        );
    }

    /// The page has no verdict, for this reason alone.
    fn refused(results: &Results, reason: &str) {
        let page = page(results);
        let line = format!("- 15.1: no verdict, because {reason}\n");
        assert!(
            page.contains("| no verdict |") && page.contains(&line),
            "{page}"
        );
        assert!(!page.contains("shown: at most"), "{page}");
    }

    #[test]
    fn each_breach_of_the_method_is_a_reason_against_a_verdict() {
        let good = results(24, 1.0, 1.0);
        let mut busy = good.clone();
        let others = Occupancy {
            others_s: 1.0,
            ..OWN
        };
        busy.runs
            .iter_mut()
            .for_each(|run| run.occupancy = Some(others));
        refused(&busy, "the machine was busy with others");
        let mut unknown = good.clone();
        unknown.runs[0].occupancy = None;
        refused(&unknown, "the CPU time of others is not known");
        let mut partial = good.clone();
        partial.runs.pop();
        refused(&partial, "the experiment is incomplete");
        refused(
            &results(24, 1.0, 1.004),
            "the null fails: equal arms differ, so the method is biased here",
        );
        refused(
            &results(18, 1.0, 1.0),
            "the null has 18 pairs, and 20 are needed",
        );
        refused(
            &results(22, 1.0, 1.0),
            "22 rounds of 3 variants are not balanced",
        );
    }

    #[test]
    fn the_chart_has_both_ratios_and_the_margin() {
        let blocks = primary(&results(24, 1.0, 1.0), true);
        let picture = blocks.iter().find_map(|block| match block {
            Block::Picture(svg) => Some(svg.0.as_str()),
            _ => None,
        });
        let svg = picture.expect("a chart");
        assert!(
            svg.contains("15.1 · ours") && svg.contains("15.1 · again"),
            "{svg}"
        );
        assert_eq!(svg.matches("class=\"margin\"").count(), 1, "{svg}");
    }

    #[test]
    fn without_a_declaration_there_is_no_verdict() {
        let page = markdown(&primary(&other_results(&[1.0; 30], &[1.0; 30]), true));
        assert!(
            page.contains("None is declared, so this page has no verdict"),
            "{page}"
        );
    }

    #[test]
    fn more_of_a_throughput_is_a_smaller_cost() {
        let mut results = results(24, 1.0, 1.0);
        let scenario = &mut results.experiment.scenario;
        let primary = scenario.primary.as_mut().expect("declared");
        primary.metric = "tps".into();
        for run in &mut results.runs {
            let tps = if run.variant == "ours" { 98.0 } else { 100.0 };
            run.metrics = Metrics::from([("tps".into(), tps + f64::from(run.round % 2) * 0.01)]);
        }
        assert!(page(&results).contains("| COSTS MORE than 1.01 × |"));
    }
}
