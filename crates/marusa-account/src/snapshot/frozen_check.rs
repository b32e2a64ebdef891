//! Whether the kernel's view in a frozen file is one that a kernel can have given. The readers rely on its order, and an account
//! takes some hundred times the memory of a mapping, so a file has no more of anything than its packed bytes can hold.

use crate::base::limits::{
    FROZEN_BYTES_PER_MAPPING, FROZEN_MAPPINGS_FREE, FROZEN_RUNS_FREE, FROZEN_SHMEM_DEVICES_MAX, MAPPINGS_MAX,
    PAGE_BYTES_MAX, PAGE_RUNS_MAX, THREADS_MAX,
};
use crate::base::{Addr, Bytes, PAGE, Range, Refused, refuse};
use crate::os::maps::find_mapping;
use crate::os::page_kind::PageSizes;
use crate::os::target::OsView;

/// `Err`: what is wrong.
pub fn check(os: &OsView, packed_bytes: Bytes) -> Result<(), Refused> {
    counts(os, packed_bytes)?;
    let mappings = &os.mappings;
    if !is_sorted(mappings.iter().map(|mapping| mapping.range)) {
        refuse!("its mappings are not sorted");
    }
    if let Ok(pages) = &os.pages {
        let is_inside = |range: Range| {
            find_mapping(mappings, range.start).is_some_and(|mapping| mapping.range.covers(range))
        };
        if !pages.iter().all(|run| is_inside(run.range)) || !is_sorted(pages.iter().map(|run| run.range)) {
            refuse!("its runs of pages do not fit its mappings");
        }
        if !pages.iter().all(|run| is_page_size(Bytes::from(run.page_bytes))) {
            refuse!("its pages have impossible sizes");
        }
    }
    if let Some(Ok(sizes)) = &os.page_sizes {
        page_sizes(sizes)?;
    }
    match &os.smaps {
        Some(Ok(smaps)) if !is_sorted(smaps.iter().map(|smap| smap.range)) => {
            refuse!("its smaps is not sorted");
        }
        _ => Ok(()),
    }
}

fn counts(os: &OsView, packed_bytes: Bytes) -> Result<(), Refused> {
    let mappings_max =
        (FROZEN_MAPPINGS_FREE + packed_bytes / FROZEN_BYTES_PER_MAPPING).min(MAPPINGS_MAX as u64);
    let runs_max = (FROZEN_RUNS_FREE + packed_bytes).min(PAGE_RUNS_MAX as u64);
    let sizes = os.page_sizes.iter().flatten();
    for (what, count, max) in [
        ("mappings", os.mappings.len(), mappings_max),
        ("threads", os.tasks.len(), mappings_max.min(THREADS_MAX as u64)),
        ("gaps", os.gaps.len(), FROZEN_MAPPINGS_FREE),
        ("runs of pages", os.pages.as_ref().map_or(0, Vec::len), runs_max),
        ("runs of folios", sizes.map(|sizes| sizes.runs.len() + sizes.hugetlb.len()).sum(), runs_max),
        ("entries of smaps", os.smaps.iter().flatten().map(Vec::len).sum(), mappings_max),
    ] {
        if count as u64 > max {
            refuse!("it claims {count} {what}, more than its {packed_bytes} bytes can hold");
        }
    }
    Ok(())
}

/// Each size has a row in the account, and each run is compared with each device.
fn page_sizes(sizes: &PageSizes) -> Result<(), Refused> {
    let kinds = || sizes.runs.iter().map(|run| run.kind);
    if !kinds().all(|kind| is_page_size(kind.folio_bytes) && is_page_size(kind.entry_bytes)) {
        refuse!("its folios have impossible sizes");
    }
    let is_in_order =
        is_sorted(sizes.runs.iter().map(|run| run.range)) && is_sorted(sizes.hugetlb.iter().copied());
    if !is_in_order || sizes.shmem_devices.len() > FROZEN_SHMEM_DEVICES_MAX {
        refuse!("its folios are not sorted");
    }
    Ok(())
}

/// The sizes that processors have are powers of two.
fn is_page_size(bytes: Bytes) -> bool {
    bytes.is_power_of_two() && (PAGE..=PAGE_BYTES_MAX).contains(&bytes)
}

/// Whether the ranges are sorted, disjoint and not empty.
fn is_sorted(mut ranges: impl Iterator<Item = Range>) -> bool {
    let mut end = Addr::NULL;
    ranges.all(|range| {
        let good = range.start >= end && range.start < range.end;
        end = range.end;
        good
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::pagemap::PageRun;

    fn view(mappings: usize) -> OsView {
        let line = |at: usize| format!("{:x}-{:x} rw-p 00000000 00:00 0 \n", at << 13, (at << 13) + 4096);
        let text: String = (1..=mappings).map(line).collect();
        OsView {
            process: Default::default(),
            status: Default::default(),
            mappings: crate::os::maps::parse(text.as_bytes()).0,
            pages: Ok(Vec::new()),
            tasks: Vec::new(),
            gaps: Vec::new(),
            late: None,
            page_sizes: None,
            smaps: None,
        }
    }

    #[test]
    fn a_file_has_no_more_than_its_bytes_can_hold() {
        let many = view(FROZEN_MAPPINGS_FREE as usize + 10);
        let wrong = check(&many, 0).expect_err("more than every file may have");
        assert!(wrong.0.contains("65546 mappings"), "{wrong}");
        assert_eq!(check(&many, 10 * FROZEN_BYTES_PER_MAPPING), Ok(()));
    }

    #[test]
    fn pages_have_the_sizes_of_pages() {
        let mut os = view(1);
        let range = os.mappings[0].range;
        let mut with = |page_bytes: u32| {
            os.pages = Ok(vec![PageRun { range, bits: PageRun::PRESENT, page_bytes, mapped_times: 1 }]);
            check(&os, 0)
        };
        assert!(with(4096).is_ok() && with(2 << 20).is_ok());
        assert!(with(0).is_err() && with(4095).is_err() && with(2048).is_err());
    }
}
