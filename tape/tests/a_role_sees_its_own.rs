//! A role that was dropped and created again is another role.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use tacho_tape::query::{Field, QueryResult, Sink, Value};
use tacho_tape::testing::{Arguments, run};
use tacho_tape::{Identity, PartBuilder, Snapshot};

struct Count(usize);

impl Sink for Count {
    fn begin(&mut self, _fields: &[Field]) -> QueryResult<()> {
        Ok(())
    }

    fn row(&mut self, _values: Vec<Value>) -> QueryResult<()> {
        self.0 += 1;
        Ok(())
    }
}

/// Number of samples that role `app` sees. There is one each of a role 10, a role 11 and a role
/// without an OID, all with this name.
fn seen_by(oid: Option<i64>) -> usize {
    let catalog = tacho_tape::catalog::samples();
    let mut builder = PartBuilder::new(Arc::new(catalog.clone().with_runs())).unwrap();
    let tick = [
        ("tick", 1),
        ("slot_time", 1000),
        ("interval_ms", 1000),
        ("status", 1),
    ];
    builder.row("tick", &tick).unwrap();
    let app = builder.name("app").unwrap();
    for (pid, oid) in [(1, 10), (2, 11), (3, 0)] {
        let session = [
            ("pid", pid),
            ("category", 1),
            ("user_oid", oid),
            ("username", app),
        ];
        let session = builder.intern("session", &session).unwrap();
        builder.sample(1, session, &[("state", 1)]).unwrap();
    }
    let mut store = Snapshot::from_parts(vec![builder.finish(Identity::default())]);
    if let Some(oid) = oid {
        store.hide_other_roles(oid);
    }
    let mut spec = Arguments::new(&catalog, 10_000_000);
    spec.since_us = Some(0);
    spec.owner = Some("app".to_string());
    let mut count = Count(0);
    run("samples", &spec, &store, &mut count).unwrap();
    count.0
}

#[test]
fn a_role_does_not_see_the_work_of_a_dropped_namesake() {
    assert_eq!(seen_by(None), 3);
    assert_eq!(seen_by(Some(11)), 2);
    assert_eq!(seen_by(Some(12)), 1);
}
