//! Prints the nodes of plans.

use super::Table;
use std::fmt::Write as _;
use std::io::Write;
use tacho_tape::query::Value;

impl<W: Write> Table<W> {
    /// The way back to a plan, if this is the row of its first node.
    pub(super) fn way_back_of(&self, row: &[Value]) -> Option<String> {
        self.position("plan_json")
            .filter(|place| row[*place] != Value::Null)?;
        let way = |head: &str, none: &str, column: &str| {
            let way = self.lines_of(row, column);
            let lacks = self.lines_of(row, &format!("{column}_lacks"));
            let mut lines = match (way.is_empty(), lacks.is_empty()) {
                (false, _) => format!("\n{head}:\n\n"),
                (true, false) => format!("\n{none}:\n\n"),
                (true, true) => String::new(),
            };
            for line in way.lines().chain(lacks.lines()) {
                let _ = writeln!(lines, "  {line}");
            }
            lines
        };
        let hint = way(
            "Hint for pg_hint_plan, in front of the query",
            "No hint for pg_hint_plan brings this plan back",
            "hint",
        );
        let advice = way(
            "Commands for pg_stash_advice (PostgreSQL 19)",
            "No advice for pg_stash_advice brings this plan back",
            "advice",
        );
        Some(hint + &advice)
    }

    /// The lines of a plan's node.
    pub(super) fn node(&self, row: &[Value]) -> String {
        let of = |name| {
            self.position(name)
                .map(|i| self.text(&row[i]))
                .filter(|text| !text.is_empty())
        };
        let mut lines = self.lines_of(row, "explain");
        if let Some(time) = of("analyzed_at") {
            let indent = below(&lines);
            let zone = self.zone_name.as_str();
            let _ = writeln!(lines, "{:indent$}Last Analyze: {time} {zone}", "");
        }
        let Some(differs) = of("differs") else {
            return lines;
        };
        let mut marked = String::new();
        if let (Some(plan), Some(time), Some(_)) =
            (of("plan_id"), of("recorded_at"), of("plan_json"))
        {
            let gap = if self.begun { "\n" } else { "" };
            let _ = writeln!(
                marked,
                "{gap}Plan {plan}, recorded {time} {}:\n",
                self.zone_name
            );
            for setting in self.lines_of(row, "settings").lines() {
                let _ = writeln!(marked, "  setting {setting}");
            }
        }
        let mark = if differs == "same" { ' ' } else { '!' };
        for line in lines.lines() {
            let _ = writeln!(marked, "{mark} {line}");
        }
        let other = match differs.as_str() {
            "same" => return marked,
            "missing" => "nothing like it".to_string(),
            _ => self.lines_of(row, "other"),
        };
        let indent = indent_of(lines.lines().last().unwrap_or_default());
        for line in other.lines() {
            let _ = writeln!(marked, "! {:indent$}other plan: {line}", "");
        }
        marked
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Indentation of the lines below the first line of a node.
fn below(lines: &str) -> usize {
    let mut lines = lines.lines();
    let arrow = lines.find(|line| line.trim_start().starts_with("->"));
    arrow.map_or(2, |line| indent_of(line) + 6)
}
