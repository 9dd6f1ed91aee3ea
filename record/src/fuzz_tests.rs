//! Hostile texts of statements, see `fuzz.rs` of the tape. Checked: no panic; every byte belongs to
//! one token; no string is left; the masked text respects its limit.
#![allow(clippy::unwrap_used)]

use crate::literals::{Kind, Scanner, mask};
use tacho_tape::testing::fuzz::{Fuzz, keep};

const WORDS: [&str; 40] = [
    "'", "''", "\\'", "\\\\", "E'", "e'\\", "U&'", "U&\"", "\"", "\"\"", "N'", "B'", "x'", "$$",
    "$a$", "$ä$", "$1", "$", "1", "1.5e-7", "0x", "..", ".", "--", "\n", "\r", "/*", "*/", "(",
    ")", ",", " by ", "select ", "numeric", "::", "_", "\0", "\u{80}", "a", " ",
];

fn name(kind: Kind) -> char {
    match kind {
        Kind::Space => ' ',
        Kind::Word => 'w',
        Kind::Name => 'n',
        Kind::Parameter => 'p',
        Kind::Text { is_doubtful: false } => 't',
        Kind::Text { is_doubtful: true } => '?',
        Kind::Number => '0',
        Kind::Other => 'o',
    }
}

#[test]
fn fuzz_literals() {
    let seeds = [
        "CALL make_user('bob', E'it\\'s', $$x$$, 12.5)",
        "SELECT a::numeric(10, 2) FROM t WHERE b = 'x' ORDER BY 1, 2 -- it's",
        "DO $tag$ begin perform 'x' /* /* */ */; end $tag$",
    ];
    let fuzz = Fuzz {
        name: "literals",
        seeds: seeds.map(|seed| seed.as_bytes().to_vec()).to_vec(),
        words: &WORDS,
        mend: keep,
    };
    fuzz.run(|text| {
        let tokens: Vec<_> = Scanner::new(text).collect();
        let whole: Vec<u8> = tokens.iter().flat_map(|t| t.bytes).copied().collect();
        assert_eq!(whole, text);
        let masked = mask(text, usize::MAX).text;
        let left = Scanner::new(&masked).find(|t| matches!(t.kind, Kind::Text { .. }));
        assert_eq!(left, None);
        assert!(mask(text, 10).text.len() <= 10 + text.len().max(11));
        tokens
            .iter()
            .take(64)
            .map(|token| name(token.kind))
            .collect()
    });
}
