//! The state of each page: resident, swapped, of a file, huge, shared with whom. Three ways, from the best to the last:
//!
//! * PAGEMAP_SCAN (Linux 6.7) gives ranges of alike pages in one pass without touching any: include/uapi/linux/fs.h,
//!   Documentation/admin-guide/mm/pagemap.rst.
//! * `/proc/PID/pagemap`, one word a page (`os::pagemap_words`), on older kernels.
//! * `/proc/PID/smaps`, sums of each mapping (`os::smaps`), where there is no pagemap (gVisor).
//!
//! The zero page is present in the page table but counted in nobody's RSS (mm/memory.c, `vm_normal_page`), so it counts
//! as absent here too. Until about 6.16 PAGEMAP_SCAN tells the small one only: PAGE_IS_PFNZERO asked `is_zero_pfn`, later
//! `is_huge_zero_pmd`, of a huge page (fs/proc/task_mmu.c, `pagemap_thp_category`). Guard regions of MADV_GUARD_INSTALL
//! (6.13) look like swap until PAGE_IS_GUARD tells them.

use super::maps::Mapping;
use super::pagemap_words::{self, Words};
use super::process::{Process, gap};
use super::smaps::{self, Smap};
use super::status::Status;
use crate::base::limits::PAGE_RUNS_MAX;
use crate::base::{Addr, Gap, Known, PAGE, Range, Why};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Pages in a row that are alike, within one mapping. Absent pages have no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRun {
    pub range: Range,
    /// `PageRun::PRESENT` and the other bits.
    pub bits: u8,
    /// Bytes of one mapped page: 4096, 2097152, 1073741824.
    pub page_bytes: u32,
    /// How many page tables map each page; 0 when not known.
    pub mapped_times: u32,
}

impl PageRun {
    pub const PRESENT: u8 = 1;
    pub const SWAPPED: u8 = 2;
    /// A page of the page cache or of shared memory, not a private copy.
    pub const FILE: u8 = 4;
    /// The run has the right length, but where in its mapping its pages lie is not known: it stands at the start.
    pub const PLACE_UNKNOWN: u8 = 8;

    pub fn is_present(&self) -> bool {
        self.bits & Self::PRESENT != 0
    }
    pub fn is_swapped(&self) -> bool {
        self.bits & Self::SWAPPED != 0
    }
    pub fn is_file(&self) -> bool {
        self.bits & Self::FILE != 0
    }
    pub fn is_placed(&self) -> bool {
        self.bits & Self::PLACE_UNKNOWN == 0
    }
    fn same_as(&self, other: &PageRun) -> bool {
        (self.bits, self.page_bytes, self.mapped_times) == (other.bits, other.page_bytes, other.mapped_times)
    }
}

/// How the pages were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    PagemapScan,
    Pagemap,
    Smaps,
}

/// The pages of a process.
#[derive(Clone, Debug)]
pub struct Pages {
    /// Sorted, disjoint, each within one mapping.
    pub runs: Vec<PageRun>,
    pub method: Method,
    pub gaps: Vec<Gap>,
}

/// The pages by the best way that this kernel has, or by the one that is forced.
pub fn read(
    process: &Process,
    mappings: &[Mapping],
    status: &Status,
    forced: Option<Method>,
) -> Known<Pages> {
    let ways = [Method::PagemapScan, Method::Pagemap, Method::Smaps];
    let mut failed = Gap::new("pages", Why::NotInThisKernel);
    for method in ways.into_iter().filter(|method| forced.is_none_or(|wanted| wanted == *method)) {
        let pages = match method {
            Method::PagemapScan => by_scan(process, mappings, status),
            Method::Pagemap => pagemap_words::read(process, mappings),
            Method::Smaps => by_smaps(process, mappings),
        };
        match pages {
            // `Gone` while the process lives: the file is not there.
            Err(gap) if matches!(gap.why, Why::NotInThisKernel | Why::Gone) && process.is_same() => {
                failed = gap
            }
            done => return done,
        }
    }
    Err(failed)
}

fn by_scan(process: &Process, mappings: &[Mapping], status: &Status) -> Known<Pages> {
    let mut pages = Pages { runs: scan(process, mappings)?, method: Method::PagemapScan, gaps: Vec::new() };
    if status.hugetlb_bytes.is_some_and(|bytes| bytes > 0) {
        match smaps::read(process) {
            Ok(smaps) => size_hugetlb(&mut pages.runs, &smaps),
            Err(gap) => pages.gaps.push(gap.hint("pages of 1 GiB are shown as pages of 2 MiB")),
        }
    }
    if let Err(gap) = drop_huge_zero(process, &mut pages.runs, status) {
        pages.gaps.push(gap);
    }
    Ok(pages)
}

fn by_smaps(process: &Process, mappings: &[Mapping]) -> Known<Pages> {
    let smaps = smaps::read(process)?;
    let gap = Gap::new("place of each page", Why::NotInThisKernel)
        .hint("this kernel has no /proc/PID/pagemap: residency is known for each mapping, not within one");
    Ok(Pages { runs: smaps::runs(&smaps, mappings), method: Method::Smaps, gaps: vec![gap] })
}

/// Gives runs of hugetlb mappings their page size; PAGEMAP_SCAN knows only "huge".
pub(super) fn size_hugetlb(runs: &mut [PageRun], smaps: &[Smap]) {
    for run in runs {
        let after = smaps.partition_point(|smap| smap.range.end <= run.range.start);
        if let Some(smap) = smaps.get(after).filter(|smap| smap.range.has(run.range.start))
            && smap.kernel_page_bytes > PAGE
        {
            run.page_bytes = smap.kernel_page_bytes as u32;
        }
    }
}

/// Takes out the huge zero pages: where our sum is above the kernel's, huge anonymous pages that are not exclusive are
/// looked at, one word each. Pages shared with a forked process look the same, so more than the excess are left in.
fn drop_huge_zero(process: &Process, runs: &mut Vec<PageRun>, status: &Status) -> Known<()> {
    let unit = HUGE_BYTES as u64;
    let is_suspect = |run: &PageRun| run.is_present() && !run.is_file() && run.page_bytes == HUGE_BYTES;
    let present: u64 = runs.iter().filter(|run| run.is_present()).map(|run| run.range.bytes()).sum();
    let excess = present.saturating_sub(status.resident_with_hugetlb_bytes().unwrap_or(u64::MAX));
    if excess < unit || !runs.iter().any(is_suspect) {
        return Ok(());
    }
    let words = Words::open(process)?;
    let mut kept = Vec::with_capacity(runs.len());
    let mut dropped = 0;
    for run in runs.iter() {
        if !is_suspect(run) {
            kept.push(*run);
            continue;
        }
        let mut at = run.range.start;
        while at < run.range.end {
            let piece = Range::new(at, at.plus(1).up_to(unit).min(run.range.end));
            at = piece.end;
            if words.word(piece.start)?.may_be_zero_page() {
                dropped += piece.bytes();
            } else {
                push_run(&mut kept, PageRun { range: piece, ..*run }, run.range);
            }
        }
    }
    if dropped > excess + excess / 4 + unit {
        return Err(Gap::new("huge zero pages", Why::NotInThisKernel)
            .hint("pages shared with a forked process look the same; up to as much as ours is above the kernel's sum"));
    }
    *runs = kept;
    Ok(())
}

/// Adds a run, joined with the last one if both are alike and lie in the mapping `within`.
pub(super) fn push_run(runs: &mut Vec<PageRun>, run: PageRun, within: Range) {
    match runs.last_mut() {
        Some(last)
            if last.range.end == run.range.start && last.same_as(&run) && within.has(last.range.start) =>
        {
            last.range.end = run.range.end;
        }
        _ => runs.push(run),
    }
}

const PAGE_IS_FILE: u64 = 1 << 2;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;
const PAGE_IS_PFNZERO: u64 = 1 << 5;
const PAGE_IS_HUGE: u64 = 1 << 6;
const PAGE_IS_GUARD: u64 = 1 << 8;
const RETURNED: u64 = PAGE_IS_PRESENT | PAGE_IS_SWAPPED | PAGE_IS_FILE | PAGE_IS_PFNZERO | PAGE_IS_HUGE;
/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
/// Above the highest address of user space with 4-level page tables there is nothing but the vsyscall page.
const USER_END: u64 = 0x7fff_ffff_f000;
const REGIONS_PER_CALL: usize = 2048;
/// Smaller mappings are not worth a call of their own.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;
pub(super) const HUGE_BYTES: u32 = 2 << 20;

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

/// Stretches of the address space, and whether the kernel is asked which of their pages belong to a file.
///
/// That question costs a look at the `struct page` of every page (fs/proc/task_mmu.c, `pagemap_page_category`), four
/// fifths of the time of a scan. In anonymous and in shared mappings the mapping answers it, so the large ones of these
/// are scanned without it.
fn segments(mappings: &[Mapping]) -> Vec<(Range, bool)> {
    let mut segments = Vec::new();
    let mut from = Addr::NULL;
    let known = |mapping: &&Mapping| mapping.is_anonymous() || (mapping.is_file() && mapping.rights.shared);
    for mapping in mappings.iter().filter(known).filter(|mapping| mapping.range.bytes() >= SEGMENT_BYTES_MIN)
    {
        segments.push((Range::new(from, mapping.range.start), true));
        segments.push((mapping.range, false));
        from = mapping.range.end;
    }
    segments.push((Range::new(from, user_end()), true));
    segments.retain(|(range, _)| !range.is_empty());
    segments
}

/// The runs within `ranges`, which are sorted; pages outside of them have no run, as if they were absent.
pub fn scan_ranges(process: &Process, mappings: &[Mapping], ranges: &[Range]) -> Known<Vec<PageRun>> {
    let segments: Vec<(Range, bool)> = ranges.iter().map(|range| (*range, true)).collect();
    scan_segments(process, mappings, &segments)
}

fn scan_segments(process: &Process, mappings: &[Mapping], segments: &[(Range, bool)]) -> Known<Vec<PageRun>> {
    let file = process.open_file("pagemap").map_err(|error| {
        gap("/proc/PID/pagemap", &error).hint("run as root or as the JVM's user, or with CAP_SYS_PTRACE")
    })?;
    let mut runs = Vec::new();
    let mut regions = vec![PageRegion::default(); REGIONS_PER_CALL];
    let mut categories = RETURNED | PAGE_IS_GUARD;
    for (range, ask_file) in segments {
        let mut from = range.start.0;
        while from < range.end.0 {
            let asked = if *ask_file { categories } else { categories & !PAGE_IS_FILE };
            let called = match scan_once(&file, Range::new(Addr(from), range.end), asked, &mut regions) {
                // A kernel that does not know a category refuses the whole call.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) && categories != RETURNED => {
                    categories = RETURNED;
                    continue;
                }
                called => called.map_err(|error| gap("PAGEMAP_SCAN", &error)),
            };
            let found = called?;
            for region in &regions[..found] {
                add_region(&mut runs, region, mappings);
            }
            if runs.len() > PAGE_RUNS_MAX {
                return Err(Gap::new("page runs", Why::OverLimit));
            }
            // `walk_end` can not say where to go on: after more than 512 regions it still names the last stop of the
            // kernel's own buffer, though the walk was finished (fs/proc/task_mmu.c, `do_pagemap_scan`, 6.7 to 6.18).
            match regions.get(found.wrapping_sub(1)) {
                Some(last) if found == regions.len() && last.end > from => from = last.end,
                _ => break,
            }
        }
    }
    Ok(runs)
}

fn scan_once(file: &File, range: Range, categories: u64, regions: &mut [PageRegion]) -> io::Result<usize> {
    let mut arg = ScanArg {
        size: size_of::<ScanArg>() as u64,
        start: range.start.0,
        end: range.end.0,
        vec: regions.as_mut_ptr() as u64,
        vec_len: regions.len() as u64,
        category_anyof_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
        return_mask: categories,
        ..ScanArg::default()
    };
    // SAFETY: `arg` has the layout of struct pm_scan_arg and says its size; the kernel writes at most `vec_len` regions
    // into `regions`, which outlives the call.
    let found = unsafe { libc::ioctl(file.as_raw_fd(), PAGEMAP_SCAN as _, &mut arg) };
    if found < 0 { Err(io::Error::last_os_error()) } else { Ok(found as usize) }
}

/// Cuts a region at the borders of mappings: it may span several.
fn add_region(runs: &mut Vec<PageRun>, region: &PageRegion, mappings: &[Mapping]) {
    let bits_told = bits_of(region.categories);
    if bits_told == 0 {
        return;
    }
    let range = Range::of(region.start, region.end);
    let page_bytes = if region.categories & PAGE_IS_HUGE != 0 { HUGE_BYTES } else { PAGE as u32 };
    let first = mappings.partition_point(|mapping| mapping.range.end <= range.start);
    for mapping in mappings[first..].iter().take_while(|mapping| mapping.range.start < range.end) {
        let piece = mapping.range.intersect(range);
        let shared_file = mapping.is_file() && mapping.rights.shared;
        let bits = if shared_file { bits_told | PageRun::FILE } else { bits_told };
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

/// The address after the last one that a scan looks at.
pub fn user_end() -> Addr {
    Addr(USER_END)
}
