//! A plan as the text of EXPLAIN.

use super::actuals::Actuals;
use super::tree::{Node, Tree};
use super::words::{ALIAS, BITMAP_INDEX_SCAN, CUSTOM_SCAN, INDEX, NAME, RELATION, SUBPLAN};
use std::fmt::Write as _;

/// The lines of each node, with the indentation of EXPLAIN.
pub(super) fn texts(tree: &Tree) -> Vec<String> {
    // Indentation of the lines below a node, by depth, in pairs of blanks.
    let mut below: Vec<usize> = Vec::new();
    let mut texts = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        below.truncate(node.depth);
        let mut indent = below.last().copied().unwrap_or(0);
        let mut text = String::new();
        if let Some(name) = node.text(SUBPLAN) {
            line(&mut text, indent, name);
            indent += 1;
        }
        let actuals = node.actuals();
        let counted = actuals
            .as_ref()
            .map_or_else(String::new, Actuals::explained);
        match indent {
            0 => text.push_str(&format!("{}{counted}", head(node))),
            _ => line(&mut text, indent, &format!("->  {}{counted}", head(node))),
        }
        let inner = if indent == 0 { 1 } else { indent + 3 };
        if actuals.is_some_and(|actuals| actuals.is_lower_bound && actuals.loops > 0) {
            line(
                &mut text,
                inner,
                "Actual Rows: at least, it was stopped early",
            );
        }
        for (label, value) in node.lines() {
            line(&mut text, inner, &format!("{label}: {value}"));
        }
        below.push(inner);
        texts.push(text);
    }
    if let (true, Some(last)) = (tree.is_cut, texts.last_mut()) {
        line(last, 1, "(further nodes were not recorded)");
    }
    texts
}

fn line(text: &mut String, indent: usize, rest: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    let _ = write!(text, "{:width$}{rest}", "", width = 2 * indent);
}

/// The first line of a node, without indentation.
pub(super) fn head(node: &Node) -> String {
    let cost = |hundredths: u64| format!("{}.{:02}", hundredths / 100, hundredths % 100);
    format!(
        "{}{}  (cost={}..{} rows={} width={})",
        node.title(),
        target(node),
        cost(node.startup_cost),
        cost(node.total_cost),
        node.rows,
        node.width
    )
}

/// The relation or index that a node reads: ` using i on t x`.
fn target(node: &Node) -> String {
    let mut out = String::new();
    if node.kind == CUSTOM_SCAN
        && let Some(name) = node.text(NAME)
    {
        let _ = write!(out, " ({name})");
    }
    if let Some(index) = node.text(INDEX) {
        let word = if node.kind == BITMAP_INDEX_SCAN {
            "on"
        } else {
            "using"
        };
        let _ = write!(out, " {word} {}", name(index));
    }
    let object = match node.kind {
        CUSTOM_SCAN => node.text(RELATION),
        _ => node.text(RELATION).or(node.text(NAME)),
    };
    let alias = node.text(ALIAS);
    let Some(first) = object.or(alias) else {
        return out;
    };
    out.push_str(" on ");
    out.push_str(&name(first));
    if let Some(alias) = alias.filter(|alias| *alias != first) {
        let _ = write!(out, " {}", name(alias));
    }
    out
}

/// A name as SQL writes it: in double quotes where it needs them.
pub(super) fn name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    match begins && name.chars().all(is_plain) {
        true => name.to_string(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}
