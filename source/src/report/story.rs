//! The figures of the report as sentences.

use super::findings::{Facts, findings};
use super::{Report, named, or_nothing, query_name, two};
use tacho_tape::query::report::{Alarming, Blocker, Change, Damage, Document, Explanation, Time};
use tacho_tape::query::{Numeric, plain_text};

/// Most characters of a name in a sentence; a prepared transaction's may have 200.
const NAME: usize = 64;

/// Sentences that answer the question, most important first.
pub fn sentences(report: &Report) -> Vec<String> {
    let document = &report.document;
    let damage = document.damage.iter().map(damage_sentence);
    if document.load.source.as_deref() == Some("none") {
        let nothing = "Nothing was observed in this window: the history has no sample of it.";
        return std::iter::once(nothing.to_string()).chain(damage).collect();
    }
    let mut story = vec![load_sentence(document)];
    story.extend(before_sentence(document));
    story.extend(largest(document));
    story.extend(found(report));
    story.extend(server_sentence(&document.alarms));
    story.extend(change_sentence(&document.changes.queries));
    story.extend(coverage_sentence(document));
    story.extend(damage);
    story
}

/// Most alarms of the server in its sentence.
const ALARMS: usize = 6;

/// The alarms of the server in one sentence.
fn server_sentence(alarms: &[Alarming]) -> Option<String> {
    let shown = alarms.iter().take(ALARMS);
    let shown: Vec<&str> = shown.map(|alarm| named(&alarm.text)).collect();
    let rest = match alarms.len() - shown.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!shown.is_empty()).then(|| format!("On the server: {}{rest}.", shown.join("; ")))
}

/// Names the data that the report leaves out because of damage.
fn damage_sentence(damage: &Damage) -> String {
    format!(
        "Damage: {}. {}",
        named(&damage.message),
        named(&damage.detail)
    )
}

fn load_sentence(document: &Document) -> String {
    let load = &document.load;
    let most = load.peak_sessions.map(|most| most.to_string());
    let mut text = format!(
        "On average {} sessions were active; busiest minute {}, peak {}",
        two(load.avg_aas),
        two(load.peak_aas),
        named(&most),
    );
    match load.vcpus {
        None => text.push_str("; the number of vCPUs is unknown."),
        Some(vcpus) => {
            text.push_str(&format!(", on {} vCPUs", vcpus.to_f64()));
            text.push_str(match load.avg_aas > Some(vcpus) {
                true => ": more sessions than vCPUs.",
                false => ".",
            });
        }
    }
    text
}

fn before_sentence(document: &Document) -> Option<String> {
    let before = two(Some(document.load_before.avg_aas?));
    let how = document.period.before.as_deref()?;
    Some(format!("Average in {how}: {before}.").replace("in the same", "at the same"))
}

fn largest(document: &Document) -> Option<String> {
    let wait = document.waits.first()?;
    let mut text = format!("Main wait: {} ({} %)", named(&wait.key), two(wait.pct));
    if let Some(query) = document.queries.first() {
        let name = query_name(&query.query_text, &query.key);
        text.push_str(&format!(
            "; largest query, {} %: {}",
            two(query.pct),
            cut(name, 100)
        ));
    }
    Some(text + ".")
}

/// The crashes of the window, its longest queue, and its first cause.
fn found(report: &Report) -> impl Iterator<Item = String> {
    let document = &report.document;
    // The other rows have the texts of queries.
    let rows = document.findings.iter().enumerate();
    let is_told = |(at, row): &(usize, &Explanation)| {
        *at == 0 || row.query_text.is_some() && row.kind.as_deref() == Some("effect")
    };
    let changes: Vec<Explanation> = rows.filter(is_told).map(|(_, row)| row.clone()).collect();
    let known = findings(&Facts {
        blockers: document.blockers.get(..1).unwrap_or_default(),
        markers: &document.markers,
        changes: &changes,
        backend_seconds: document.load.backend_seconds,
        window: (
            time(document.period.period_start),
            time(document.period.period_end),
        ),
        zone: &report.zone,
    });
    known.into_iter().map(|finding| finding.text + ".")
}

fn time(at: Option<Time>) -> i64 {
    at.map_or(0, |at| at.0)
}

/// The query that grew most, if it is new or has doubled.
fn change_sentence(queries: &[Change]) -> Option<String> {
    let grown = queries.iter().find(|change| grew(change))?;
    let name = query_name(&grown.query_text, &grown.key);
    let how = match grown.change.as_deref() {
        Some("new") => format!(
            "New against the earlier window: {} sessions",
            two(grown.avg_aas_2)
        ),
        _ => format!(
            "Largest increase against the earlier window: from {} to {} sessions",
            two(grown.avg_aas_1),
            two(grown.avg_aas_2)
        ),
    };
    Some(format!("{how}: {}.", cut(name, 100)))
}

fn grew(change: &Change) -> bool {
    let (Some(before), Some(after)) = (change.avg_aas_1, change.avg_aas_2) else {
        return false;
    };
    change.key.as_deref() != Some("(other)") && after.0 > 0 && after.0 >= 2 * before.0
}

fn coverage_sentence(document: &Document) -> Option<String> {
    let percent = document.coverage.coverage_pct?;
    let text = two(Some(percent));
    (percent < Numeric(990_000)).then(|| format!("Only {text} % of the window was observed."))
}

/// `Process 4711 (app)`, or the name of a prepared transaction. A holder without a
/// name has the word of `blocking`.
pub fn who(blocker: &Blocker) -> String {
    match (blocker.pid, &blocker.prepared_gid) {
        (Some(_), _) if is_cycle(blocker) => format!("Cycle of {}", process(blocker)),
        (Some(_), _) => process(blocker),
        (None, Some(gid)) => format!("Prepared transaction '{}'", cut(gid, NAME)),
        _ if blocker.kind.as_deref() == Some("unknown") => {
            "Holders that were not looked up (unknown)".to_string()
        }
        _ => "Holders that ended before the sampler could look them up (lost)".to_string(),
    }
}

/// True for a cycle: its sessions wait for each other, so none of them is a head.
pub fn is_cycle(blocker: &Blocker) -> bool {
    blocker.kind.as_deref() == Some("cycle")
}

/// Names a blocker at the begin of a sentence: `Process 4711 (app)`.
pub fn process(blocker: &Blocker) -> String {
    let pid = or_nothing(&blocker.pid);
    match &blocker.application {
        Some(application) if !application.is_empty() => {
            format!("Process {pid} ({})", cut(application, NAME))
        }
        _ => format!("Process {pid}"),
    }
}

/// One plain line of at most `length` characters.
pub fn cut(text: &str, length: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = plain_text(&line);
    match line.char_indices().nth(length) {
        None => line.into_owned(),
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(key: &str, how: &str, before: i128, after: i128) -> Change {
        Change {
            key: Some(key.into()),
            change: Some(how.into()),
            avg_aas_1: Some(Numeric(before)),
            avg_aas_2: Some(Numeric(after)),
            ..Change::default()
        }
    }

    #[test]
    fn the_query_that_grew_most_is_named_before_one_that_is_new() {
        let queries = [
            change("1", "gone", 90_000, 0),
            change("2", "up", 300, 75_700),
            change("3", "new", 0, 700),
        ];
        let named = "Largest increase against the earlier window: from 0.03 to 7.57 sessions: 2.";
        assert_eq!(change_sentence(&queries).as_deref(), Some(named));
        let queries = [
            change("1", "up", 50_000, 60_000),
            change("3", "new", 0, 700),
        ];
        let named = "New against the earlier window: 0.07 sessions: 3.";
        assert_eq!(change_sentence(&queries).as_deref(), Some(named));
    }

    #[test]
    fn small_growth_and_groups_of_queries_are_not_named() {
        let queries = [
            change("1", "up", 50_000, 60_000),
            change("(other)", "up", 1_000, 40_000),
        ];
        assert_eq!(change_sentence(&queries), None);
    }
}
