//! What the figures say, in sentences.

use super::{Part, Report};
use tacho_tape::query::plain_text;

/// Characters of a name in a sentence; that of a prepared transaction may have 200.
const NAME: usize = 64;

/// Sentences that answer the question, the most important first.
pub fn sentences(report: &Report) -> Vec<String> {
    let part = report.part();
    let load = part.get("load");
    if load.text("source").as_deref() == Some("none") {
        let nothing = "Nothing was observed in this window: the history has no sample of it.";
        let mut story = vec![nothing.to_string()];
        story.extend(damage_sentences(part));
        return story;
    }
    let mut story = vec![load_sentence(part)];
    story.extend(before_sentence(part));
    story.extend(largest(part));
    story.extend(blocker_sentence(part));
    story.extend(change_sentence(part));
    story.extend(coverage_sentence(part));
    story.extend(damage_sentences(part));
    story
}

/// What the report leaves out because it is damaged.
fn damage_sentences(part: Part) -> impl Iterator<Item = String> {
    let told = |damage: Part| {
        let message = damage.shown("message");
        format!("Damage: {message}. {}", damage.shown("detail"))
    };
    part.list("damage").into_iter().map(told)
}

fn load_sentence(part: Part) -> String {
    let load = part.get("load");
    let mut text = format!(
        "On average {} sessions were active, {} in the busiest minute and {} at the most",
        load.two("avg_aas"),
        load.two("peak_aas"),
        load.shown("peak_sessions"),
    );
    match load.number("vcpus") {
        None => text.push_str("; the number of vCPUs is unknown."),
        Some(vcpus) => {
            text.push_str(&format!(", on {vcpus} vCPUs"));
            let over = load.number("avg_aas").is_some_and(|avg| avg > vcpus);
            text.push_str(if over {
                ": more sessions than vCPUs."
            } else {
                "."
            });
        }
    }
    text
}

fn before_sentence(part: Part) -> Option<String> {
    let before = part.get("load_before").number("avg_aas")?;
    let how = part.get("period").text("before")?;
    Some(format!("Average in {how}: {before:.2}.").replace("in the same", "at the same"))
}

fn largest(part: Part) -> Option<String> {
    let waits = part.list("waits");
    let wait = waits.first()?;
    let mut text = format!("Most of it: {} ({} %)", wait.shown("key"), wait.two("pct"));
    if let Some(query) = part.list("queries").first() {
        let name = query
            .text("query_text")
            .unwrap_or_else(|| query.shown("key"));
        text.push_str(&format!(
            "; largest query, {} %: {}",
            query.two("pct"),
            cut(&name, 100)
        ));
    }
    Some(text + ".")
}

fn blocker_sentence(part: Part) -> Option<String> {
    let blockers = part.list("blockers");
    let first = blockers.first()?;
    let mut text = format!(
        "{} made others wait for {} s in all, up to {} at once",
        who(*first),
        first.two("blocked_seconds"),
        first.shown("waiters")
    );
    if let Some(state) = first.text("state") {
        text.push_str(&format!("; it was {state}"));
    }
    Some(text + ".")
}

/// The query that grew most, if it is new or has doubled.
fn change_sentence(part: Part) -> Option<String> {
    let changes = part.get("changes").list("queries");
    let grown = changes.iter().find(|c| grew(**c))?;
    let name = grown
        .text("query_text")
        .unwrap_or_else(|| grown.shown("key"));
    let how = match grown.text("change").as_deref() {
        Some("new") => format!("New against before, {} sessions", grown.two("avg_aas_2")),
        _ => format!(
            "Grew most against before, from {} to {} sessions",
            grown.two("avg_aas_1"),
            grown.two("avg_aas_2")
        ),
    };
    Some(format!("{how}: {}.", cut(&name, 100)))
}

fn grew(change: Part) -> bool {
    let (before, after) = (change.number("avg_aas_1"), change.number("avg_aas_2"));
    change.text("key").as_deref() != Some("(other)")
        && after.is_some_and(|after| after > 0.0 && after >= 2.0 * before.unwrap_or(f64::MAX))
}

fn coverage_sentence(part: Part) -> Option<String> {
    let percent = part.get("coverage").number("coverage_pct")?;
    (percent < 99.0).then(|| format!("Only {percent:.2} % of the window was observed."))
}

/// `Process 4711 (app)`, or the name of a prepared transaction.
pub fn who(blocker: Part) -> String {
    match (blocker.text("pid"), blocker.text("prepared_gid")) {
        (Some(pid), _) => match blocker.text("application") {
            Some(application) if !application.is_empty() => {
                format!("Process {pid} ({})", cut(&application, NAME))
            }
            _ => format!("Process {pid}"),
        },
        (None, Some(gid)) => format!("Prepared transaction '{}'", cut(&gid, NAME)),
        _ => "A holder that was gone".to_string(),
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
    use jiff::tz::TimeZone;
    use serde_json::{Value, json};

    fn change(key: &str, how: &str, before: f64, after: f64) -> Value {
        json!({"key": key, "change": how, "avg_aas_1": before, "avg_aas_2": after})
    }

    fn sentence(queries: Vec<Value>) -> Option<String> {
        let root = json!({"changes": {"queries": queries}});
        change_sentence(Report::new(root, TimeZone::UTC).part())
    }

    #[test]
    fn the_query_that_grew_most_is_named_before_one_that_is_new() {
        let queries = vec![
            change("1", "gone", 9.0, 0.0),
            change("2", "up", 0.03, 7.57),
            change("3", "new", 0.0, 0.07),
        ];
        let named = "Grew most against before, from 0.03 to 7.57 sessions: 2.";
        assert_eq!(sentence(queries).as_deref(), Some(named));
        let queries = vec![change("1", "up", 5.0, 6.0), change("3", "new", 0.0, 0.07)];
        let named = "New against before, 0.07 sessions: 3.";
        assert_eq!(sentence(queries).as_deref(), Some(named));
    }

    #[test]
    fn what_grew_a_little_or_is_not_one_query_is_not_named() {
        let queries = vec![
            change("1", "up", 5.0, 6.0),
            change("(other)", "up", 0.1, 4.0),
        ];
        assert_eq!(sentence(queries), None);
    }
}
