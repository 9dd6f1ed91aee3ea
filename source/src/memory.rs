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
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

/// Counts what the system's allocator gives. A program names it:
/// `#[global_allocator] static ALLOCATOR: Counting = Counting;`
pub struct Counting;

/// Bytes in use are counted in so many places: threads that count at once
/// mostly have different ones. The sum is exact, also when a thread ends or
/// gives back what another one took.
const PLACES: usize = 32;
static USED: [Place; PLACES] = [const { Place(AtomicIsize::new(0)) }; PLACES];
static THREADS: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);
static MESSAGE: OnceLock<Box<[u8]>> = OnceLock::new();

/// A count in a cache line of its own.
#[repr(align(64))]
struct Place(AtomicIsize);

/// A thread looks at the limit when it has taken more than this.
const LOOK: isize = 1 << 16;

thread_local! {
    /// Where this thread counts; it has none yet.
    static PLACE: Cell<usize> = const { Cell::new(PLACES) };
    /// What it has taken since it looked at the limit.
    static TAKEN: Cell<isize> = const { Cell::new(0) };
}

/// From now on the program may use so many bytes; `message` is printed on
/// standard error when they do not suffice. The first call decides.
pub fn limit(bytes: u64, message: String) {
    if MESSAGE.set(message.into_bytes().into()).is_ok() {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
        LIMIT.store(bytes, Ordering::Relaxed);
    }
}

/// Bytes that the program uses.
pub fn used() -> u64 {
    u64::try_from(sum()).unwrap_or(0)
}

/// Has the allocator give memory that nobody uses back to the system. By itself it
/// keeps what lies between what is used, in an area for each thread.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called by any thread at any time.
    unsafe {
        glibc::malloc_trim(0);
    }
}

/// Has the allocator keep memory that nobody uses, and take much at a time: for a
/// program that ends when it has answered. Pages that it gave back it would have
/// to fault in again.
pub fn keep() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (setting, bytes) in glibc::KEEP {
        // SAFETY: it only sets a number, before there are other threads.
        unsafe { glibc::mallopt(setting, bytes) };
    }
}

/// Of malloc.h; settings have these numbers in all versions.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::ffi::c_int;

    unsafe extern "C" {
        pub fn malloc_trim(pad: usize) -> c_int;
        pub fn mallopt(setting: c_int, value: c_int) -> c_int;
    }

    const M_TRIM_THRESHOLD: c_int = -1;
    const M_TOP_PAD: c_int = -2;
    const M_MMAP_THRESHOLD: c_int = -3;

    /// What is larger than the last grows where it is without being copied: tables
    /// of a million keys. Columns of an hour are smaller.
    pub const KEEP: [(c_int, c_int); 3] = [
        (M_TRIM_THRESHOLD, c_int::MAX),
        (M_TOP_PAD, 1 << 20),
        (M_MMAP_THRESHOLD, 2 << 20),
    ];
}

fn sum() -> isize {
    let counts = USED.iter().map(|place| place.0.load(Ordering::Relaxed));
    counts.fold(0, isize::wrapping_add)
}

/// Where this thread counts.
#[inline]
fn place() -> usize {
    let own = |place: &Cell<usize>| {
        if place.get() == PLACES {
            place.set(THREADS.fetch_add(1, Ordering::Relaxed) % PLACES);
        }
        place.get()
    };
    PLACE.try_with(own).unwrap_or(0)
}

/// Counts bytes taken, or with a minus given back.
#[inline]
fn count(bytes: isize) {
    USED[place()].0.fetch_add(bytes, Ordering::Relaxed);
    if bytes <= 0 {
        return;
    }
    let looks = TAKEN.try_with(|taken| {
        let sum = taken.get().wrapping_add(bytes);
        taken.set(if sum > LOOK { 0 } else { sum });
        sum > LOOK
    });
    if looks.unwrap_or(true) && sum() > LIMIT.load(Ordering::Relaxed) {
        end();
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
