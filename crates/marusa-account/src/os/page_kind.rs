//! What a page is, beyond the entry of the page table that maps it: the folio that it is a part of. A folio is what the
//! kernel allocates, reclaims and counts as one (include/linux/mm_types.h); one of 64 KiB whose sixteen pages sit in sixteen
//! entries is what transhuge.rst calls mTHP. smaps tells of entries only, so such memory looks like 4 KiB pages there.

use super::machine::{base_page, huge_page};
use super::maps::Mapping;
use super::page_run::PageRun;
use crate::base::{Addr, Bytes, Gap, Known, Range, bytes_of, holding, overlapping, size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the bytes of a page come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backing {
    Anonymous,
    File,
    Shmem,
    Hugetlb,
}

/// The kind of a mapped page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PageKind {
    pub backing: Backing,
    /// Size of the folio, the part that is not mapped included.
    pub folio_bytes: Bytes,
    /// Bytes that one entry of the page table maps.
    pub entry_bytes: Bytes,
}

impl PageKind {
    pub fn small(backing: Backing) -> PageKind {
        PageKind { backing, folio_bytes: base_page(), entry_bytes: base_page() }
    }
    /// Pages of a folio that are mapped one by one.
    pub fn of_folio(backing: Backing, folio_bytes: Bytes) -> PageKind {
        PageKind { backing, folio_bytes, entry_bytes: base_page() }
    }

    /// The page size that these bytes count under. A huge folio that is mapped one page at a time has the reach of a small
    /// page in the TLB, and none of what the kernel saves by mapping it whole: it counts as 4096.
    pub fn page_bytes(self) -> Bytes {
        match self {
            PageKind { entry_bytes, .. } if entry_bytes > base_page() => entry_bytes,
            PageKind { folio_bytes, .. } if folio_bytes < huge_page() => folio_bytes.max(base_page()),
            _ => base_page(),
        }
    }

    /// "4k", "mthp_64k", "thp_2m_pmd", "thp_2m_pte", "file_16k", "shmem_2m_pmd", "hugetlb_1g".
    pub fn name(self) -> String {
        let size = size(self.folio_bytes).to_lowercase();
        let entries = match self {
            PageKind { folio_bytes, .. } if folio_bytes < huge_page() => "",
            PageKind { entry_bytes, .. } if entry_bytes > base_page() => "_pmd",
            _ => "_pte",
        };
        match self.backing {
            Backing::Hugetlb => format!("hugetlb_{size}"),
            Backing::File => format!("file_{size}{entries}"),
            Backing::Shmem => format!("shmem_{size}{entries}"),
            Backing::Anonymous if self.folio_bytes <= base_page() => size,
            Backing::Anonymous if self.folio_bytes < huge_page() => format!("mthp_{size}"),
            Backing::Anonymous => format!("thp_{size}{entries}"),
        }
    }
}

impl PageKind {
    /// The kind with this name.
    pub fn named(name: &str) -> Option<PageKind> {
        let (rest, entries) = match (name.strip_suffix("_pmd"), name.strip_suffix("_pte")) {
            (Some(rest), _) => (rest, true),
            (_, Some(rest)) => (rest, false),
            _ => (name, false),
        };
        let (word, size) = rest.split_once('_').unwrap_or(("", rest));
        let folio_bytes = bytes_of(size)?;
        let backing = match word {
            "" | "mthp" | "thp" => Backing::Anonymous,
            "file" => Backing::File,
            "shmem" => Backing::Shmem,
            "hugetlb" => Backing::Hugetlb,
            _ => return None,
        };
        let is_whole = entries || backing == Backing::Hugetlb;
        let kind =
            PageKind { backing, folio_bytes, entry_bytes: if is_whole { folio_bytes } else { base_page() } };
        (kind.name() == name).then_some(kind)
    }
}

/// Resident pages in a row of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeRun {
    pub range: Range,
    pub kind: PageKind,
    /// Not looked at: as a sample nearby is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// How the folios of one backing are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The kernel counts no folio of more than a page on the whole host, but the ones that one entry maps.
    NoneOnHost,
    /// Every page was looked at.
    Read,
    /// Blocks of pages were looked at.
    Sampled,
    /// The kernel hides it: all count as 4 KiB pages.
    Hidden,
}

/// What was looked at of the pages of one backing that are mapped by entries of 4 KiB.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Look {
    pub backing: Backing,
    pub how: How,
    pub resident_bytes: Bytes,
    pub looked_at_bytes: Bytes,
    /// Blocks of the sample; 0 where all was read.
    pub blocks: usize,
    /// By page size: half the width of the interval that holds the true figure in 95 of 100 cases.
    pub error_bytes: BTreeMap<Bytes, Bytes>,
}

/// Bytes in runs that lie in memory as they lie in the address space, aligned to their size in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Contiguous {
    /// Bytes in pages mapped by 4 KiB entries.
    pub resident_bytes: Bytes,
    pub looked_at_bytes: Bytes,
    /// In runs of 16 KiB (AMD coalesces the four entries), and of 64 KiB (Arm's contiguous bit): estimates for all of
    /// `resident_bytes` where less was looked at, and half the width of their interval.
    pub in_16k_bytes: Bytes,
    pub in_16k_error_bytes: Bytes,
    pub in_64k_bytes: Bytes,
    pub in_64k_error_bytes: Bytes,
}

/// The page size of every resident byte, as far as it is not in the runs of pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSizes {
    /// Sorted, disjoint: pages that are mapped by entries of 4 KiB, but are parts of larger folios.
    pub runs: Vec<SizeRun>,
    pub looks: Vec<Look>,
    pub contiguous: Known<Contiguous>,
    /// Mappings of hugetlb pages, sorted.
    pub hugetlb: Vec<Range>,
    /// Devices whose files are shared memory, "00:01".
    pub shmem_devices: Vec<String>,
    /// With what the blocks of the samples were chosen.
    pub seed: u64,
    pub gaps: Vec<Gap>,
}

impl PageSizes {
    /// The kind of the pages of a run, unless `runs` has another.
    pub fn kind_of_run(&self, run: &PageRun, mapping: &Mapping) -> PageKind {
        let bytes = run.page_bytes as Bytes;
        let backing = match run {
            _ if bytes > base_page() && self.is_hugetlb(run.range.start) => Backing::Hugetlb,
            run if !run.is_file() => Backing::Anonymous,
            _ if mapping.is_shmem_name() || self.shmem_devices.contains(&mapping.device) => Backing::Shmem,
            _ => Backing::File,
        };
        PageKind { backing, folio_bytes: bytes, entry_bytes: bytes }
    }

    /// Cuts `piece` of a run of pages where their kind changes.
    pub fn each(
        &self,
        piece: Range,
        run: &PageRun,
        mapping: &Mapping,
        mut visit: impl FnMut(Range, PageKind),
    ) {
        let plain = self.kind_of_run(run, mapping);
        let is_small = run.is_present() && Bytes::from(run.page_bytes) == base_page();
        let mut at = piece.start;
        for size in overlapping(&self.runs, piece, |size| size.range).take_while(|_| is_small) {
            let here = size.range.intersect(piece);
            if at < here.start {
                visit(Range::new(at, here.start), plain);
            }
            visit(here, size.kind);
            at = here.end;
        }
        if at < piece.end {
            visit(Range::new(at, piece.end), plain);
        }
    }

    fn is_hugetlb(&self, at: Addr) -> bool {
        holding(&self.hugetlb, at).is_some()
    }

    /// Whether any figure is an estimate.
    pub fn is_estimated(&self) -> bool {
        self.looks.iter().any(|look| look.how == How::Sampled)
    }

    /// By page size, the widths of all backings together.
    pub fn error_bytes(&self) -> BTreeMap<Bytes, Bytes> {
        let mut squares: BTreeMap<Bytes, f64> = BTreeMap::new();
        for (size, error) in self.looks.iter().flat_map(|look| &look.error_bytes) {
            *squares.entry(*size).or_default() += (*error as f64).powi(2);
        }
        squares.into_iter().map(|(size, square)| (size, square.sqrt() as Bytes)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::PAGE;

    const HUGE: Bytes = 2 << 20;

    #[test]
    fn the_name_and_the_size_of_every_kind() {
        let kind = |backing, folio_bytes, entry_bytes| PageKind { backing, folio_bytes, entry_bytes };
        let cases = [
            (PageKind::small(Backing::Anonymous), "4k", PAGE),
            (PageKind::of_folio(Backing::Anonymous, 65_536), "mthp_64k", 65_536),
            (kind(Backing::Anonymous, HUGE, HUGE), "thp_2m_pmd", HUGE),
            (kind(Backing::Anonymous, HUGE, PAGE), "thp_2m_pte", PAGE),
            (PageKind::small(Backing::File), "file_4k", PAGE),
            (PageKind::of_folio(Backing::File, 16_384), "file_16k", 16_384),
            (kind(Backing::Shmem, HUGE, HUGE), "shmem_2m_pmd", HUGE),
            (kind(Backing::Hugetlb, HUGE, HUGE), "hugetlb_2m", HUGE),
            (kind(Backing::Hugetlb, 1 << 30, 1 << 30), "hugetlb_1g", 1 << 30),
        ];
        for (kind, name, page_bytes) in cases {
            assert_eq!((kind.name().as_str(), kind.page_bytes()), (name, page_bytes));
        }
    }
}
