//! Texts in merged files: frequently used texts stay within the limit, and no row of another table
//! is lost with an omitted text.

use crate::files::directory::{Kind, Numbers};
use crate::format::part::Identity;
use crate::format::part_builder::PartBuilder;
use crate::format::sealed_write::FrameRange;
use crate::store::snapshot::Snapshot;
use crate::testing::memory::MemoryStorage;
use crate::testing::schema;
use crate::write::merge::{MergeJob, merge};
use crate::write::seal::write_sealed;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const NODE: u64 = 3;
/// Query id, and its number of samples in each file.
const QUERIES: [(i64, i64); 4] = [(11, 2), (12, 9), (13, 0), (14, 5)];

/// Two files with a text of 100 bytes for each query.
fn files() -> MemoryStorage {
    let storage = MemoryStorage::new();
    for number in 1..=2 {
        let schema = Arc::new(schema().with_runs());
        let mut builder = PartBuilder::new(schema).unwrap();
        for (query, samples) in QUERIES {
            let statement = builder.intern("statement", &[("query_id", query)]).unwrap();
            let session = builder.intern("session", &[("pid", query)]).unwrap();
            let text = vec![b'a' + query as u8; 100];
            let key = [("query_id", query), ("text_key", query * 7)];
            builder
                .row_bytes("text", &key, &[("bytes", &text)])
                .unwrap();
            for tick in 0..samples {
                let tick = (number * 20 + tick) as u64;
                let values = [("statement", statement)];
                builder.sample(tick, session, &values).unwrap();
            }
        }
        for tick in 0..20 {
            let tick = number * 20 + tick;
            let values = [("tick", tick), ("slot_time", tick * 1_000)];
            builder.row("tick", &values).unwrap();
        }
        let identity = Identity {
            node: NODE,
            ..Identity::default()
        };
        let frames = FrameRange::default();
        write_sealed(&storage, number as u64, builder, identity, frames).unwrap();
    }
    storage
}

fn merged(text_limit: u64) -> Snapshot {
    let storage = files();
    let job = MergeJob {
        files: vec![Numbers::one(1), Numbers::one(2)],
        thin_ms: None,
        text_limit,
    };
    merge(&storage, &job, &AtomicBool::new(false)).unwrap();
    assert!(
        storage
            .bytes_of(&job.numbers().name(Kind::Sealed))
            .is_some()
    );
    Snapshot::open_storage(&storage).unwrap()
}

fn texts(store: &Snapshot) -> Vec<i64> {
    let part = store.parts(NODE).next().unwrap();
    let strings = part.bytes("text", "bytes").unwrap();
    let queries = part.ints("text", "query_id").unwrap();
    for (query, text) in queries.iter().zip(strings.iter()) {
        assert_eq!(text, vec![b'a' + *query as u8; 100]);
    }
    queries.to_vec()
}

#[test]
fn frequent_texts_stay_and_the_rest_is_counted() {
    let store = merged(250);
    assert_eq!(texts(&store), [12, 14]);
    let part = store.parts(NODE).next().unwrap();
    let names = part.bytes("name", "bytes").unwrap();
    let detail = part.ints("marker", "detail").unwrap();
    assert_eq!(
        String::from_utf8_lossy(names.get(detail[0] as usize - 1)),
        "2 query texts of 200 bytes exceeded tacho.text_limit"
    );
    let kind = part.schema().value("marker", "texts left out").unwrap();
    assert_eq!(part.ints("marker", "kind").unwrap()[..], [kind]);
    assert_eq!(part.ints("marker", "until").unwrap()[..], [59_000]);
}

#[test]
fn a_text_that_is_left_out_takes_no_row_with_it() {
    let ticks = |store: &Snapshot| -> i64 {
        let parts = store.parts(NODE);
        parts
            .map(|p| p.ints("run", "ticks").unwrap().iter().sum::<i64>())
            .sum()
    };
    for limit in [0, 100, 399] {
        assert_eq!(ticks(&merged(limit)), 32);
    }
}

#[test]
fn within_the_limit_every_text_stays_the_most_used_first() {
    for limit in [400, u64::MAX] {
        let store = merged(limit);
        assert_eq!(texts(&store), [12, 14, 11, 13]);
        assert_eq!(
            store.parts(NODE).map(|p| p.rows("marker")).sum::<usize>(),
            0
        );
    }
}
