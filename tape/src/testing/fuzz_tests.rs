//! Every parser of bytes on mutated inputs (`fuzz.rs`): no panic, no endless loop, and no more
//! memory than the size of the input justifies.

use crate::crc::crc32c;
use crate::files::directory::{Kind, Numbers, file_name};
use crate::files::storage::Storage;
use crate::format::codec;
use crate::format::coding;
use crate::format::entry::{FOOTER, INDEX};
use crate::format::footer_tests::index_of;
use crate::format::frame::{Frame, FrameBuilder, HELLO};
use crate::format::hello;
use crate::format::ingest::Ingest;
use crate::format::log::{LogHeader, Scan, Stretch, read_log};
use crate::format::packs::Pack;
use crate::format::part::Identity;
use crate::format::pipe::FrameBuffer;
use crate::format::schema::Schema;
use crate::query::{self, Field, QueryResult, Sink, Value};
use crate::store::sealed_read::{BlockFile, Schemas};
use crate::store::snapshot::Snapshot;
use crate::testing::fuzz::{Fuzz, keep, mend_frames, mend_log, mend_sealed};
use crate::testing::memory::MemoryStorage;
use crate::testing::{Arguments, Load, Sampler, log_bytes, run, schema};
use crate::write::clock::Now;
use crate::write::marks::Marks;
use crate::write::merge::{MergeJob, merge};
use crate::write::repair::{Outcome, Repaired, repair};
use crate::write::seal::seal_log;
use crate::write::writer::Writer;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const LOG: &str = "0000000001.open";
const TAPE: &str = "0000000001.tape";

fn load(ticks_per_frame: usize) -> Load {
    Load {
        sessions: 3,
        queries: 3,
        ticks_per_frame,
        ..Load::default()
    }
}

/// A hello frame and some data frames.
fn frames(ticks_per_frame: usize, n: usize) -> Vec<Vec<u8>> {
    let mut sampler = Sampler::new(1, load(ticks_per_frame));
    let meta = [("retention_size_mb", "1"), ("file_mode", "0640")];
    let mut frames = vec![sampler.hello(&meta)];
    frames.extend((0..n).map(|_| sampler.frame().0));
    frames
}

fn log(ticks_per_frame: usize, n: usize) -> Vec<u8> {
    let header = LogHeader {
        incarnation: 1,
        first_sequence: 1,
        ..LogHeader::default()
    };
    log_bytes(&header, &frames(ticks_per_frame, n))
}

/// A sealed file with one group, and one with several.
fn sealed() -> Vec<Vec<u8>> {
    let storage = MemoryStorage::new();
    for number in 1..=3 {
        storage.put(&file_name(number, Kind::Log), &log(number as usize, 4));
        seal_log(&storage, number, u64::MAX).unwrap();
    }
    let single = storage.bytes_of(TAPE).unwrap();
    let many = crate::write::merge_tests::sealed_files(3, 2, 3).0;
    let job = MergeJob {
        files: (1..=2).map(Numbers::one).collect(),
        thin_ms: None,
        text_limit: 100,
    };
    merge(&many, &job, &AtomicBool::new(false)).unwrap();
    let merged = many.bytes_of(&job.numbers().name(Kind::Sealed)).unwrap();
    vec![single, merged]
}

struct Count(usize);

impl Sink for Count {
    fn begin(&mut self, _: &[Field]) -> QueryResult<()> {
        Ok(())
    }

    fn row(&mut self, _: Vec<Value>) -> QueryResult<()> {
        self.0 += 1;
        Ok(())
    }
}

/// A question that reads the runs, and one that totals answer.
fn specs(catalog: &Schema) -> [Arguments<'_>; 2] {
    let mut scan = Arguments::new(catalog, 1_790_000_100_000_000);
    scan.since_us = Some(1_789_999_980_000_000);
    scan.n = Some(5);
    let mut plain = scan.clone();
    scan.scope = Some("all".into());
    scan.dimension = Some("wait_event".into());
    plain.bucket_us = Some(60_000_000);
    plain.dimension = Some("query_id".into());
    [scan, plain]
}

/// Reads every column and asks every function; returns the name of the outcome.
fn read_all(store: &Snapshot, catalog: &Schema) -> String {
    let mut outcome = format!("{} ", store.damage().len());
    let node = store.nodes().first().map(|n| n.id);
    for part in node.iter().flat_map(|&n| store.parts(n)) {
        for table in &part.schema().tables {
            for column in &table.columns {
                let ints = part.ints(&table.name, &column.name);
                let bytes = part.bytes(&table.name, &column.name);
                let errors = [ints.err(), bytes.err()];
                for error in errors.into_iter().flatten() {
                    outcome.push_str(&error.message);
                }
            }
        }
    }
    for function in query::list() {
        for spec in specs(catalog) {
            let mut count = Count(0);
            let done = run(function.name, &spec, store, &mut count);
            let error = done.err().map(|e| e.message).unwrap_or_default();
            outcome.push_str(&format!("{}{error}", count.0.min(3)));
        }
    }
    outcome
}

#[test]
fn fuzz_frames() {
    let seeds = vec![frames(1, 3).concat(), frames(3, 2).concat()];
    let fuzz = Fuzz {
        name: "frames",
        seeds,
        words: &[],
        mend: mend_frames,
    };
    fuzz.run(|bytes| {
        let mut ingest: Option<Ingest> = None;
        let mut outcome = String::new();
        for stretch in Scan::new(bytes) {
            let Stretch::Frame(frame) = stretch else {
                continue;
            };
            let sections = match frame.all_sections() {
                Ok(sections) => sections,
                Err(error) => {
                    outcome.push_str(&error.message);
                    continue;
                }
            };
            hello::read_meta(&sections);
            match (&mut ingest, hello::read_schema(&sections)) {
                (None, Ok(schema)) => ingest = Ingest::new(schema, 7).ok(),
                (Some(ingest), _) => ingest.sections(&sections, frame.header.base_ms),
                (None, Err(error)) => outcome.push_str(&error.message),
            }
        }
        if let Some(ingest) = ingest {
            let part = ingest.finish(Identity::default());
            let info = part.info();
            let counts = (info.dropped_rows.min(3), info.lost_definitions.min(3));
            outcome.push_str(&format!("{} {counts:?}", part.rows("run").min(9)));
        }
        outcome
    });
}

#[test]
fn fuzz_hello() {
    let fuzz = Fuzz {
        name: "hello",
        seeds: vec![frames(1, 0).concat()[40..].to_vec()],
        words: &["name", "sample", "tick", "session", "marker", "text"],
        mend: keep,
    };
    fuzz.run(|payload| {
        let mut frame = FrameBuilder::new(HELLO, 1, 1, 0).finish();
        frame.truncate(40);
        frame[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        frame[12..16].copy_from_slice(&3_u32.to_le_bytes());
        frame.extend_from_slice(payload);
        frame.extend_from_slice(&crc32c(&frame).to_le_bytes());
        let Ok(Some(frame)) = Frame::parse(&frame) else {
            return String::new();
        };
        let sections = frame.all_sections();
        let schema = sections.and_then(|s| hello::read_schema(&s));
        let made = schema.and_then(|s| Ingest::new(s, 0));
        made.map_or_else(|e| e.message, |_| "schema".into())
    });
}

#[test]
fn fuzz_log() {
    let catalog = schema();
    let fuzz = Fuzz {
        name: "log",
        seeds: vec![log(1, 3), log(4, 2)],
        words: &[],
        mend: mend_log,
    };
    fuzz.run(|bytes| {
        let storage = MemoryStorage::new();
        storage.put(LOG, bytes);
        let store = Snapshot::open_storage(&storage).unwrap();
        let read = read_log(bytes, u64::MAX);
        let outcome = read.map_or_else(|e| e.message, |c| format!("{}", c.damage.len()));
        let sealed = seal_log(&storage, 1, u64::MAX).map_err(|e| e.message);
        let sealed = sealed.map_or_else(|e| e, |s| s.runs.min(9).to_string());
        format!("{outcome} {sealed} {}", read_all(&store, &catalog))
    });
}

#[test]
fn fuzz_sealed() {
    let catalog = schema();
    let known = schema().with_runs();
    let fuzz = Fuzz {
        name: "sealed",
        seeds: sealed(),
        words: &[],
        mend: mend_sealed,
    };
    fuzz.run(|bytes| {
        let storage = MemoryStorage::new();
        storage.put(TAPE, bytes);
        let store = Snapshot::open_storage(&storage).unwrap();
        let outcome = read_all(&store, &catalog);
        let to = MemoryStorage::new();
        let repaired = repair(&storage, &to, None, &known).unwrap();
        let kept = Snapshot::open_storage(&to).unwrap();
        let anew = |r: &Repaired| matches!(r.outcome, Outcome::Repaired { .. });
        assert!(kept.damage().is_empty() || !repaired.iter().any(anew));
        outcome
    });
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The decompressed bytes of a chunk.
pub(crate) fn plain(file: &[u8], at: usize) -> Vec<u8> {
    let data = at + 24..at + 24 + number(file, at + 16) as usize;
    codec::decompress(&file[data], number(file, at + 20)).unwrap()
}

/// Offset of the footer, and its bytes.
pub(crate) fn footer(file: &[u8]) -> (usize, Vec<u8>) {
    let tail = &file[file.len() - 20..];
    let at = u64::from_le_bytes(tail[8..16].try_into().unwrap()) as usize;
    assert_eq!(number(file, at + 20), 0);
    (at, file[at + 24..file.len() - 24].to_vec())
}

/// Adds a chunk with a wrong checksum. `plain_bytes` is the size before compression.
fn add_chunk(file: &mut Vec<u8>, kind: u8, data: &[u8], plain_bytes: u32) {
    file.extend_from_slice(&[0xF1, 0x54, 0x43, 0x4B, kind, 0, 0, 0]);
    for field in [0, 0, data.len() as u32, plain_bytes] {
        file.extend_from_slice(&field.to_le_bytes());
    }
    file.extend_from_slice(data);
    file.extend_from_slice(&[0; 4]);
}

/// Adds footer and tail, and corrects the checksums.
pub(crate) fn add_footer(mut file: Vec<u8>, footer: &[u8], plain_bytes: u32) -> Vec<u8> {
    let at = file.len();
    add_chunk(&mut file, FOOTER, footer, plain_bytes);
    let length = (file.len() - at) as u32;
    file.extend_from_slice(&[0xF1, 0x54, 0x43, 0x45]);
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(&(at as u64).to_le_bytes());
    file.extend_from_slice(&[0; 4]);
    mend_sealed(&mut file);
    file
}

/// The file with its index replaced by `plain`.
pub(crate) fn with_index(file: &[u8], plain: &[u8]) -> Vec<u8> {
    let (_, mut footer) = footer(file);
    // The index has the last entry, because its chunk is written just before the footer.
    let entry = footer.len() - 44;
    assert_eq!(footer[entry], INDEX);
    let at = number(&footer, entry + 20) as usize;
    let mut file = file[..at].to_vec();
    let (packed, plain_bytes) = codec::compress(plain).unwrap();
    add_chunk(&mut file, INDEX, &packed, plain_bytes);
    let bytes = packed.len() as u32;
    footer[entry + 12..entry + 16].copy_from_slice(&bytes.to_le_bytes());
    footer[entry + 16..entry + 20].copy_from_slice(&plain_bytes.to_le_bytes());
    add_footer(file, &footer, 0)
}

/// Reads a whole file.
fn read_file(file: &[u8], catalog: &Schema) -> String {
    let storage = MemoryStorage::new();
    storage.put(TAPE, file);
    let open = [BlockFile::open, BlockFile::open_whole];
    for open in open {
        let opened = storage.open(TAPE).unwrap();
        if let Ok(block) = open(opened, Path::new(TAPE), &mut Schemas::default()) {
            block.verify().unwrap();
        }
    }
    read_all(&Snapshot::open_storage(&storage).unwrap(), catalog)
}

#[test]
fn fuzz_footer() {
    let catalog = schema();
    let file = sealed().swap_remove(1);
    let (at, before) = footer(&file);
    let fuzz = Fuzz {
        name: "footer",
        seeds: vec![before],
        words: &[],
        mend: keep,
    };
    fuzz.run(|footer| read_file(&add_footer(file[..at].to_vec(), footer, 0), &catalog));
}

#[test]
fn fuzz_pack() {
    let file = sealed().remove(0);
    let block = |file: &[u8]| {
        let storage = MemoryStorage::new();
        storage.put(TAPE, file);
        let file = storage.open(TAPE).unwrap();
        BlockFile::open_whole(file, Path::new(TAPE), &mut Schemas::default()).unwrap()
    };
    let packs = block(&file).packs();
    assert!(packs.len() >= 4);
    let seeds = packs
        .iter()
        .map(|entry| plain(&file, entry.offset as usize));
    let fuzz = Fuzz {
        name: "pack",
        seeds: seeds.collect(),
        words: &[],
        mend: keep,
    };
    fuzz.run(|bytes| {
        let Some(pack) = Pack::parse(bytes.to_vec(), &packs[0]) else {
            return "no pack".into();
        };
        let mut outcome = String::new();
        for (entry, data) in pack.columns().take(9) {
            let rows = entry.rows.min(1 << 12) as usize;
            let error = match entry.coding {
                coding::STRINGS => codec::decode_strings(data, 0, rows).err(),
                _ => codec::decode_values(entry.coding, data, rows).err(),
            };
            outcome.push_str(&error.map_or_else(String::new, |e| e.message));
        }
        outcome
    });
}

#[test]
fn fuzz_index() {
    let catalog = schema();
    let file = sealed().swap_remove(1);
    let index = plain(&file, index_of(&file));
    let fuzz = Fuzz {
        name: "index",
        // The second seed claims more chunks than its file can have.
        seeds: vec![index, vec![0; 1 << 20]],
        words: &[],
        mend: keep,
    };
    fuzz.run(|plain| read_file(&with_index(&file, plain), &catalog));
}

#[test]
fn fuzz_column() {
    let column = |values: &[i64]| {
        let mut coded = Vec::new();
        codec::encode_paged(&mut coded, values).unwrap();
        coded
    };
    let paged: Vec<i64> = (0..4_200).map(|i| i * i % 5).collect();
    let steps: Vec<i64> = (0..400).map(|i| i * i % 91).collect();
    let spans: Vec<i64> = (0..400).map(|i| i / 60 % 4).collect();
    let minutes: Vec<i64> = (0..400).map(|i| i % 60).collect();
    let wild: Vec<i64> = (0..50).map(|i| i64::MAX / (i + 1)).collect();
    let (strings, _) = codec::compress(b"\x01\0\0\0\x02\0\0\0abc").unwrap();
    let fuzz = Fuzz {
        name: "column",
        seeds: vec![
            column(&steps),
            column(&spans),
            column(&minutes),
            column(&wild),
            column(&[5; 9]),
            column(&paged),
            strings,
        ],
        words: &[],
        mend: keep,
    };
    fuzz.run(|bytes| {
        let mut outcome = String::new();
        for rows in [2, 9, 50, 400, 4_200] {
            let ints = codec::decode_ints(bytes, rows).map(|v| v.len());
            if let Some((coding, data)) = bytes.split_first() {
                let some = codec::decode_rows(*coding, data, rows, 1..rows / 2);
                assert!(some.is_err() || some.is_ok_and(|some| some.len() == rows / 2 - 1));
            }
            let strings = codec::decode_strings(bytes, 11, rows).map(|s| s.ends.len());
            for read in [ints, strings] {
                outcome.push_str(&read.map_or_else(|e| e.message, |n| n.to_string()));
            }
        }
        outcome
    });
}

#[test]
fn fuzz_pipe() {
    let fuzz = Fuzz {
        name: "pipe",
        seeds: vec![frames(1, 6).concat(), frames(5, 2).concat()],
        words: &[],
        mend: mend_frames,
    };
    fuzz.run(|bytes| {
        let storage = MemoryStorage::new();
        let mut writer = Writer::open(Arc::new(storage.clone()), 7).unwrap();
        let mut buffer = FrameBuffer::default();
        let mut codes = String::new();
        for (step, piece) in bytes.chunks(700).enumerate() {
            buffer.extend(piece);
            while buffer.find() {
                let now = Now {
                    wall_ms: 1_790_000_000_000 + step as i64 * 1_000,
                    mono_ms: step as i64 * 1_000,
                };
                let frame = buffer.frame().unwrap();
                codes.push_str(&format!("{:?}", writer.push(&frame, now)));
                writer.flush(now, true);
                buffer.advance();
            }
        }
        for job in writer.seal_jobs() {
            let sealed = seal_log(&storage, job.number, job.until_sequence);
            writer.sealed(job, sealed);
        }
        let store = Snapshot::open_storage(&storage).unwrap();
        let messages = writer.messages().len().min(9);
        format!(
            "{codes} {messages} {} {}",
            store.damage().len(),
            store.nodes().len()
        )
    });
}

#[test]
fn fuzz_marker() {
    let name = "marker-00000000000000aa";
    let fuzz = Fuzz {
        name: "marker",
        seeds: vec![b"tacho-marker-1 1790000000000\ndeploy \xe2\x9a\x91 1.4".to_vec()],
        words: &["tacho-marker-1 ", "\n", "-9223372036854775808", "\u{202e}"],
        mend: keep,
    };
    let now = Now {
        wall_ms: 1_790_000_000_000,
        mono_ms: 5_000,
    };
    fuzz.run(|bytes| {
        let storage = MemoryStorage::new();
        storage.put(name, bytes);
        let mut marks = Marks::default();
        let messages = marks.read_new(&storage, &schema(), now);
        let recorded = marks.markers().count();
        assert_eq!(
            (recorded, messages.len()),
            if recorded == 1 { (1, 0) } else { (0, 1) }
        );
        // A marker enters the history exactly if its file is valid.
        assert_eq!(storage.bytes_of(name).is_some(), recorded == 1);
        marks.written();
        marks.synced(&storage);
        assert!(storage.bytes_of(name).is_none());
        format!(
            "{recorded} {} {}",
            bytes.len() > 1_100,
            bytes.contains(&b'\n')
        )
    });
}
