//! One budget for all memory a question takes: columns, sums, keys, spans, texts,
//! and the collected answer. The allocator counts, so nothing can be forgotten.
//! Beyond the budget, or if the system refuses memory, the program prints a
//! message and ends with exit code 1. Without a budget it only counts.
//!
//! This is `unsafe` code. It hands every request unchanged to the system's
//! allocator.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::stderr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

/// An allocator that counts the bytes that the system's allocator gives. A program names it:
/// `#[global_allocator] static ALLOCATOR: Counting = Counting;`
pub struct Counting;

/// Number of counters of bytes in use. Threads are spread over them, so that
/// threads that count at once mostly use different ones. Only the sum of all
/// counters has a meaning. It is exact even if a thread ends, or frees memory of
/// another thread.
const PLACES: usize = 32;
static USED: [Place; PLACES] = [const { Place(AtomicIsize::new(0)) }; PLACES];
static THREADS: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);
static MESSAGE: OnceLock<Box<[u8]>> = OnceLock::new();

/// A counter in a cache line of its own.
#[repr(align(64))]
struct Place(AtomicIsize);

/// A thread compares the sum with the limit each time it has taken more bytes than this.
const LOOK: isize = 1 << 16;

thread_local! {
    /// Index of this thread's counter; `PLACES` = none yet.
    static PLACE: Cell<usize> = const { Cell::new(PLACES) };
    /// Bytes taken since the thread compared the sum with the limit.
    static TAKEN: Cell<isize> = const { Cell::new(0) };
}

/// Sets the memory limit, in bytes. If it is exceeded, `message` is printed on
/// standard error. Only the first call counts.
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

/// Returns free memory to the system. By itself the allocator keeps free memory
/// that lies between used pieces, in one arena per thread.
pub fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: any thread may call it at any time.
    unsafe {
        glibc::malloc_trim(0);
    }
}

/// Makes the allocator keep free memory and take large pieces from the system. This suits a program
/// that ends after its answer: pages given back would only have to be faulted in again.
pub fn keep() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (setting, bytes) in glibc::KEEP {
        // SAFETY: it only sets a number, before there are other threads.
        unsafe { glibc::mallopt(setting, bytes) };
    }
}

/// From malloc.h; these settings have the same numbers in all versions.
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

    /// Pieces larger than the last value grow in place instead of being copied:
    /// tables of a million keys. An hour's columns are smaller.
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

/// Index of this thread's counter.
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

/// Counts bytes taken; a negative number counts bytes freed.
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

/// A size as a signed number; no allocation is larger than `isize::MAX`.
#[inline]
fn signed(size: usize) -> isize {
    size as isize
}

/// Prints the message and ends the program, if there is a budget. This must not allocate.
#[cold]
fn end() {
    if let Some(message) = MESSAGE.get() {
        let _ = rustix::io::write(stderr(), message);
        signal_hook::low_level::exit(1);
    }
}

/// The memory that the system gave. If it gave none and there is a budget, the
/// program ends.
#[inline]
fn checked(memory: *mut u8) -> *mut u8 {
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
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as the caller promises.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(signed(size) - signed(layout.size()));
        // SAFETY: as the caller promises.
        checked(unsafe { System.realloc(memory, layout, size) })
    }
}
