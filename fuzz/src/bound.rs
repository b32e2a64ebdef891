//! Counts what is allocated, so that an input that takes more memory than it may is a finding. Reservations are left out: the
//! kernel gives their pages when they are touched, and the limit that fuzz/run sets on resident memory has those.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const RESERVATION_BYTES_MIN: usize = 256 << 20;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn counted(layout: Layout) -> usize {
    if layout.size() < RESERVATION_BYTES_MIN { layout.size() } else { 0 }
}

fn taken(layout: Layout) {
    let bytes = counted(layout);
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    let limit = LIMIT.load(Relaxed);
    if live > limit {
        // The message takes memory, too.
        LIMIT.store(usize::MAX, Relaxed);
        panic!("{live} bytes are allocated, {limit} may be");
    }
}

// SAFETY: all is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(counted(layout), Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Runs `run` with at most `bytes` more memory than the process has now.
pub fn within<T>(bytes: u64, run: impl FnOnce() -> T) -> T {
    let limit = LIVE.load(Relaxed).saturating_add(usize::try_from(bytes).unwrap_or(usize::MAX));
    LIMIT.store(limit, Relaxed);
    let done = run();
    LIMIT.store(usize::MAX, Relaxed);
    done
}
