//! The output of the program: the findings about each cluster, directory or
//! server, as text or as JSON.

use serde::Serialize;
use tacho_record::finding::{self, Finding, State};
use tacho_tape::query::plain_lines;

/// The findings of one subject.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the subject: `cluster 15/main`, a directory, or a server.
    pub subject: String,
    pub findings: Vec<Finding>,
}

/// The reports as text; several are separated by an empty line.
pub fn text(reports: &[Report]) -> String {
    let texts = reports.iter().map(|report| {
        let title = plain_lines(&report.subject);
        format!("{title}\n{}", finding::text(&report.findings))
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The reports as a JSON array.
pub fn json(reports: &[Report]) -> String {
    let text = serde_json::to_string_pretty(reports);
    text.map_or_else(|error| format!("{error}\n"), |text| text + "\n")
}

/// The worst state of all findings.
pub fn worst(reports: &[Report]) -> State {
    let worst = reports
        .iter()
        .map(|report| finding::worst(&report.findings));
    worst.max().unwrap_or(State::Works)
}
