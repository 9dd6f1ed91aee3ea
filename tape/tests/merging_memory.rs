//! Merging holds each definition once. The allocator of this test counts the memory.
#![allow(unsafe_code, clippy::unwrap_used, missing_docs)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tacho_tape::files::directory::Numbers;
use tacho_tape::files::storage::OsStorage;
use tacho_tape::format::sealed_write::FrameRange;
use tacho_tape::write::merge::{MergeJob, merge};
use tacho_tape::write::seal::write_sealed;
use tacho_tape::{Identity, PartBuilder, Snapshot};

/// Number of sealed files, and of sessions in each. Each file has one tick.
const FILES: u64 = 72;
const SESSIONS: u64 = 1_000;
/// Number of a session's columns that are not zero, with eight bytes each.
const COLUMNS: u64 = 10;

/// Maximum memory for a session in bytes: its columns and an eighth for growth, its place in the
/// hash table while that grows, and its newest run.
const A_SESSION: u64 = COLUMNS * 8 * 9 / 8 + 32 + 27;
/// Maximum memory for all else in bytes: one source file, and the compressors.
const THE_REST: u64 = 4 << 20;

/// Counts the used memory and its maximum.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn count(more: usize, less: usize) {
    let before = USED.fetch_add(more, Ordering::Relaxed);
    PEAK.fetch_max(before + more, Ordering::Relaxed);
    USED.fetch_sub(less, Ordering::Relaxed);
}

// SAFETY: every request goes to the allocator of the system unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(
            size.saturating_sub(layout.size()),
            layout.size().saturating_sub(size),
        );
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, layout, size) }
    }
}

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file with `sessions` sessions that no other file has, one sample each.
fn file(number: u64, sessions: u64) -> PartBuilder {
    let schema = tacho_tape::catalog::samples();
    let mut b = PartBuilder::new(Arc::new(schema.with_runs())).unwrap();
    let name = b.name("app").unwrap();
    let tick = number as i64;
    let row = [
        ("tick", tick),
        ("slot_time", tick * 1_000),
        ("interval_ms", 1_000),
    ];
    b.row("tick", &row).unwrap();
    for n in 0..sessions {
        let pid = (number * sessions + n) as i64;
        let row = [
            ("pid", pid),
            ("backend_start", pid * 1_000),
            ("backend_type", name),
            ("category", 1),
            ("database_oid", 5),
            ("database", name),
            ("user_oid", 10),
            ("username", name),
            ("application", name),
            ("client_addr", name),
        ];
        assert_eq!(row.len() as u64, COLUMNS);
        let session = b.intern("session", &row).unwrap();
        b.sample(number, session, &[("state", 1)]).unwrap();
    }
    b
}

fn sealed_files(files: u64, sessions: u64) -> (Scratch, OsStorage) {
    let path = std::env::temp_dir().join(format!("tacho-merging-{}", std::process::id()));
    let scratch = Scratch(path);
    OsStorage::create_directory(&scratch.0).unwrap();
    let storage = OsStorage::new(&scratch.0);
    for number in 1..=files {
        let builder = file(number, sessions);
        let (identity, frames) = (Identity::default(), FrameRange::default());
        write_sealed(&storage, number, builder, identity, frames).unwrap();
    }
    (scratch, storage)
}

fn sessions_in(storage: &OsStorage) -> usize {
    let store = Snapshot::open_storage(storage).unwrap();
    let part = store.parts(0).next().unwrap();
    part.rows("session")
}

#[test]
fn merging_holds_each_definition_once() {
    let (_scratch, storage) = sealed_files(FILES, SESSIONS);
    let job = MergeJob {
        files: (1..=FILES).map(Numbers::one).collect(),
        thin_ms: None,
        text_limit: u64::MAX,
    };
    let before = USED.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    merge(&storage, &job, &AtomicBool::new(false))
        .unwrap()
        .unwrap();
    let peak = (PEAK.load(Ordering::Relaxed) - before) as u64;
    assert_eq!(sessions_in(&storage) as u64, FILES * SESSIONS);
    let most = FILES * SESSIONS * A_SESSION + THE_REST;
    assert!(peak <= most, "{peak} bytes, at most {most}");
}
