//! Texts of queries, from pg_stat_statements, for identifiers that were not met
//! before: it reads all its texts for each question.

use crate::batch::{Batch, Dictionary, encoding};
use crate::names::{Kind, Names};
use crate::sample::Session;
use std::collections::HashMap;
use tacho_dsn::Answer;

/// Between two questions. A query has no text before it has ended once, so one
/// without is asked for again, each time after twice the time.
const PAUSE_MS: i64 = 10_000;
const LONGEST_PAUSE_MS: i64 = 600_000;
/// Identifiers a question.
const MOST_ASKED: usize = 1_000;
/// Identifiers remembered.
const MOST_KNOWN: usize = 200_000;
/// Longest text that is kept.
const MOST_BYTES: usize = 1 << 16;
const DAY_MS: i64 = 86_400_000;
/// In names of settings and columns, in statements about access, and in addresses:
/// beside what nobody else may see.
const SECRETS: [&str; 10] = [
    "conninfo",
    "credential",
    "options",
    "passphrase",
    "passwd",
    "password",
    "secret",
    "subscription",
    "token",
    "://",
];

#[derive(Clone, Copy, PartialEq)]
struct Retry {
    at_ms: i64,
    pause_ms: i64,
}

/// Which texts the history has.
#[derive(Default)]
pub struct Texts {
    /// When to ask for the text; nothing where the history has it.
    wanted: HashMap<i64, Option<Retry>>,
    next_ms: i64,
    day: i64,
}

impl Texts {
    /// A query was met. Each day has its texts, since those of old ones go.
    pub fn want(&mut self, query_id: i64, time_ms: i64) {
        if self.day != time_ms / DAY_MS || self.wanted.len() >= MOST_KNOWN {
            self.day = time_ms / DAY_MS;
            self.wanted.clear();
        }
        if query_id != 0 {
            let first = Retry {
                at_ms: 0,
                pause_ms: PAUSE_MS,
            };
            self.wanted.entry(query_id).or_insert(Some(first));
        }
    }

    /// There is no text of a query yet.
    pub fn lacks(&self, query_id: i64) -> bool {
        self.wanted.get(&query_id) != Some(&None)
    }

    /// There is one now.
    pub fn has(&mut self, query_id: i64) {
        self.wanted.insert(query_id, None);
    }

    /// What to ask the server, if anything.
    pub fn question(&mut self, schema: &str, now_ms: i64) -> Option<String> {
        if now_ms < self.next_ms {
            return None;
        }
        let due = |retry: &Option<Retry>| retry.is_some_and(|retry| retry.at_ms <= now_ms);
        let due: Vec<_> = self
            .wanted
            .iter_mut()
            .filter(|w| due(w.1))
            .take(MOST_ASKED)
            .collect();
        let mut wanted = Vec::new();
        for (id, retry) in due {
            wanted.push(id.to_string());
            *retry = retry.map(|retry| Retry {
                at_ms: now_ms + retry.pause_ms,
                pause_ms: (retry.pause_ms * 2).min(LONGEST_PAUSE_MS),
            });
        }
        if wanted.is_empty() {
            return None;
        }
        self.next_ms = now_ms + PAUSE_MS;
        let ids = wanted.join(",");
        Some(format!(
            "select distinct on (queryid) queryid, dbid, userid, query \
             from {schema}.pg_stat_statements(true) where queryid = any('{{{ids}}}') \
             and query is not null and query <> '<insufficient privilege>'"
        ))
    }

    /// Takes an answer.
    pub fn take(&mut self, answers: &[Answer], names: &mut Names, now_ms: i64) -> Vec<Text> {
        let Some(found) = answers.first() else {
            return Vec::new();
        };
        let mut texts = Vec::new();
        for row in 0..found.rows() {
            let text = Text {
                query_id: found.number(row, 0).unwrap_or(0),
                database: found.number(row, 1).unwrap_or(0),
                user: found.number(row, 2).unwrap_or(0),
                bytes: without_secrets(found.bytes(row, 3).unwrap_or_default()),
                is_cut: false,
            };
            names.want(Kind::Database, text.database, now_ms);
            names.want(Kind::Role, text.user, now_ms);
            self.has(text.query_id);
            texts.push(text);
        }
        texts
    }

    /// Frames with texts were lost.
    pub fn forget(&mut self) {
        self.wanted.clear();
    }
}

/// A text to be recorded.
pub struct Text {
    query_id: i64,
    database: u32,
    user: u32,
    bytes: Vec<u8>,
    /// The server has not shown all of it.
    is_cut: bool,
}

impl Text {
    /// What a session runs, with its constants.
    pub fn of_activity(session: &Session, bytes: &[u8], is_cut: bool) -> Text {
        Text {
            query_id: session.query_id,
            database: session.database,
            user: session.user,
            bytes: without_secrets(bytes),
            is_cut,
        }
    }

    /// That of a query, of which nothing else is known.
    #[cfg(test)]
    pub fn of(query_id: i64, text: &str) -> Text {
        Text {
            query_id,
            database: 0,
            user: 0,
            bytes: text.into(),
            is_cut: false,
        }
    }

    fn kept(&self) -> &[u8] {
        &self.bytes[..self.bytes.floor_char_boundary_of(MOST_BYTES)]
    }

    /// The key of what is kept of it.
    pub fn key(&self) -> i64 {
        key(self.kept())
    }

    /// Adds its row. How long one is that was cut by the server nobody knows.
    pub fn put(&self, batch: &mut Batch, dictionary: &mut Dictionary, names: &Names) {
        let database = dictionary.name(batch, names.get(Kind::Database, self.database));
        let user = dictionary.name(batch, names.get(Kind::Role, self.user));
        let kept = self.kept();
        let whole = match self.is_cut {
            true => self.bytes.len() + 1,
            false if kept.len() < self.bytes.len() => self.bytes.len(),
            false => 0,
        };
        let fields = [
            ("text_key", self.key()),
            ("query_id", self.query_id),
            ("database", database),
            ("username", user),
            ("user_oid", i64::from(self.user)),
            ("encoding", encoding(kept)),
            ("length", i64::try_from(whole).unwrap_or(0)),
        ];
        batch.add_text("text", &fields, kept);
    }
}

trait Cut {
    fn floor_char_boundary_of(&self, most: usize) -> usize;
}

impl Cut for Vec<u8> {
    /// Where to cut so that no character of UTF-8 is cut in two.
    fn floor_char_boundary_of(&self, most: usize) -> usize {
        let most = most.min(self.len());
        let is_inside = |at: &usize| self.get(*at).is_some_and(|byte| byte & 0xC0 == 0x80);
        (0..=most).rev().find(|at| !is_inside(at)).unwrap_or(most)
    }
}

/// FNV-1a, 64 bits; a text has the same key wherever it is recorded.
fn key(text: &[u8]) -> i64 {
    let hash = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash.max(1) as i64
}

/// Constants of utility statements are not replaced everywhere. A text that may
/// have a secret is cut before its first literal.
fn without_secrets(text: &[u8]) -> Vec<u8> {
    let lower = text.to_ascii_lowercase();
    let has = |word: &str| lower.windows(word.len()).any(|w| w == word.as_bytes());
    if !SECRETS.iter().any(|word| has(word)) {
        return text.to_vec();
    }
    let begins = |at: usize| {
        let next = text.get(at + 1);
        let is_quote = next.is_some_and(|c| *c == b'$' || *c == b'_' || c.is_ascii_alphabetic());
        text[at] == b'\'' || (text[at] == b'$' && is_quote)
    };
    match (0..text.len()).find(|at| begins(*at)) {
        Some(at) => [&text[..at], b"'***'"].concat(),
        None => text.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_get_into_the_history() {
        let masked = |text: &str| String::from_utf8(without_secrets(text.as_bytes())).unwrap();
        assert_eq!(
            masked("ALTER ROLE joe PassWord 'x''y' LOGIN"),
            "ALTER ROLE joe PassWord '***'"
        );
        assert_eq!(masked("DO $body$ set password $body$"), "DO '***'");
        for (text, rest) in [
            ("ALTER SUBSCRIPTION s CONNECTION ", "'postgresql://u:x@h/d'"),
            ("ALTER SUBSCRIPTION s CONNECTION ", "'host=h user=x'"),
            (
                "CREATE SERVER s FOREIGN DATA WRAPPER w OPTIONS (host ",
                "'x')",
            ),
            (
                "CREATE USER MAPPING FOR joe SERVER s OPTIONS (user ",
                "'x')",
            ),
            (
                "DO ",
                "$$ BEGIN PERFORM dblink('postgresql://u:x@h/d'); END $$",
            ),
        ] {
            assert_eq!(masked(&format!("{text}{rest}")), format!("{text}'***'"));
        }
        let normalised = "SELECT password FROM users WHERE id = $1";
        assert_eq!(masked(normalised), normalised);
        assert_eq!(masked("SELECT 'literal'"), "SELECT 'literal'");
    }

    #[test]
    fn a_text_is_asked_for_until_it_is_found_and_once_a_day() {
        let mut texts = Texts::default();
        texts.want(7, 0);
        texts.want(0, 0);
        let question = texts.question("public", 0).unwrap();
        assert!(question.contains("public.pg_stat_statements(true) where queryid = any('{7}')"));
        let asks = |texts: &mut Texts, ms| texts.question("public", ms).is_some();
        let asked = [9_999, 10_000, 20_000, 29_999, 30_000].map(|ms| asks(&mut texts, ms));
        assert_eq!(asked, [false, true, false, false, true]);
        texts.wanted.insert(7, None);
        texts.want(7, 1);
        assert!(!asks(&mut texts, 10_000_000));
        texts.want(7, DAY_MS);
        assert!(asks(&mut texts, 10_000_000));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let bytes = "aé".as_bytes().to_vec();
        let cut = |most| bytes.floor_char_boundary_of(most);
        assert_eq!([cut(0), cut(1), cut(2), cut(3), cut(9)], [0, 1, 1, 3, 3]);
    }
}
