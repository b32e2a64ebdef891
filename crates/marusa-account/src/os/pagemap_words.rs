//! `/proc/PID/pagemap`, one word for each page: the way of kernels before PAGEMAP_SCAN, and the only file that says
//! whether a page is mapped once.
//!
//! Bits: Documentation/admin-guide/mm/pagemap.rst. A read gives a word for every page of the range, mapped or not, so a
//! reservation of terabytes (ZGC's 16 TiB, a sanitizer's shadow) must not be read: smaps says first which mappings hold
//! anything, and a mapping is read only until all that smaps counts has been found.
//!
//! The zero page shows as present, private and not exclusive, as does a page shared with a forked child. smaps counts the
//! one and not the other; where a mapping has both, /proc/kpageflags decides.

use super::budget;
use super::machine::{base_page, huge_page};
use super::maps::Mapping;
use super::page_run::{Method, PageRun, Pages, push_run};
use super::process::{Process, gap};
use super::rights;
use super::smaps::{self, Smap, size_hugetlb};
use crate::base::limits::{PAGE_RUNS_MAX, PAGEMAP_MAPPING_BYTES_MAX};
use crate::base::{Addr, Gap, Known, Range, Why};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Pages in one read: 32 MiB of addresses, 64 KiB of words. The kernel itself copies out 512 words at a time
/// (fs/proc/task_mmu.c, `PAGEMAP_WALK_SIZE`), so larger reads gain nothing and their buffers cost page faults.
pub(super) const WORDS_PER_READ: usize = 8 << 10;
/// Only while a mapping is read: the page is present, and is the zero page or shared with a forked process.
const SUSPECT: u8 = 0x80;

/// The word of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub u64);

impl Word {
    pub fn is_present(self) -> bool {
        self.0 >> 63 & 1 == 1
    }
    /// In swap, or on its way between two places; not a guard region (bit 58, Linux 6.15).
    pub fn is_swapped(self) -> bool {
        self.0 >> 62 & 1 == 1 && self.0 >> 58 & 1 == 0
    }
    pub fn is_file(self) -> bool {
        self.0 >> 61 & 1 == 1
    }
    /// Mapped once, by this process.
    pub fn is_exclusive(self) -> bool {
        self.0 >> 56 & 1 == 1
    }
    /// The number of the page frame; the kernel shows 0 without CAP_SYS_ADMIN.
    pub fn frame(self) -> Option<u64> {
        let frame = self.0 & ((1 << 55) - 1);
        (self.is_present() && frame != 0).then_some(frame)
    }
    /// Whether a private page without a file may be the zero page. The huge zero page looks like a file page (`pagemap_pmd_range`).
    pub fn may_be_zero_page(self) -> bool {
        self.is_present() && !self.is_exclusive()
    }
}

/// The open file.
/// The words of a range, from an open pagemap.
pub(super) fn words_of(pagemap: &File, range: Range) -> Known<Vec<Word>> {
    let mut bytes = vec![0; (range.bytes() / base_page() * 8) as usize];
    read_bytes(pagemap, range.start, &mut bytes)?;
    Ok(bytes.as_chunks::<8>().0.iter().map(|bytes| Word(u64::from_le_bytes(*bytes))).collect())
}

fn read_bytes(pagemap: &File, at: Addr, bytes: &mut [u8]) -> Known<()> {
    pagemap.read_exact_at(bytes, at.0 / base_page() * 8).map_err(|error| gap("/proc/PID/pagemap", &error))
}

pub struct Words {
    file: File,
}

/// What was read last.
#[derive(Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    words: Vec<Word>,
}

impl Buffer {
    pub fn words(&self) -> &[Word] {
        &self.words
    }
}

impl Words {
    pub fn open(process: &Process) -> Known<Words> {
        let file = process
            .open_file("pagemap")
            .map_err(|error| gap("/proc/PID/pagemap", &error).hint(rights::to_look()))?;
        Ok(Words { file })
    }

    pub fn word(&self, at: Addr) -> Known<Word> {
        let mut bytes = [0; 8];
        self.read_bytes(at, &mut bytes)?;
        Ok(Word(u64::from_le_bytes(bytes)))
    }

    /// The words of `count` pages from `at`, in `buffer`, which is kept from read to read.
    pub fn read<'a>(&self, at: Addr, count: usize, buffer: &'a mut Buffer) -> Known<&'a [Word]> {
        if buffer.bytes.len() < count * 8 {
            buffer.bytes.resize(count * 8, 0);
        }
        let bytes = &mut buffer.bytes[..count * 8];
        self.read_bytes(at, bytes)?;
        buffer.words.clear();
        buffer.words.extend(bytes.as_chunks::<8>().0.iter().map(|bytes| Word(u64::from_le_bytes(*bytes))));
        Ok(&buffer.words)
    }

    fn read_bytes(&self, at: Addr, bytes: &mut [u8]) -> Known<()> {
        budget::checked("/proc/PID/pagemap")?;
        read_bytes(&self.file, at, bytes)
    }

    /// Calls `take` with the words of `range`, piece by piece, until it returns false.
    pub fn each_piece(&self, range: Range, mut take: impl FnMut(Addr, &[Word]) -> bool) -> Known<()> {
        let mut buffer = Buffer::default();
        let mut at = range.start;
        while at < range.end {
            let count = WORDS_PER_READ.min(((range.end.0 - at.0) / base_page()) as usize);
            if count == 0 || !take(at, self.read(at, count, &mut buffer)?) {
                break;
            }
            at = at.plus(count as u64 * base_page());
        }
        Ok(())
    }
}

/// Every run of the process, without PAGEMAP_SCAN.
pub fn read(process: &Process, mappings: &[Mapping]) -> Known<Pages> {
    let words = Words::open(process)?;
    let smaps = smaps::read(process)?;
    let mut pages = Pages { runs: Vec::new(), method: Method::Pagemap, gaps: Vec::new() };
    for mapping in mappings {
        let Some(smap) = smaps::find(&smaps, mapping.range.start) else { continue };
        if smap.present_bytes() == 0 && smap.swapped_bytes == 0 {
            continue;
        }
        if mapping.range.bytes() > PAGEMAP_MAPPING_BYTES_MAX {
            pages.runs.extend(smaps::runs(&smaps, std::slice::from_ref(mapping)));
            pages.gaps.push(Gap::new(format!("place of the pages in {}", mapping.range), Why::OverLimit));
            continue;
        }
        let mut runs = read_mapping(&words, mapping, smap)?;
        settle_suspects(&words, &mut runs, mapping, smap, &mut pages.gaps);
        if smap.huge_bytes() > 0 {
            runs = mark_huge(&words, runs, mapping, smap, &mut pages.gaps);
        }
        pages.runs.append(&mut runs);
        if pages.runs.len() > PAGE_RUNS_MAX {
            return Err(Gap::new("page runs", Why::OverLimit));
        }
    }
    size_hugetlb(&mut pages.runs, &smaps);
    Ok(pages)
}

fn read_mapping(words: &Words, mapping: &Mapping, smap: &Smap) -> Known<Vec<PageRun>> {
    let wanted = smap.present_bytes().saturating_add(smap.swapped_bytes);
    let mut found = 0;
    let mut runs = Vec::new();
    words.each_piece(mapping.range, |start, words| {
        for (index, word) in words.iter().enumerate().filter(|(_, word)| word.0 != 0) {
            let bits = bits_of(*word, mapping);
            if bits == 0 {
                continue;
            }
            if bits & SUSPECT == 0 {
                found += base_page();
            }
            let range = Range::sized(start.plus(index as u64 * base_page()), base_page());
            let run = PageRun { range, bits, page_bytes: base_page() as u32, mapped_times: 0 };
            push_run(&mut runs, run, mapping.range);
        }
        found < wanted
    })?;
    Ok(runs)
}

fn bits_of(word: Word, mapping: &Mapping) -> u8 {
    let is_private_memory = mapping.inode == 0 && !mapping.rights.shared;
    match word {
        word if word.is_present() && is_private_memory && word.may_be_zero_page() => {
            PageRun::PRESENT | SUSPECT
        }
        word if word.is_present() && !mapping.counts_in_rss(word.is_file()) => 0,
        word if word.is_present() => PageRun::PRESENT | if word.is_file() { PageRun::FILE } else { 0 },
        word if word.is_swapped() => PageRun::SWAPPED | if word.is_file() { PageRun::FILE } else { 0 },
        _ => 0,
    }
}

/// Decides which suspects are the zero page, and takes those out.
fn settle_suspects(
    words: &Words,
    runs: &mut Vec<PageRun>,
    mapping: &Mapping,
    smap: &Smap,
    gaps: &mut Vec<Gap>,
) {
    let sum =
        |bit: u8| runs.iter().filter(|run| run.bits & bit != 0).map(|run| run.range.bytes()).sum::<u64>();
    let (present, suspect) = (sum(PageRun::PRESENT), sum(SUSPECT));
    let excess = present.saturating_sub(smap.present_bytes());
    if suspect > 0 && excess > 0 && excess < suspect {
        match settle_by_flags(words, runs, mapping) {
            Ok(settled) => *runs = settled,
            Err(gap) => gaps.push(gap.hint(format!(
                "{} KiB of {} are the zero page or shared with a forked process: needs CAP_SYS_ADMIN",
                suspect >> 10,
                mapping.range
            ))),
        }
    }
    if excess.saturating_mul(2) >= suspect && excess > 0 {
        runs.retain(|run| run.bits & SUSPECT == 0);
    }
    for run in runs.iter_mut() {
        run.bits &= !SUSPECT;
    }
    let mut joined = Vec::with_capacity(runs.len());
    runs.drain(..).for_each(|run| push_run(&mut joined, run, mapping.range));
    *runs = joined;
}

/// The runs without zero pages, and without suspects, by /proc/kpageflags (include/uapi/linux/kernel-page-flags.h).
fn settle_by_flags(words: &Words, runs: &[PageRun], mapping: &Mapping) -> Known<Vec<PageRun>> {
    const KPF_ZERO_PAGE: u64 = 1 << 24;
    let flags = File::open("/proc/kpageflags").map_err(|error| gap("/proc/kpageflags", &error))?;
    let mut settled = Vec::with_capacity(runs.len());
    let mut zero_frame = None;
    for run in runs {
        if run.bits & SUSPECT == 0 {
            settled.push(*run);
            continue;
        }
        let mut failed = None;
        words.each_piece(run.range, |start, words| {
            for (index, word) in words.iter().enumerate() {
                let Some(frame) = word.frame() else {
                    failed = Some(Gap::new("page frames", Why::Denied));
                    return false;
                };
                let mut flag_bytes = [0; 8];
                if zero_frame != Some(frame) {
                    if let Err(error) = flags.read_exact_at(&mut flag_bytes, frame.saturating_mul(8)) {
                        failed = Some(gap("/proc/kpageflags", &error));
                        return false;
                    }
                    if u64::from_le_bytes(flag_bytes) & KPF_ZERO_PAGE != 0 {
                        zero_frame = Some(frame);
                    }
                }
                if zero_frame != Some(frame) {
                    let range = Range::sized(start.plus(index as u64 * base_page()), base_page());
                    let kept = PageRun { range, bits: run.bits & !SUSPECT, ..*run };
                    push_run(&mut settled, kept, mapping.range);
                }
            }
            true
        })?;
        if let Some(gap) = failed {
            return Err(gap);
        }
    }
    Ok(settled)
}

/// Cuts out the blocks that are mapped 2 MiB at a time: those whose frames follow each other from an aligned one; where
/// frames are hidden, all full blocks if they are as many as smaps says.
fn mark_huge(
    words: &Words,
    runs: Vec<PageRun>,
    mapping: &Mapping,
    smap: &Smap,
    gaps: &mut Vec<Gap>,
) -> Vec<PageRun> {
    let unit = huge_page();
    let full = |run: &PageRun| Range::new(run.range.start.up_to(unit), run.range.end.down_to(unit));
    let full_bytes: u64 = runs.iter().filter(|run| run.is_present()).map(|run| full(run).bytes()).sum();
    let all = full_bytes == smap.huge_bytes();
    let (mut cut, mut hidden) = (Vec::with_capacity(runs.len()), false);
    for run in &runs {
        let blocks = full(run);
        if !run.is_present() || blocks.is_empty() {
            push_run(&mut cut, *run, mapping.range);
            continue;
        }
        let mut add = |range: Range, page_bytes| {
            if !range.is_empty() {
                push_run(&mut cut, PageRun { range, page_bytes, ..*run }, mapping.range);
            }
        };
        add(Range::new(run.range.start, blocks.start), run.page_bytes);
        let mut at = blocks.start;
        while at < blocks.end {
            let block = Range::sized(at, unit);
            let is_huge = all
                || is_contiguous(words, block).unwrap_or_else(|_| {
                    hidden = true;
                    false
                });
            add(block, if is_huge { huge_page() as u32 } else { run.page_bytes });
            at = block.end;
        }
        add(Range::new(blocks.end, run.range.end), run.page_bytes);
    }
    if hidden {
        gaps.push(Gap::new(format!("which {} pages are huge", mapping.range), Why::Denied).hint(format!(
            "{} KiB are, of those shown as 4 KiB pages: needs CAP_SYS_ADMIN",
            smap.huge_bytes() >> 10
        )));
    }
    cut
}

fn is_contiguous(words: &Words, block: Range) -> Known<bool> {
    let hidden = || Gap::new("page frames", Why::Denied);
    let first = words.word(block.start)?.frame().ok_or_else(hidden)?;
    let last = words.word(block.end.minus(base_page()))?.frame().ok_or_else(hidden)?;
    let pages = block.bytes() / base_page();
    Ok(first % pages == 0 && last == first + pages - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::maps::parse_line;

    #[test]
    fn the_bits_of_words() {
        let anonymous = parse_line("1000-9000 rw-p 0 00:00 0 ").expect("a line");
        let library = parse_line("1000-9000 r-xp 0 fe:00 7 /lib/libjvm.so").expect("a line");
        let device = parse_line("1000-9000 rw-s 0 00:06 9 /dev/gpu").expect("a line");
        let exclusive = Word(1 << 63 | 1 << 56 | 77);
        let file = Word(1 << 63 | 1 << 61);
        assert_eq!(exclusive.frame(), Some(77));
        assert_eq!(bits_of(exclusive, &anonymous), PageRun::PRESENT);
        assert_eq!(bits_of(Word(1 << 63), &anonymous), PageRun::PRESENT | SUSPECT);
        assert_eq!(bits_of(file, &anonymous), PageRun::PRESENT | SUSPECT, "the huge zero page");
        assert_eq!(bits_of(file, &library), PageRun::PRESENT | PageRun::FILE);
        assert_eq!(bits_of(Word(1 << 63), &device), 0, "device memory is in no RSS");
        assert_eq!(bits_of(Word(1 << 62), &anonymous), PageRun::SWAPPED);
        assert_eq!(bits_of(Word(1 << 62 | 1 << 58), &anonymous), 0, "a guard region");
    }
}
