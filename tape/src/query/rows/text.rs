//! Query texts by query id or by hash.

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

    /// The text of a key, preferably from this database.
    pub fn get(&self, key: TextKey, database: Option<&str>) -> Option<Arc<str>> {
        let found = self.found.get(&key)?;
        let same = found.iter().find(|(d, _)| d.as_deref() == database);
        let text = same.filter(|_| database.is_some()).or(found.first())?;
        Some(Arc::clone(&text.1))
    }
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
        let database = view.name(part.ints("text", "database")?[row])?;
        if found.iter().any(|(d, _)| *d == database) {
            continue;
        }
        if let Some(owner) = owner {
            let user = view.name(part.ints("text", "username")?[row])?;
            if user.as_deref() != Some(owner) {
                continue;
            }
        }
        let encoding = part.ints("text", "encoding")?[row];
        let mut text = view.text(encoding, part.bytes("text", "bytes")?.get(row));
        if part.ints("text", "length")?[row] != 0 {
            text.push('…');
        }
        found.push((database, text.into()));
    }
    Ok(())
}
