//! Tracing of this very kernel: what is read is what the kernel's own text says, what is lost is counted, and nothing is left
//! behind, however we end.

mod left;
mod lost;
mod text;
mod threads;

use crate::common::{is_root, skip};
use marusa::act::tracing::{Tracing, Wanted};
use marusa::os::trace::{Batch, Event, tracefs};
use std::path::PathBuf;

/// A running trace. `None` says why the test is skipped.
fn tracing(wanted: &Wanted) -> Option<Tracing> {
    if !is_root() {
        skip("only root may trace");
        return None;
    }
    match Tracing::start(wanted) {
        Ok(tracing) => Some(tracing),
        Err(gap) => {
            skip(&gap.to_string());
            None
        }
    }
}

/// One whose events have the numbers of threads that we see.
fn tracing_of_all(wanted: &Wanted) -> Option<Tracing> {
    if tracefs::pid_namespace("self") != Some(tracefs::FIRST_PID_NAMESPACE) {
        skip("events have the numbers that threads have on the host");
        return None;
    }
    tracing(wanted)
}

fn directory() -> PathBuf {
    tracefs::directory().expect("tracefs")
}

/// The instances that are there now.
fn instances() -> Vec<String> {
    tracefs::instances(&directory())
}

fn own_tid() -> i32 {
    // SAFETY: a system call without arguments.
    unsafe { libc::gettid() }
}

fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn of(batch: &Batch, tid: i32) -> Vec<Event> {
    batch.events.iter().filter(|event| event.tid == tid).copied().collect()
}

/// Memory of our own, read or written once in each range of `step` bytes; how long that took.
fn touch(bytes: usize, step: usize, advice: i32, is_written: bool) -> u64 {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    const ALIGN: usize = 2 << 20;
    // SAFETY: a mapping of our own, touched within its bounds and unmapped at the end.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), bytes + ALIGN, access, kind, -1, 0);
        assert!(start != libc::MAP_FAILED);
        libc::madvise(start, bytes + ALIGN, advice);
        let aligned = start.byte_add(start.align_offset(ALIGN).min(ALIGN)).cast::<u8>();
        let began = now_ns();
        for offset in (0..bytes).step_by(step) {
            let at = aligned.add(offset);
            if is_written {
                at.write_volatile(1);
            } else {
                at.read_volatile();
            }
        }
        let took = now_ns() - began;
        libc::munmap(start, bytes + ALIGN);
        took
    }
}
