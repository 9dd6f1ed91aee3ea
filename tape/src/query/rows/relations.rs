//! Names of relations, where samples have OIDs.

use super::integers::Reference;
use super::keys::View;
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::value::error::QueryResult;
use std::collections::{HashMap, HashSet};

/// A relation of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relation {
    /// OID of its database; 0 for a relation that all databases share.
    pub database: i64,
    /// OID of the relation.
    pub oid: i64,
}

/// True if the part may have a name of these relations. The bounds of its column show this without
/// decoding.
fn may_have(part: &Part, wanted: &HashSet<Relation>) -> bool {
    let is_within = |(least, most): (i64, i64)| {
        let mut oids = wanted.iter().map(|relation| relation.oid);
        oids.any(|oid| (least..=most).contains(&oid))
    };
    part.rows("relation") > 0 && part.bounds("relation", "oid").is_none_or(is_within)
}

/// Names of relations with their schemas: `public.orders`.
#[derive(Default)]
pub struct RelationNames(HashMap<Relation, String>);

impl RelationNames {
    /// Looks up `wanted` in the parts, the newest of them first, until each has a name. Finds
    /// nothing if the context has texts off or shows the rows of one role only.
    pub fn find<'a>(
        wanted: impl IntoIterator<Item = Relation>,
        newest_first: impl IntoIterator<Item = &'a Part>,
        run: Run,
    ) -> QueryResult<RelationNames> {
        let mut wanted: HashSet<Relation> = wanted.into_iter().collect();
        let mut names = RelationNames::default();
        if !run.texts || run.owner.is_some() {
            return Ok(names);
        }
        for part in newest_first {
            if wanted.is_empty() {
                break;
            }
            run.check_cancel()?;
            if may_have(part, &wanted) {
                let found = names.read(part, &mut wanted, run);
                run.damage.without_texts(found)?;
            }
        }
        Ok(names)
    }

    /// Takes the last name of each wanted relation in a part.
    fn read(&mut self, part: &Part, wanted: &mut HashSet<Relation>, run: Run) -> QueryResult<()> {
        let view = View::new(part, run.decode);
        let column = |name: &str| part.ints("relation", name);
        let (databases, oids) = (column("database_oid")?, column("oid")?);
        let (schemas, names) = (column("schema")?, column("name")?);
        for row in (0..oids.len()).rev() {
            let relation = Relation {
                database: databases[row],
                oid: oids[row],
            };
            if !wanted.contains(&relation) {
                continue;
            }
            let name = |column: &[i64]| view.name(Reference(column[row]));
            let (schema, name) = (name(&schemas)?, name(&names)?);
            if let Some(name) = name {
                wanted.remove(&relation);
                let name = schema.map_or(name.clone(), |schema| format!("{schema}.{name}"));
                self.0.insert(relation, name);
            }
        }
        Ok(())
    }

    /// The name of a relation.
    pub fn get(&self, relation: Relation) -> Option<&str> {
        self.0.get(&relation).map(String::as_str)
    }
}
