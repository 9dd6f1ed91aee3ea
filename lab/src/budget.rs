//! Budgets: limits of the variants' ratios to the baseline, and verdicts by the
//! measured intervals.

use super::document::{Block, Table};
use super::metric::{Better, Metric, find};
use super::report::{BUSY, interval};
use super::scenario::Budget;
use super::stats::Estimate;
use super::store::Results;
use super::summary::Cell;
use super::verdict::quiet;

/// A table with a line for each budget at each point. Empty without budgets.
pub fn budgets(results: &Results, cells: &[Cell]) -> Vec<Block> {
    let labels = ["point", "server", "variant", "metric"];
    let mut table = Table::new(&labels, &["budget", "ratio"]);
    table.head.push(("so".into(), false));
    let quiet = quiet(results);
    for budget in &results.experiment.scenario.budgets {
        let Some(metric) = find(&budget.metric) else {
            continue;
        };
        for cell in cells.iter().filter(|cell| is_for(budget, cell)) {
            let ratio = cell.ratios.get(metric.name);
            let limit = match metric.better {
                Better::Less => format!("≤ {}", budget.ratio),
                Better::More => format!("≥ {}", budget.ratio),
            };
            table.rows.push(vec![
                cell.point.label(),
                cell.version.clone(),
                cell.variant.clone(),
                metric.label.to_owned(),
                limit,
                ratio.map_or_else(String::new, interval),
                match (ratio, quiet) {
                    (None, _) => "not measured",
                    (Some(_), false) => BUSY,
                    (Some(ratio), true) => verdict(metric, budget.ratio, ratio),
                }
                .to_owned(),
            ]);
        }
    }
    match table.rows.is_empty() {
        true => Vec::new(),
        false => vec![Block::Heading(2, "Budgets".into()), Block::Table(table)],
    }
}

fn is_for(budget: &Budget, cell: &Cell) -> bool {
    let workload = cell.point.workload.as_ref();
    let everywhere = budget.workloads.is_empty();
    budget.variants.contains(&cell.variant)
        && (everywhere || workload.is_some_and(|w| budget.workloads.contains(w)))
}

/// The verdict about a budget. The budget is held or missed only if the whole interval is on one
/// side of it.
fn verdict(metric: &Metric, budget: f64, ratio: &Estimate) -> &'static str {
    if ratio.confidence < 0.95 {
        return "too few rounds to tell";
    }
    let (held, missed) = match metric.better {
        Better::Less => (ratio.high <= budget, ratio.low > budget),
        Better::More => (ratio.low >= budget, ratio.high < budget),
    };
    match (held, missed) {
        (true, _) => "held",
        (_, true) => "MISSED",
        _ => "undecided: the interval reaches over it",
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::markdown;
    use super::super::summary::{cells, tests::results};
    use super::*;

    fn ratio(low: f64, high: f64) -> Estimate {
        Estimate {
            median: f64::midpoint(low, high),
            low,
            high,
            confidence: 0.97,
        }
    }

    #[test]
    fn a_budget_is_held_or_missed_by_the_whole_interval() {
        let (tps, cpu) = (find("tps").expect("known"), find("cpu_us").expect("known"));
        assert_eq!(verdict(tps, 0.99, &ratio(0.99, 1.2)), "held");
        assert_eq!(verdict(tps, 0.99, &ratio(0.8, 0.98)), "MISSED");
        assert!(verdict(tps, 0.99, &ratio(0.98, 1.0)).starts_with("undecided"));
        assert_eq!(verdict(cpu, 1.01, &ratio(0.9, 1.01)), "held");
        assert_eq!(verdict(cpu, 1.01, &ratio(1.02, 1.1)), "MISSED");
        let mut few = ratio(0.9, 0.9);
        few.confidence = 0.75;
        assert_eq!(verdict(cpu, 1.01, &few), "too few rounds to tell");
    }

    #[test]
    fn budgets_are_for_variants_and_workloads() {
        let mut results = results(&[100.0; 6], &[90.0; 6]);
        let budget = |variant: &str, workload: &str| Budget {
            metric: "tps".into(),
            ratio: 0.95,
            variants: vec![variant.into()],
            workloads: vec![workload.into()],
        };
        results.experiment.scenario.budgets = vec![budget("slow", "w"), budget("slow", "other")];
        let text = markdown(&budgets(&results, &cells(&results)));
        let line = "| w, 1 client | 15.1 | slow | transactions/s | ≥ 0.95 | 0.900 (0.900–0.900) | MISSED |";
        assert!(text.contains(line), "{text}");
        assert_eq!(text.matches("| slow |").count(), 1);
        results.experiment.scenario.budgets = Vec::new();
        assert!(budgets(&results, &cells(&results)).is_empty());
    }
}
