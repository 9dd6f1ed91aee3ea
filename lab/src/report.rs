//! The report of an experiment: the measured variants, the results, and how
//! certain they are.

use super::budget::budgets;
use super::busy::Total;
use super::document::{Block, Table};
use super::forest::{self, Row};
use super::metric::{METRICS, Metric, find};
use super::plot::{Series, lines, waits};
use super::stats::Estimate;
use super::store::{Piece, Results};
use super::summary::{Baseline, Cell, cells, noise, words};
use super::verdict::{self, expected, occupancy, quiet};
use super::waits::Profile;

/// Metrics of the cost of a statement; the first is always present.
const COST: (&str, [&str; 4]) = ("cpu_ns", ["instructions", "syscalls", "lines", "pages"]);

/// Words in place of a verdict about a busy machine.
pub const BUSY: &str = "no verdict: the machine was busy";

/// The whole report.
pub fn report(results: &Results) -> Vec<Block> {
    let costed = |cell: &Cell| cell.values.contains_key(COST.0);
    let (costs, cells): (Vec<Cell>, Vec<Cell>) = cells(results).into_iter().partition(costed);
    let complete = results.runs.len() >= expected(results);
    let mut blocks = head(results);
    if !results.runs.is_empty() {
        blocks.extend(verdict::primary(results, complete));
    }
    match (cells.is_empty(), costs.is_empty()) {
        (true, true) => blocks.push(Block::Text("Nothing was measured.".into())),
        (true, false) => blocks.extend(cost(results, &costs)),
        (false, _) => {
            blocks.extend(load(results, &cells));
            blocks.extend(cost(results, &costs));
        }
    }
    blocks.extend(versions(results));
    blocks
}

/// Results of the load.
fn load(results: &Results, cells: &[Cell]) -> Vec<Block> {
    let main = main_metric(cells);
    let mut blocks = Vec::new();
    blocks.push(Block::Heading(2, "Result".into()));
    blocks.push(Block::Table(ratios(results, cells, main)));
    blocks.push(Block::Text(how_sure(results, cells, main)));
    blocks.extend(budgets(results, cells));
    blocks.extend(ratio_plots(results, cells, main));
    blocks.extend(plots(cells, main));
    blocks.push(Block::Heading(2, "All numbers (medians)".into()));
    blocks.push(Block::Table(numbers(cells)));
    blocks.extend(asked(results, cells));
    if cells.iter().any(|cell| !cell.waits.is_empty()) {
        blocks.push(Block::Heading(2, "Waits (average active sessions)".into()));
        blocks.extend(wait_pictures(cells));
        blocks.push(Block::Table(wait_table(cells)));
    }
    blocks
}

/// The main metric of the experiment.
pub fn main_metric(cells: &[Cell]) -> &'static Metric {
    let measured = |m: &&Metric| cells.iter().any(|c| c.values.contains_key(m.name));
    METRICS.iter().find(measured).unwrap_or(&METRICS[0])
}

fn head(results: &Results) -> Vec<Block> {
    let experiment = &results.experiment;
    let expected = expected(results);
    let mut facts: Vec<String> = occupancy(results).iter().map(Total::line).collect();
    facts.extend([
        format!("PostgreSQL {}", experiment.versions.join(", ")),
        experiment.machine.line(),
        format!(
            "{}, tacho {}, commit {}",
            experiment.machine.date,
            env!("CARGO_PKG_VERSION"),
            experiment.commit
        ),
        format!("command: {}", experiment.command),
    ]);
    let clients = experiment.clients.as_ref();
    facts.extend(clients.map(|version| format!("psql and pgbench {version} for all servers")));
    facts.extend(pieces(results));
    facts.extend(experiment.given.clone());
    facts.extend(experiment.caches.clone());
    facts.extend(experiment.uncounted.clone());
    facts.extend(experiment.left_out.iter().map(|v| format!("left out: {v}")));
    if results.runs.len() < expected {
        facts.push(format!(
            "INCOMPLETE: {} of {expected} runs; repeat the command with --output to continue",
            results.runs.len()
        ));
    }
    let settings = experiment.scenario.settings.iter();
    let settings: Vec<String> = settings.map(|(k, v)| format!("{k} = {v}")).collect();
    if !settings.is_empty() {
        facts.push(format!("settings: {}", settings.join(", ")));
    }
    vec![
        Block::Heading(1, experiment.scenario.title.clone()),
        Block::Text(experiment.scenario.question.clone()),
        Block::List(facts),
    ]
}

/// A line for each piece, if there are several.
fn pieces(results: &Results) -> Vec<String> {
    let measured = |piece: &&Piece| piece.runs_before < results.runs.len();
    let pieces: Vec<&Piece> = results.pieces.iter().filter(measured).collect();
    if pieces.len() < 2 {
        return Vec::new();
    }
    let ends = pieces.iter().skip(1).map(|piece| piece.runs_before);
    let ends = ends.chain([results.runs.len()]);
    let lines = pieces.iter().zip(ends).enumerate();
    let lines = lines.map(|(at, (piece, end))| {
        format!(
            "piece {}, runs {} to {end}: {}, {}, commit {}",
            at + 1,
            piece.runs_before + 1,
            piece.machine.date,
            piece.machine.line(),
            piece.commit
        )
    });
    let mut lines: Vec<String> = lines.collect();
    let first = pieces[0].machine.line();
    if pieces.iter().any(|piece| piece.machine.line() != first) {
        lines.push("The machines of the pieces differ: compare ratios, not times.".into());
    }
    lines
}

/// A number with the decimals of its metric.
fn number(metric: &Metric, value: f64) -> String {
    format!("{value:.*}", metric.decimals)
}

/// Writes an estimate: the median, and the bounds of its interval in
/// parentheses, as `0.970 (0.950–0.990)`.
pub fn interval(e: &Estimate) -> String {
    format!("{:.3} ({:.3}–{:.3})", e.median, e.low, e.high)
}

/// Labels of a cell: point, version if there are several, and variant.
fn names(cell: &Cell) -> Vec<String> {
    vec![
        cell.point.label(),
        cell.version.clone(),
        cell.variant.clone(),
    ]
}

fn ratios(results: &Results, cells: &[Cell], main: &Metric) -> Table {
    let baseline = Baseline::of(results);
    let to = format!("ratio to {}", baseline.name());
    let mut table = Table::new(&["point", "server", "variant"], &[main.label, &to]);
    table.head.push(("shows".into(), false));
    let more = beside(cells, main);
    for (_, name) in &more {
        table.head.push((format!("{name} ratio"), true));
    }
    for cell in cells {
        let mut row = names(cell);
        row.push(median(cell, main));
        row.push(ratio(cell, &baseline, main));
        row.push(shown(results, cell, main).to_owned());
        row.extend(
            more.iter()
                .map(|(metric, _)| ratio(cell, &baseline, metric)),
        );
        table.rows.push(row);
    }
    table
}

/// The median of a metric as text. For an answer that took longer than the time limit, the limit.
fn median(cell: &Cell, metric: &Metric) -> String {
    let over = over(cell, metric);
    let value = cell.values.get(metric.name);
    value.map_or_else(String::new, |e| {
        format!("{over}{}", number(metric, e.median))
    })
}

/// Ratio of a metric to the baseline.
fn ratio(cell: &Cell, baseline: &Baseline, metric: &Metric) -> String {
    let ratio = cell.ratios.get(metric.name);
    match (ratio, baseline.is_cell(cell)) {
        (Some(ratio), _) => format!("{}{}", over(cell, metric), interval(ratio)),
        (None, true) => "1".to_owned(),
        (None, false) => String::new(),
    }
}

fn over(cell: &Cell, metric: &Metric) -> &'static str {
    match metric.name == "ms" && cell.cut_off() {
        true => "> ",
        false => "",
    }
}

/// The meaning of a cell's ratio to the baseline, in words.
fn shown(results: &Results, cell: &Cell, metric: &Metric) -> &'static str {
    let ratio = cell.ratios.get(metric.name);
    match (ratio, Baseline::of(results).is_cell(cell)) {
        (Some(_), _) if !quiet(results) => BUSY,
        (Some(ratio), _) => words(metric, ratio),
        (None, true) => "baseline",
        (None, false) => "no baseline to compare with",
    }
}

/// Further metrics with a ratio and a plot, and their short names.
fn beside(cells: &[Cell], main: &Metric) -> Vec<(&'static Metric, &'static str)> {
    let names = [
        ("cpu_us", "CPU"),
        ("p99_ms", "p99"),
        ("write_s", "write"),
        ("read_s", "read"),
    ];
    let found = names.map(|(name, short)| Some((find(name)?, short)));
    let measured = |m: &Metric| cells.iter().any(|c| c.values.contains_key(m.name));
    let found = found.into_iter().flatten();
    found
        .filter(|(m, _)| m.name != main.name && measured(m))
        .collect()
}

fn how_sure(results: &Results, cells: &[Cell], main: &Metric) -> String {
    let confidence = cells.iter().flat_map(|c| c.ratios.get(main.name));
    let confidence = confidence.map(|e| e.confidence).fold(1.0, f64::min);
    let mut text = format!(
        "Each ratio compares two runs of one round that follow each other. The tables have the \
         median over the rounds and an interval. The interval holds the true median with {:.0} % \
         or more (order statistics, no assumption about the noise).",
        confidence * 100.0
    );
    if let Some(noise) = noise(cells, &Baseline::of(results), main.name) {
        text.push_str(&format!(
            " Repetitions of the baseline itself differ by {:.1} %.",
            noise * 100.0
        ));
    }
    if cells.iter().any(Cell::cut_off) {
        text.push_str(" Answers were stopped at the time limit: \">\" marks these.");
    }
    text
}

/// Groups of cells; each group has one picture.
pub fn groups(cells: &[Cell]) -> Vec<(String, Vec<&Cell>)> {
    let mut groups: Vec<(String, Vec<&Cell>)> = Vec::new();
    for cell in cells {
        let name = cell.point.group();
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(cell),
            None => groups.push((name, vec![cell])),
        }
    }
    groups
}

pub fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut unique = Vec::new();
    for name in names {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

fn titled(what: &str, group: &str) -> String {
    match group {
        "" => what.to_owned(),
        group => format!("{what}: {group}"),
    }
}

/// Name with server and variant; the server only if there are several.
pub fn subject(cell: &Cell, several: bool) -> String {
    match several {
        true => format!("{} {}", cell.version, cell.variant),
        false => cell.variant.clone(),
    }
}

fn several_servers(cells: &[Cell]) -> bool {
    cells.iter().any(|c| c.version != cells[0].version)
}

/// Ratios to the baseline of the main metric and those beside it.
fn ratio_plots(results: &Results, cells: &[Cell], main: &Metric) -> Vec<Block> {
    let several = several_servers(cells);
    let baseline = Baseline::of(results);
    let subjects = unique(cells.iter().map(|cell| subject(cell, several)));
    let mut metrics = vec![main];
    metrics.extend(beside(cells, main).into_iter().map(|(metric, _)| metric));
    let row = |cell: &&Cell, metric: &Metric| {
        let subject = subject(cell, several);
        let at = format!("{} {}", cell.point.axis(), cell.point.counts());
        Some(Row {
            ratio: *cell.ratios.get(metric.name)?,
            variant: subjects.iter().position(|name| *name == subject)?,
            name: format!("{} · {subject}", at.trim_end()),
        })
    };
    let mut blocks = Vec::new();
    for (group, members) in groups(cells) {
        for metric in &metrics {
            let rows: Vec<Row> = members
                .iter()
                .filter_map(|cell| row(cell, metric))
                .collect();
            if !rows.is_empty() {
                let what = format!("{}, ratio to {}", metric.label, baseline.name());
                let picture = forest::ratios(&titled(&what, &group), &rows, None);
                blocks.push(Block::Picture(picture));
            }
        }
    }
    blocks
}

/// Versions and settings of each variant's server.
fn versions(results: &Results) -> Vec<Block> {
    let servers = &results.servers;
    let Some(first) = servers.first() else {
        return Vec::new();
    };
    let common = |setting: &(&String, &String)| {
        let (name, value) = setting;
        let mut all = servers.iter().map(|server| &server.said.settings);
        all.all(|settings| settings.get(*name) == Some(value))
    };
    let list = |map: &mut dyn Iterator<Item = (&String, &String)>, between: &str| {
        let pairs: Vec<String> = map.map(|(k, v)| format!("{k}{between}{v}")).collect();
        pairs.join(", ")
    };
    let mut table = Table::new(
        &[
            "server",
            "variant",
            "extensions",
            "libraries",
            "settings beyond the common",
        ],
        &[],
    );
    for server in servers {
        let said = &server.said;
        let mut own = said.settings.iter().filter(|setting| !common(setting));
        table.rows.push(vec![
            server.version.clone(),
            server.variant.clone(),
            list(&mut said.extensions.iter(), " "),
            list(&mut server.libraries.iter(), ": "),
            list(&mut own, " = "),
        ]);
    }
    let shared = list(&mut first.said.settings.iter().filter(common), " = ");
    let mut facts = unique(servers.iter().map(|server| server.said.server.clone()));
    facts.retain(|server| !server.is_empty());
    facts.push(format!("settings that all have: {shared}"));
    vec![
        Block::Heading(2, "Versions and settings".into()),
        Block::List(facts),
        Block::Table(table),
    ]
}

fn plots(cells: &[Cell], main: &Metric) -> Vec<Block> {
    let several = several_servers(cells);
    let mut metrics = vec![main];
    metrics.extend(beside(cells, main).into_iter().map(|(metric, _)| metric));
    let mut blocks = Vec::new();
    for (group, members) in groups(cells) {
        let axis = unique(members.iter().map(|c| c.point.axis()));
        let subjects = unique(members.iter().map(|c| subject(c, several)));
        for metric in &metrics {
            let value = |name: &String, at: &String| {
                let cell = members
                    .iter()
                    .find(|c| subject(c, several) == *name && c.point.axis() == *at);
                cell.and_then(|c| c.values.get(metric.name).copied())
            };
            let series: Vec<Series> = subjects
                .iter()
                .map(|name| Series {
                    name: name.clone(),
                    values: axis.iter().map(|at| value(name, at)).collect(),
                })
                .collect();
            if series.iter().any(|s| s.values.iter().any(Option::is_some)) {
                let what = match members[0].point.counts() {
                    "" => metric.label.to_owned(),
                    counts => format!("{} by {counts}", metric.label),
                };
                let picture = lines(&titled(&what, &group), &axis, &series);
                blocks.push(Block::Picture(picture));
            }
        }
    }
    blocks
}

fn numbers(cells: &[Cell]) -> Table {
    let measured: Vec<&Metric> = METRICS
        .iter()
        .filter(|m| cells.iter().any(|c| c.values.contains_key(m.name)))
        .collect();
    let mut labels = vec!["runs"];
    labels.extend(measured.iter().map(|m| m.label));
    let mut table = Table::new(&["point", "server", "variant"], &labels);
    for cell in cells {
        let mut row = names(cell);
        row.push(cell.runs.to_string());
        row.extend(measured.iter().map(|metric| median(cell, metric)));
        table.rows.push(row);
    }
    table
}

/// Numbers that were read from the server, by the scenario's queries.
fn asked(results: &Results, cells: &[Cell]) -> Vec<Block> {
    let metrics = &results.experiment.scenario.metrics;
    if metrics.is_empty() {
        return Vec::new();
    }
    let label = |m: &super::scenario::Asked| match m.unit.as_str() {
        "" => m.name.clone(),
        unit => format!("{}, {unit}", m.name),
    };
    let labels: Vec<String> = metrics.iter().map(label).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let mut table = Table::new(&["point", "server", "variant"], &labels);
    for cell in cells {
        let values = metrics.iter().map(|m| cell.values.get(&m.name));
        let values: Vec<String> = values
            .map(|e| e.map_or_else(String::new, |e| format!("{}", e.median)))
            .collect();
        if values.iter().any(|v| !v.is_empty()) {
            table.rows.push([names(cell), values].concat());
        }
    }
    vec![
        Block::Heading(2, "Measured by SQL on the server (medians)".into()),
        Block::Table(table),
    ]
}

/// Cost of statements: one table a server.
fn cost(results: &Results, costs: &[Cell]) -> Vec<Block> {
    if costs.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![
        Block::Heading(2, "Cost of a statement".into()),
        Block::Text(
            "A server in single-user mode has no other sessions and no background processes. \
             callgrind counts instructions, lines and pages, strace system calls. These counts \
             repeat to a few in ten thousand and come from the first round; time on a CPU comes \
             from each round."
                .into(),
        ),
    ];
    for version in unique(costs.iter().map(|cell| cell.version.clone())) {
        if several_servers(costs) {
            blocks.push(Block::Heading(3, format!("PostgreSQL {version}")));
        }
        blocks.push(Block::Table(cost_of_server(results, costs, &version)));
    }
    blocks
}

/// Cost of statements on one server, and the difference to the baseline.
fn cost_of_server(results: &Results, costs: &[Cell], version: &str) -> Table {
    let baseline = Baseline::of(results);
    let counted = COST.1.iter().filter_map(|name| find(name));
    let counted: Vec<&Metric> = counted
        .filter(|m| costs.iter().any(|c| c.values.contains_key(m.name)))
        .collect();
    let mut table = Table::new(&["statement", "server", "variant"], &[]);
    for metric in &counted {
        table.head.push((metric.label.to_owned(), true));
        table
            .head
            .push((format!("beyond {}", baseline.name()), true));
    }
    table.head.push(("CPU, ns".into(), true));
    table
        .head
        .push((format!("ratio to {}", baseline.name()), true));
    table.head.push(("shows".into(), false));
    for cell in costs.iter().filter(|cell| cell.version == version) {
        let mut row = names(cell);
        for metric in &counted {
            let value = cell.values.get(metric.name).map(|e| e.median);
            let base = baseline.of_cell(costs, cell);
            let base = base.and_then(|c| Some(c.values.get(metric.name)?.median));
            let beyond = value.zip(base).map(|(value, base)| value - base);
            let text = |value: Option<f64>| value.map_or_else(String::new, |v| number(metric, v));
            row.extend([text(value), text(beyond)]);
        }
        row.extend(timed(results, cell, &baseline));
        table.rows.push(row);
    }
    table
}

/// Time of a statement, its ratio to the baseline, and the meaning of the
/// ratio.
fn timed(results: &Results, cell: &Cell, baseline: &Baseline) -> Vec<String> {
    let columns = |metric| {
        vec![
            median(cell, metric),
            ratio(cell, baseline, metric),
            shown(results, cell, metric).to_owned(),
        ]
    };
    find(COST.0).map(columns).unwrap_or_default()
}

fn wait_pictures(cells: &[Cell]) -> Vec<Block> {
    let several = several_servers(cells);
    let groups = groups(cells).into_iter();
    groups
        .map(|(group, members)| {
            let bar = |cell: &&Cell| {
                let at = format!("{} {}", cell.point.axis(), cell.point.counts());
                let name = format!("{} · {}", at.trim_end(), subject(cell, several));
                (name, cell.waits.clone())
            };
            let bars: Vec<(String, Profile)> = members.iter().map(bar).collect();
            Block::Picture(waits(&titled("load by wait event", &group), &bars))
        })
        .collect()
}

fn wait_table(cells: &[Cell]) -> Table {
    let mut table = Table::new(&["point", "server", "variant", "largest waits"], &[]);
    for cell in cells {
        let mut largest: Vec<(&String, &f64)> = cell.waits.iter().collect();
        largest.sort_by(|a, b| b.1.total_cmp(a.1));
        let largest = largest
            .iter()
            .take(4)
            .map(|(wait, load)| format!("{wait} {load:.2}"));
        let mut row = names(cell);
        row.push(largest.collect::<Vec<_>>().join(", "));
        table.rows.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::busy::Occupancy;
    use super::super::compare::compare;
    use super::super::document::{html, markdown};
    use super::super::facts::{Facts, Said};
    use super::super::machine::Machine;
    use super::super::scenario::Budget;
    use super::super::store::CUT_OFF;
    use super::super::summary::tests::{costing, results};
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_report_states_its_subject_and_its_uncertainty() {
        let results = results(&[100.0, 200.0, 400.0], &[90.0, 178.0, 364.0]);
        let text = markdown(&report(&results));
        assert!(
            text.starts_with("# T\n\n?\n\n- PostgreSQL 15.1\n"),
            "{text}"
        );
        assert!(text.contains("| w, 1 client | 15.1 | slow | 178 | 0.900 (0.890–0.910) | worse |"));
        assert!(text.contains("holds the true median with 75 % or more"));
        assert!(!text.contains("INCOMPLETE"));
        let page = html("T", &report(&results));
        assert!(page.contains("<svg") && page.contains("load by wait event: w"));
    }

    #[test]
    fn the_cost_of_a_statement_has_a_table_of_its_own() {
        let text = markdown(&report(&costing()));
        assert!(
            text.contains(
                "| statement | server | variant | instructions | beyond none | CPU, ns |"
            ),
            "{text}"
        );
        assert!(
            text.contains("| s | 15.1 | slow | 1200 | 200 | 330 | 1.100 (1.100–1.100) | worse |")
        );
        assert!(text.contains("- system calls are not counted"));
        assert!(
            !text.contains("| s | 15.1 | slow |  |"),
            "only there: {text}"
        );
    }

    #[test]
    fn each_server_has_its_own_table_of_costs() {
        let mut results = costing();
        assert!(!markdown(&report(&results)).contains("### PostgreSQL"));
        let newer = results.runs.clone().into_iter().map(|mut run| {
            run.version = "17.1".into();
            run
        });
        results.runs.extend(newer.collect::<Vec<_>>());
        results.experiment.versions.push("17.1".into());
        let text = markdown(&report(&results));
        let (older, newer) = text
            .split_once("### PostgreSQL 17.1\n")
            .expect("two tables");
        assert!(older.contains("### PostgreSQL 15.1\n"), "{text}");
        assert!(
            older.contains("| s | 15.1 | slow | 1200 | 200 |") && !older.contains("| s | 17.1 |")
        );
        assert!(
            newer.contains("| s | 17.1 | slow | 1200 | 200 |") && !newer.contains("| s | 15.1 |")
        );
    }

    #[test]
    fn an_answer_that_was_not_waited_for_took_longer() {
        let mut results = results(&[100.0; 3], &[90.0; 3]);
        for run in &mut results.runs {
            let slow = run.variant == "slow";
            run.metrics = [("ms".into(), if slow { 1e4 } else { 5.0 })].into();
            if slow {
                run.metrics.insert(CUT_OFF.into(), 1e4);
            }
        }
        let text = markdown(&report(&results));
        assert!(
            text.contains("| slow | > 10000.00 | > 2000.000 ("),
            "{text}"
        );
        assert!(text.contains("\">\" marks these"));
    }

    #[test]
    fn a_busy_machine_is_the_first_fact_and_nothing_is_better_or_worse() {
        let mut results = results(&[100.0; 6], &[90.0; 6]);
        results.experiment.scenario.budgets = vec![Budget {
            metric: "tps".into(),
            ratio: 0.95,
            variants: vec!["slow".into()],
            workloads: Vec::new(),
        }];
        let mut page = |others_s: f64| {
            for run in &mut results.runs {
                run.occupancy = Some(Occupancy {
                    own_s: 9.0,
                    others_s,
                    ..Occupancy::default()
                });
            }
            let compared = compare(&results, &results).expect("comparable");
            (markdown(&report(&results)), markdown(&compared))
        };
        let (busy, compared) = page(1.0);
        let first = "# T\n\n?\n\n- BUSY MACHINE, NO VERDICTS. CPU time of others: 10.0 %";
        assert!(busy.starts_with(first), "{busy}");
        assert_eq!(busy.matches(&format!("| {BUSY} |")).count(), 2, "{busy}");
        assert!(
            !busy.contains("worse") && !busy.contains("MISSED"),
            "{busy}"
        );
        assert!(
            compared.contains(BUSY) && !compared.contains("ranges"),
            "{compared}"
        );
        let (quiet, compared) = page(0.1);
        assert!(
            quiet.contains("| worse |") && quiet.contains("| MISSED |"),
            "{quiet}"
        );
        assert!(compared.contains("| ranges overlap |"), "{compared}");
    }

    #[test]
    fn versions_and_settings_are_listed_and_common_ones_only_once() {
        let mut results = results(&[100.0; 3], &[90.0; 3]);
        results.servers = ["none", "slow"]
            .map(|variant| {
                let (extension, library) = ("a".to_owned(), "sha256 1".to_owned());
                let own = if variant == "none" { "2" } else { "3" };
                let settings = [("x", "1"), ("y", own)];
                Facts {
                    version: "15.1".into(),
                    variant: variant.into(),
                    said: Said {
                        server: "PostgreSQL 15.1 on x".into(),
                        extensions: BTreeMap::from([(extension.clone(), "1.2".into())]),
                        settings: settings.map(|(k, v)| (k.into(), v.into())).into(),
                    },
                    libraries: BTreeMap::from([(extension, library)]),
                }
            })
            .to_vec();
        let text = markdown(&report(&results));
        let expected = "- PostgreSQL 15.1 on x\n- settings that all have: x = 1\n";
        assert!(text.contains(expected), "{text}");
        assert!(
            text.contains("| 15.1 | none | a 1.2 | a: sha256 1 | y = 2 |"),
            "{text}"
        );
        assert!(
            text.contains("| 15.1 | slow | a 1.2 | a: sha256 1 | y = 3 |"),
            "{text}"
        );
        assert!(text.contains(", commit 0123456\n"), "{text}");
        let page = html("T", &report(&results));
        assert!(page.contains("transactions/s, ratio to none: w"), "{page}");
    }

    #[test]
    fn pieces_of_an_experiment_are_listed_with_their_machines() {
        let mut results = results(&[100.0; 3], &[90.0; 3]);
        let piece = |cpu: &str, runs_before| Piece {
            machine: Machine {
                cpu: cpu.into(),
                cores: 2,
                date: "2026-01-02".into(),
                ..Machine::default()
            },
            commit: "0123456".into(),
            runs_before,
        };
        results.pieces = vec![piece("A", 0)];
        assert!(!markdown(&report(&results)).contains("piece"));
        // Piece C measured nothing.
        results.pieces.extend([piece("B", 4), piece("C", 6)]);
        let text = markdown(&report(&results));
        let (one, two) = (
            "- piece 1, runs 1 to 4: 2026-01-02, 2 × A, ",
            "- piece 2, runs 5 to 6: ",
        );
        assert!(text.contains(one) && text.contains(two), "{text}");
        assert!(!text.contains("piece 3"), "{text}");
        assert!(
            text.contains("- The machines of the pieces differ"),
            "{text}"
        );
    }

    #[test]
    fn a_partial_result_is_marked_and_still_valid() {
        let text = markdown(&report(&results(&[100.0], &[90.0])));
        assert!(text.contains("INCOMPLETE: 2 of 6 runs"), "{text}");
        let alone = markdown(&report(&results(&[], &[90.0])));
        assert!(
            alone.contains("| w, 1 client | 15.1 | slow | 90 |  | no baseline to compare with |"),
            "{alone}"
        );
        let nothing = markdown(&report(&results(&[], &[])));
        assert!(nothing.contains("Nothing was measured."));
    }
}
