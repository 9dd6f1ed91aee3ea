//! Escapes text for HTML pages.

use tacho_tape::query::plain_lines;

/// Escapes text for HTML and keeps its lines.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain_lines(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
