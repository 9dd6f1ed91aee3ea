//! Query texts by query id or by hash.

use super::integers::Reference;
use super::keys::View;
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::value::error::QueryResult;
use std::collections::HashMap;
use std::sync::Arc;

/// Key of a query text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextKey {
    /// Query id.
    Query(i64),
    /// Hash of the activity text.
    Hash(i64),
}

impl TextKey {
    /// The query id of a statement, otherwise the hash of its text; `None` if both are 0.
    pub fn of(query_id: i64, hash: i64) -> Option<TextKey> {
        match (query_id, hash) {
            (0, 0) => None,
            (0, hash) => Some(TextKey::Hash(hash)),
            (id, _) => Some(TextKey::Query(id)),
        }
    }
}

/// Database and text for each key, in the order they were found.
type ByKey = HashMap<TextKey, Vec<(Option<String>, Arc<str>)>>;

/// Query texts by key.
#[derive(Default)]
pub struct Texts {
    found: ByKey,
}

impl Texts {
    /// Looks up `wanted` in all `near` parts, and in `far` parts until every key has a text. Finds
    /// nothing if the context has texts off. With an owner, only texts that this role ran count. A
    /// damaged text is left out: no row is lost with it. The cancel flag is checked before each
    /// part.
    pub fn find<'a>(
        wanted: impl IntoIterator<Item = TextKey>,
        near: impl IntoIterator<Item = &'a Part>,
        far: impl IntoIterator<Item = &'a Part>,
        run: Run,
    ) -> QueryResult<Texts> {
        let mut texts = Texts::default();
        texts.find_more(wanted, near, far, run)?;
        Ok(texts)
    }

    /// Same as [`Texts::find`], for keys that are not yet in `self`.
    pub fn find_more<'a>(
        &mut self,
        wanted: impl IntoIterator<Item = TextKey>,
        near: impl IntoIterator<Item = &'a Part>,
        far: impl IntoIterator<Item = &'a Part>,
        run: Run,
    ) -> QueryResult<()> {
        let collect = |wanted: &mut ByKey, part| {
            let view = View::new(part, run.decode).canceled_by(run.cancel);
            view.check_cancel()?;
            let found = collect(wanted, &view, run.owner.as_deref());
            run.damage.without_texts(found)
        };
        let new = wanted
            .into_iter()
            .filter(|key| !self.found.contains_key(key));
        let mut new: ByKey = new.map(|key| (key, Vec::new())).collect();
        if !new.is_empty() && run.texts {
            let mut before: Option<&Part> = None;
            for part in near {
                if before
                    .replace(part)
                    .is_some_and(|p| p.is_of_same_file(part))
                {
                    continue;
                }
                collect(&mut new, part)?;
            }
            for part in far {
                if new.values().all(|found| !found.is_empty()) {
                    break;
                }
                collect(&mut new, part)?;
            }
        }
        self.found.extend(new);
        Ok(())
    }

    /// The text of a key: a statement if one is known, and preferably a text from this database.
    /// PL/pgSQL parses its expression `$1` as `select $1`. Therefore the expression and the
    /// statement have the same query id.
    pub fn get(&self, key: TextKey, database: Option<&str>) -> Option<Arc<str>> {
        let found = self.found.get(&key)?;
        let is_same = |other: &Option<String>| database.is_some() && other.as_deref() == database;
        let best = found
            .iter()
            .min_by_key(|(other, text)| (!is_statement(text), !is_same(other)))?;
        Some(Arc::clone(&best.1))
    }
}

/// First words of statements. Another text with the query id of such a statement is an expression
/// of PL/pgSQL.
const VERBS: [&str; 8] = [
    "select", "with", "values", "table", "insert", "update", "delete", "merge",
];

/// True if the text begins with one of [`VERBS`], after comments and opening parentheses. False for
/// other commands, which share their query id with no expression.
fn is_statement(text: &str) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
        let comment = match rest.get(..2) {
            Some("/*") => rest.split_once("*/"),
            Some("--") => rest.split_once('\n'),
            _ => break,
        };
        let Some((_, after)) = comment else {
            return false;
        };
        rest = after;
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic());
    let word = &rest[..end.unwrap_or(rest.len())];
    VERBS.iter().any(|verb| verb.eq_ignore_ascii_case(word))
}

/// Adds the wanted texts of a part.
fn collect(wanted: &mut ByKey, view: &View, owner: Option<&str>) -> QueryResult<()> {
    let part = view.part;
    if part.rows("text") == 0 {
        return Ok(());
    }
    let query_id = part.ints("text", "query_id")?;
    let hash = part.ints("text", "text_key")?;
    for row in 0..query_id.len() {
        let key = match query_id[row] {
            0 => TextKey::Hash(hash[row]),
            id => TextKey::Query(id),
        };
        let Some(found) = wanted.get_mut(&key) else {
            continue;
        };
        let database = view.name(Reference(part.ints("text", "database")?[row]))?;
        let known = found.iter().position(|(d, _)| *d == database);
        if known.is_some_and(|place| is_statement(&found[place].1)) {
            continue;
        }
        if let Some(owner) = owner {
            let user = view.name(Reference(part.ints("text", "username")?[row]))?;
            if user.as_deref() != Some(owner) {
                continue;
            }
        }
        let encoding = part.ints("text", "encoding")?[row];
        let mut text = view.text(encoding, part.bytes("text", "bytes")?.get(row));
        if part.ints("text", "length")?[row] != 0 {
            text.push('…');
        }
        match known {
            None => found.push((database, text.into())),
            Some(place) if is_statement(&text) => found[place].1 = text.into(),
            Some(_) => (),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_expressions_differ() {
        for text in [
            "select $1",
            "SELECT\n$1",
            "(select 1) union (select 2)",
            "/* web */ -- main\n select $1",
            "with a as (select $1) select a",
        ] {
            assert!(is_statement(text), "{text}");
        }
        for text in ["$1", "x := $1", "selected + $1", "now()", "", "/* $1"] {
            assert!(!is_statement(text), "{text}");
        }
    }

    #[test]
    fn a_statement_comes_before_an_expression_among_the_texts_of_a_query() {
        let texts = |all: &[(Option<&str>, &str)]| {
            let all = all.iter();
            let all = all.map(|(d, text)| (d.map(str::to_string), Arc::from(*text)));
            Texts {
                found: ByKey::from([(TextKey::Query(7), all.collect())]),
            }
        };
        let get = |texts: &Texts, database| texts.get(TextKey::Query(7), database).unwrap();
        let two = texts(&[(Some("a"), "$1"), (Some("b"), "select $1")]);
        assert_eq!(&*get(&two, None), "select $1");
        assert_eq!(&*get(&two, Some("a")), "select $1");
        let two = texts(&[(Some("a"), "select 1"), (Some("b"), "select 2")]);
        assert_eq!(&*get(&two, None), "select 1");
        assert_eq!(&*get(&two, Some("b")), "select 2");
        assert_eq!(&*get(&texts(&[(Some("a"), "$1")]), Some("b")), "$1");
    }
}
