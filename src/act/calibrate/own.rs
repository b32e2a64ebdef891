//! Memory of our own whose page size is known, because it was looked up after it was asked for.

use super::order;
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use crate::os::machine::{base_page, huge_page};
use crate::os::pagemap;
use crate::os::process::{Process, gap};
use std::io;

/// Bytes that one entry of the second level maps.
/// Since Linux 6.1 (include/uapi/asm-generic/mman-common.h); older kernels refuse it.
const MADV_COLLAPSE: libc::c_int = 25;

/// The page size that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    Small,
    Huge,
}

impl Pages {
    pub fn bytes(self) -> Bytes {
        match self {
            Pages::Small => base_page(),
            Pages::Huge => huge_page(),
        }
    }
}

/// A mapping that is all in memory; given back when dropped.
pub struct Own {
    base: *mut libc::c_void,
    length: usize,
    start: *mut u8,
    bytes: Bytes,
}

impl Own {
    /// Private memory, `bytes` rounded up to 2 MiB, every page touched and of the wanted size.
    pub fn map(bytes: Bytes, pages: Pages) -> Known<Own> {
        let own = Own::reserve(bytes.next_multiple_of(huge_page()))?;
        let advice = match pages {
            Pages::Small => libc::MADV_NOHUGEPAGE,
            Pages::Huge => libc::MADV_HUGEPAGE,
        };
        // A kernel without huge pages refuses both; that shows below.
        let _ = own.advise(own.range(), advice);
        own.touch(pages);
        match (own.huge_bytes()?, pages) {
            (0, Pages::Small) => Ok(own),
            (_, Pages::Small) => Err(Gap::new("memory on 4 KiB pages", Why::NotInThisKernel)
                .hint("the kernel gave huge pages although they were advised against")),
            (huge, Pages::Huge) if huge == own.bytes => Ok(own),
            (_, Pages::Huge) => own.collapsed(),
        }
    }

    fn reserve(bytes: Bytes) -> Known<Own> {
        let length = bytes.saturating_add(huge_page()) as usize;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, rights, kind, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(gap("memory to measure in", &io::Error::last_os_error()));
        }
        let skip = (base as u64).next_multiple_of(huge_page()) - base as u64;
        Ok(Own { base, length, start: base.cast::<u8>().wrapping_add(skip as usize), bytes })
    }

    pub fn start(&self) -> *mut u8 {
        self.start
    }
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }
    fn range(&self) -> Range {
        Range::sized(Addr(self.start as u64), self.bytes)
    }

    fn advise(&self, range: Range, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the range lies within this mapping, and no advice given here changes what its bytes are.
        let done = unsafe { libc::madvise(range.start.0 as *mut _, range.bytes() as usize, advice) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Small pages in random order: neighbours then lie apart in the machine's memory too, and no TLB entry can stand for
    /// several (AMD's coalesce four that lie in a row; Arm's contiguous bit).
    fn touch(&self, pages: Pages) {
        let unit = pages.bytes();
        for index in order::shuffled((self.bytes / unit) as usize) {
            let block = index as u64 * unit;
            for page in (block..block + unit).step_by(base_page() as usize) {
                // SAFETY: `page` is below `bytes`, and the mapping may be written.
                unsafe { self.start.add(page as usize).write_volatile(0) };
            }
        }
    }

    /// How much of it really is on huge pages.
    fn huge_bytes(&self) -> Known<Bytes> {
        let open = Process::open(std::process::id() as i32);
        let process =
            open.map_err(|_| Gap::new("our own pages", Why::Denied).hint("/proc must be mounted"))?;
        let pages = pagemap::read(&process, &process.mappings()?, &process.status()?, None)?;
        let huge = pages.runs.iter().filter(|run| run.is_present() && run.page_bytes as Bytes == huge_page());
        Ok(huge.map(|run| run.range.intersect(self.range()).bytes()).sum())
    }

    /// Where the faults gave small pages, because the policy is "never" or none was free then, the kernel is asked outright.
    fn collapsed(self) -> Known<Own> {
        let mut at = self.range().start;
        let mut failed = None;
        while at < self.range().end && failed.is_none() {
            failed = self.advise(Range::sized(at, huge_page()), MADV_COLLAPSE).err();
            at = at.plus(huge_page());
        }
        if self.huge_bytes()? == self.bytes {
            return Ok(self);
        }
        let why = failed.map_or("the kernel gave small ones".to_string(), |error| error.to_string());
        Err(Gap::new("memory on 2 MiB pages", Why::NotInThisKernel).hint(format!(
            "{why}; /sys/kernel/mm/transparent_hugepage/enabled must be madvise or always, or the kernel 6.1 or newer"
        )))
    }

    /// Machine code was written to it; from now on it can be run and no longer be written.
    #[cfg(target_arch = "x86_64")]
    pub fn make_executable(&self) -> Known<()> {
        let rights = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: the range lies within this mapping, and nothing writes to it afterwards.
        let done = unsafe { libc::mprotect(self.start.cast(), self.bytes as usize, rights) };
        match done {
            0 => Ok(()),
            _ => Err(gap("memory to run generated code in", &io::Error::last_os_error()).hint(
                "a security policy forbids it; the data side's costs stand for the instruction side's",
            )),
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // SAFETY: base and length are those of the mapping, and no code keeps a pointer into it.
        unsafe { libc::munmap(self.base, self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_on_the_pages_that_were_asked_for_or_is_refused() {
        let small = Own::map(3 << 20, Pages::Small).expect("4 KiB pages are everywhere");
        assert_eq!((small.bytes(), small.huge_bytes()), (4 << 20, Ok(0)));
        match Own::map(4 << 20, Pages::Huge) {
            Ok(huge) => assert_eq!(huge.huge_bytes(), Ok(4 << 20)),
            Err(gap) => assert_eq!(gap.what, "memory on 2 MiB pages"),
        }
    }

    #[test]
    fn more_than_there_can_be_is_a_gap() {
        assert_eq!(
            Own::map(1 << 60, Pages::Small).err().map(|gap| gap.what),
            Some("memory to measure in".into())
        );
    }
}
