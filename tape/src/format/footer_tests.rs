//! Sealed files with a damaged tail, footer, index or chunk, and footers that are read again.

use crate::error;
use crate::files::directory::{Kind, Numbers};
use crate::files::storage::{ReadFile, Storage};
use crate::format::bytes::u32_at;
use crate::format::codec;
use crate::format::entry::{CHUNK_BYTES, COLUMN, GROUP, INDEX, PACK};
use crate::format::footer::Chunks;
use crate::format::part::Part;
use crate::format::schema::RUN;
use crate::format::sealed_write::{HEAD_BYTES, TAIL_BYTES};
use crate::store::open::tests::{Rows, check, put_log, sampler};
use crate::store::sealed_read::{BlockFile, Schemas};
use crate::store::snapshot::Snapshot;
use crate::testing::fuzz::mend_sealed;
use crate::testing::fuzz_tests::{add_footer, footer, plain, with_index};
use crate::testing::memory::MemoryStorage;
use crate::testing::{Load, read, rows_difference, schema};
use crate::write::merge::{MergeJob, merge};
use crate::write::repair::{Outcome, repair};
use crate::write::seal::seal_log;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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

/// Reads every column. Damage must be an error, not a panic.
fn read_everything(store: &Snapshot) -> bool {
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
fn a_flipped_bit_of_any_byte_of_a_sealed_file_is_found_and_spares_the_rest() {
    let (bytes, expected) = sealed_bytes(4);
    for bit in (0..bytes.len() * 8).step_by(7) {
        let mut copy = bytes.clone();
        copy[bit / 8] ^= 1 << (bit % 8);
        let storage = MemoryStorage::new();
        storage.put("0000000001.tape", &copy);
        let store = Snapshot::open_storage(&storage).unwrap();
        let whole = read_everything(&store);
        // Damage in a redundant copy is found only by `verify`.
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
        let store = Snapshot::open_storage(&storage).unwrap();
        read_everything(&store);
        assert!(!store.damage().is_empty(), "end {end}");
    }
}

#[test]
fn begins_of_chunks_at_every_place_cost_no_more_than_their_number() {
    let (bytes, _) = sealed_bytes(8);
    let count = |chunks: &mut Chunks| std::iter::from_fn(|| chunks.next_valid()).count();
    let whole = count(&mut Chunks::new(&bytes));
    // Each header claims the longest possible length.
    let fakes = 20_000;
    let end = fakes * CHUNK_BYTES;
    let mut hostile = bytes[..HEAD_BYTES].to_vec();
    for number in 0..fakes {
        let mut head = bytes[HEAD_BYTES..][..CHUNK_BYTES].to_vec();
        let rest = (end - (number + 1) * CHUNK_BYTES) as u32;
        head[16..20].copy_from_slice(&rest.to_le_bytes());
        hostile.extend(head);
    }
    hostile.extend(&bytes[HEAD_BYTES..]);
    let mut chunks = Chunks::new(&hostile);
    assert_eq!(count(&mut chunks), whole);
    let most = (fakes * 8_192 + 2 * hostile.len()) as u64;
    let work = chunks.sums.work;
    assert!(work <= most, "{work} of {most}");
}

/// A file that each read opens by name.
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

    fn number(&self) -> std::io::Result<u64> {
        Ok(0)
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

/// Start and kind of each chunk of an undamaged file.
fn chunks(bytes: &[u8]) -> Vec<(usize, u8)> {
    let mut found = Vec::new();
    let mut at = HEAD_BYTES;
    while at + TAIL_BYTES < bytes.len() {
        found.push((at, bytes[at + 4]));
        at += 28 + u32_at(bytes, at + 16).unwrap() as usize;
    }
    found
}

pub(crate) fn index_of(bytes: &[u8]) -> usize {
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
    // Two files with right checksums: one chunk is invalid, the other differs from the footer.
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

fn check_whole(storage: &MemoryStorage) -> Snapshot {
    assert_eq!(verify(storage), 0);
    Snapshot::open_storage(storage).unwrap()
}

/// Start of the chunk of a column of runs.
fn run_column(bytes: &[u8], column: &str) -> Option<usize> {
    let runs = schema().with_runs();
    let (table, column) = runs.column(RUN, column).unwrap();
    let ids = [runs.tables[table].id, runs.tables[table].columns[column].id];
    let mut chunks = chunks(bytes).into_iter();
    let found = chunks.find(|(at, kind)| *kind == COLUMN && bytes[at + 6..at + 8] == ids);
    found.map(|f| f.0)
}

/// Columns of runs that are unreadable.
fn lost_columns(part: &Part) -> Vec<String> {
    let columns = part.schema().table(RUN).unwrap().columns.iter();
    let lost = columns.filter(|c| part.ints(RUN, &c.name).is_err());
    lost.map(|c| c.name.clone()).collect()
}

#[test]
fn columns_lost_with_the_index_do_not_read_as_zeros() {
    let (whole, _) = sealed_bytes(9);
    let (index, state) = (index_of(&whole), run_column(&whole, "state").unwrap());
    // Damages the column together with the index, then together with the tail.
    for (other, at_open, later) in [(index + 24, 0, 1), (whole.len() - 10, 2, 0)] {
        let mut bytes = whole.clone();
        bytes[other] ^= 1;
        bytes[state + 24] ^= 1;
        let storage = stored(&bytes);
        let store = Snapshot::open_storage(&storage).unwrap();
        let part = store.parts(9).next().unwrap();
        let error = part.ints(RUN, "state").unwrap_err();
        assert_eq!(error.kind, error::Kind::Damaged);
        assert_eq!(error.offset, Some(state as u64));
        assert!(part.ints("session", "pid").is_ok());
        // Missing columns count as lost only if they may have been in the damaged bytes.
        let lost = lost_columns(part);
        assert!(lost.contains(&"state".to_string()), "{lost:?}");
        let columns = part.schema().table(RUN).unwrap().columns.iter();
        let left_out = columns.filter(|c| run_column(&whole, &c.name).is_none());
        assert!(left_out.count() > lost.len(), "{lost:?}");
        let later_damage = store.later_damage();
        assert_eq!((store.damage().len(), later_damage.len()), (at_open, later));
        assert!(later_damage.iter().all(|d| d.offset == index as u64));
        assert_eq!(verify(&storage), 2);
        let to = MemoryStorage::new();
        let done = repair(&storage, &to, None, &schema().with_runs()).unwrap();
        let Outcome::Repaired { damage, lost } = &done[0].outcome else {
            panic!("{done:?}");
        };
        assert_eq!(damage.len(), 2);
        let is_state = |lost: &String| lost.starts_with("column state of ");
        assert!(lost.iter().any(is_state), "{lost:?}");
        // Runs without a state have no meaning, so repair keeps none.
        let store = check_whole(&to);
        let part = store.parts(9).next().unwrap();
        assert_eq!(part.rows(RUN), 0);
        assert!(part.rows("marker") > 0);
    }
}

/// All readable columns: the values of each, or `None`.
fn columns_of(bytes: &[u8]) -> Vec<Option<Vec<i64>>> {
    let store = Snapshot::open_storage(&stored(bytes)).unwrap();
    let part = store.parts(9).next().unwrap();
    let read = part.schema().tables.iter().flat_map(|table| {
        let columns = table.columns.iter();
        columns.map(|c| Some(part.ints(&table.name, &c.name).ok()?.to_vec()))
    });
    read.collect()
}

#[test]
fn no_column_reads_as_another_one_beside_a_damaged_index_or_tail() {
    let (whole, _) = sealed_bytes(11);
    let expected = columns_of(&whole);
    let columns = chunks(&whole)
        .into_iter()
        .filter(|c| [COLUMN, PACK].contains(&c.1));
    for (at, _) in columns {
        for other in [index_of(&whole) + 24, whole.len() - 10] {
            let mut bytes = whole.clone();
            bytes[at + 24] ^= 1;
            bytes[other] ^= 1;
            let found = columns_of(&bytes);
            let pairs = found.iter().zip(&expected);
            let wrong = pairs.filter(|(found, was)| found.is_some() && found != was);
            assert_eq!(wrong.count(), 0, "offset {at}");
        }
    }
}

#[test]
fn columns_in_the_footer_survive_a_lost_index() {
    let (whole, expected) = sealed_bytes(12);
    let index = index_of(&whole);
    // The chunk before the index: the rows of the dictionaries.
    let before = chunks(&whole).into_iter().rfind(|c| c.0 < index).unwrap();
    assert_eq!(before.1, GROUP);
    let mut bytes = whole.clone();
    for at in [before.0, index] {
        bytes[at + 24] ^= 1;
    }
    let store = check(&stored(&bytes), &expected);
    assert_eq!(columns_of(&bytes), columns_of(&whole));
    let later: Vec<u64> = store.later_damage().iter().map(|d| d.offset).collect();
    assert_eq!(later, [index as u64]);
    assert_eq!(verify(&stored(&bytes)), 1);
}

#[test]
fn an_index_or_footer_of_more_chunks_than_its_file_can_hold_is_not_unpacked() {
    let (whole, expected) = sealed_bytes(13);
    let entries = (whole.len() / 28 + 1) as u32;
    let more = vec![0; entries as usize * 44];
    let what = "index lists more chunks than the file can hold";
    let index = plain(&whole, index_of(&whole));
    let store = check(&stored(&with_index(&whole, &index)), &expected);
    assert_eq!(store.later_damage(), []);
    let store = check(&stored(&with_index(&whole, &more)), &expected);
    assert_eq!(store.later_damage()[0].reason, what);
    // The footer of version 1 is compressed with zstd.
    let (at, mut footer) = footer(&whole);
    let mut count = 40;
    for _ in 0..u32_at(&footer, 36).unwrap() {
        count += 8 + u32_at(&footer, count + 4).unwrap() as usize;
    }
    let all = u32_at(&footer, count).unwrap() + entries;
    footer[count..count + 4].copy_from_slice(&all.to_le_bytes());
    footer.extend(more);
    let (packed, plain_bytes) = codec::compress(&footer).unwrap();
    let bytes = add_footer(whole[..at].to_vec(), &packed, plain_bytes);
    let store = check(&stored(&bytes), &expected);
    assert_eq!(store.damage()[0].reason, what);
}

#[test]
fn files_whose_groups_interleave_tell_their_damage_once() {
    let storage = MemoryStorage::new();
    for (number, tick_base) in [(1, 1_000), (2, 20_000), (3, 10_000)] {
        let mut sampler = sampler(number, Load::default());
        sampler.slot_ms += tick_base * 1_000;
        sampler.tick_base = tick_base as u64;
        put_log(&storage, number, &mut sampler, 4);
        seal_log(&storage, number, u64::MAX).unwrap();
    }
    let job = MergeJob {
        files: (1..=2).map(Numbers::one).collect(),
        thin_ms: None,
        text_limit: u64::MAX,
    };
    merge(&storage, &job, &AtomicBool::new(false)).unwrap();
    let mut files = Vec::new();
    for numbers in [job.numbers(), Numbers::one(3)] {
        let name = numbers.name(Kind::Sealed);
        let mut bytes = storage.bytes_of(&name).unwrap();
        let at = index_of(&bytes);
        bytes[at + 24] ^= 1;
        storage.put(&name, &bytes);
        files.push(storage.directory().join(name));
    }
    let store = Snapshot::open_storage(&storage).unwrap();
    let of: Vec<_> = store
        .parts(9)
        .map(|p| p.info().file.to_path_buf())
        .collect();
    assert_eq!(of, [&files[0], &files[1], &files[0]].map(PathBuf::clone));
    assert!(store.parts(9).all(|p| p.ints(RUN, "state").is_ok()));
    let later = store.later_damage();
    let damaged: Vec<_> = later.iter().map(|d| d.file.clone()).collect();
    assert_eq!(damaged, files);
}

#[test]
fn a_file_of_a_later_version_is_reported() {
    let (mut bytes, _) = sealed_bytes(10);
    bytes[4] += 1;
    mend_sealed(&mut bytes);
    let store = Snapshot::open_storage(&stored(&bytes)).unwrap();
    let reasons: Vec<&str> = store.damage().iter().map(|d| d.reason.as_str()).collect();
    assert_eq!(reasons, ["unsupported version 4 of sealed file"]);
    assert!(store.nodes().is_empty());
}
