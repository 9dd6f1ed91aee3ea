//! Names of relations that sessions wait for. A connection reads names in its own database only,
//! so the history has numbers for locks in other databases.

use crate::batch::{Batch, Dictionary};
use crate::locks::{Edge, Tag};
use std::collections::{BTreeSet, HashMap};
use tacho_dsn::Answer;
use tacho_tape::query::has_relation;

/// Time in ms after which a name is read again, because the relation may have been renamed.
const VALID_MS: i64 = 600_000;
/// Maximum number of relations in a question, and of relations that are remembered.
const MOST_ASKED: usize = 100;
const MOST_KNOWN: usize = 10_000;

/// A relation as in a lock: OID of its database, and its own.
type Relation = (i64, i64);

/// The known relations, and the time until which each is not looked up again.
#[derive(Default)]
pub struct Relations {
    asked: HashMap<Relation, i64>,
}

/// The name of a relation.
#[derive(Debug, PartialEq, Eq)]
pub struct RelationName {
    relation: Relation,
    schema: Vec<u8>,
    name: Vec<u8>,
}

/// The locked relation, or the relation that contains the locked object; `None` for locks of other
/// types.
fn locked(tag: &Tag) -> Option<Relation> {
    has_relation(&tag.locktype).then_some((tag.database, tag.fields[0]))
}

impl Relations {
    /// The question for names that are not known yet, if there are any.
    pub fn question(&mut self, edges: &[Edge], now_ms: i64) -> Option<String> {
        let is_new = |relation: &Relation| {
            let until_ms = self.asked.get(relation);
            until_ms.is_none_or(|until_ms| *until_ms <= now_ms)
        };
        let locked = edges.iter().filter_map(|edge| locked(&edge.tag));
        let wanted: BTreeSet<Relation> = locked.filter(is_new).take(MOST_ASKED).collect();
        if wanted.is_empty() {
            return None;
        }
        if self.asked.len() + wanted.len() > MOST_KNOWN {
            self.asked.clear();
        }
        let until_ms = now_ms + VALID_MS;
        self.asked
            .extend(wanted.iter().map(|relation| (*relation, until_ms)));
        let pairs = wanted
            .iter()
            .map(|(database, oid)| format!("({database},{oid})"));
        let pairs = pairs.collect::<Vec<_>>().join(",");
        Some(format!(
            "select d.oid::int8, c.oid::int8, n.nspname, c.relname \
             from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace, \
             pg_catalog.pg_database d where d.datname = current_database() \
             and c.relpersistence <> 't' and (d.oid::int8, c.oid::int8) in ({pairs})"
        ))
    }
}

/// Reads the answer of [`Relations::question`].
pub fn read(answer: &Answer) -> Vec<RelationName> {
    let name = |row| {
        Some(RelationName {
            relation: (answer.number(row, 0)?, answer.number(row, 1)?),
            schema: answer.bytes(row, 2)?.to_vec(),
            name: answer.bytes(row, 3)?.to_vec(),
        })
    };
    (0..answer.rows()).filter_map(name).collect()
}

impl RelationName {
    /// Adds the name to the batch.
    pub fn put(&self, batch: &mut Batch, dictionary: &mut Dictionary, time_ms: i64) {
        let (database, oid) = self.relation;
        let fields = [
            ("time", time_ms),
            ("database_oid", database),
            ("oid", oid),
            ("schema", dictionary.name(batch, &self.schema)),
            ("name", dictionary.name(batch, &self.name)),
        ];
        batch.add("relation", &fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(locktype: &str, oid: i64) -> Edge {
        Edge {
            waiter: 1,
            blocker: 2,
            prepared: 0,
            gid: Vec::new(),
            hard: true,
            tag: Tag {
                locktype: locktype.into(),
                database: 5,
                fields: [oid, 0, 0],
            },
            modes_held: 0,
            mode_requested: 8,
            wait_start_ms: 0,
        }
    }

    #[test]
    fn a_name_is_read_once_in_ten_minutes() {
        let mut relations = Relations::default();
        let edges = [edge("tuple", 9), edge("relation", 9), edge("advisory", 3)];
        let question = relations.question(&edges, 0).unwrap();
        assert!(question.ends_with("in ((5,9))"), "{question}");
        assert_eq!(relations.question(&edges, VALID_MS - 1), None);
        let other = relations.question(&[edge("extend", 10), edge("page", 9)], 5);
        assert!(other.unwrap().ends_with("in ((5,10))"));
        assert!(relations.question(&edges, VALID_MS).is_some());
    }

    #[test]
    fn the_relations_that_are_remembered_are_limited() {
        let mut relations = Relations::default();
        for oid in 0..=MOST_KNOWN as i64 {
            let _ = relations.question(&[edge("relation", oid)], 0);
        }
        assert!(relations.asked.len() <= MOST_KNOWN);
        let many: Vec<Edge> = (0..1_000)
            .map(|oid| edge("relation", 100_000 + oid))
            .collect();
        let question = relations.question(&many, 0).unwrap();
        assert_eq!(question.matches("(5,").count(), MOST_ASKED);
    }
}
