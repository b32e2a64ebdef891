//! What a collapse would do and wait for while the target waits, done before.
//!
//! A page that has been touched: in a virtual machine the host may back a free page of the guest only when that is first
//! touched. MADV_COLLAPSE touches the new huge page in the copy, while it holds the lock of the target's address space: 512
//! faults of the host then make 5 ms of a copy that takes 0.4 ms (measured, Linux 6.18 below Firecracker). So the page is
//! touched before, by us: a huge page of our own is made, filled and given back, and the next one that this CPU asks for is
//! the one given back last (mm/page_alloc.c, the lists of each CPU and of the buddy allocator are stacks).
//!
//! Pages on their way to the lists of reclaim: each call waits, with the same lock in hand, until every CPU has put its few
//! there (mm/khugepaged.c, `madvise_collapse`: `lru_add_drain_all`), which takes a worker of the kernel on each of them, and
//! so tens of milliseconds where all are busy. A call for a huge page of our own that is one already does that and nothing
//! else; right after it there is hardly anything left to be waited for.

use super::advise::MADV_COLLAPSE;
use super::block_bytes;

fn length() -> usize {
    3 * block_bytes() as usize
}

/// Our own room for two huge pages: one that is kept, and one that is there only while a page is prepared.
pub(super) struct Warm {
    mapping: *mut libc::c_void,
    block: *mut u8,
    kept: *mut u8,
    /// The CPUs that this thread may run on, where they could be read.
    cpus: Option<libc::cpu_set_t>,
}

/// While it lives, this thread stays on the CPU that the page was given back on.
pub(super) struct OnThisCpu<'a> {
    cpus: Option<&'a libc::cpu_set_t>,
}

impl Warm {
    /// `None`: there is no room. Then all is done when it is needed.
    pub fn new() -> Option<Warm> {
        let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping of our own, at an address that the kernel chooses.
        let mapping = unsafe { libc::mmap(std::ptr::null_mut(), length(), rights, kind, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return None;
        }
        let block = mapping.cast::<u8>();
        let skip = block.align_offset(block_bytes() as usize);
        if skip > block_bytes() as usize {
            return None;
        }
        // SAFETY: the mapping is three blocks long, so two whole ones begin at most one block behind its start; one byte of
        // the second is written, the kernel fills the rest.
        let (block, kept) = unsafe {
            let block = block.add(skip);
            let kept = block.add(block_bytes() as usize);
            kept.write_volatile(1);
            libc::madvise(kept.cast(), block_bytes() as usize, MADV_COLLAPSE);
            (block, kept)
        };
        // SAFETY: an all-zero set is one to write to, and its size is given.
        let (cpus, read) = unsafe {
            let mut cpus: libc::cpu_set_t = std::mem::zeroed();
            let read = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut cpus);
            (cpus, read)
        };
        Some(Warm { mapping, block, kept, cpus: (read == 0).then_some(cpus) })
    }

    /// Has the kernel touch a huge page, gives it back, and has every CPU put its pages on the lists.
    pub fn prepare(&self) -> OnThisCpu<'_> {
        let stays = OnThisCpu::start(self.cpus.as_ref());
        // SAFETY: the block is ours and nothing refers to it; one byte of it is written, the kernel fills the rest, and then
        // it is emptied; the kept one stays as it is. That this may fail does no harm.
        unsafe {
            self.block.write_volatile(1);
            libc::madvise(self.block.cast(), block_bytes() as usize, MADV_COLLAPSE);
            libc::madvise(self.block.cast(), block_bytes() as usize, libc::MADV_DONTNEED);
            libc::madvise(self.kept.cast(), block_bytes() as usize, MADV_COLLAPSE);
        }
        stays
    }
}

impl Drop for Warm {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `new`; nothing refers to it any more.
        unsafe { libc::munmap(self.mapping, length()) };
    }
}

impl OnThisCpu<'_> {
    fn start(cpus: Option<&libc::cpu_set_t>) -> OnThisCpu<'_> {
        // SAFETY: asks for a number.
        let cpu = unsafe { libc::sched_getcpu() };
        let one = usize::try_from(cpu).ok().filter(|cpu| *cpu < libc::CPU_SETSIZE as usize);
        let (Some(all), Some(one)) = (cpus, one) else { return OnThisCpu { cpus: None } };
        // SAFETY: an all-zero set is one to write to, `one` is within it, and its size is given.
        let stays = unsafe {
            let mut only: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(one, &mut only);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &only)
        };
        OnThisCpu { cpus: (stays == 0).then_some(all) }
    }
}

impl Drop for OnThisCpu<'_> {
    fn drop(&mut self) {
        if let Some(all) = self.cpus {
            // SAFETY: the set is the one that the kernel gave, of the size that is given.
            unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), all) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Addr, Range};
    use crate::os::look::look;

    #[test]
    fn nothing_is_kept_and_the_thread_may_run_where_it_might_before() {
        let warm = Warm::new().expect("room");
        let at = Addr(warm.block as u64);
        assert!(at.is_aligned(block_bytes()));
        drop(warm.prepare());
        let pagemap = std::fs::File::open("/proc/self/pagemap").expect("my own");
        assert_eq!(look(&pagemap, Range::sized(at, block_bytes())).map(|look| look.resident), Ok(0));
        let now = Warm::new().expect("room").cpus.expect("a set");
        // SAFETY: both sets are initialised.
        assert!(unsafe { libc::CPU_EQUAL(&now, warm.cpus.as_ref().expect("a set")) });
    }
}
