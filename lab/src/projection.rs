//! Throughput of larger machines: where cores were varied by the Universal
//! Scalability Law, otherwise by the longest critical section that a variant can
//! have, if its cost was measured.

use super::document::{Block, Table};
use super::report::{groups, subject, unique};
use super::store::Results;
use super::summary::{Baseline, Cell};
use super::usl::Law;

/// Cores that throughput is projected to.
const PROJECTED: [f64; 5] = [16.0, 32.0, 64.0, 128.0, 256.0];

/// The projection; nothing where nothing can be projected.
pub fn projection(results: &Results, cells: &[Cell], costs: &[Cell]) -> Vec<Block> {
    let blocks = match cells.iter().any(|c| c.point.cores.is_some()) {
        true => by_law(cells),
        false => by_sections(&Baseline::of(results), cells, costs),
    };
    if blocks.is_empty() {
        return blocks;
    }
    let head = Block::Heading(2, "Projection to more cores".into());
    [vec![head], blocks].concat()
}

fn table(words: &[&str], numbers: &[&str]) -> Table {
    let heads = PROJECTED.map(|n| format!("{n:.0} cores"));
    let mut labels = numbers.to_vec();
    labels.extend(heads.iter().map(String::as_str));
    Table::new(words, &labels)
}

fn by_law(cells: &[Cell]) -> Vec<Block> {
    let mut table = table(&["group", "variant"], &["σ", "κ"]);
    for (group, members) in groups(cells) {
        for variant in unique(members.iter().map(|c| subject(c, true))) {
            let points = members.iter().filter(|c| subject(c, true) == variant);
            let points: Vec<(f64, f64)> = points
                .filter_map(|c| Some((f64::from(c.point.cores?), c.values.get("tps")?.median)))
                .collect();
            if let Some(law) = Law::fit(&points) {
                let mut row = vec![group.clone(), variant];
                row.extend([format!("{:.4}", law.sigma), format!("{:.6}", law.kappa)]);
                row.extend(PROJECTED.map(|n| format!("{:.0}", law.at(n))));
                table.rows.push(row);
            }
        }
    }
    if table.rows.is_empty() {
        let text = "No projection: it takes at least three numbers of cores, and throughput that \
                    does not grow faster than they do.";
        return vec![Block::Text(text.into())];
    }
    let text = "PROJECTION, not a measurement: transactions per second by the Universal \
                Scalability Law fitted to the cores measured here.";
    vec![Block::Text(text.into()), Block::Table(table)]
}

/// One hot query: all that a variant adds to a statement is taken for one
/// critical section, without what contention for it costs.
fn by_sections(baseline: &Baseline, cells: &[Cell], costs: &[Cell]) -> Vec<Block> {
    let mut table = table(
        &["server", "variant"],
        &["CPU of a transaction, µs", "section at most, ns"],
    );
    let hot = costs.first().map(|c| &c.point);
    for cost in costs.iter().filter(|c| Some(&c.point) == hot) {
        let same = |c: &&Cell| (&c.version, &c.variant) == (&cost.version, &cost.variant);
        let loaded = cells.iter().rfind(same);
        let us = loaded.and_then(|c| Some(c.values.get("cpu_us")?.median));
        let section = baseline.of_cell(costs, cost).and_then(|b| section(b, cost));
        if let (Some(us), Some(section)) = (us, section) {
            let mut row = vec![cost.version.clone(), cost.variant.clone()];
            row.extend([format!("{us:.1}"), format!("{section:.0}")]);
            row.extend(PROJECTED.map(|n| format!("{:.0}", bounded(n, us, section))));
            table.rows.push(row);
        }
    }
    if table.rows.is_empty() {
        return Vec::new();
    }
    let text = "PROJECTION, not a measurement: transactions per second of one hot query on as many \
                cores, if everything that a variant adds to it were a section that one session can \
                be in at a time: the smaller one of cores ÷ CPU of a transaction and 1 ÷ length of \
                the section. Real servers can be slower: contention adds waiting, waking and cache \
                lines that travel between sockets, and throughput then falls with more clients. \
                With three or more numbers of --cores a law is fitted to what was measured instead.";
    vec![Block::Text(text.into()), Block::Table(table)]
}

/// What a variant adds, in ns: its instructions at the speed of the baseline's
/// where they were counted, since these are free of noise.
fn section(base: &Cell, cell: &Cell) -> Option<f64> {
    let of = |cell: &Cell, name: &str| Some(cell.values.get(name)?.median);
    let ns = of(base, "cpu_ns")?;
    let added = match (of(base, "instructions"), of(cell, "instructions")) {
        (Some(base), Some(own)) if base > 0.0 => (own - base) * ns / base,
        _ => of(cell, "cpu_ns")? - ns,
    };
    Some(added.max(0.0))
}

/// Transactions a second of n cores.
fn bounded(n: f64, cpu_us: f64, section_ns: f64) -> f64 {
    let cores = n * 1e6 / cpu_us;
    match section_ns > 0.0 {
        true => cores.min(1e9 / section_ns),
        false => cores,
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::markdown;
    use super::super::summary::cells;
    use super::super::summary::tests::{costing, results};
    use super::*;

    #[test]
    fn without_a_sweep_the_longest_section_bounds_throughput() {
        let results = costing();
        let (costs, cells): (Vec<Cell>, Vec<Cell>) = cells(&results)
            .into_iter()
            .partition(|c| c.values.contains_key("cpu_ns"));
        let text = markdown(&projection(&results, &cells, &costs));
        assert!(text.contains("PROJECTION, not a measurement"), "{text}");
        // 20 µs of CPU; 200 of 1,000 instructions more than 300 ns: 60 ns
        assert!(
            text.contains(
                "| 15.1 | slow | 20.0 | 60 | 800000 | 1600000 | 3200000 | 6400000 | 12800000 |"
            ),
            "{text}"
        );
        assert!(
            text.contains("| 15.1 | none | 20.0 | 0 | 800000 |"),
            "{text}"
        );
    }

    #[test]
    fn the_section_is_the_limit_once_cores_would_do_more() {
        assert_eq!(bounded(16.0, 20.0, 2_000.0), 500_000.0);
        assert_eq!(bounded(1.0, 20.0, 2_000.0), 50_000.0);
        assert_eq!(bounded(2.0, 20.0, 0.0), 100_000.0);
    }

    #[test]
    fn nothing_is_projected_from_throughput_alone() {
        let results = results(&[100.0], &[90.0]);
        assert!(projection(&results, &cells(&results), &[]).is_empty());
    }
}
