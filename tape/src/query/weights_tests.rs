//! Sums of weights without cells equal the sums of cells.

use super::ask::context::Run;
use super::ask::damage::Damage;
use super::pass::plan::Narrow;
use super::pass::read::Scanned;
use super::rows::dimension::Dimension;
use super::rows::integers::Key;
use super::rows::parse::{Samples, Window};
use super::rows::register::{Atom, Register};
use super::rows::scan::Scan;
use crate::store::snapshot::Snapshot;
use crate::testing::{Arguments, schema};
use crate::write::merge_tests::{NODE, sealed_files};
use std::collections::BTreeMap;

/// The dimensions that stand alone. The others are second dimensions of queries.
const ALONE: [&str; 5] = [
    "application",
    "username",
    "wait_event",
    "root_blocker",
    "query_id",
];
const SECOND: [&str; 4] = ["wait_event", "root_blocker", "plan_id", "username"];

/// The texts of a key.
fn texts(register: &Register, key: Key) -> [Option<String>; 2] {
    [register.text(key.0), register.text(key.1)]
}

/// The sums of each group by the texts of its keys.
fn sums(scanned: Scanned, register: &Register) -> Vec<BTreeMap<[Option<String>; 2], i64>> {
    let cubes = scanned.cubes.into_iter().map(|cube| {
        let keys = cube.into_cells();
        keys.map(|(key, cells)| (texts(register, key), cells.sum_ms()))
            .collect()
    });
    cubes.collect()
}

#[test]
fn weights_equal_sums_of_cells_and_narrowed_groups_have_the_wanted_keys_alone() {
    let (storage, _) = sealed_files(7, 3, 80);
    let store = Snapshot::open_storage(&storage).unwrap();
    let ends = store.parts(NODE).map(|part| part.max_ms());
    let until = 1_000 * (ends.max().unwrap() + 1_000);
    let begins = store.parts(NODE).map(|part| part.min_ms());
    let since = 1_000 * begins.min().unwrap();
    let catalog = schema();
    let arguments = Arguments::new(&catalog, until);
    let damage = Damage::default();
    let run = Run {
        context: &arguments.context,
        store: &store,
        damage: &damage,
        explained: None,
    };
    let find = |name: &&str| Dimension::find(&catalog, "dimension", name).unwrap();
    let (alone, second) = (
        ALONE.map(|name| find(&name)),
        SECOND.map(|name| find(&name)),
    );
    let query = find(&"query_id");
    let groups = alone.iter().map(|one| vec![one]);
    let pairs = second.iter().map(|second| vec![&query, second]);
    let groups: Vec<Vec<&Dimension>> = groups.chain(pairs).collect();
    // The second window begins and ends within a group.
    for (since, until) in [(since, until), (since + 7_000_000, until - 9_000_000)] {
        let scan = Scan::new(run, Samples::default(), Window { since, until }).unwrap();
        let cells = scan.sums(scan.whole(), &groups).unwrap();
        let cells = sums(cells, &scan.register);
        let weights = scan.weights(&groups).unwrap();
        assert_eq!(sums(weights, &scan.register), cells);
        let ids: Vec<String> = cells[4].keys().filter_map(|key| key[0].clone()).collect();
        assert!(ids.len() > 2, "{ids:?}");
        let wanted = &ids[1];
        let narrow = Narrow {
            from: ALONE.len(),
            keys: [Atom::Number(wanted.parse().unwrap())]
                .into_iter()
                .collect(),
        };
        let mut expected = cells;
        for group in &mut expected[ALONE.len()..] {
            group.retain(|key, _| key[0].as_ref() == Some(wanted));
            assert!(!group.is_empty());
        }
        let narrowed = scan.weights_narrowed(&groups, &narrow).unwrap();
        assert_eq!(sums(narrowed, &scan.register), expected);
    }
}
