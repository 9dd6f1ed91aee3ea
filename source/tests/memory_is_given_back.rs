//! What a program has freed goes back to the system, also from between what it
//! still uses. A process of its own: what others free would be in the figures.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(missing_docs, clippy::unwrap_used)]

use tacho_source::memory::give_back;

/// Bytes in memory.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size()
}

#[test]
fn what_is_freed_between_what_is_used_goes_back_to_the_system() {
    const PIECES: usize = 64 << 10;
    const SIZE: usize = 1 << 10;
    let mut pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![1; SIZE]).collect();
    let mut at = 0;
    // One in 64 stays, so that the allocator cannot shorten its area.
    pieces.retain(|_| {
        at += 1;
        at % 64 == 0
    });
    let before = resident();
    give_back();
    let after = resident();
    assert!(before - after > PIECES * SIZE / 2, "{before} {after}");
    assert_eq!(pieces.len(), PIECES / 64);
}
