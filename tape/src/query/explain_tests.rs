//! A plan names exactly the files and bytes that are read: the storage counts them.

use super::rows::dimension::names;
use super::value::vocabulary as pg;
use super::{Field, QueryResult, Sink, Value, explain, find, list};
use crate::Schema;
use crate::format::entry::{COLUMN, PACK};
use crate::format::footer::Chunks;
use crate::store::snapshot::Snapshot;
use crate::testing::memory::MemoryStorage;
use crate::testing::{Arguments, run, schema};
use crate::write::merge_tests::{go, sealed_files};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Rows(Vec<Vec<Value>>);

impl Sink for Rows {
    fn begin(&mut self, _: &[Field]) -> QueryResult<()> {
        Ok(())
    }

    fn row(&mut self, row: Vec<Value>) -> QueryResult<()> {
        self.0.push(row);
        Ok(())
    }
}

/// A merged file of two logs, and a sealed file of another log.
fn history() -> MemoryStorage {
    let (storage, _) = sealed_files(1, 3, 130);
    go(&storage, 2).unwrap().unwrap();
    storage
}

/// Files and bytes of the columns that `ask` reads, each chunk counted once.
fn counted(storage: &MemoryStorage, ask: impl FnOnce(&Snapshot)) -> (usize, i64) {
    let store = Snapshot::open_storage(storage).unwrap();
    storage.take_spans();
    ask(&store);
    let mut chunks: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    let (mut files, mut bytes) = (BTreeSet::new(), 0);
    for (name, offset, read) in storage.take_spans() {
        let own = chunks.entry(name.clone()).or_insert_with(|| {
            let all = storage.bytes_of(&name).unwrap();
            let mut chunks = Chunks::new(&all);
            let next = || chunks.next_valid().map(|(entry, _)| entry);
            let entries = std::iter::from_fn(next);
            let columns = entries.filter(|entry| [COLUMN, PACK].contains(&entry.kind));
            columns.map(|entry| entry.offset).collect()
        });
        if own.contains(&offset) {
            bytes += read as i64;
            files.insert(name);
        }
    }
    (files.len(), bytes)
}

/// Plans and reasons as they are printed, and the sums of their files and bytes.
fn planned(store: &Snapshot, name: &str, spec: &Arguments) -> (Vec<String>, (usize, i64)) {
    let mut rows = Rows::default();
    let question = spec.question(find(name).unwrap()).unwrap();
    explain(&*question, &spec.context, store, &mut rows).unwrap();
    let (mut plans, mut files, mut bytes) = (Vec::new(), 0, 0);
    for row in &rows.0 {
        let [_, plan, .., of_files, _, of_bytes, why] = &row[..] else {
            panic!("{row:?}");
        };
        let (Value::Text(plan), Value::Text(why)) = (plan, why) else {
            panic!("{row:?}");
        };
        let (Value::Int(of_files), Value::Int(of_bytes)) = (of_files, of_bytes) else {
            panic!("{row:?}");
        };
        plans.push(format!("{plan}: {why}"));
        (files, bytes) = (files + *of_files as usize, bytes + of_bytes);
    }
    (plans, (files, bytes))
}

/// Empty if the storage reads what the plan says, and the plan itself reads no columns.
fn difference(
    storage: &MemoryStorage,
    name: &str,
    spec: &Arguments,
    expected: &str,
) -> Option<String> {
    let mut plan = Default::default();
    let for_plan = counted(storage, |store| plan = planned(store, name, spec));
    let read = counted(storage, |store| {
        run(name, spec, store, &mut Rows::default()).unwrap();
    });
    let found = (for_plan, (plan.0.join(", "), plan.1));
    let expected = ((0, 0), (expected.to_string(), read));
    (found != expected).then(|| format!("{name}: {found:?}, expected {expected:?}"))
}

/// A question about a whole history, by minute. Each of its columns decides something.
fn question<'a>(storage: &MemoryStorage, catalog: &'a Schema) -> Arguments<'a> {
    let store = Snapshot::open_storage(storage).unwrap();
    let nodes = store.nodes();
    let mut spec = Arguments::new(catalog, 1_000 * nodes[0].last_ms + 1_000_000);
    spec.since_us = Some(1_000 * nodes[0].first_ms);
    spec.n = Some(2);
    spec.texts = false;
    spec
}

#[test]
fn the_reader_reads_the_planned_columns() {
    let (storage, catalog) = (history(), schema());
    let whole = question(&storage, &catalog);
    let of = |dimension: &str, by: Option<&str>| Arguments {
        dimension: Some(dimension.to_string()),
        by: by.map(str::to_string),
        ..whole.clone()
    };
    let pid = of("pid", None);
    let mut off = of(pg::WAIT_EVENT, None);
    off.totals = false;
    let mut many = pid.clone();
    many.few_keys = 1;
    let cut = Arguments {
        since_us: whole.since_us.map(|since| since + 70_000_000),
        ..of(pg::QUERY_ID, None)
    };
    let filtered = Arguments {
        filters: vec![(pg::WAIT_TYPE.to_string(), "IO".to_string())],
        ..of(pg::QUERY_ID, None)
    };
    let pairs = of("pid", Some(pg::WAIT_EVENT));
    let all = "totals: answered from totals";
    let cases = [
        ("aas", &whole, all),
        ("timeline", &whole, all),
        ("chart", &whole, all),
        ("top", &of(pg::WAIT_EVENT, None), all),
        (
            "top",
            &of(pg::QUERY_ID, None),
            "totals: small keys need samples",
        ),
        ("top", &off, "one pass: totals are off"),
        ("top", &pid, "one pass: no totals for these keys"),
        ("top", &cut, "one pass: window cuts a minute or group"),
        ("top", &filtered, "one pass: totals have no filters"),
        ("top", &many, "two passes: sums, then largest keys"),
        ("top", &pairs, "two passes: sums, then largest keys"),
    ];
    let differ = cases.map(|(name, spec, expected)| difference(&storage, name, spec, expected));
    let differ: Vec<String> = differ.into_iter().flatten().collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn no_file_nor_column_is_read_beside_a_plan() {
    let (storage, catalog) = (history(), schema());
    let whole = question(&storage, &catalog);
    let minute = 60_000_000;
    let mut asked = 0;
    for dimension in names(&catalog) {
        for by in [None, Some(pg::WAIT_TYPE.to_string())] {
            for (scope, filter) in [
                ("load", None),
                ("all", Some((pg::WAIT_TYPE, "IO"))),
                ("foreground", Some((pg::ROOT_BLOCKER, "!1001"))),
                ("load", Some((pg::QUERY_ID, "!1"))),
            ] {
                let filter = filter.map(|(name, text)| (name.to_string(), text.to_string()));
                let mut spec = Arguments {
                    dimension: Some(dimension.to_string()),
                    by: by.clone(),
                    scope: Some(scope.to_string()),
                    filters: filter.into_iter().collect(),
                    since_us: whole.since_us.map(|since| since + asked % 3 * minute),
                    by_leader: asked % 2 == 0,
                    ..whole.clone()
                };
                spec.few_keys = 4;
                let mut plan = Default::default();
                counted(&storage, |store| plan = planned(store, "top", &spec));
                let read = counted(&storage, |store| {
                    run("top", &spec, store, &mut Rows::default()).unwrap();
                });
                let (plans, (files, bytes)) = plan;
                assert_eq!(files, read.0, "{dimension} {by:?} {scope} {plans:?}");
                assert!(
                    read.1 <= bytes,
                    "{dimension} {by:?} {scope}: {read:?}, {bytes}"
                );
                asked += 1;
            }
        }
    }
    assert!(asked > 100, "{asked} questions");
}

/// A question that every function takes.
fn simple<'a>(storage: &MemoryStorage, catalog: &'a Schema) -> Arguments<'a> {
    let mut spec = question(storage, catalog);
    spec.before = (spec.since_us, spec.until_us);
    spec.dimension = Some(pg::WAIT_EVENT.to_string());
    spec
}

#[test]
fn two_windows_have_two_plans() {
    let (storage, catalog) = (history(), schema());
    let spec = simple(&storage, &catalog);
    let store = Snapshot::open_storage(&storage).unwrap();
    let mut rows = Rows::default();
    let question = spec.question(find("compare").unwrap()).unwrap();
    explain(&*question, &spec.context, &store, &mut rows).unwrap();
    let scans: Vec<&Value> = rows.0.iter().map(|row| &row[0]).collect();
    assert_eq!(scans, [&Value::Int(1), &Value::Int(2)]);
}

#[test]
fn every_function_has_a_plan_that_reads_no_column() {
    let (storage, catalog) = (history(), schema());
    let simple = simple(&storage, &catalog);
    let mut by_columns = 0;
    for function in list() {
        let mut spec = simple.clone();
        // A plan without an id cannot be explained.
        if function.name == "plan" {
            spec.filters = vec![("plan_id".to_string(), "7".to_string())];
        }
        let mut plan = Default::default();
        let for_plan = counted(&storage, |store| {
            plan = planned(store, function.name, &spec);
        });
        assert_eq!(for_plan, (0, 0), "the plan of {}", function.name);
        let mut rows = Rows::default();
        let read = counted(&storage, |store| {
            run(function.name, &spec, store, &mut rows).unwrap();
        });
        let (plans, (_, bytes)) = plan;
        let about = format!("{}: {plans:?} {bytes} of {read:?}", function.name);
        // Status needs only the indexes of files. Without rows, the notice says why.
        let has_plan = function.name != "status" && !rows.0.is_empty() && read.1 > 0;
        assert!(!has_plan || !plans.is_empty(), "{about}");
        if plans.iter().all(|plan| plan.starts_with("columns: ")) {
            assert!(plans.is_empty() || bytes > 0, "{about}");
            by_columns += plans.len();
        }
        // `samples` reads the newest files until it has its rows.
        assert!(function.name != "samples" || read.1 < bytes, "{about}");
    }
    assert!(by_columns > 3, "{by_columns} plans");
}
