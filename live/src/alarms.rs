//! Alarms: measurements of the server that are bad in the picture's time, as the page has them.

use crate::table::{Item, Table};
use crate::text::line;
use crate::view::{View, Window, argument};
use tacho_source::rows::Rows;
use tacho_source::time::length;
use tacho_tape::query::ServerHistoryRow;
use tacho_tape::query::report::{Alarm, Severity, alarms};

/// The alarms of an answer of `server_history`, the most urgent first.
fn found(rows: &Rows) -> Vec<Alarm> {
    alarms(&rows.read::<ServerHistoryRow>())
}

/// The alarms on one line: true if one is critical, and the text, which names the key of the list.
pub fn in_a_line(rows: &Rows) -> Option<(bool, String)> {
    let found = found(rows);
    let is_critical = found.first()?.severity == Severity::Critical;
    let texts: Vec<String> = found.iter().map(|alarm| line(&alarm.text)).collect();
    let name = if found.len() == 1 { "alarm" } else { "alarms" };
    let text = format!("{} {name} (!): {}", found.len(), texts.join("; "));
    Some((is_critical, text))
}

/// The list of alarms.
pub fn table(rows: &Rows, view: &View) -> Table {
    let Window { since, until } = view.measured();
    let window = format!("--since {} --until {}", argument(since), argument(until));
    let bucket = length(view.width());
    let item = |alarm: &Alarm| {
        let text = line(&alarm.text);
        let next = format!(
            "tacho server-history --metric {} {window} --bucket {bucket}",
            alarm.metric
        );
        Item {
            left: format!("{:<8}", alarm.severity.name()),
            right: text.clone(),
            detail: format!("{text}. Next: {next}"),
            copied: next,
            ..Item::default()
        }
    };
    Table {
        left: format!("{:<8}", "severity"),
        bar: "",
        right: "alarm".into(),
        items: found(rows).iter().map(item).collect(),
    }
}
