//! What a fork costs on this machine for each GiB of memory on small pages: we fork ourselves, with and without such memory. The
//! child does nothing but end.
//!
//! Who starts a process waits until the child has begun its program. So the price is that of copying the entries of the page tables
//! and of throwing the copy away, which exec does (fs/exec.c, `exec_mmap`) before it closes the pipe that the parent waits at. It
//! is a lower bound: with more memory, what describes its pages no longer fits in the caches of the processor.

use crate::base::Bytes;
use memmap2::{Advice, MmapMut};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::time::Instant;

/// Enough to stand out from what a fork of ours costs anyway, and over in some 100 ms in all.
const BYTES: usize = 128 << 20;
/// The fastest counts: whatever else runs only makes a fork slower.
const TIMES: usize = 5;

/// Milliseconds for each GiB; `None` where it could not be measured.
pub fn ms_per_gib() -> Option<f64> {
    let without = fastest_ms()?;
    let memory = touched()?;
    let with = fastest_ms();
    drop(memory);
    let more = (with? - without).max(0.0);
    Some(more * (1_u64 << 30) as f64 / BYTES as Bytes as f64)
}

/// Private memory of which every page of 4 KiB has been written.
fn touched() -> Option<MmapMut> {
    let mut memory = MmapMut::map_anon(BYTES).ok()?;
    let _ = memory.advise(Advice::NoHugePage);
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    Some(memory)
}

/// Until the child is gone, and the copy with it.
fn fastest_ms() -> Option<f64> {
    let one = |_| {
        let started = Instant::now();
        // SAFETY: the child calls nothing but _exit, which is safe after a fork of a process with threads.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above.
            unsafe { libc::_exit(0) };
        }
        if child < 0 {
            return None;
        }
        let _ = waitpid(Pid::from_raw(child), WaitOptions::empty());
        Some(started.elapsed().as_secs_f64() * 1000.0)
    };
    (0..TIMES).filter_map(one).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gibibyte_costs_between_a_millisecond_and_seconds() {
        let price = ms_per_gib().expect("fork works here");
        assert!((1.0..10_000.0).contains(&price), "{price} ms");
    }
}
