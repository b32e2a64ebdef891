//! Which 4 KiB pages hold nothing but zeros, within larger pages and within thread stacks: memory that is resident and was
//! never used, or not since it was cleared. A split of the huge page would give it back (`os::zero_ranges::Sort`).
//!
//! The only way to know is to read it. What that does to the target, by the kernel's source (6.18):
//!
//! * It is read through /proc/PID/mem, page by page (fs/proc/base.c, `mem_rw`): the lock of the address space is taken for
//!   reading, and the page held, for the copy of that one page, under a microsecond; no thread that faults waits for it.
//!   process_vm_readv would be faster, but pins a thousand pages at once (`FOLL_PIN`): a page that is shared with a forked
//!   process would be copied for it (mm/internal.h, `gup_must_unshare`), and no huge page could be split in the meantime.
//! * Only what is in memory is read: each block is looked up right before (`os::look` has the same error of microseconds).
//! * The pages count as accessed afterwards (`FOLL_TOUCH`): reclaim takes them for used once.
//! * It is one thread at its own priority, and costs the memory's bandwidth and the shared cache: `docs/pages.md` has the
//!   measure. A lower priority would be worse: who is put off with that lock in hand makes the JVM's mmap wait.
//!
//! Nothing that is read is kept but whether it is zeros.

use super::budget;
use super::live::open;
use super::machine::base_page;
use super::memory::bytes_of;
use super::pagemap_scan::each_now;
use super::pagemap_words::words_of;
use super::process::{Process, gap};
use super::target::OsView;
use super::thp_shrinker::Shrinker;
use super::zero_ranges::{Piece, Sort, candidates, pieces};
use crate::base::limits::{ZEROS_BYTES_READ_MAX, ZEROS_SAMPLE_BYTES};
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// Bytes of one read: the buffer stays in the second-level cache.
const READ_BYTES: Bytes = 256 << 10;
/// Words that are tested between two readings of the result.
const STEP_WORDS: usize = 32;

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Up to this size, all of it is read.
    pub all_bytes: Bytes,
    /// The size of the sample where there is more.
    pub sample_bytes: Bytes,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { all_bytes: ZEROS_BYTES_READ_MAX, sample_bytes: ZEROS_SAMPLE_BYTES }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Zeros {
    /// What there is to look at, and of which sort; sorted, disjoint.
    pub candidates: Vec<(Range, Sort)>,
    /// Sorted by address.
    pub seen: Vec<Seen>,
    /// Whether some of it was not looked at, but stands in the shadow of what was.
    pub is_sampled: bool,
    pub read_bytes: Bytes,
    pub read_ms: f64,
    pub shrinker: Shrinker,
    pub gaps: Vec<Gap>,
}

/// One block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub sort: Sort,
    /// The bytes of the cell that the block was chosen from.
    pub stands_for_bytes: Bytes,
    /// What was read of it: less than was wanted where the process gave pages back in the meantime.
    pub read: Vec<Range>,
    /// Pages of zeros; sorted, joined.
    pub zeros: Vec<Range>,
}

/// Looks at the large pages of a process and at its stacks, as `view` shows them. Fails where its memory may not be read.
pub fn read(process: &Process, view: &OsView, stacks: &[Range], effort: Effort) -> Known<Zeros> {
    let started = Instant::now();
    if let Err(gap) = &view.pages {
        return Err(gap.clone());
    }
    let mut stacks = stacks.to_vec();
    stacks.sort_unstable();
    let candidates = candidates(view, &crate::base::joined(stacks));
    let pieces = pieces(view, &candidates, effort.all_bytes, effort.sample_bytes);
    let mut zeros = Zeros {
        is_sampled: pieces.iter().any(|piece| piece.stands_for_bytes > bytes(&piece.ranges)),
        candidates: candidates.iter().map(|candidate| (candidate.range, candidate.sort)).collect(),
        shrinker: Shrinker::read(),
        ..Zeros::default()
    };
    if pieces.is_empty() {
        return Ok(zeros);
    }
    let mut reader = Reader::open(process)?;
    for piece in &pieces {
        zeros.seen.push(reader.piece(piece)?);
    }
    zeros.read_bytes = zeros.seen.iter().map(|seen| bytes(&seen.read)).sum();
    zeros.read_ms = started.elapsed().as_secs_f64() * 1e3;
    // A busy process always frees some of it, so some inaccuracy is expected.
    if reader.unread_bytes > zeros.read_bytes / 64 {
        let what =
            format!("{} KiB of larger pages that were to be searched for zeros", reader.unread_bytes >> 10);
        zeros.gaps.push(
            Gap::new(what, Why::Torn)
                .hint("the process gave them back, or they were split, while they were read"),
        );
    }
    Ok(zeros)
}

pub fn bytes(ranges: &[Range]) -> Bytes {
    ranges.iter().map(|range| range.bytes()).sum()
}

/// The open files of the target.
struct Reader {
    memory: File,
    pagemap: File,
    buffer: Vec<u64>,
    unread_bytes: Bytes,
}

impl Reader {
    fn open(process: &Process) -> Known<Reader> {
        let buffer = vec![0; READ_BYTES as usize / 8];
        Ok(Reader {
            memory: open(process, "mem")?,
            pagemap: open(process, "pagemap")?,
            buffer,
            unread_bytes: 0,
        })
    }

    fn piece(&mut self, piece: &Piece) -> Known<Seen> {
        let mut seen = Seen {
            sort: piece.sort,
            stands_for_bytes: piece.stands_for_bytes,
            read: Vec::new(),
            zeros: Vec::new(),
        };
        let must_be_huge = matches!(piece.sort, Sort::Thp | Sort::ThpKept);
        for range in &piece.ranges {
            let there = there(&self.pagemap, *range, must_be_huge)?;
            self.unread_bytes += range.bytes() - bytes(&there).min(range.bytes());
            for part in there {
                self.part(part, &mut seen)?;
            }
        }
        Ok(seen)
    }

    fn part(&mut self, part: Range, seen: &mut Seen) -> Known<()> {
        let mut at = part.start;
        while at < part.end {
            budget::checked("pages of zeros")?;
            let here = Range::new(at, at.plus(READ_BYTES).min(part.end));
            at = here.end;
            let words = &mut self.buffer[..(here.bytes() / 8) as usize];
            match fill(&self.memory, here.start, words) {
                Ok(()) => {
                    push(&mut seen.read, here);
                    zero_pages(here.start, words, &mut seen.zeros);
                }
                // A page with a fault of the memory, or one that went away just now.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => self.unread_bytes += here.bytes(),
                Err(error) => return Err(gap("/proc/PID/mem", &error)),
            }
        }
        Ok(())
    }
}

/// What of a range is in memory at this moment; of huge pages, only what still is on such.
fn there(pagemap: &File, range: Range, must_be_huge: bool) -> Known<Vec<Range>> {
    let mut there = Vec::new();
    let scanned = each_now(pagemap, range, |piece, now| {
        if !now.is_swapped && !now.is_zero_page && (now.is_huge || !must_be_huge) {
            push(&mut there, piece.intersect(range));
        }
        there.len()
    });
    match scanned {
        Err(Gap { why: Why::NotInThisKernel, .. }) => there_by_words(pagemap, range),
        scanned => scanned.map(|()| there),
    }
}

/// Before Linux 6.7.
fn there_by_words(pagemap: &File, range: Range) -> Known<Vec<Range>> {
    let mut there = Vec::new();
    for (index, word) in words_of(pagemap, range)?.iter().enumerate() {
        if word.is_present() {
            push(&mut there, Range::sized(range.start.plus(index as u64 * base_page()), base_page()));
        }
    }
    Ok(there)
}

fn push(ranges: &mut Vec<Range>, range: Range) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

fn fill(memory: &File, at: Addr, words: &mut [u64]) -> io::Result<()> {
    memory.read_exact_at(bytes_of(words), at.0)
}

/// Adds the pages of zeros among the ones that lie in `words`.
fn zero_pages(start: Addr, words: &[u64], zeros: &mut Vec<Range>) {
    for (index, page) in words.chunks_exact(base_page() as usize / 8).enumerate() {
        if is_zero(page) {
            push(zeros, Range::sized(start.plus(index as u64 * base_page()), base_page()));
        }
    }
}

/// Most pages with data are known after the first step; a step is a few instructions of 16 bytes each.
pub fn is_zero(page: &[u64]) -> bool {
    page.as_chunks::<STEP_WORDS>().0.iter().all(|step| step.iter().fold(0, |all, word| all | word) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::PAGE;

    const PAGE_WORDS: usize = PAGE as usize / 8;

    #[test]
    fn a_page_is_zero_only_if_every_bit_is() {
        let mut page = [0; PAGE_WORDS];
        assert!(is_zero(&page));
        for at in [0, 31, 32, 255, 511] {
            page[at] = 1 << 63;
            assert!(!is_zero(&page), "{at}");
            page[at] = 0;
        }
    }

    #[test]
    fn pages_of_zeros_are_joined() {
        let mut words = vec![0; 6 * PAGE_WORDS];
        words[3 * PAGE_WORDS + 7] = 1;
        words[4 * PAGE_WORDS] = 1;
        let mut zeros = Vec::new();
        zero_pages(Addr(0x10000), &words, &mut zeros);
        assert_eq!(zeros, [Range::of(0x10000, 0x13000), Range::of(0x15000, 0x16000)]);
    }

    /// Our own memory, mapped for the test, of which some pages are written, some only read, and some not touched.
    #[test]
    fn absent_pages_are_not_read_and_not_touched() {
        let pages = 16;
        let length = pages * PAGE as usize;
        let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, of which a few pages are written or read.
        let at = unsafe {
            let at = libc::mmap(std::ptr::null_mut(), length, rights, kind, -1, 0).cast::<u8>();
            assert!(!at.is_null() && at as isize != -1);
            libc::madvise(at.cast(), length, libc::MADV_NOHUGEPAGE);
            // Written, with data and with zeros.
            at.write(1);
            at.add(PAGE as usize).write(0);
            at.add(2 * PAGE as usize).write(0);
            at.add(9 * PAGE as usize).write(7);
            // Only read: the zero page, which no process is charged for.
            assert_eq!(at.add(5 * PAGE as usize).read_volatile(), 0);
            at
        };
        let me = Process::open(std::process::id() as i32).expect("myself");
        let mut reader = Reader::open(&me).expect("my own memory");
        let range = Range::sized(Addr(at as u64), length as u64);
        let piece = Piece { sort: Sort::StackSmall, ranges: vec![range], stands_for_bytes: range.bytes() };
        let seen = reader.piece(&piece).expect("it can be read");
        let page = |number: u64| range.start.plus(number * PAGE);
        assert_eq!(seen.read, [Range::new(page(0), page(3)), Range::new(page(9), page(10))]);
        assert_eq!(seen.zeros, [Range::new(page(1), page(3))]);
        assert_eq!(reader.unread_bytes, 12 * PAGE);
        let huge_only = there(&reader.pagemap, range, true).expect("a kernel with PAGEMAP_SCAN");
        assert_eq!(huge_only, []);
        let after = there(&reader.pagemap, range, false).expect("the same");
        assert_eq!(after, seen.read, "nothing came into memory");
        // SAFETY: the mapping made above; nothing refers to it.
        unsafe { libc::munmap(at.cast(), length) };
    }
}
