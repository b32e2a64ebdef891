//! PAGEMAP_SCAN: ranges of alike pages in one pass of the kernel (include/uapi/linux/fs.h; Linux 6.7).

use super::machine::{base_page, huge_page};
use super::maps::{Mapping, find_mapping};
use super::page_run::{PageRun, push_run};
use super::process::{Process, gap};
use super::{budget, longest_hold, rights};
use crate::base::limits::PAGE_RUNS_MAX;
use crate::base::{Addr, Gap, Known, Range, USER_END, Why, overlapping};
use std::os::fd::AsRawFd;
use std::{fs::File, io};

const PAGE_IS_FILE: u64 = 1 << 2;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;
const PAGE_IS_PFNZERO: u64 = 1 << 5;
const PAGE_IS_HUGE: u64 = 1 << 6;
const PAGE_IS_GUARD: u64 = 1 << 8;
const RETURNED: u64 = PAGE_IS_PRESENT | PAGE_IS_SWAPPED | PAGE_IS_FILE | PAGE_IS_PFNZERO | PAGE_IS_HUGE;
/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const REGIONS_PER_CALL: usize = 2048;
const REGIONS_PER_SMALL_CALL: usize = 64;
/// Smaller mappings are not worth a call of their own.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;
/// Regions that a mapping may have for each of its ordinary ranges to be checked; that it has more shows that it is there.
const CHECKED_MAX: usize = 64;
/// Pieces of large mappings that are scanned at once: whole huge pages, up to `PIECES_MAX` for each mapping.
const PIECE_BYTES_MIN: u64 = 256 << 20;
const PIECES_MAX: u64 = 1024;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

#[repr(C)]
#[derive(Default)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// Every run of the process, by PAGEMAP_SCAN. `Why::NotInThisKernel` before 6.7.
pub fn scan(process: &Process, mappings: &[Mapping]) -> Known<Vec<PageRun>> {
    scan_segments(process, mappings, &segments(mappings))
}

/// As `scan`, without the mappings that `is_late` names.
pub fn scan_without(
    process: &Process,
    mappings: &[Mapping],
    is_late: impl Fn(Range) -> bool,
) -> Known<Vec<PageRun>> {
    let mut segments = segments(mappings);
    segments.retain(|(range, ask_file)| *ask_file || !is_late(*range));
    scan_segments(process, mappings, &segments)
}

/// Ranges of the address space, and whether the kernel is asked which of their pages belong to a file.
///
/// That question costs a reading of the `struct page` of every page (fs/proc/task_mmu.c, `pagemap_page_category`), four
/// fifths of the time of a scan. In anonymous and in shared mappings the mapping answers it, so the large ones of these
/// are scanned without it.
fn segments(mappings: &[Mapping]) -> Vec<(Range, bool)> {
    let mut segments = Vec::new();
    let mut from = Addr::NULL;
    let is_worth_it = |mapping: &&Mapping| is_alike(mapping) && mapping.range.bytes() >= SEGMENT_BYTES_MIN;
    for mapping in mappings.iter().filter(is_worth_it) {
        segments.push((Range::new(from, mapping.range.start), true));
        segments.push((mapping.range, false));
        from = mapping.range.end;
    }
    segments.push((Range::new(from, user_end(mappings).max(from)), true));
    segments.retain(|(range, _)| !range.is_empty());
    segments
}

/// Whether the mapping says of its pages whether they are of a file.
pub(super) fn is_alike(mapping: &Mapping) -> bool {
    mapping.is_anonymous() || (mapping.is_file() && mapping.rights.shared)
}

/// The runs within `ranges`, which are sorted; pages outside of them have no run, as if they were absent.
pub fn scan_ranges(process: &Process, mappings: &[Mapping], ranges: &[Range]) -> Known<Vec<PageRun>> {
    let segments: Vec<(Range, bool)> = ranges.iter().map(|range| (*range, true)).collect();
    scan_segments(process, mappings, &segments)
}

/// What is resident of `range` at this moment, by an open /proc/PID/pagemap; sorted, disjoint.
pub fn resident_now(pagemap: &File, range: Range) -> Known<Vec<Range>> {
    let mut resident: Vec<Range> = Vec::new();
    each_now(pagemap, range, |piece, now| {
        match resident.last_mut() {
            _ if now.is_swapped || now.is_zero_page => {}
            Some(last) if last.end == piece.start => last.end = piece.end,
            _ => resident.push(piece),
        }
        resident.len()
    })?;
    Ok(resident)
}

/// The state of pages that are not absent; all false: small, and in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Now {
    pub is_swapped: bool,
    pub is_zero_page: bool,
    pub is_huge: bool,
}

/// Hands on each piece of `range` that is not absent at this moment; `visit` says how many it keeps.
pub(super) fn each_now(
    pagemap: &File,
    range: Range,
    mut visit: impl FnMut(Range, Now) -> usize,
) -> Known<()> {
    let mut regions = [PageRegion::default(); REGIONS_PER_SMALL_CALL];
    each(pagemap, range, Asked::Resident { files: false }, &mut { RETURNED }, &mut regions, &mut |region| {
        let is = |category| region.categories & category != 0;
        let now = Now {
            is_swapped: is(PAGE_IS_SWAPPED),
            is_zero_page: is(PAGE_IS_PFNZERO),
            is_huge: is(PAGE_IS_HUGE),
        };
        visit(Range::of(region.start, region.end), now)
    })
}

fn scan_segments(process: &Process, mappings: &[Mapping], segments: &[(Range, bool)]) -> Known<Vec<PageRun>> {
    let file = process
        .open_file("pagemap")
        .map_err(|error| gap("/proc/PID/pagemap", &error).hint(rights::to_look()))?;
    let pieces: Vec<(Range, bool)> =
        segments.iter().flat_map(|(range, ask)| cut(*range, !ask).map(|piece| (piece, *ask))).collect();
    let failed = Gap::new("PAGEMAP_SCAN", Why::NotInThisKernel);
    let done = budget::divided(pieces.len(), pieces.len() > segments.len(), failed, || {
        let mut scanner = Scanner::new(&file, mappings);
        let pieces = &pieces;
        move |index: usize| scanner.scan(pieces[index].0, !pieces[index].1)
    })?;
    let mut runs = Vec::with_capacity(done.iter().map(Vec::len).sum());
    for run in done.into_iter().flatten() {
        let within = find_mapping(mappings, run.range.start).map_or(run.range, |mapping| mapping.range);
        push_run(&mut runs, run, within);
    }
    if runs.len() > PAGE_RUNS_MAX { Err(Gap::new("page runs", Why::OverLimit)) } else { Ok(runs) }
}

/// Pieces of a large mapping; a range of several mappings, which may be terabytes of nothing, stays whole.
pub(super) fn cut(range: Range, is_mapping: bool) -> impl Iterator<Item = Range> {
    let unit = (range.bytes() / PIECES_MAX).next_power_of_two().max(PIECE_BYTES_MIN);
    let is_large = is_mapping && is_large(range);
    let mut from = range.start;
    std::iter::from_fn(move || {
        let end = if is_large { from.plus(1).up_to(unit).min(range.end) } else { range.end };
        let piece = Range::new(from, end);
        from = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}

pub(super) fn is_large(range: Range) -> bool {
    range.bytes() >= 2 * PIECE_BYTES_MIN
}

pub(super) struct Scanner<'a> {
    file: &'a File,
    mappings: &'a [Mapping],
    regions: Vec<PageRegion>,
    categories: u64,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(file: &'a File, mappings: &'a [Mapping]) -> Scanner<'a> {
        let regions = vec![PageRegion::default(); REGIONS_PER_CALL];
        Scanner { file, mappings, regions, categories: RETURNED | PAGE_IS_GUARD }
    }

    /// The runs of `range`. `is_alike` says that it is a piece of one mapping whose pages are all of a file or all of none.
    pub(super) fn scan(&mut self, range: Range, is_alike: bool) -> Known<Vec<PageRun>> {
        if is_alike { self.scan_alike(range) } else { self.scan_for(range, Asked::Resident { files: true }) }
    }

    fn scan_for(&mut self, range: Range, asked: Asked) -> Known<Vec<PageRun>> {
        let mut runs = Vec::new();
        let mappings = self.mappings;
        self.each(range, asked, &mut |region| {
            add_region(&mut runs, region, mappings);
            runs.len()
        })?;
        Ok(runs)
    }

    /// Asks the kernel what is *not* an ordinary resident page: what it reports costs it 8 ns a page, what it passes over
    /// 2 ns (`pagemap_scan_output`; 6.18), and nearly all pages of a heap are such.
    fn scan_alike(&mut self, range: Range) -> Known<Vec<PageRun>> {
        let mut reported: Vec<PageRegion> = Vec::new();
        self.each(range, Asked::NotOrdinary, &mut |region| {
            reported.push(*region);
            reported.len()
        })?;
        let mut runs = Vec::new();
        let mut from = range.start.0;
        let end = PageRegion { start: range.end.0, end: range.end.0, categories: 0 };
        for region in reported.iter().chain([&end]) {
            if from < region.start {
                let ordinary = PageRegion { start: from, end: region.start, categories: PAGE_IS_PRESENT };
                // Of what is not mapped any more, and of a device's memory, nothing is reported either.
                if reported.len() > CHECKED_MAX || self.is_resident(Addr(from))? {
                    add_region(&mut runs, &ordinary, self.mappings);
                } else {
                    let unsure = Range::of(from, region.start);
                    runs.extend(self.scan_for(unsure, Asked::Resident { files: false })?);
                }
            }
            add_region(&mut runs, region, self.mappings);
            from = region.end;
        }
        Ok(runs)
    }

    fn is_resident(&mut self, at: Addr) -> Known<bool> {
        let runs = self.scan_for(Range::sized(at, base_page()), Asked::Resident { files: false })?;
        Ok(runs.iter().any(PageRun::is_present))
    }

    fn each(&mut self, range: Range, asked: Asked, visit: &mut dyn FnMut(&PageRegion) -> usize) -> Known<()> {
        each(self.file, range, asked, &mut self.categories, &mut self.regions, visit)
    }
}

/// Which pages the kernel tells of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Those in memory or swapped, and whether they are of a file.
    Resident { files: bool },
    /// All but small resident pages.
    NotOrdinary,
}

/// Hands on every region of `range`; `visit` says how many are kept.
fn each(
    file: &File,
    range: Range,
    asked: Asked,
    categories: &mut u64,
    regions: &mut [PageRegion],
    visit: &mut dyn FnMut(&PageRegion) -> usize,
) -> Known<()> {
    let mut from = range.start;
    while from < range.end {
        budget::checked("PAGEMAP_SCAN")?;
        let rest = Range::new(from, range.end);
        let found = match scan_once(file, rest, asked, *categories, regions) {
            // A kernel that does not know a category refuses the whole call.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && *categories != RETURNED => {
                *categories = RETURNED;
                continue;
            }
            called => called.map_err(|error| gap("PAGEMAP_SCAN", &error))?,
        };
        for region in &regions[..found] {
            if visit(region) > PAGE_RUNS_MAX {
                return Err(Gap::new("page runs", Why::OverLimit));
            }
        }
        // `walk_end` cannot say where to go on: after more than 512 regions it still names the last stop of the
        // kernel's own buffer, though the walk was finished (fs/proc/task_mmu.c, `do_pagemap_scan`, 6.7 to 6.18).
        match regions.get(found.wrapping_sub(1)) {
            Some(last) if found == regions.len() && last.end > from.0 => from = Addr(last.end),
            _ => break,
        }
    }
    Ok(())
}

fn scan_once(
    file: &File,
    range: Range,
    asked: Asked,
    categories: u64,
    regions: &mut [PageRegion],
) -> io::Result<usize> {
    let unusual = PAGE_IS_SWAPPED | PAGE_IS_PFNZERO | PAGE_IS_HUGE;
    let mut arg = ScanArg {
        size: size_of::<ScanArg>() as u64,
        start: range.start.0,
        end: range.end.0,
        vec: regions.as_mut_ptr() as u64,
        vec_len: regions.len() as u64,
        ..ScanArg::default()
    };
    (arg.category_inverted, arg.category_anyof_mask, arg.return_mask) = match asked {
        Asked::Resident { files: true } => (0, PAGE_IS_PRESENT | PAGE_IS_SWAPPED, categories),
        Asked::Resident { files: false } => {
            (0, PAGE_IS_PRESENT | PAGE_IS_SWAPPED, categories & !PAGE_IS_FILE)
        }
        Asked::NotOrdinary => (PAGE_IS_PRESENT, PAGE_IS_PRESENT | unusual, categories & !PAGE_IS_FILE),
    };
    // SAFETY: `arg` has the layout of struct pm_scan_arg and says its size; the kernel writes at most `vec_len` regions
    // into `regions`, which outlives the call.
    let found = longest_hold::timed(|| unsafe { libc::ioctl(file.as_raw_fd(), PAGEMAP_SCAN as _, &mut arg) });
    if found < 0 { Err(io::Error::last_os_error()) } else { Ok(found as usize) }
}

/// Cuts a region at the borders of mappings: it may span several.
fn add_region(runs: &mut Vec<PageRun>, region: &PageRegion, mappings: &[Mapping]) {
    let reported = bits_of(region.categories);
    if reported == 0 {
        return;
    }
    let range = Range::of(region.start, region.end);
    let is_huge = region.categories & PAGE_IS_HUGE != 0;
    let page_bytes = (if is_huge { huge_page() } else { base_page() }) as u32;
    for mapping in overlapping(mappings, range, |mapping| mapping.range) {
        let piece = mapping.range.intersect(range);
        let shared_file = mapping.is_file() && mapping.rights.shared;
        let bits = if shared_file { reported | PageRun::FILE } else { reported };
        if bits & PageRun::PRESENT != 0 && !mapping.counts_in_rss(bits & PageRun::FILE != 0) {
            continue;
        }
        push_run(runs, PageRun { range: piece, bits, page_bytes, mapped_times: 0 }, mapping.range);
    }
}

fn bits_of(categories: u64) -> u8 {
    let is = |category| categories & category != 0;
    let mut bits = 0;
    if is(PAGE_IS_PRESENT) && !is(PAGE_IS_PFNZERO) {
        bits |= PageRun::PRESENT;
    }
    if is(PAGE_IS_SWAPPED) && !is(PAGE_IS_GUARD) {
        bits |= PageRun::SWAPPED;
    }
    if bits != 0 && is(PAGE_IS_FILE) {
        bits |= PageRun::FILE;
    }
    bits
}

/// The end of the last mapping of user space. A scan beyond the end of user space is EFAULT, and where that is depends on the
/// architecture and on the kernel's page tables.
fn user_end(mappings: &[Mapping]) -> Addr {
    let ends = mappings.iter().map(|mapping| mapping.range.end);
    ends.filter(|end| end.0 <= USER_END).max().unwrap_or(Addr::NULL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_mapping_is_cut_into_pieces_that_cover_it_and_nothing_else_is() {
        let heap = Range::of(0x7_0000_0000, 0x8_0000_0000);
        let pieces: Vec<Range> = cut(heap, true).collect();
        assert_eq!((pieces.len(), pieces[0].start, pieces[15].end), (16, heap.start, heap.end));
        assert!(pieces.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(cut(heap, false).collect::<Vec<_>>(), [heap]);
        assert!(cut(Range::of(0x1000, 16 << 40), true).count() <= 1025);
        assert_eq!(cut(Range::default(), true).count(), 0);
    }
}
