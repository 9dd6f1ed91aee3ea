//! Names of databases and roles, by OID. The recorder asks for the name of a new OID at once. It
//! asks again every minute, because the database or role may have been renamed.

use std::collections::{BTreeSet, HashMap};
use tacho_dsn::Answer;

/// A name is used for this time in ms before it is read again: it may have changed.
const VALID_MS: i64 = 60_000;

struct Name {
    bytes: Vec<u8>,
    /// Id of the encoding of a database.
    encoding: i64,
    until_ms: i64,
}

/// Kind of object that has the name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Database,
    Role,
}

/// Known and wanted names.
#[derive(Default)]
pub struct Names {
    known: HashMap<(Kind, u32), Name>,
    wanted: BTreeSet<(Kind, u32)>,
}

impl Names {
    /// Notes that a name is needed.
    pub fn request(&mut self, kind: Kind, oid: u32, now_ms: i64) {
        let known = self.known.get(&(kind, oid));
        if oid != 0 && known.is_none_or(|name| name.until_ms <= now_ms) {
            self.wanted.insert((kind, oid));
        }
    }

    /// The question for the names that are needed, if any.
    pub fn question(&self) -> Option<String> {
        let list = |kind| {
            let oids = self
                .wanted
                .iter()
                .filter(|w| w.0 == kind)
                .map(|w| w.1.to_string());
            oids.collect::<Vec<_>>().join(",")
        };
        let (databases, roles) = (list(Kind::Database), list(Kind::Role));
        (!self.wanted.is_empty()).then(|| {
            format!(
                "select oid, datname, encoding from pg_catalog.pg_database where oid = any('{{{databases}}}'); \
                 select oid, rolname from pg_catalog.pg_roles where oid = any('{{{roles}}}')"
            )
        })
    }

    /// Takes the answers. If an OID was not found, it keeps its earlier name;
    /// without one it gets a name in the manner of `pg_get_userbyid()`.
    pub fn take(&mut self, answers: &[Answer], now_ms: i64) {
        let until_ms = now_ms + VALID_MS;
        for (answer, kind) in answers.iter().zip([Kind::Database, Kind::Role]) {
            for row in 0..answer.rows() {
                let (oid, name) = (answer.number(row, 0), answer.bytes(row, 1));
                if let (Some(oid), Some(name)) = (oid, name) {
                    let name = Name {
                        bytes: name.to_vec(),
                        encoding: answer.number(row, 2).unwrap_or(0),
                        until_ms,
                    };
                    self.known.insert((kind, oid), name);
                    self.wanted.remove(&(kind, oid));
                }
            }
        }
        for (kind, oid) in std::mem::take(&mut self.wanted) {
            let unknown = || format!("unknown (OID={oid})").into_bytes();
            let name = self.known.entry((kind, oid));
            name.or_insert_with(|| Name {
                bytes: unknown(),
                encoding: 0,
                until_ms,
            })
            .until_ms = until_ms;
        }
    }

    /// The name; empty if unknown.
    pub fn get(&self, kind: Kind, oid: u32) -> &[u8] {
        self.known.get(&(kind, oid)).map_or(&[], |name| &name.bytes)
    }

    /// The encoding of a database; SQL_ASCII (0) if it is not known.
    pub fn encoding(&self, database: u32) -> i64 {
        let known = self.known.get(&(Kind::Database, database));
        known.map_or(0, |name| name.encoding)
    }

    /// Gives an OID a name.
    #[cfg(test)]
    pub fn set(&mut self, kind: Kind, oid: u32, name: &str) {
        let name = Name {
            bytes: name.into(),
            encoding: 0,
            until_ms: i64::MAX,
        };
        self.known.insert((kind, oid), name);
    }

    /// Forgets all names: another server may have others.
    pub fn forget(&mut self) {
        *self = Names::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_once_a_minute_and_kept_when_it_is_gone() {
        let mut names = Names::default();
        assert_eq!(names.question(), None);
        names.request(Kind::Role, 10, 0);
        names.request(Kind::Role, 0, 0);
        assert!(
            names
                .question()
                .unwrap()
                .contains("pg_roles where oid = any('{10}')")
        );
        names.take(&[], 0);
        assert_eq!(names.get(Kind::Role, 10), b"unknown (OID=10)");
        names.request(Kind::Role, 10, 59_999);
        assert_eq!(names.question(), None);
        names.request(Kind::Role, 10, 60_000);
        assert!(names.question().is_some());
    }
}
