//! The malloc of our own static builds. That of musl takes one lock for each call, gives memory back to the kernel early and takes
//! it again in small pages: a reading, which frees and takes megabytes again and again, would take several times as long as with
//! glibc, whose malloc is tuned in `host::keep_freed_memory`. This one is Doug Lea's, in Rust, so that no C compiler for another
//! architecture is needed; it keeps what is freed, on huge pages where the host gives them on request.

use dlmalloc::{Allocator, Dlmalloc};
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static OWN: Own = Own(Mutex::new(Dlmalloc::new_with_allocator(Regions)));

/// What is asked of the kernel at once; pages of it that are not touched cost nothing.
const REGION_BYTES: usize = 32 << 20;
const OWN_PAGE_BYTES: usize = 2 << 20;

/// One lock for all threads: two at a time hardly wait for each other. No child of a fork takes memory.
struct Own(Mutex<Dlmalloc<Regions>>);

impl Own {
    fn lock(&self) -> MutexGuard<'_, Dlmalloc<Regions>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: each call is passed on, under the lock, to an allocator with the same contract.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the ones that are asked for here; the same holds below.
        unsafe { self.lock().malloc(layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { self.lock().calloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.lock().free(block, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { self.lock().realloc(block, layout.size(), layout.align(), size) }
    }
}

/// Private memory of the kernel. A region goes back when it is wholly free, and not the first.
struct Regions;

// SAFETY: a region is fresh memory of ours alone, of the length that is returned with it.
unsafe impl Allocator for Regions {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let Some(bytes) = size.max(REGION_BYTES).checked_next_multiple_of(OWN_PAGE_BYTES) else {
            return (null_mut(), 0, 0);
        };
        // SAFETY: asks for new memory; nothing of ours is replaced. The advice is for that memory; a refusal does no harm.
        unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let region =
                libc::mmap(null_mut(), bytes, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            if region == libc::MAP_FAILED {
                return (null_mut(), 0, 0);
            }
            libc::madvise(region, bytes, libc::MADV_HUGEPAGE);
            (region.cast(), bytes, 0)
        }
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, region: *mut u8, size: usize) -> bool {
        // SAFETY: a region of ours in which nothing is in use.
        unsafe { libc::munmap(region.cast(), size) == 0 }
    }

    fn can_release_part(&self, _: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}
