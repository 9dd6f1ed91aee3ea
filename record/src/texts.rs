//! Texts of queries whose ids are new, from pg_stat_statements. It reads all its
//! texts for each question, possibly gigabytes. Therefore the recorder asks on a
//! connection of its own, and less often if the answer takes long.

use crate::batch::{Batch, Dictionary, SQL_ASCII, encoding};
use crate::literals::{self, Masked};
use crate::names::{Kind, Names};
use crate::sample::Session;
use std::collections::HashMap;
use tacho_dsn::Answer;

/// Shortest and longest pause between two questions, in ms. A query has no text before its first
/// execution has ended. The recorder asks again for a missing text, each time after twice the
/// pause.
const PAUSE_MS: i64 = 10_000;
const LONGEST_PAUSE_MS: i64 = 600_000;
/// The pause after a question is this multiple of its duration.
const PAUSE_PER_MS: i64 = 20;
/// A question that takes this long, in ms, is logged.
const SLOW_MS: i64 = 1_000;
/// Maximum number of query ids in a question.
const MOST_ASKED: usize = 1_000;
/// Maximum size of the texts in an answer, in bytes; the next question asks for the rest.
const MOST_ANSWERED: usize = 4 << 20;
/// Maximum number of query ids that are remembered.
const MOST_KNOWN: usize = 200_000;
/// Maximum length of a recorded text, in bytes.
const MOST_BYTES: usize = 1 << 16;
const DAY_MS: i64 = 86_400_000;
/// Words that stand beside secrets: in names of settings and columns, in statements
/// about access, and in addresses.
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

/// A text that is needed for the first time is due at once.
const FIRST: Retry = Retry {
    at_ms: 0,
    pause_ms: PAUSE_MS,
};

/// Texts that the history has, and texts that it lacks.
#[derive(Default)]
pub struct Texts {
    /// The query ids whose texts were wanted, each with the time to ask for its text;
    /// `None` if the history has it.
    wanted: HashMap<i64, Option<Retry>>,
    next_ms: i64,
    day: i64,
    /// True if constants are recorded as well.
    is_raw: bool,
    /// True if the server refused the last question.
    is_refused: bool,
}

impl Texts {
    /// If `is_raw`, texts keep their constants.
    pub fn new(is_raw: bool) -> Texts {
        Texts {
            is_raw,
            ..Texts::default()
        }
    }

    /// Notes that a sample has this query id, so its text is wanted. Each day gets
    /// all its texts again, because old days are removed.
    pub fn request(&mut self, query_id: i64, time_ms: i64) {
        if self.day != time_ms / DAY_MS || self.wanted.len() >= MOST_KNOWN {
            self.day = time_ms / DAY_MS;
            self.wanted.clear();
        }
        if query_id != 0 {
            self.wanted.entry(query_id).or_insert(Some(FIRST));
        }
    }

    /// True if the history has no text of this query.
    pub fn lacks(&self, query_id: i64) -> bool {
        self.wanted.get(&query_id) != Some(&None)
    }

    /// Notes that the history has the text now.
    pub fn mark_recorded(&mut self, query_id: i64) {
        self.wanted.insert(query_id, None);
    }

    /// The question for texts that are due, if any.
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
            "select queryid, dbid, userid, length, case when \
               sum(octet_length(query)) over (rows unbounded preceding) <= {MOST_ANSWERED} \
               then query end \
             from (select distinct on (queryid) queryid, dbid, userid, \
                 octet_length(query) as length, left(query, {MOST_BYTES}) as query \
               from {schema}.pg_stat_statements(true) where queryid = any('{{{ids}}}') \
               and query is not null and query <> '<insufficient privilege>') t"
        ))
    }

    /// Notes the duration of a question. Returns true if it took long.
    pub fn note_duration(&mut self, took_ms: i64, now_ms: i64) -> bool {
        self.next_ms = now_ms + PAUSE_MS.max(PAUSE_PER_MS * took_ms);
        took_ms >= SLOW_MS
    }

    /// Notes that the server did not answer in time: the next question waits
    /// `LONGEST_PAUSE_MS`.
    pub fn back_off(&mut self, now_ms: i64) {
        self.next_ms = now_ms + LONGEST_PAUSE_MS;
    }

    /// Notes that the server refused a question. One text is enough for that: in a
    /// LATIN1 database, `pg_stat_statements` fails at `SELECT '日本'` of another
    /// database. Until it answers again, texts come from the sessions that run them.
    pub fn refuse(&mut self) {
        self.is_refused = true;
    }

    /// The sessions whose statements are recorded as texts now.
    pub fn session_text_choice(&self) -> OfSessions {
        match (self.is_raw, self.is_refused) {
            (true, _) => OfSessions::All,
            (false, true) => OfSessions::OfQueries,
            (false, false) => OfSessions::None,
        }
    }

    /// Takes an answer, whose texts are in the encoding of the database.
    pub fn take(
        &mut self,
        answers: &[Answer],
        names: &mut Names,
        encoding: i64,
        now_ms: i64,
    ) -> Vec<Text> {
        self.is_refused = false;
        let Some(found) = answers.first() else {
            return Vec::new();
        };
        let mut texts = Vec::new();
        for row in 0..found.rows() {
            let query_id = found.number(row, 0).unwrap_or(0);
            let Some(bytes) = found.bytes(row, 4) else {
                self.wanted.insert(query_id, Some(FIRST));
                continue;
            };
            let recorded = recorded(bytes, self.is_raw);
            let whole: usize = found.number(row, 3).unwrap_or(0);
            let is_cut = recorded.is_cut || whole > bytes.len();
            let text = Text {
                query_id,
                database: found.number(row, 1).unwrap_or(0),
                user: found.number(row, 2).unwrap_or(0),
                encoding,
                length: length_if(is_cut, whole, &recorded.text),
                bytes: recorded.text,
            };
            names.request(Kind::Database, text.database, now_ms);
            names.request(Kind::Role, text.user, now_ms);
            self.mark_recorded(text.query_id);
            texts.push(text);
        }
        texts
    }

    /// The text that a session runs, in the encoding of its database. `is_cut`: the
    /// server shows only a part of it.
    pub fn of_session(&self, session: &Session, bytes: &[u8], encoding: i64, is_cut: bool) -> Text {
        let recorded = recorded(bytes, self.is_raw);
        Text {
            query_id: session.query_id,
            database: session.database,
            user: session.user,
            encoding,
            length: length_if(is_cut || recorded.is_cut, bytes.len() + 1, &recorded.text),
            bytes: recorded.text,
        }
    }

    /// Asks for all texts again, because frames with texts were lost.
    pub fn forget(&mut self) {
        self.wanted.clear();
    }
}

/// The sessions whose texts are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OfSessions {
    None,
    /// Statements with a query identifier.
    OfQueries,
    All,
}

/// The length of the whole text in bytes, if `text` is only a part: `known`, but more
/// than `text` has. `None` if `text` is whole.
fn length_if(is_cut: bool, known: usize, text: &[u8]) -> Option<usize> {
    is_cut.then(|| known.max(text.len() + 1))
}

/// A text to be recorded.
pub struct Text {
    query_id: i64,
    database: u32,
    user: u32,
    bytes: Vec<u8>,
    /// Encoding id; 0 (SQL_ASCII) if unknown.
    encoding: i64,
    /// Length of the whole text in bytes, if the server showed a part.
    length: Option<usize>,
}

impl Text {
    /// A text with nothing but a query id.
    #[cfg(test)]
    pub fn of(query_id: i64, text: &str) -> Text {
        Text {
            query_id,
            database: 0,
            user: 0,
            bytes: text.into(),
            encoding: SQL_ASCII,
            length: None,
        }
    }

    fn kept(&self) -> &[u8] {
        &self.bytes[..self.bytes.floor_char_boundary_of(MOST_BYTES)]
    }

    /// The key of the kept part.
    pub fn key(&self) -> i64 {
        key(self.kept())
    }

    /// Adds the text's row to the batch.
    pub fn put(&self, batch: &mut Batch, dictionary: &mut Dictionary, names: &Names) {
        let database = dictionary.name(batch, names.get(Kind::Database, self.database));
        let user = dictionary.name(batch, names.get(Kind::Role, self.user));
        let kept = self.kept();
        let encoding = match self.encoding {
            SQL_ASCII => encoding(kept, SQL_ASCII),
            known => known,
        };
        let is_cut = kept.len() < self.bytes.len();
        let whole = self.length.or(is_cut.then_some(self.bytes.len()));
        let fields = [
            ("text_key", self.key()),
            ("query_id", self.query_id),
            ("database", database),
            ("username", user),
            ("user_oid", i64::from(self.user)),
            ("encoding", encoding),
            ("length", i64::try_from(whole.unwrap_or(0)).unwrap_or(0)),
        ];
        batch.add_text("text", &fields, kept);
    }
}

trait Cut {
    fn floor_char_boundary_of(&self, most: usize) -> usize;
}

impl Cut for Vec<u8> {
    /// The number of bytes after which the text is cut: at most `most`, and never
    /// inside a UTF-8 character.
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

/// Removes the semicolon at the end, as `pg_stat_statements` does.
fn trim_end(text: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
    let kept = text.iter().rposition(|byte| !is_end(byte));
    &text[..kept.map_or(0, |last| last + 1)]
}

/// The part of a text that is recorded.
fn recorded(text: &[u8], is_raw: bool) -> Masked {
    match is_raw {
        true => Masked {
            text: without_secrets(text),
            is_cut: false,
        },
        false => literals::mask(trim_end(text), MOST_BYTES),
    }
}

/// If a text has a word of `SECRETS`, cuts it before its first constant.
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
    fn a_text_has_constants_only_where_they_are_wanted() {
        let text = b"CALL f('a constant', 7)";
        let of = |is_raw| recorded(text, is_raw).text;
        assert_eq!(of(true), text);
        assert_eq!(of(false), b"CALL f($1, $2)");
    }

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
    fn a_text_is_searched_until_it_is_found_and_once_a_day() {
        let mut texts = Texts::default();
        texts.request(7, 0);
        texts.request(0, 0);
        let question = texts.question("public", 0).unwrap();
        assert!(question.contains("public.pg_stat_statements(true) where queryid = any('{7}')"));
        let asks = |texts: &mut Texts, ms| texts.question("public", ms).is_some();
        let asked = [9_999, 10_000, 20_000, 29_999, 30_000].map(|ms| asks(&mut texts, ms));
        assert_eq!(asked, [false, true, false, false, true]);
        texts.wanted.insert(7, None);
        texts.request(7, 1);
        assert!(!asks(&mut texts, 10_000_000));
        texts.request(7, DAY_MS);
        assert!(asks(&mut texts, 10_000_000));
    }

    #[test]
    fn after_a_slow_question_the_next_one_waits() {
        let mut texts = Texts::default();
        texts.request(7, 0);
        assert_eq!((texts.note_duration(30, 0), texts.next_ms), (false, 10_000));
        assert_eq!(
            (texts.note_duration(4_000, 0), texts.next_ms),
            (true, 80_000)
        );
        assert_eq!(texts.question("public", 79_999), None);
        assert!(texts.question("public", 80_000).is_some());
        texts.back_off(90_000);
        assert_eq!(texts.question("public", 689_999), None);
        assert!(texts.question("public", 690_000).is_some());
    }

    #[test]
    fn texts_of_sessions_are_taken_while_the_server_refuses_to_show_its_own() {
        let mut texts = Texts::new(false);
        assert_eq!(texts.session_text_choice(), OfSessions::None);
        texts.refuse();
        assert_eq!(texts.session_text_choice(), OfSessions::OfQueries);
        texts.take(&[], &mut Names::default(), SQL_ASCII, 0);
        assert_eq!(texts.session_text_choice(), OfSessions::None);
        assert_eq!(Texts::new(true).session_text_choice(), OfSessions::All);
    }

    #[test]
    fn the_text_of_a_session_has_no_constants_unless_they_are_wanted() {
        let of = |is_raw, is_cut| {
            let session = Session::default();
            let text = Texts::new(is_raw).of_session(&session, b"SELECT 'x', 7; ", 6, is_cut);
            (String::from_utf8(text.bytes).unwrap(), text.length)
        };
        assert_eq!(of(false, false), ("SELECT $1, $2".to_string(), None));
        assert_eq!(of(true, false), ("SELECT 'x', 7; ".to_string(), None));
        assert_eq!(of(true, true).1, Some(16));
        assert_eq!(of(false, true).1, Some(16));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let bytes = "aé".as_bytes().to_vec();
        let cut = |most| bytes.floor_char_boundary_of(most);
        assert_eq!([cut(0), cut(1), cut(2), cut(3), cut(9)], [0, 1, 1, 3, 3]);
    }
}
