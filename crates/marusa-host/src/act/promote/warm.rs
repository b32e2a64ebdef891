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
use memmap2::MmapMut;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Our own room for two huge pages: one that is kept, and one that is there only while a page is prepared.
pub(super) struct Warm {
    _mapping: MmapMut,
    block: *mut u8,
    kept: *mut u8,
    /// The CPUs that this thread may run on, where they could be read.
    cpus: Option<CpuSet>,
}

/// While it lives, this thread stays on the CPU that the page was given back on.
pub(super) struct OnThisCpu<'a> {
    cpus: Option<&'a CpuSet>,
}

impl Warm {
    /// `None`: there is no room. Then all is done when it is needed.
    pub fn new() -> Option<Warm> {
        let bytes = block_bytes() as usize;
        // Two whole blocks begin at most one block behind the start.
        let mut mapping = MmapMut::map_anon(3 * bytes).ok()?;
        let skip = mapping.as_ptr().align_offset(bytes);
        let (block, kept) = mapping.get_mut(skip..skip.checked_add(2 * bytes)?)?.split_at_mut(bytes);
        // The kernel fills the rest.
        kept[0] = 1;
        let (block, kept) = (block.as_mut_ptr(), kept.as_mut_ptr());
        // SAFETY: the block is ours, and stays as it is.
        unsafe { libc::madvise(kept.cast(), bytes, MADV_COLLAPSE) };
        Some(Warm { _mapping: mapping, block, kept, cpus: sched_getaffinity(None).ok() })
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

impl OnThisCpu<'_> {
    fn start(cpus: Option<&CpuSet>) -> OnThisCpu<'_> {
        let only = |cpu| {
            let mut only = CpuSet::new();
            only.set(cpu);
            sched_setaffinity(None, &only).is_ok()
        };
        let cpu = sched_getcpu();
        OnThisCpu { cpus: cpus.filter(|_| cpu < CpuSet::MAX_CPU && only(cpu)) }
    }
}

impl Drop for OnThisCpu<'_> {
    fn drop(&mut self) {
        if let Some(all) = self.cpus {
            let _ = sched_setaffinity(None, all);
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
        let now = Warm::new().expect("room").cpus;
        assert!(now.is_some() && now == warm.cpus);
    }
}
