//! The state of each page: resident, swapped, of a file, huge, shared with whom.
//!
//! PAGEMAP_SCAN (Linux 6.7) gives ranges of alike pages in one pass without touching any: include/uapi/linux/fs.h,
//! Documentation/admin-guide/mm/pagemap.rst. The zero page is present in the page table but counted in nobody's RSS
//! (mm/memory.c, `vm_normal_page`), so it counts as absent here too.

use super::maps::Mapping;
use super::process::{Process, gap};
use crate::base::limits::PAGE_RUNS_MAX;
use crate::base::{Addr, Gap, Known, PAGE, Range, Why};
use serde::{Deserialize, Serialize};
use std::fs::File;
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

    pub fn is_present(&self) -> bool {
        self.bits & Self::PRESENT != 0
    }
    pub fn is_swapped(&self) -> bool {
        self.bits & Self::SWAPPED != 0
    }
    pub fn is_file(&self) -> bool {
        self.bits & Self::FILE != 0
    }
}

const PAGE_IS_FILE: u64 = 1 << 2;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;
const PAGE_IS_PFNZERO: u64 = 1 << 5;
const PAGE_IS_HUGE: u64 = 1 << 6;
/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
/// Above the highest address of user space with 4-level page tables there is nothing but the vsyscall page.
const USER_END: u64 = 0x7fff_ffff_f000;
const REGIONS_PER_CALL: usize = 8192;
const HUGE_BYTES: u32 = 2 << 20;

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
    let file = process.open_file("pagemap").map_err(|error| {
        gap("/proc/PID/pagemap", &error).hint("run as root or as the JVM's user, or with CAP_SYS_PTRACE")
    })?;
    let mut runs = Vec::new();
    let mut regions = vec![PageRegion::default(); REGIONS_PER_CALL];
    let mut from = 0;
    while from < USER_END {
        let (found, walked_to) = scan_once(&file, from, &mut regions)?;
        for region in &regions[..found] {
            add_region(&mut runs, region, mappings);
        }
        if runs.len() > PAGE_RUNS_MAX {
            return Err(Gap::new("page runs", Why::OverLimit));
        }
        if walked_to <= from {
            break;
        }
        from = walked_to;
    }
    Ok(runs)
}

fn scan_once(file: &File, from: u64, regions: &mut [PageRegion]) -> Known<(usize, u64)> {
    let mut arg = ScanArg {
        size: size_of::<ScanArg>() as u64,
        start: from,
        end: USER_END,
        vec: regions.as_mut_ptr() as u64,
        vec_len: regions.len() as u64,
        category_anyof_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
        return_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED | PAGE_IS_FILE | PAGE_IS_PFNZERO | PAGE_IS_HUGE,
        ..ScanArg::default()
    };
    // SAFETY: `arg` has the layout of struct pm_scan_arg and says its size; the kernel writes at most `vec_len` regions
    // into `regions`, which outlives the call.
    let found = unsafe { libc::ioctl(file.as_raw_fd(), PAGEMAP_SCAN, &mut arg) };
    if found < 0 {
        return Err(gap("PAGEMAP_SCAN", &std::io::Error::last_os_error()));
    }
    Ok((found as usize, arg.walk_end))
}

/// Cuts a region at the borders of mappings: it may span several.
fn add_region(runs: &mut Vec<PageRun>, region: &PageRegion, mappings: &[Mapping]) {
    let bits = bits_of(region.categories);
    if bits == 0 {
        return;
    }
    let range = Range::of(region.start, region.end);
    let page_bytes = if region.categories & PAGE_IS_HUGE != 0 { HUGE_BYTES } else { PAGE as u32 };
    let first = mappings.partition_point(|mapping| mapping.range.end <= range.start);
    for mapping in mappings[first..].iter().take_while(|mapping| mapping.range.start < range.end) {
        let piece = mapping.range.intersect(range);
        let run = PageRun { range: piece, bits, page_bytes, mapped_times: 0 };
        match runs.last_mut() {
            Some(last)
                if last.range.end == piece.start
                    && last.same_as(&run)
                    && mapping.range.has(last.range.start) =>
            {
                last.range.end = piece.end;
            }
            _ => runs.push(run),
        }
    }
}

impl PageRun {
    fn same_as(&self, other: &PageRun) -> bool {
        (self.bits, self.page_bytes, self.mapped_times) == (other.bits, other.page_bytes, other.mapped_times)
    }
}

fn bits_of(categories: u64) -> u8 {
    let is = |category| categories & category != 0;
    let mut bits = 0;
    if is(PAGE_IS_PRESENT) && !is(PAGE_IS_PFNZERO) {
        bits |= PageRun::PRESENT;
    }
    if is(PAGE_IS_SWAPPED) {
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
