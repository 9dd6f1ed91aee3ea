//! Freed memory goes back to the system, even if used memory lies around it.
//! The test runs in a process of its own, because other tests would change the
//! figures.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(missing_docs, clippy::unwrap_used)]

use tacho_source::memory::trim;

/// Resident memory in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size()
}

#[test]
fn memory_freed_between_used_blocks_returns_to_the_system() {
    const PIECES: usize = 64 << 10;
    const SIZE: usize = 1 << 10;
    let mut pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![1; SIZE]).collect();
    let mut at = 0;
    // One piece in 64 stays, so that the allocator cannot shorten its arena.
    pieces.retain(|_| {
        at += 1;
        at % 64 == 0
    });
    let before = resident();
    trim();
    let after = resident();
    assert!(before - after > PIECES * SIZE / 2, "{before} {after}");
    assert_eq!(pieces.len(), PIECES / 64);
}
