//! Texts of the queries of an hour. Only texts with a query id are shipped: the
//! server has replaced the constants of most of them. A text may be in any file of
//! the tape. Texts that were found or missed are not looked for again.

use crate::fault::Fault;
use crate::field::Names;
use crate::hours::is_lasting;
use crate::redact::{Redaction, Rule};
use crate::table::{Column, Kind, Object};
use std::collections::{BTreeSet, HashMap};
use tacho_source::encoding;
use tacho_tape::{Error, Part, Result};

/// A text of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    database: Option<String>,
    username: Option<String>,
    text: String,
    /// Length of the whole text in bytes, if the recorder cut it.
    length: Option<i64>,
}

/// Texts by query id; `None` for a text that no file has.
#[derive(Default)]
pub struct Texts {
    known: HashMap<i64, Option<Text>>,
    /// Reasons why texts of files could not be read.
    damage: Vec<Error>,
    /// Memory of all texts, in bytes.
    bytes: usize,
}

/// If the texts take more bytes than this, all are forgotten and read again.
const MAX_BYTES: usize = 16 << 20;
/// Approximate bytes of an entry besides its text.
const ENTRY_BYTES: usize = 150;

impl Texts {
    /// The columns of table `texts`.
    pub fn columns() -> Vec<Column> {
        vec![
            Column::new(10, "query_id", Kind::Number),
            Column::new(11, "fingerprint", Kind::Number),
            Column::new(12, "database", Kind::Text),
            Column::new(13, "username", Kind::Text),
            Column::new(14, "query_text", Kind::Text),
            Column::new(15, "length", Kind::Number),
        ]
    }

    /// Looks for the texts of some queries, newest files first.
    ///
    /// # Errors
    /// A file could not be read; a later attempt may succeed.
    pub fn find<'p>(
        &mut self,
        queries: &BTreeSet<i64>,
        parts: impl DoubleEndedIterator<Item = &'p Part>,
    ) -> Result<()> {
        let new = queries.iter().filter(|id| !self.known.contains_key(id));
        let mut missing: BTreeSet<i64> = new.copied().collect();
        let mut before: Option<&Part> = None;
        for part in parts.rev() {
            if missing.is_empty() {
                break;
            }
            if before
                .replace(part)
                .is_some_and(|p| p.is_of_same_file(part))
            {
                continue;
            }
            match self.collect(part, &mut missing) {
                Err(error) if is_lasting(&error) => {
                    let is_known = |known: &Error| known.to_string() == error.to_string();
                    if !self.damage.iter().any(is_known) {
                        self.damage.push(error);
                    }
                }
                done => done?,
            }
        }
        self.known.extend(missing.iter().map(|id| (*id, None)));
        Ok(())
    }

    /// Forgets all texts if they take too much memory. Called between hours,
    /// because an hour needs its texts until its objects are made.
    pub fn limit_memory(&mut self) {
        if self.bytes + ENTRY_BYTES * self.known.len() > MAX_BYTES {
            *self = Texts::default();
        }
    }

    /// Damage that may have hidden a text of these queries.
    pub fn damage(&self, queries: &BTreeSet<i64>) -> &[Error] {
        let is_missing = |id: &i64| *id != 0 && matches!(self.known.get(id), Some(None));
        match queries.iter().any(is_missing) {
            true => &self.damage,
            false => &[],
        }
    }

    fn collect(&mut self, part: &Part, missing: &mut BTreeSet<i64>) -> Result<()> {
        if part.rows("text") == 0 {
            return Ok(());
        }
        let ids = part.ints("text", "query_id")?;
        let names = Names::read(part)?;
        let [database, username, encoding, length] =
            ["database", "username", "encoding", "length"].map(|column| part.ints("text", column));
        let (database, username) = (database?, username?);
        let (encoding, length) = (encoding?, length?);
        let bytes = part.bytes("text", "bytes")?;
        for (row, id) in ids.iter().enumerate() {
            if *id != 0 && missing.remove(id) {
                let text = Text {
                    database: names.get(database[row]),
                    username: names.get(username[row]),
                    text: encoding::decode(encoding[row], bytes.get(row)),
                    length: Some(length[row]).filter(|length| *length != 0),
                };
                self.bytes += text.text.len();
                self.known.insert(*id, Some(text));
            }
        }
        Ok(())
    }

    /// Fingerprint of a query's text, if its text was found.
    pub fn fingerprint(&self, query_id: i64, redaction: &Redaction) -> Option<i64> {
        let text = self.known.get(&query_id)?.as_ref()?;
        redaction.fingerprint(&text.text)
    }

    /// Adds the texts of `queries` that were found.
    ///
    /// # Errors
    /// The rows could not be encoded.
    pub fn write(
        &self,
        queries: &BTreeSet<i64>,
        redaction: &Redaction,
        object: &mut Object,
    ) -> std::result::Result<(), Fault> {
        let hidden = redaction.has(Rule::Texts);
        for id in queries.iter() {
            let Some(Some(text)) = self.known.get(id) else {
                continue;
            };
            let [
                query_id,
                fingerprint,
                database,
                username,
                query_text,
                length,
            ] = &mut object.values[..]
            else {
                break;
            };
            query_id.number(Some(*id));
            fingerprint.number(redaction.fingerprint(&text.text));
            database.text(text.database.as_deref());
            username.text(text.username.as_deref());
            query_text.text(Some(text.text.as_str()).filter(|_| !hidden));
            length.number(text.length);
            object.flush_full()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tacho_tape::testing::stats_schema;
    use tacho_tape::{Identity, PartBuilder};

    #[test]
    fn texts_are_forgotten_when_they_are_many() {
        let mut b = PartBuilder::new(Arc::new(stats_schema())).unwrap();
        for id in [1, 2] {
            let text = "x".repeat(MAX_BYTES / 2);
            let row = [("query_id", id), ("encoding", 6)];
            b.row_bytes("text", &row, &[("bytes", text.as_bytes())])
                .unwrap();
        }
        let part = b.finish(Identity::default());
        let mut texts = Texts::default();
        for (queries, known) in [(vec![1], 1), (vec![1, 2], 0), (vec![2, 3], 2)] {
            let queries = queries.into_iter().collect();
            texts.find(&queries, [&part].into_iter()).unwrap();
            let fingerprint = texts.fingerprint(*queries.first().unwrap(), &Redaction::default());
            assert!(fingerprint.is_some());
            texts.limit_memory();
            assert_eq!(texts.known.len(), known);
        }
    }
}
