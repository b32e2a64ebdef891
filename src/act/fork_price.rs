//! What a fork costs on this machine for each GiB of memory on small pages: we fork ourselves, with and without such memory. The
//! child does nothing but end.
//!
//! Who starts a process waits until the child has begun its program. So the price is that of copying the entries of the page tables
//! and of throwing the copy away, which exec does (fs/exec.c, `exec_mmap`) before it closes the pipe that the parent waits at. It
//! is a lower bound: with more memory, what describes its pages no longer fits in the caches of the processor.

use crate::base::Bytes;
use std::time::Instant;

/// Enough to stand out from what a fork of ours costs anyway, and over in some 100 ms in all.
const BYTES: usize = 128 << 20;
/// The fastest counts: whatever else runs only makes a fork slower.
const TIMES: usize = 5;

/// Milliseconds for each GiB; `None` where it could not be measured.
pub fn ms_per_gib() -> Option<f64> {
    let without = fastest_ms()?;
    let memory = Memory::new()?;
    let with = fastest_ms();
    drop(memory);
    let more = (with? - without).max(0.0);
    Some(more * (1_u64 << 30) as f64 / BYTES as Bytes as f64)
}

/// Private memory of which every page of 4 KiB has been written.
struct Memory(*mut libc::c_void);

impl Memory {
    fn new() -> Option<Memory> {
        // SAFETY: a new mapping of our own, of which every byte written lies within it.
        unsafe {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let at = libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                rights,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if at == libc::MAP_FAILED {
                return None;
            }
            let memory = Memory(at);
            libc::madvise(at, BYTES, libc::MADV_NOHUGEPAGE);
            for offset in (0..BYTES).step_by(4096) {
                at.cast::<u8>().add(offset).write_volatile(1);
            }
            Some(memory)
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing points into it any more.
        unsafe { libc::munmap(self.0, BYTES) };
    }
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
        // SAFETY: waits for our own child; its status is not used.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
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
