//! The only way text comes to the terminal: a line, whatever a client wrote
//! into it, cut to its place. Nothing in it is obeyed.

use ratatui::buffer::Buffer;
use ratatui::style::Style;
use tacho_tape::query::plain_text;

/// More of a text is never looked at: a statement may have a megabyte.
const MOST: usize = 4_000;

/// A text as one line that a terminal shows and does not obey.
pub fn line(text: &str) -> String {
    let short: String = text.chars().take(MOST).collect();
    plain_text(&short).trim().to_string()
}

/// Writes a text within so many columns.
pub fn put(buf: &mut Buffer, x: u16, y: u16, width: u16, text: &str, style: Style) {
    let area = buf.area;
    if y >= area.bottom() || x >= area.right() {
        return;
    }
    let short: String = text.chars().take(usize::from(width) * 4 + 8).collect();
    let width = usize::from(width.min(area.right() - x));
    buf.set_stringn(x, y, plain_text(&short), width, style);
}
