//! One budget for all memory a question takes: columns, sums, keys, spans,
//! texts, whatever the answer is collected in. The allocator counts, so nothing
//! can be forgotten; beyond the budget, or where the system refuses memory, the
//! program says so and ends with exit code 1. Without a budget it only counts.
//!
//! It is `unsafe` code, and hands every request to the allocator of the system
//! as it came.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::stderr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Counts what the system's allocator gives. A program names it:
/// `#[global_allocator] static ALLOCATOR: Counting = Counting;`
pub struct Counting;

/// Bytes in use, but for what threads have not told yet.
static USED: AtomicIsize = AtomicIsize::new(0);
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);
static MESSAGE: OnceLock<Box<[u8]>> = OnceLock::new();

/// A thread tells what it took or gave back when it comes to more than this.
const UNTOLD: isize = 1 << 16;

thread_local! {
    static PENDING: Cell<isize> = const { Cell::new(0) };
}

/// From now on the program may use so many bytes; `message` is printed on
/// standard error when they do not suffice. The first call decides.
pub fn limit(bytes: u64, message: String) {
    if MESSAGE.set(message.into_bytes().into()).is_ok() {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
        LIMIT.store(bytes, Ordering::Relaxed);
    }
}

/// Bytes that the program uses, but for what threads have not told yet, which
/// is 64 KiB each at most.
pub fn used() -> u64 {
    u64::try_from(USED.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Counts bytes taken, or with a minus given back.
#[inline]
fn count(bytes: isize) {
    // A thread that ends has no counter any more.
    let told = PENDING.try_with(|pending| {
        let sum = pending.get().wrapping_add(bytes);
        let tell = sum.unsigned_abs() > UNTOLD as usize;
        pending.set(if tell { 0 } else { sum });
        if tell { sum } else { 0 }
    });
    let told = told.unwrap_or(bytes);
    if told != 0 {
        let used = USED.fetch_add(told, Ordering::Relaxed).wrapping_add(told);
        if told > 0 && used > LIMIT.load(Ordering::Relaxed) {
            end();
        }
    }
}

/// A size as it is counted; no allocation is greater than `isize::MAX`.
#[inline]
fn signed(size: usize) -> isize {
    size as isize
}

/// Ends the program where a budget is set. Nothing here takes memory.
#[cold]
fn end() {
    if let Some(message) = MESSAGE.get() {
        let _ = rustix::io::write(stderr(), message);
        signal_hook::low_level::exit(1);
    }
}

/// What the system gave; nothing is the end where a budget is set.
#[inline]
fn given(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end();
    }
    memory
}

// SAFETY: every request goes to the allocator of the system unchanged, and what
// it returns is returned. Counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as the caller promises.
        given(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as the caller promises.
        given(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(signed(size) - signed(layout.size()));
        // SAFETY: as the caller promises.
        given(unsafe { System.realloc(memory, layout, size) })
    }
}
