//! What the host says of itself: its kernel, its boot time, its setting of transparent huge pages.

use super::machine::sysconf;
pub use super::small_file::{chosen, field, number, read_start, text};
use crate::base::Bytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::{Duration, SystemTime};

/// "6.8.0-45-generic"; empty when it cannot be read.
pub fn kernel_release() -> String {
    text("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}

/// When a process started, from the clock ticks after boot of its stat file.
pub fn started(start_ticks: u64) -> Option<SystemTime> {
    let boot: u64 = field(&text("/proc/stat").ok()?, "btime ")?.parse().ok()?;
    let second = Duration::from_secs(boot.checked_add(start_ticks / ticks_per_second())?);
    SystemTime::UNIX_EPOCH.checked_add(second)
}

/// How long ago a process started, by the clock that no one sets.
pub fn age(start_ticks: u64) -> Option<Duration> {
    let uptime: f64 = text("/proc/uptime").ok()?.split_whitespace().next()?.parse().ok()?;
    let started = start_ticks as f64 / ticks_per_second() as f64;
    Duration::try_from_secs_f64((uptime - started).max(0.0)).ok()
}

/// The machine, in the words of every document. `None`: not known.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Host {
    /// "x86_64".
    pub architecture: Option<String>,
    /// Online.
    pub cpus: Option<u64>,
    pub memory_bytes: Option<Bytes>,
    /// The size of the smallest page.
    pub page_bytes: Option<Bytes>,
}

impl Host {
    pub fn here() -> Host {
        let page_bytes = sysconf(libc::_SC_PAGESIZE);
        let memory = sysconf(libc::_SC_PHYS_PAGES).zip(page_bytes);
        Host {
            architecture: Some(std::env::consts::ARCH.to_string()),
            cpus: sysconf(libc::_SC_NPROCESSORS_ONLN),
            memory_bytes: memory.and_then(|(pages, bytes)| pages.checked_mul(bytes)),
            page_bytes,
        }
    }
}

pub fn ticks_per_second() -> u64 {
    sysconf(libc::_SC_CLK_TCK).unwrap_or(100)
}

/// The mode of transparent huge pages that is chosen for private memory: "always", "madvise", "never". `None`: a kernel
/// without them.
pub fn thp_mode() -> Option<String> {
    chosen(&text("/sys/kernel/mm/transparent_hugepage/enabled").ok()?)
}

/// The same for shared memory, where the heap of ZGC lies: also "advise", "within_size", "deny", "force".
pub fn thp_shmem_mode() -> Option<String> {
    chosen(&text("/sys/kernel/mm/transparent_hugepage/shmem_enabled").ok()?)
}

/// The pids that exist now, of this pid namespace.
pub fn pids() -> io::Result<Vec<i32>> {
    let entries = std::fs::read_dir("/proc")?;
    let mut pids: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// Makes our own malloc keep what is freed, and puts it on huge pages where the host gives them on request: a reading frees
/// and takes megabytes again and again, and a fault for each small page of them would cost a third of its time. For the same
/// reason threads have no arenas of their own, which begin with small pages: two at a time hardly wait for each other.
#[cfg(target_env = "gnu")]
pub fn keep_freed_memory() {
    // At the start; pages that are not touched cost nothing.
    const OWN_HEAP_BYTES: usize = 32 << 20;
    const OWN_PAGE_BYTES: usize = 2 << 20;
    // SAFETY: mallopt only sets parameters of our own malloc; nothing else runs yet. The advice is for whole pages of a block
    // that is ours; that the kernel may refuse it does no harm.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 64 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
        libc::mallopt(libc::M_TOP_PAD, 1 << 20);
        libc::mallopt(libc::M_ARENA_MAX, 1);
        let block = libc::malloc(OWN_HEAP_BYTES);
        if !block.is_null() {
            let before_first = block.align_offset(OWN_PAGE_BYTES);
            let huge = block.byte_add(before_first);
            libc::madvise(huge, OWN_HEAP_BYTES - OWN_PAGE_BYTES, libc::MADV_HUGEPAGE);
            libc::free(block);
            // What lies before the first huge page is never used: it would come in small ones.
            std::hint::black_box(libc::malloc(before_first.saturating_sub(2 * size_of::<usize>())));
        }
    }
}

/// Static builds have a malloc of their own (`own_malloc`), which does so by itself.
#[cfg(not(target_env = "gnu"))]
pub fn keep_freed_memory() {}

/// Lets this process have as many open files as it may: the limit that programs start with is for the ones that use select(2).
pub fn allow_open_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// How many files this process has open.
pub fn open_files_now() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

/// How many files this process may have open.
pub fn open_files_max() -> usize {
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_not_lowered() {
        let before = open_files_max();
        allow_open_files();
        assert!(open_files_max() >= before.max(64));
    }

    #[test]
    fn the_chosen_word_is_in_brackets() {
        assert_eq!(chosen("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(chosen("nonsense"), None);
    }

    #[test]
    fn this_process_started_before_now_and_is_listed() {
        let process = crate::os::process::Process::open(std::process::id() as i32).expect("myself");
        let started = started(process.start_ticks).expect("boot time");
        assert!(started <= SystemTime::now() + Duration::from_secs(2));
        assert!(pids().expect("/proc").contains(&process.pid));
    }
}
