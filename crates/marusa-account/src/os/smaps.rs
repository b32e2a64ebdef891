//! `/proc/PID/smaps` and `smaps_rollup`: the kernel's own sums for each mapping. They cost a walk of every page table with
//! a lock of the target held (20 ms a gigabyte of small pages), so they are asked only for what no cheaper file tells.
//!
//! Format: Documentation/filesystems/proc.rst, "The /proc/PID/smaps extension"; meaning of each figure:
//! fs/proc/task_mmu.c (`smaps_account`). Hugetlb pages are in neither Rss nor Pss.

use super::machine::{base_page, huge_page};
use super::maps::{Mapping, parse_line};
use super::page_run::PageRun;
use super::process::{Process, gap};
use crate::base::{Addr, Bytes, Known, Range};
use serde::{Deserialize, Serialize};

/// The figures of one mapping, in bytes; the ones that this kernel does not print are 0, as no page is of that kind then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Smap {
    pub range: Range,
    pub kernel_page_bytes: Bytes,
    pub resident_bytes: Bytes,
    pub proportional_bytes: Bytes,
    pub anonymous_bytes: Bytes,
    /// The anonymous part of `proportional_bytes`; in smaps_rollup only (Linux 5.4).
    pub proportional_anonymous_bytes: Option<Bytes>,
    pub anonymous_huge_bytes: Bytes,
    pub shmem_huge_bytes: Bytes,
    pub file_huge_bytes: Bytes,
    pub private_hugetlb_bytes: Bytes,
    pub shared_hugetlb_bytes: Bytes,
    pub swapped_bytes: Bytes,
    /// Held in memory by mlock or MAP_LOCKED, divided by those who share it.
    pub locked_bytes: Bytes,
    /// Whether a page of 2 MiB could be put here now (Linux 5.0); `None` where this kernel does not say.
    pub thp_eligible: Option<bool>,
    /// `VmFlags`: two letters each, "rd wr mr mw me ac hg".
    pub flags: String,
}

impl Smap {
    pub fn hugetlb_bytes(&self) -> Bytes {
        self.private_hugetlb_bytes.saturating_add(self.shared_hugetlb_bytes)
    }
    /// Pages in memory, hugetlb ones included.
    pub fn present_bytes(&self) -> Bytes {
        self.resident_bytes.saturating_add(self.hugetlb_bytes())
    }
    /// Bytes that one entry of the page table maps 2 MiB at a time.
    pub fn huge_bytes(&self) -> Bytes {
        self.anonymous_huge_bytes.saturating_add(self.shmem_huge_bytes).saturating_add(self.file_huge_bytes)
    }
    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.split(' ').any(|word| word == flag)
    }

    /// The pages of this mapping as runs whose place within it is not known: laid out from its start, one run for each
    /// kind of page, anonymous first.
    fn runs(&self) -> Vec<PageRun> {
        let small_anonymous = self.anonymous_bytes.saturating_sub(self.anonymous_huge_bytes);
        let file_huge = self.shmem_huge_bytes.saturating_add(self.file_huge_bytes);
        let small_file = self.resident_bytes.saturating_sub(self.anonymous_bytes).saturating_sub(file_huge);
        let huge = huge_page() as u32;
        let kinds = [
            (self.anonymous_huge_bytes, PageRun::PRESENT, huge),
            (small_anonymous, PageRun::PRESENT, base_page() as u32),
            (file_huge, PageRun::PRESENT | PageRun::FILE, huge),
            (small_file, PageRun::PRESENT | PageRun::FILE, base_page() as u32),
            (self.private_hugetlb_bytes, PageRun::PRESENT, self.kernel_page_bytes as u32),
            (self.shared_hugetlb_bytes, PageRun::PRESENT | PageRun::FILE, self.kernel_page_bytes as u32),
            (self.swapped_bytes, PageRun::SWAPPED, base_page() as u32),
        ];
        let mut runs = Vec::new();
        let mut at = self.range.start;
        for (bytes, bits, page_bytes) in kinds {
            let range = Range::sized(at, bytes).intersect(self.range);
            if !range.is_empty() {
                at = range.end;
                let bits = bits | PageRun::PLACE_UNKNOWN;
                runs.push(PageRun { range, bits, page_bytes, mapped_times: 0 });
            }
        }
        runs
    }
}

/// Every mapping's figures, sorted by address.
pub fn read(process: &Process) -> Known<Vec<Smap>> {
    let bytes = process.bytes("smaps").map_err(|error| gap("/proc/PID/smaps", &error))?;
    Ok(parse(&String::from_utf8_lossy(&bytes)))
}

/// The sums over all mappings (Linux 4.14): exact, where the counters of `status` may lag.
pub fn rollup(process: &Process) -> Known<Smap> {
    let text = process.text("smaps_rollup").map_err(|error| gap("/proc/PID/smaps_rollup", &error))?;
    Ok(parse(&text).pop().unwrap_or_default())
}

/// The figures of the mapping that starts at `start`.
pub fn find(smaps: &[Smap], start: Addr) -> Option<&Smap> {
    let at = smaps.binary_search_by_key(&start, |smap| smap.range.start).ok()?;
    smaps.get(at)
}

/// The mapping that an address is in.
pub fn at(smaps: &[Smap], at: Addr) -> Option<&Smap> {
    smaps.get(smaps.partition_point(|smap| smap.range.end <= at)).filter(|smap| smap.range.has(at))
}

/// Runs for `mappings` whose place is not known. A mapping that has no figures has no run.
pub fn runs(smaps: &[Smap], mappings: &[Mapping]) -> Vec<PageRun> {
    mappings
        .iter()
        .filter_map(|mapping| find(smaps, mapping.range.start))
        .flat_map(|smap| smap.runs())
        .collect()
}

/// Parses either file. The result is sorted and disjoint.
pub fn parse(text: &str) -> Vec<Smap> {
    let mut smaps: Vec<Smap> = Vec::new();
    for line in text.lines() {
        let is_figure = line.as_bytes().first().is_some_and(u8::is_ascii_uppercase);
        if is_figure {
            if let (Some(smap), Some((key, value))) = (smaps.last_mut(), line.split_once(':')) {
                add_figure(smap, key, value.trim());
            }
        } else if let Some(mapping) = parse_line(line) {
            smaps.push(Smap { range: mapping.range, kernel_page_bytes: base_page(), ..Smap::default() });
        }
    }
    smaps.sort_by_key(|smap| smap.range.start);
    smaps.dedup_by(|next, last| next.range.overlaps(last.range));
    smaps
}

fn add_figure(smap: &mut Smap, key: &str, value: &str) {
    let kilobytes = value.strip_suffix(" kB").unwrap_or(value).trim().parse::<u64>();
    let bytes = kilobytes.map_or(0, |kilobytes| kilobytes.saturating_mul(1024));
    match key {
        "KernelPageSize" => smap.kernel_page_bytes = bytes.clamp(base_page(), 1 << 31),
        "Rss" => smap.resident_bytes = bytes,
        "Pss" => smap.proportional_bytes = bytes,
        "Pss_Anon" => smap.proportional_anonymous_bytes = Some(bytes),
        "Anonymous" => smap.anonymous_bytes = bytes,
        "AnonHugePages" => smap.anonymous_huge_bytes = bytes,
        "ShmemPmdMapped" => smap.shmem_huge_bytes = bytes,
        "FilePmdMapped" => smap.file_huge_bytes = bytes,
        "Private_Hugetlb" => smap.private_hugetlb_bytes = bytes,
        "Shared_Hugetlb" => smap.shared_hugetlb_bytes = bytes,
        "Swap" => smap.swapped_bytes = bytes,
        "Locked" => smap.locked_bytes = bytes,
        "THPeligible" => smap.thp_eligible = value.parse::<u8>().ok().map(|flag| flag != 0),
        "VmFlags" => smap.flags = value.to_string(),
        _ => {}
    }
}

/// Gives runs of hugetlb mappings their page size; PAGEMAP_SCAN knows only "huge".
pub(super) fn size_hugetlb(runs: &mut [PageRun], smaps: &[Smap]) {
    for run in runs {
        if let Some(smap) = at(smaps, run.range.start)
            && smap.kernel_page_bytes > base_page()
        {
            run.page_bytes = smap.kernel_page_bytes as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::PAGE;
    use crate::os::maps;

    const HEAP: &str = "\
e0000000-e4c00000 rw-p 00000000 00:00 0 
Size:              77824 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                6180 kB
Pss:                6180 kB
Anonymous:          6180 kB
AnonHugePages:      2048 kB
ShmemPmdMapped:        0 kB
Swap:                 12 kB
SwapPss:              12 kB
THPeligible:           1
VmFlags: rd wr mr mw me ac hg 
7f0000000000-7f0000200000 r--s 00000000 fe:00 77    /usr/lib/jvm/lib/modules
Rss:                 100 kB
Pss:                  50 kB
Anonymous:             0 kB
";

    #[test]
    fn the_figures_of_two_mappings() {
        let smaps = parse(HEAP);
        assert_eq!(smaps.len(), 2);
        assert_eq!((smaps[0].resident_bytes, smaps[0].anonymous_huge_bytes), (6180 << 10, 2 << 20));
        assert_eq!((smaps[0].thp_eligible, smaps[1].thp_eligible), (Some(true), None));
        assert!(smaps[0].has_flag("hg") && !smaps[1].has_flag("hg"));
        assert_eq!(find(&smaps, Addr(0x7f00_0000_0000)).map(|smap| smap.proportional_bytes), Some(50 << 10));
    }

    #[test]
    fn runs_hold_the_sums_of_the_kernel_and_say_that_their_place_is_not_known() {
        let (mappings, _) = maps::parse(
            HEAP.lines().filter(|line| line.contains('-')).collect::<Vec<_>>().join("\n").as_bytes(),
        );
        let runs = runs(&parse(HEAP), &mappings);
        let kinds: Vec<_> = runs.iter().map(|run| (run.range.bytes() >> 10, run.page_bytes)).collect();
        assert_eq!(kinds, [(2048, 2 << 20), (4132, 4096), (12, 4096), (100, 4096)]);
        assert!(runs.iter().all(|run| run.bits & PageRun::PLACE_UNKNOWN != 0));
        assert!(runs[2].is_swapped() && runs[3].is_file());
    }

    #[test]
    fn figures_larger_than_their_mapping_do_not_leave_it() {
        let text = "1000-2000 rw-p 0 00:00 0 \nRss: 18446744073709551615 kB\nAnonymous: 4 kB\nKernelPageSize: 0 kB\n";
        let smap = &parse(text)[0];
        assert_eq!(smap.kernel_page_bytes, PAGE);
        assert_eq!(smap.runs().iter().map(|run| run.range.bytes()).sum::<u64>(), 4096);
    }
}
