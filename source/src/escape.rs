//! Text within HTML, for the pages that programs write.

use tacho_tape::query::plain_lines;

/// Text within HTML, its lines kept.
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
