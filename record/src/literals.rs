//! Texts of statements without their constants.
//!
//! `pg_stat_statements` replaces constants in planned statements and in few others. This module
//! finds the constants of the others, by the rules of the server's own scanner (`scan.l`). One rule
//! depends on a setting of the session that the recorder cannot see, `standard_conforming_strings`:
//! it decides whether a backslash before a quote continues a plain string. A text with such a
//! string is cut there.
//!
//! All functions take time linear in the length of the text.

/// First words of statements that are planned.
const PLANNED: [&str; 8] = [
    "select", "insert", "update", "delete", "merge", "values", "with", "table",
];
/// Types that can have a size in parentheses. None of these words is also a function that takes an
/// integer.
const SIZED: [&str; 13] = [
    "bit",
    "char",
    "character",
    "dec",
    "decimal",
    "float",
    "interval",
    "nchar",
    "numeric",
    "time",
    "timestamp",
    "varchar",
    "varying",
];
/// Maximum number of columns of a query (`MaxTupleAttributeNumber`).
const MOST_COLUMNS: usize = 1664;

/// A text without constants.
#[derive(Debug, PartialEq, Eq)]
pub struct Masked {
    pub text: Vec<u8>,
    /// True if the end of `text` is missing, because the text is too long or ambiguous.
    pub is_cut: bool,
}

/// Replaces all constants by numbered parameters, as the extension does. Stops when the result has
/// about `most` bytes.
///
/// Planned statements keep two kinds of integers: positions of columns (`ORDER BY 2`), and sizes of
/// types (`numeric(10, 2)`). The server does not replace them either, and they come from the author
/// of the statement, not from data.
pub fn mask(text: &[u8], most: usize) -> Masked {
    let mut number = highest_parameter(text);
    let is_planned = is_planned(text);
    let mut place = Place::Elsewhere;
    let mut masked = Vec::new();
    for token in Scanner::new(text) {
        if masked.len() >= most {
            return Masked {
                text: masked,
                is_cut: true,
            };
        }
        let is_kept = match token.kind {
            Kind::Text { .. } => false,
            Kind::Number => is_planned && place.keeps(token.bytes),
            _ => true,
        };
        place = place.after(&token);
        if is_kept {
            masked.extend_from_slice(token.bytes);
        } else {
            number = number.saturating_add(1);
            masked.extend_from_slice(format!("${number}").as_bytes());
        }
        if token.kind == (Kind::Text { is_doubtful: true }) {
            return Masked {
                text: masked,
                is_cut: true,
            };
        }
    }
    Masked {
        text: masked,
        is_cut: false,
    }
}

fn highest_parameter(text: &[u8]) -> u32 {
    let number = |token: Token<'_>| {
        let digits = token.bytes.strip_prefix(b"$")?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    };
    let parameters = Scanner::new(text).filter(|token| token.kind == Kind::Parameter);
    parameters.filter_map(number).max().unwrap_or(0)
}

/// True if statements with this text are planned, by the first word after comments and parentheses.
fn is_planned(text: &[u8]) -> bool {
    let is_before = |token: &Token<'_>| token.kind == Kind::Space || token.bytes == b"(";
    let first = Scanner::new(text).find(|token| !is_before(token));
    first.is_some_and(|token| token.is_one_of(&PLANNED))
}

/// The place of the next token in a planned statement. It decides whether a number there is kept.
#[derive(Clone, Copy)]
enum Place {
    Elsewhere,
    /// After BY, or after a comma of the list that follows it.
    ItemBegins,
    /// Further on in an item of that list.
    Item,
    /// After the name of a type.
    Type,
    /// Inside the parentheses after the name of a type.
    Sizes,
}

impl Place {
    fn keeps(self, number: &[u8]) -> bool {
        let number = std::str::from_utf8(number).ok();
        let number = number.filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        match self {
            Place::Sizes => number.is_some(),
            Place::ItemBegins => number
                .and_then(|digits| digits.parse::<usize>().ok())
                .is_some_and(|column| column <= MOST_COLUMNS),
            _ => false,
        }
    }

    fn after(self, token: &Token<'_>) -> Place {
        let in_list = matches!(self, Place::ItemBegins | Place::Item);
        match (self, token.kind, token.bytes) {
            (_, Kind::Space, _) => self,
            (_, Kind::Word, _) if token.is_one_of(&["by"]) => Place::ItemBegins,
            (_, Kind::Word, _) if token.is_one_of(&SIZED) => Place::Type,
            (Place::Type, _, b"(") => Place::Sizes,
            (Place::Sizes, Kind::Number, _) | (Place::Sizes, _, b",") => Place::Sizes,
            (Place::ItemBegins, Kind::Number, _) => Place::Item,
            (_, _, b",") if in_list => Place::ItemBegins,
            (_, Kind::Word | Kind::Name | Kind::Parameter, _) | (_, _, b".") if in_list => {
                Place::Item
            }
            _ => Place::Elsewhere,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// White space, or a comment.
    Space,
    /// A key word, or a name without quotes.
    Word,
    /// A name in double quotes.
    Name,
    /// A parameter, such as `$1`.
    Parameter,
    /// A string of any kind. It is doubtful if it may end elsewhere.
    Text {
        is_doubtful: bool,
    },
    Number,
    /// One character of anything else.
    Other,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: Kind,
    pub bytes: &'a [u8],
}

impl Token<'_> {
    fn is_one_of(&self, words: &[&str]) -> bool {
        let is = |word: &&str| self.bytes.eq_ignore_ascii_case(word.as_bytes());
        self.kind == Kind::Word && words.iter().any(is)
    }
}

/// Splits a text into tokens. Together they are the whole text.
pub struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8]) -> Scanner<'a> {
        Scanner { rest: text }
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let (kind, length) = first_token(self.rest)?;
        let (bytes, rest) = self.rest.split_at(length.clamp(1, self.rest.len()));
        self.rest = rest;
        Some(Token { kind, bytes })
    }
}

/// Kind and length of the first token of a text.
fn first_token(text: &[u8]) -> Option<(Kind, usize)> {
    let [first, rest @ ..] = text else {
        return None;
    };
    let token = match (first, rest) {
        (b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C, _) => (Kind::Space, run(text, is_space)),
        (b'-', [b'-', ..]) => (Kind::Space, run(text, |b| !matches!(b, b'\n' | b'\r'))),
        (b'/', [b'*', ..]) => (Kind::Space, block_comment(text)),
        (b'\'', _) => string(text, 1, false),
        (b'"', _) => (Kind::Name, name(text, 1)),
        (b'e' | b'E', [b'\'', ..]) => string(text, 2, true),
        (b'b' | b'B' | b'x' | b'X', [b'\'', ..]) => string(text, 2, false),
        (b'u' | b'U', [b'&', b'\'', ..]) => string(text, 3, false),
        (b'u' | b'U', [b'&', b'"', ..]) => (Kind::Name, name(text, 3)),
        (b'.', [b'.', ..]) => (Kind::Other, 2),
        (b'$', [b'0'..=b'9', ..]) => (Kind::Parameter, 1 + run(rest, |b| b.is_ascii_digit())),
        (b'$', _) => dollar_string(text),
        (b'0'..=b'9', _) | (b'.', [b'0'..=b'9', ..]) => (Kind::Number, number(text)),
        (first, _) if begins_word(*first) => (Kind::Word, run(text, |b| b == b'$' || in_word(b))),
        _ => (Kind::Other, 1),
    };
    Some(token)
}

/// Number of leading bytes that `is_such` accepts.
fn run(text: &[u8], is_such: impl Fn(u8) -> bool) -> usize {
    let end = text.iter().position(|byte| !is_such(*byte));
    end.unwrap_or(text.len())
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn in_word(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit()
}

/// Length of a block comment, which can contain others; the whole text if it does not end.
fn block_comment(text: &[u8]) -> usize {
    let mut at = 2;
    let mut depth = 1;
    while depth > 0 && at < text.len() {
        match &text[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
            }
            _ => at += 1,
        }
    }
    at
}

/// A string whose content starts at `begin`. A quote inside is doubled, or, if `escapes`, has a
/// backslash before it.
fn string(text: &[u8], begin: usize, escapes: bool) -> (Kind, usize) {
    let sure = Kind::Text { is_doubtful: false };
    let mut at = begin;
    while at < text.len() {
        match &text[at..] {
            [b'\\', _, ..] if escapes => at += 2,
            [b'\\', b'\'', ..] => return (Kind::Text { is_doubtful: true }, at + 2),
            [b'\'', b'\'', ..] => at += 2,
            [b'\'', rest @ ..] => match continued(rest) {
                Some(skipped) => at += 1 + skipped,
                None => return (sure, at + 1),
            },
            _ => at += 1,
        }
    }
    (sure, text.len())
}

/// If a string continues on another line: number of bytes up to and including the quote there.
fn continued(rest: &[u8]) -> Option<usize> {
    let space = run(rest, is_space);
    let (between, rest) = rest.split_at(space);
    let has_line = between.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
    (has_line && rest.first() == Some(&b'\'')).then_some(space + 1)
}

fn name(text: &[u8], begin: usize) -> usize {
    let mut at = begin;
    while at < text.len() {
        match &text[at..] {
            [b'"', b'"', ..] => at += 2,
            [b'"', ..] => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// A string between two `$tag$`.
fn dollar_string(text: &[u8]) -> (Kind, usize) {
    let tag = match text.get(1) {
        Some(first) if begins_word(*first) => run(&text[1..], in_word),
        _ => 0,
    };
    if text.get(1 + tag) != Some(&b'$') {
        return (Kind::Other, 1);
    }
    let (mark, body) = text.split_at(tag + 2);
    let end = body.windows(mark.len()).position(|bytes| bytes == mark);
    let length = end.map_or(text.len(), |end| mark.len() + end + mark.len());
    (Kind::Text { is_doubtful: false }, length)
}

/// A number and the characters that stick to it; the server calls that an error.
fn number(text: &[u8]) -> usize {
    let mut at = run(text, |b| b.is_ascii_digit() || b == b'_');
    if text.get(at) == Some(&b'.') && text.get(at + 1) != Some(&b'.') {
        at += 1 + run(&text[at + 1..], |b| b.is_ascii_digit() || b == b'_');
    }
    if let [b'e' | b'E', b'+' | b'-', b'0'..=b'9', ..] = &text[at..] {
        at += 2;
    }
    at + run(&text[at..], in_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: usize = usize::MAX;

    fn masked(text: &str) -> String {
        let masked = mask(text.as_bytes(), ALL);
        assert!(!masked.is_cut, "{text}");
        String::from_utf8(masked.text).unwrap()
    }

    #[test]
    fn every_kind_of_constant_is_replaced() {
        for constant in [
            "'it''s'",
            "''",
            "'a'\n  'b'",
            "'ä'",
            "E'it\\'s'",
            "e'\\\\'",
            "E'a\\''\r\n'b\\'c'",
            "$$it's$$",
            "$tag$ $$ $ta $TAG$ $tag$",
            "$ä_1$x$ä_1$",
            "U&'d\\0061t'",
            "b'01'",
            "X'1f'",
            "7",
            "0x1F",
            "1_000",
            "1.5",
            ".5",
            "1.",
            "1e10",
            "1.5E-3",
        ] {
            assert_eq!(masked(&format!("CALL f({constant}, x)")), "CALL f($1, x)");
        }
    }

    #[test]
    fn only_constants_are_replaced() {
        for text in [
            "SET ROLE joe",
            "ALTER TABLE a$1 RENAME TO \"it's\"",
            "DROP TABLE \"a\"\"'b\"",
            "DROP TABLE U&\"d!0061't\"",
            "CALL /* it's /* nested */ 7 */ f() -- it's 8",
            "CALL f1(a.b2)",
            "PREPARE p AS SELECT $1",
        ] {
            assert_eq!(masked(text), text);
        }
        assert_eq!(masked("SELECT n'x', u & e"), "SELECT n$1, u & e");
        assert_eq!(masked("FOR i IN 1..10"), "FOR i IN $1..$2");
    }

    #[test]
    fn numbers_go_on_behind_the_highest_parameter() {
        assert_eq!(masked("CALL f('a', $2, 'b')"), "CALL f($3, $2, $4)");
        let most = "CALL f($99999999999999999999, 1, $4294967295)";
        assert_eq!(masked(most), most.replace(", 1,", ", $4294967295,"));
    }

    #[test]
    fn columns_by_place_and_sizes_of_types_stay_in_what_is_planned() {
        for (text, integers) in [
            ("SELECT a, sum(b) FROM t GROUP BY 1 ORDER BY 2 DESC, 1", 3),
            (
                "(/* x */ SELECT x::numeric(10, 2), y::varchar(20) FROM t ORDER BY a, b.c, 3)",
                4,
            ),
        ] {
            assert_eq!(masked(text), text);
            let utility = masked(&format!("EXPLAIN {text}"));
            assert_eq!(utility.matches('$').count(), integers, "{utility}");
        }
        assert_eq!(
            masked("SELECT f(10), ARRAY[2] FROM t WHERE pin = 3 ORDER BY a, f(1), 1665 LIMIT 4"),
            "SELECT f($1), ARRAY[$2] FROM t WHERE pin = $3 ORDER BY a, f($4), $5 LIMIT $6"
        );
        assert_eq!(
            masked("INSERT INTO t VALUES (1, 'x')"),
            "INSERT INTO t VALUES ($1, $2)"
        );
        assert_eq!(
            masked("CREATE TABLE t (a numeric(10))"),
            "CREATE TABLE t (a numeric($1))"
        );
    }

    #[test]
    fn a_text_ends_where_a_setting_decides_on_its_constants() {
        let ambiguous = mask(b"CALL f(1, 'it\\', x, 's3cret')", ALL);
        let expected = Masked {
            text: b"CALL f($1, $2".to_vec(),
            is_cut: true,
        };
        assert_eq!(ambiguous, expected);
    }

    #[test]
    fn a_constant_without_an_end_goes_to_the_end_of_the_text() {
        for begin in ["'it''s", "E'it\\'s", "$$ it's", "$a$ $b$", "U&'", "x'"] {
            assert_eq!(masked(&format!("DO {begin}")), "DO $1");
        }
        assert_eq!(masked("DO \"it's"), "DO \"it's");
        assert_eq!(masked("DO /* it's"), "DO /* it's");
        assert_eq!(masked("DO $a"), "DO $a");
    }

    #[test]
    fn no_more_is_made_than_is_wanted() {
        let long = format!("CALL f({})", vec!["'x'"; 1_000].join(", "));
        let masked = mask(long.as_bytes(), 100);
        assert!(masked.is_cut);
        assert!((100..120).contains(&masked.text.len()));
    }
}
