//! Compares two results of the same scenario: of another day, another machine,
//! or another version of tacho.

use super::document::{Block, Table};
use super::metric::METRICS;
use super::report::BUSY;
use super::stats::Estimate;
use super::store::Results;
use super::summary::{Cell, cells};
use super::verdict::quiet;
use anyhow::{Result, ensure};

/// The comparison. Fails if the results have nothing in common.
pub fn compare(a: &Results, b: &Results) -> Result<Vec<Block>> {
    let (before, after) = (cells(a), cells(b));
    let quiet = quiet(a) && quiet(b);
    let mut table = Table::new(&["point", "variant", "metric"], &["A", "B", "B ÷ A"]);
    table.head.push(("shows".into(), false));
    for cell in &before {
        let same = |other: &&Cell| other.point == cell.point && other.variant == cell.variant;
        for other in after.iter().filter(same) {
            table.rows.extend(rows(cell, other, quiet));
        }
    }
    ensure!(
        !table.rows.is_empty(),
        "the two results have no point and variant in common"
    );
    let side = |name: &str, results: &Results| {
        let experiment = &results.experiment;
        let versions = experiment.versions.join(", ");
        format!(
            "{name}: {}, {}, PostgreSQL {versions}, {}",
            experiment.scenario.name,
            experiment.machine.date,
            experiment.machine.line()
        )
    };
    let mut facts = vec![side("A", a), side("B", b)];
    if a.experiment.machine.line() != b.experiment.machine.line() {
        facts.push("The machines differ: ratios compare machines too.".into());
    }
    Ok(vec![
        Block::Heading(1, format!("Comparison: {}", a.experiment.scenario.title)),
        Block::List(facts),
        Block::Table(table),
    ])
}

fn rows(a: &Cell, b: &Cell, quiet: bool) -> Vec<Vec<String>> {
    let metrics = METRICS.iter();
    metrics
        .filter_map(|metric| {
            let (one, two) = (a.values.get(metric.name)?, b.values.get(metric.name)?);
            (one.median != 0.0).then(|| {
                vec![
                    a.point.label(),
                    a.variant.clone(),
                    metric.label.to_owned(),
                    format!("{:.*}", metric.decimals, one.median),
                    format!("{:.*}", metric.decimals, two.median),
                    format!("{:.3}", two.median / one.median),
                    match quiet {
                        true => difference(one, two).to_owned(),
                        false => BUSY.to_owned(),
                    },
                ]
            })
        })
        .collect()
}

/// Compares two results that were measured on different days. Their runs are not
/// interleaved, so only disjoint confidence intervals mean a difference.
fn difference(a: &Estimate, b: &Estimate) -> &'static str {
    match () {
        () if a.confidence < 0.7 || b.confidence < 0.7 => "too few rounds to tell",
        () if b.low > a.high => "more",
        () if b.high < a.low => "less",
        () => "ranges overlap",
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::markdown;
    use super::super::summary::tests::results;
    use super::*;

    #[test]
    fn only_ranges_that_lie_apart_are_called_different() {
        let a = results(&[100.0, 101.0, 99.0], &[90.0, 91.0, 89.0]);
        let b = results(&[100.0, 102.0, 98.0], &[60.0, 61.0, 59.0]);
        let text = markdown(&compare(&a, &b).expect("comparable"));
        assert!(text.contains("| none | transactions/s | 100 | 100 | 1.000 | ranges overlap |"));
        assert!(text.contains("| slow | transactions/s | 90 | 60 | 0.667 | less |"));
    }

    #[test]
    fn results_without_anything_in_common_are_refused() {
        let (a, mut b) = (results(&[1.0], &[1.0]), results(&[1.0], &[1.0]));
        for run in &mut b.runs {
            run.point.clients = Some(99);
        }
        for clients in b.experiment.scenario.pgbench.iter_mut() {
            clients.clients = vec![99];
        }
        assert!(compare(&a, &b).is_err());
    }
}
