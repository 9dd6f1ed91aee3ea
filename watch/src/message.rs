//! Messages about alarms: JSON for commands and webhooks, the body of an alertmanager, and a line
//! for people.

use crate::rules::Rule;
use crate::state::{Alarm, Message};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tacho_source::rows::ask;
use tacho_source::{Source, time};
use tacho_tape::query::{Changes, ChangesRow, plain_text};

/// Maximum number of findings in a message.
const FINDINGS: usize = 3;
/// Length in µs of the time before an alarm that its page covers.
const BEFORE_US: i64 = 10 * 60_000_000;
/// Length in µs of the time before an alarm that its findings cover. A longer one would hide the begin
/// of an alarm that was sent after 30 s; bench/incidents.sh, which measures `changes`, asks like this.
const FINDINGS_BEFORE_US: i64 = 3_000_000;
/// Maximum length of one finding, in bytes.
const FINDING_BYTES: usize = 500;

/// Makes the message of an alarm.
pub fn message(page: Option<&str>, alarm: Alarm, now_us: i64) -> Message {
    Message {
        page: page.map(|page| address(page, &alarm, now_us)),
        alarm,
        sent: Vec::new(),
        refused: BTreeMap::new(),
    }
}

/// The first causes and effects that `changes` finds. An alarm is sent without them if the question
/// fails, or if nothing was recorded in the normal window: all load looks like more than before then.
pub fn findings(source: &dyn Source, alarm: &Alarm, now_us: i64) -> Vec<String> {
    let asked = Changes {
        since: Some(alarm.began_us - FINDINGS_BEFORE_US),
        until: Some(now_us),
        n: Some(FINDINGS as i64),
        ..Changes::default()
    };
    let rows = ask(source, &alarm.server, &asked).unwrap_or_default();
    let sentences = rows.into_iter().filter(is_finding);
    let sentences = sentences.filter_map(|row| row.explanation);
    sentences
        .take(FINDINGS)
        .map(|text| cut(&plain_text(&text)))
        .collect()
}

fn is_finding(row: &ChangesRow) -> bool {
    row.has_normal_window() && matches!(row.kind.as_deref(), Some("cause" | "effect"))
}

fn cut(text: &str) -> String {
    match (0..=FINDING_BYTES)
        .rev()
        .find(|end| text.is_char_boundary(*end))
    {
        Some(end) if end < text.len() => format!("{}…", &text[..end]),
        _ => text.to_string(),
    }
}

/// The address of the page that shows the alarm.
fn address(page: &str, alarm: &Alarm, now_us: i64) -> String {
    let tab = match alarm.rule {
        Rule::Queue => "&tab=locks",
        Rule::PlanChange => "&tab=plans",
        Rule::Wraparound | Rule::Slot | Rule::Replication | Rule::Disk => "&tab=server",
        Rule::Recorder | Rule::Load | Rule::Space => "",
    };
    let since = time::timestamp((alarm.began_us - BEFORE_US) / 1_000_000 * 1_000_000);
    let until = time::timestamp(now_us / 1_000_000 * 1_000_000);
    let server = encoded(&alarm.server);
    let page = page.trim_end_matches('/');
    format!("{page}/?server={server}&since={since}&until={until}{tab}")
}

fn encoded(text: &str) -> String {
    let byte = |b: u8| match b {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(b).to_string()
        }
        b => format!("%{b:02X}"),
    };
    text.bytes().map(byte).collect()
}

impl Message {
    /// `alarm` or `over`.
    pub fn status(&self) -> &'static str {
        match self.alarm.ended_us {
            None => "alarm",
            Some(_) => "over",
        }
    }

    /// The message for commands and webhooks.
    pub fn json(&self) -> Value {
        let alarm = &self.alarm;
        let at = |us: i64| time::timestamp(us).to_string();
        // JSON has no infinity: a recorder that never recorded has no value
        let value = alarm.value.is_finite().then_some(alarm.value);
        json!({
            "status": self.status(),
            "server": alarm.server,
            "rule": alarm.rule.name(),
            "object": alarm.object,
            "severity": alarm.severity.name(),
            "value": value,
            "limit": alarm.limit,
            "summary": alarm.summary,
            "began": at(alarm.began_us),
            "ended": alarm.ended_us.map(at),
            "findings": alarm.findings,
            "page": self.page,
        })
    }

    /// The alert for an alertmanager. Labels identify it, so that its end ends the same alert.
    pub fn alert(&self) -> Value {
        let alarm = &self.alarm;
        let mut alert = json!({
            "labels": {
                "alertname": format!("tacho_{}", alarm.rule.name()),
                "server": alarm.server,
                "object": alarm.object,
                "severity": alarm.severity.name(),
            },
            "annotations": {
                "summary": format!("{}: {}", alarm.server, alarm.summary),
                "description": alarm.findings.join("\n"),
            },
            "startsAt": time::timestamp(alarm.began_us).to_string(),
        });
        let mut put = |name: &str, text: Option<String>| {
            if let (Some(alert), Some(text)) = (alert.as_object_mut(), text) {
                alert.insert(name.into(), text.into());
            }
        };
        put(
            "endsAt",
            alarm.ended_us.map(|us| time::timestamp(us).to_string()),
        );
        put("generatorURL", self.page.clone());
        alert
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let alarm = &self.alarm;
        let at = time::timestamp(alarm.ended_us.unwrap_or(alarm.began_us));
        let (server, rule) = (&alarm.server, alarm.rule.name());
        let line = match alarm.ended_us {
            None => format!("{at} alarm {server} {rule}: {}", alarm.summary),
            Some(_) => format!("{at} over {server} {rule} {}", alarm.object),
        };
        plain_text(line.trim_end()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Severity;
    use tacho_tape::query::Numeric;

    fn alarm(ended_us: Option<i64>) -> Message {
        let alarm = Alarm {
            server: "shop prod".into(),
            rule: Rule::Queue,
            object: "process 7".into(),
            severity: Severity::Critical,
            value: 41.0,
            limit: 30.0,
            summary: "a session waits for 41 s behind process 7".into(),
            began_us: 1_767_225_600_000_000,
            ended_us,
            is_told: true,
            findings: vec!["DROP INDEX a".into()],
        };
        let page = Some(address("http://tacho/", &alarm, 1_767_225_660_000_000));
        Message {
            alarm,
            page,
            sent: Vec::new(),
            refused: BTreeMap::new(),
        }
    }

    #[test]
    fn nothing_is_found_without_a_normal_window() {
        let row = |kind: &str, coverage: Option<i128>| ChangesRow {
            kind: Some(kind.into()),
            before_coverage_pct: coverage.map(Numeric),
            ..ChangesRow::default()
        };
        assert!(is_finding(&row("cause", Some(1_000_000))));
        assert!(is_finding(&row("effect", Some(1_000_000))));
        assert!(!is_finding(&row("note", Some(1_000_000))));
        assert!(!is_finding(&row("cause", Some(0))));
        assert!(!is_finding(&row("effect", None)));
    }

    #[test]
    fn an_alertmanager_can_end_the_alert_that_began() {
        let (begin, end) = (
            alarm(None).alert(),
            alarm(Some(1_767_225_660_000_000)).alert(),
        );
        assert_eq!(begin["labels"], end["labels"]);
        assert_eq!(begin["labels"]["alertname"], "tacho_queue");
        assert!(begin.get("endsAt").is_none());
        assert_eq!(end["endsAt"], "2026-01-01T00:01:00Z");
    }

    #[test]
    fn a_message_names_the_page_and_the_findings() {
        let message = alarm(None).json();
        assert_eq!(message["status"], "alarm");
        assert_eq!(message["began"], "2026-01-01T00:00:00Z");
        assert_eq!(message["findings"][0], "DROP INDEX a");
        assert_eq!(
            message["page"],
            "http://tacho/?server=shop%20prod&since=2025-12-31T23:50:00Z&until=2026-01-01T00:01:00Z&tab=locks"
        );
        assert_eq!(
            alarm(None).line(),
            "2026-01-01T00:00:00Z alarm shop prod queue: a session waits for 41 s behind process 7"
        );
        assert_eq!(
            alarm(Some(1_767_225_660_000_000)).line(),
            "2026-01-01T00:01:00Z over shop prod queue process 7"
        );
    }
}
