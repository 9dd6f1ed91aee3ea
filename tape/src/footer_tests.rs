//! Sealed files whose tail, footer, index or chunks are damaged, and footers
//! that are read again.

use crate::block::{INDEX, TAIL_BYTES};
use crate::block_read::{BlockFile, Schemas};
use crate::error;
use crate::frame::u32_at;
use crate::fuzz::mend_sealed;
use crate::memory::MemoryStorage;
use crate::repair::{Outcome, repair};
use crate::schema::RUN;
use crate::seal::seal_log;
use crate::storage::{ReadFile, Storage};
use crate::store::Store;
use crate::store::tests::{Rows, check, put_log, sampler};
use crate::testing::{Load, read, rows_difference, schema};
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "0000000001.tape";

fn sealed_bytes(seed: u64) -> (Vec<u8>, Rows) {
    let storage = MemoryStorage::new();
    let load = Load {
        sessions: 3,
        queries: 3,
        ..Load::default()
    };
    let expected = put_log(&storage, 1, &mut sampler(seed, load), 12);
    seal_log(&storage, 1, u64::MAX).unwrap();
    (storage.bytes_of("0000000001.tape").unwrap(), expected)
}

/// Reads every column; what is damaged is an error and not a panic.
fn read_everything(store: &Store) -> bool {
    let mut whole = true;
    for part in store.parts(9) {
        for table in &part.schema().tables {
            for column in &table.columns {
                whole &= part.ints(&table.name, &column.name).is_ok();
                whole &= part.bytes(&table.name, &column.name).is_ok();
            }
        }
    }
    whole
}

fn verify(storage: &MemoryStorage) -> usize {
    let file = storage.open("0000000001.tape").unwrap();
    let block = BlockFile::open_whole(file, Path::new("x"), &mut Schemas::default());
    block.unwrap().verify().unwrap().len()
}

#[test]
fn every_flipped_bit_of_a_sealed_file_is_found_and_spares_the_rest() {
    let (bytes, expected) = sealed_bytes(4);
    for bit in (0..bytes.len() * 8).step_by(3) {
        let mut copy = bytes.clone();
        copy[bit / 8] ^= 1 << (bit % 8);
        let storage = MemoryStorage::new();
        storage.put("0000000001.tape", &copy);
        let store = Store::open_storage(&storage).unwrap();
        let whole = read_everything(&store);
        // What is stored twice hurts nobody until somebody verifies.
        let found = !whole || !store.damage().is_empty() || verify(&storage) > 0;
        assert!(found, "bit {bit}");
        if whole && store.nodes().len() == 1 {
            let (_, rows) = read(store.parts(9));
            assert_eq!(rows_difference(&rows, &expected.1), None, "bit {bit}");
        }
    }
}

#[test]
fn every_prefix_of_a_sealed_file_is_damage_and_no_panic() {
    let (bytes, _) = sealed_bytes(5);
    for end in 0..bytes.len() {
        let storage = MemoryStorage::new();
        storage.put("0000000001.tape", &bytes[..end]);
        let store = Store::open_storage(&storage).unwrap();
        read_everything(&store);
        assert!(!store.damage().is_empty(), "end {end}");
    }
}

/// A file that is opened by name for each read.
struct Named(std::sync::Mutex<Vec<u8>>);

impl ReadFile for Named {
    fn bytes(&self) -> std::io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.0.lock().unwrap();
        let bytes = &bytes[offset as usize..][..buffer.len()];
        buffer.copy_from_slice(bytes);
        Ok(buffer.len())
    }
}

#[test]
fn a_footer_is_not_read_again_from_another_file() {
    let named = Arc::new(Named(sealed_bytes(6).0.into()));
    let path = Path::new("0000000001.tape");
    let open = || {
        let block = BlockFile::open(named.clone(), path, &mut Schemas::default()).unwrap();
        block.parts().next().unwrap()
    };
    assert!(open().ints("tick", "tick").is_ok());
    let part = open();
    *named.0.lock().unwrap() = sealed_bytes(7).0;
    let error = part.ints("tick", "tick").unwrap_err();
    assert_eq!(error.kind, error::Kind::Damaged);
    assert!(open().ints("tick", "tick").is_ok());
}

#[test]
fn a_lost_footer_is_rebuilt_from_the_chunks() {
    let (mut bytes, expected) = sealed_bytes(6);
    let end = bytes.len();
    bytes[end - 10] ^= 1;
    let storage = MemoryStorage::new();
    storage.put("0000000001.tape", &bytes);
    let store = check(&storage, &expected);
    assert_eq!(store.damage().len(), 1);
}

/// Where the chunks of a whole file begin, with their kinds.
fn chunks(bytes: &[u8]) -> Vec<(usize, u8)> {
    let mut found = Vec::new();
    let mut at = crate::block::HEAD_BYTES;
    while at + TAIL_BYTES < bytes.len() {
        found.push((at, bytes[at + 4]));
        at += 28 + u32_at(bytes, at + 16).unwrap() as usize;
    }
    found
}

fn index_of(bytes: &[u8]) -> usize {
    let index: Vec<_> = chunks(bytes).into_iter().filter(|c| c.1 == INDEX).collect();
    assert_eq!(index.len(), 1);
    index[0].0
}

fn stored(bytes: &[u8]) -> MemoryStorage {
    let storage = MemoryStorage::new();
    storage.put(NAME, bytes);
    storage
}

#[test]
fn a_damaged_index_is_gathered_from_the_chunks_and_told_once() {
    let (whole, expected) = sealed_bytes(8);
    let index = index_of(&whole);
    let data = index + 24..index + 24 + u32_at(&whole, index + 16).unwrap() as usize;
    let (mut flipped, mut broken, mut other) = (whole.clone(), whole.clone(), whole.clone());
    flipped[data.start] ^= 1;
    // Those whose checksums are right: not valid, and not what the footer says.
    broken[data].fill(7);
    other[index + 20] ^= 1;
    mend_sealed(&mut broken);
    mend_sealed(&mut other);
    for bytes in [flipped, broken, other] {
        let storage = stored(&bytes);
        let store = check(&storage, &expected);
        assert_eq!((store.damage(), store.later_damage().len()), (&[][..], 1));
        let file = storage.open(NAME).unwrap();
        let block = BlockFile::open_whole(file, Path::new("x"), &mut Schemas::default()).unwrap();
        let damage = block.verify().unwrap();
        let offsets: Vec<u64> = damage.iter().map(|d| d.offset).collect();
        assert_eq!(offsets, [index as u64]);
        let to = MemoryStorage::new();
        let done = repair(&storage, &to, None, &schema().with_runs()).unwrap();
        let lost = Vec::new();
        assert_eq!(done[0].outcome, Outcome::Repaired { damage, lost });
        let (_, rows) = read(check_whole(&to).parts(9));
        assert_eq!(rows_difference(&rows, &expected.1), None);
    }
}

fn check_whole(storage: &MemoryStorage) -> Store {
    assert_eq!(verify(storage), 0);
    Store::open_storage(storage).unwrap()
}

#[test]
fn what_may_be_lost_with_the_index_does_not_read_as_zeros() {
    let (mut bytes, _) = sealed_bytes(9);
    let index = index_of(&bytes);
    let runs = schema().with_runs();
    let (table, column) = runs.column(RUN, "state").unwrap();
    let ids = [runs.tables[table].id, runs.tables[table].columns[column].id];
    let state = chunks(&bytes)
        .into_iter()
        .find(|(at, _)| bytes[at + 6..at + 8] == ids);
    let state = state.unwrap().0;
    for at in [index, state] {
        bytes[at + 24] ^= 1;
    }
    let storage = stored(&bytes);
    let store = Store::open_storage(&storage).unwrap();
    let part = store.parts(9).next().unwrap();
    let error = part.ints(RUN, "state").unwrap_err();
    assert_eq!(error.kind, error::Kind::Damaged);
    assert_eq!(error.offset, Some(state as u64));
    assert!(part.ints(RUN, "session").is_ok());
    assert!(part.ints("session", "pid").is_ok());
    assert_eq!(store.later_damage()[0].offset, index as u64);
    assert_eq!(verify(&storage), 2);
}

#[test]
fn a_file_of_a_later_version_is_told() {
    let (mut bytes, _) = sealed_bytes(10);
    bytes[4] += 1;
    mend_sealed(&mut bytes);
    let store = Store::open_storage(&stored(&bytes)).unwrap();
    let reasons: Vec<&str> = store.damage().iter().map(|d| d.reason.as_str()).collect();
    assert_eq!(reasons, ["sealed file of version 3"]);
    assert!(store.nodes().is_empty());
}
