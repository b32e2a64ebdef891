//! The state of each page: resident, swapped, of a file, huge, shared with whom. Three ways, from the best to the last:
//!
//! * PAGEMAP_SCAN (Linux 6.7) gives ranges of alike pages in one pass without touching any: include/uapi/linux/fs.h,
//!   Documentation/admin-guide/mm/pagemap.rst.
//! * `/proc/PID/pagemap`, one word a page (`os::pagemap_words`), on older kernels.
//! * `/proc/PID/smaps`, sums of each mapping (`os::smaps`), where there is no pagemap (gVisor).
//!
//! The zero page is present in the page table but counted in no RSS (mm/memory.c, `vm_normal_page`), so it counts
//! as absent here too. Until about 6.16 PAGEMAP_SCAN tells the small one only: PAGE_IS_PFNZERO asked `is_zero_pfn`, later
//! `is_huge_zero_pmd`, of a huge page (fs/proc/task_mmu.c, `pagemap_thp_category`). Guard regions of MADV_GUARD_INSTALL
//! (6.13) look like swap until PAGE_IS_GUARD tells them.

use super::late_pages::LatePages;
use super::machine::huge_page;
use super::maps::Mapping;
use super::page_run::push_run;
pub use super::page_run::{Method, PageRun, Pages};
use super::pagemap_scan::scan_without;
pub use super::pagemap_scan::{resident_now, scan, scan_ranges};
use super::pagemap_words::{self, Words};
use super::process::Process;
use super::smaps::{self, size_hugetlb};
use super::status::Status;
use crate::base::{Gap, Known, Range, Why};

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
            Err(gap) if is_missing(&gap) && process.is_same() => failed = gap,
            done => return done,
        }
    }
    Err(failed)
}

/// Whether another way may do where this one does not.
fn is_missing(gap: &Gap) -> bool {
    matches!(gap.why, Why::NotInThisKernel | Why::Gone | Why::Failed)
}

/// As `read`, but the large mappings are left to who calls `LatePages::work`, where there are such and the kernel can tell of
/// ranges. `complete` puts both together.
pub fn read_early(
    process: &Process,
    mappings: &[Mapping],
    status: &Status,
) -> Known<(Pages, Option<LatePages>)> {
    // The pages of hugetlb are distinguished from a sum of all.
    let is_plain = status.hugetlb_bytes.is_none_or(|bytes| bytes == 0);
    if let Some(late) = LatePages::of(process, mappings).filter(|_| is_plain)
        && let Ok(runs) = scan_without(process, mappings, |range| late.overlaps(range))
    {
        return Ok((Pages { runs, method: Method::PagemapScan, gaps: Vec::new() }, Some(late)));
    }
    Ok((read(process, mappings, status, None)?, None))
}

/// All pages: the ones that `read_early` found and the ones that were left to `late`.
pub fn complete(
    process: &Process,
    mappings: &[Mapping],
    status: &Status,
    early: &[PageRun],
    late: &LatePages,
) -> Known<Pages> {
    let Ok(late) = late.runs() else { return read(process, mappings, status, None) };
    let mut runs = [early, &late].concat();
    runs.sort_by_key(|run| run.range.start);
    let mut pages = Pages { runs, method: Method::PagemapScan, gaps: Vec::new() };
    if let Err(gap) = drop_huge_zero(process, &mut pages.runs, status) {
        pages.gaps.push(gap);
    }
    Ok(pages)
}

fn by_scan(process: &Process, mappings: &[Mapping], status: &Status) -> Known<Pages> {
    let mut pages = Pages { runs: scan(process, mappings)?, method: Method::PagemapScan, gaps: Vec::new() };
    if status.hugetlb_bytes.is_some_and(|bytes| bytes > 0) {
        match smaps::read(process) {
            Ok(smaps) => size_hugetlb(&mut pages.runs, &smaps),
            Err(gap) => pages.gaps.push(gap.hint("1 GiB pages are shown as 2 MiB pages")),
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

/// Takes out the huge zero pages: where our sum is above the kernel's, huge anonymous pages that are not exclusive are
/// looked at, one word each. Pages shared with a forked process look the same, so more than the excess are left in.
fn drop_huge_zero(process: &Process, runs: &mut Vec<PageRun>, status: &Status) -> Known<()> {
    let unit = huge_page();
    let is_suspect =
        |run: &PageRun| run.is_present() && !run.is_file() && run.page_bytes == huge_page() as u32;
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
