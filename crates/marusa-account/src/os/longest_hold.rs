//! The longest single call into the kernel that may hold a target's mmap lock. Whoever faults or maps memory in the meantime waits
//! (PAGEMAP_SCAN walks page tables under the lock: fs/proc/task_mmu.c, `do_pagemap_scan`), so this is what reading can cost a JVM.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

static LONGEST_NS: AtomicU64 = AtomicU64::new(0);

/// Runs one call and remembers how long it took, if it is the longest.
pub fn timed<T>(call: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = call();
    LONGEST_NS.fetch_max(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
    result
}

/// Since this program started.
pub fn longest() -> Duration {
    Duration::from_nanos(LONGEST_NS.load(Ordering::Relaxed))
}
