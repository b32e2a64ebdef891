//! A pool of an exact number of free 2M pages that no other process has, for the length of a test; what was there is restored, also
//! on panic (`Host`). The pool is made once; the pages that a JVM shall not have are held by a mapping of ours, which is
//! quicker than to give them back to the kernel and ask again.

use crate::common::host::{HUGETLB, Host};
use std::fs::{read_to_string, write};

const POOL: &str = "/proc/sys/vm/nr_hugepages";
const OVERCOMMIT: &str = "/proc/sys/vm/nr_overcommit_hugepages";
const TRIES: usize = 4;
const PAGE_2M: u64 = 2 << 20;

// `held` is dropped first: the pages go back to the pool before the pool is restored.
pub struct Pool {
    held: Option<Held>,
    _host: Host,
}

impl Pool {
    /// At least `pages` free ones.
    pub fn take(pages: u64) -> Result<Pool, String> {
        let mut host = Host::lock();
        host.set(OVERCOMMIT.to_string(), "0")?;
        let was = read_to_string(POOL).map_err(|error| format!("{POOL}: {error}"))?;
        host.set(POOL.to_string(), was.trim())?;
        for attempt in 0..TRIES {
            let total = (number("nr_hugepages") + pages).saturating_sub(free());
            write(POOL, total.to_string()).map_err(|error| format!("{POOL}: {error}"))?;
            if free() == pages {
                return Ok(Pool { held: None, _host: host });
            }
            // Fragmented: ask the kernel to gather, from the second time on also of what files have cached.
            if attempt > 0 {
                let _ = write("/proc/sys/vm/drop_caches", "1");
            }
            let _ = write("/proc/sys/vm/compact_memory", "1");
        }
        Err(format!("{} of {pages} large pages were available: memory is fragmented or taken", free()))
    }

    /// Leaves exactly `pages` free ones.
    pub fn leave(&mut self, pages: u64) -> Result<(), String> {
        self.held = None;
        let there = free();
        if there < pages {
            return Err(format!("{there} of {pages} large pages are free"));
        }
        self.held = Held::new(there - pages)?;
        if free() == pages { Ok(()) } else { Err("others take large pages".to_string()) }
    }

    /// Waits until a JVM that has ended has given its pages back.
    pub fn settled(&self, pages: u64) -> bool {
        let is_back = |_| {
            let back = free() == pages;
            if !back {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            back
        };
        (0..500).any(is_back)
    }
}

/// Pages that are free and promised to nobody.
pub fn free() -> u64 {
    number("free_hugepages").saturating_sub(number("resv_hugepages"))
}

fn number(file: &str) -> u64 {
    let text = read_to_string(format!("{HUGETLB}/hugepages-2048kB/{file}")).expect("large pages");
    text.trim().parse().expect("a number")
}

/// Pages promised to a mapping that nobody touches.
struct Held {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Held {
    fn new(pages: u64) -> Result<Option<Held>, String> {
        if pages == 0 {
            return Ok(None);
        }
        let bytes = (pages * PAGE_2M) as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(format!("{pages} large pages: {}", std::io::Error::last_os_error()));
        }
        Ok(Some(Held { start, bytes }))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing points into it.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
