//! Texts of the history as they are shown, in UTF-8. Users choose comments, names and applications.
//! A terminal must not obey control characters in them, and they must not change the order in which
//! a line is read.

use std::borrow::Cow;

/// Replaces a character that is not shown.
const HIDDEN: char = '\u{fffd}';

/// PostgreSQL's id of LATIN1.
const LATIN1: i64 = 8;

/// Decodes UTF-8 (also SQL_ASCII and unknown encodings) or LATIN1. Invalid bytes become U+FFFD.
pub fn decode(encoding: i64, bytes: &[u8]) -> String {
    let text = match encoding {
        LATIN1 => bytes.iter().map(|b| char::from(*b)).collect(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    without_nul(text)
}

/// Replaces NUL by U+FFFD, because no server accepts NUL in text.
pub fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{FFFD}")
    } else {
        text
    }
}

/// The text as one line: white space becomes single blanks. Characters that a terminal or a page
/// would obey become `�`.
#[must_use]
pub fn plain_text(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !controls_output(c) && (c == ' ' || !c.is_whitespace());
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_whitespace() && c != ' ' && line.ends_with(' ') => (),
            c if c.is_whitespace() => line.push(' '),
            c if controls_output(c) => line.push(HIDDEN),
            c => line.push(c),
        }
    }
    Cow::Owned(line)
}

/// Same as [`plain_text`], but keeps line ends and tabs.
#[must_use]
pub fn plain_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let shown = |c| match c {
        '\n' | '\t' => c,
        c if controls_output(c) => HIDDEN,
        c => c,
    };
    text.chars().map(shown).collect()
}

/// True for characters that control the output:
/// - ASCII controls (escape, bell, backspace …) and ISO 8859 controls (U+009B begins a sequence as
///   escape does);
/// - direction marks and isolates;
/// - line and paragraph separators, annotations and tags.
pub fn controls_output(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_show_a_replacement() {
        assert_eq!(decode(6, b"a\xff\xc3"), "a\u{FFFD}\u{FFFD}");
        assert_eq!(decode(8, b"caf\xe9"), "café");
        assert_eq!(decode(0, b"a\0b"), "a\u{FFFD}b");
    }

    #[test]
    fn sequences_of_a_terminal_lose_their_first_character() {
        let title = "\x1b]0;owned\x07select \u{9b}31m1 \u{9d}52;c;aGk=\u{9c} /* \x7f\x08 */";
        assert_eq!(
            plain_text(title),
            "�]0;owned�select �31m1 �52;c;aGk=� /* �� */"
        );
    }

    #[test]
    fn the_order_of_a_line_cannot_be_turned() {
        let turned = "a\u{202e}b\u{2066}c\u{2069}d\u{200f}e\u{61c}f\u{e0041}g";
        assert_eq!(plain_text(turned), "a�b�c�d�e�f�g");
    }

    #[test]
    fn white_space_is_one_blank_and_blanks_stay() {
        assert_eq!(plain_text("a\n\t b  c\r\nd\u{2028}e"), "a  b  c d e");
        assert!(matches!(plain_text("größe 名前"), Cow::Borrowed(_)));
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(plain_lines("a\r\n\tb\x1b[1m\u{202e}c"), "a\n\tb�[1m�c");
    }
}
