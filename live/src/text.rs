//! Text reaches the terminal only through this file. It becomes one line without
//! control characters, as wide as its place at most.

use ratatui::buffer::Buffer;
use ratatui::style::Style;
use ratatui::text::Span;
use tacho_tape::query::plain_text;

/// Maximum number of characters that are processed: a statement may have a megabyte.
const MOST: usize = 4_000;

/// A text as one line without control characters.
pub fn line(text: &str) -> String {
    let short: String = text.chars().take(MOST).collect();
    plain_text(&short).trim().to_string()
}

/// Writes a text within `width` columns.
pub fn put(buf: &mut Buffer, x: u16, y: u16, width: u16, text: &str, style: Style) {
    let area = buf.area;
    if y >= area.bottom() || x >= area.right() {
        return;
    }
    let short: String = text.chars().take(usize::from(width) * 4 + 8).collect();
    let width = usize::from(width.min(area.right() - x));
    buf.set_stringn(x, y, plain_text(&short), width, style);
}

/// Writes a text; if it does not fit, it ends with the sign `cut`.
pub fn put_cut(buf: &mut Buffer, x: u16, y: u16, width: u16, text: &str, style: Style, cut: char) {
    let width = width.min(buf.area.right().saturating_sub(x));
    let short: String = text.chars().take(usize::from(width) * 4 + 8).collect();
    let short = plain_text(&short);
    if Span::raw(&*short).width() <= usize::from(width) {
        return put(buf, x, y, width, text, style);
    }
    if width > 0 && y < buf.area.bottom() {
        let most = usize::from(width - 1);
        let (end, _) = buf.set_stringn(x, y, short.trim_end(), most, style);
        put(buf, end, y, 1, &cut.to_string(), style);
    }
}

/// Breaks a text into lines that fit, between words if possible.
pub fn wrapped(text: &str, width: u16) -> Vec<String> {
    let width = usize::from(width.max(1));
    let columns = |text: &str| Span::raw(text).width();
    let mut lines = vec![String::new()];
    for word in line(text).split(' ') {
        let begun = lines.last().map_or(0, |line| columns(line));
        if begun > 0 && begun + 1 + columns(word) > width {
            lines.push(String::new());
        }
        for (i, letter) in word.chars().enumerate() {
            let Some(last) = lines.last_mut() else { break };
            if i == 0 && !last.is_empty() {
                last.push(' ');
            }
            if columns(last) + columns(letter.encode_utf8(&mut [0; 4])) > width {
                lines.push(letter.to_string());
            } else {
                last.push(letter);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_are_broken_between_words_and_within_long_ones() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("one twothreefour", 8), ["one", "twothree", "four"]);
        assert_eq!(wrapped("漢字漢字 x", 5), ["漢字", "漢字", "x"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
