//! How HotSpot chooses pages for a reservation: what `os::page_size_for_region` and `ReservedSpace` do, by version. The rules
//! of the single collectors rest on these.

use super::PAGE_2M;
use super::flags::{self, flag_bytes};
use crate::base::Bytes;
use crate::jvm::Gc;
use crate::map::Area;
use crate::os::machine::{base_page, hugetlb_sizes};
use crate::pages::types::{Mode, Need, Subject, Without};

/// One JVM, with what its flags come to.
pub struct Sizing<'a> {
    pub subject: &'a Subject,
    pub mode: Mode,
    /// `os::page_sizes()` above a base page, largest first.
    pub page_sizes: Vec<Bytes>,
    /// MaxHeapSize, after the VM has rounded it up.
    pub heap: Bytes,
}

impl<'a> Sizing<'a> {
    pub fn new(subject: &'a Subject, mode: Mode) -> Sizing<'a> {
        let sizes = hugetlb_sizes().iter().rev().copied();
        let page_sizes = match mode {
            // os_linux.cpp `large_page_init` from 17 on: the size that is asked for and all smaller ones of the kernel.
            Mode::HugeTlb1G | Mode::HugeTlb2M | Mode::HugeTlb if subject.feature >= 17 => {
                sizes.filter(|size| *size <= mode.page_bytes()).collect()
            }
            _ => vec![mode.page_bytes()],
        };
        let mut jvm = Sizing { subject, mode, page_sizes, heap: subject.heap_max_bytes };
        jvm.heap = up(jvm.heap, jvm.heap_alignment());
        jvm
    }

    pub fn feature(&self) -> u32 {
        self.subject.feature
    }
    /// A size flag, if it was given.
    pub fn bytes(&self, flag: &str) -> Option<Bytes> {
        flag_bytes(&self.subject.flags, flag)
    }
    pub fn is_on(&self, flag: &str, default: bool) -> bool {
        flags::is_on(&self.subject.flags, flag).unwrap_or(default)
    }
    /// `os::large_page_size()`.
    pub fn large(&self) -> Bytes {
        self.page_sizes[0]
    }

    /// `os::page_size_for_region`: the largest size of which `min_pages` fit (runtime/os.cpp, the same from 8 to 25).
    fn page_for(&self, region: Bytes, min_pages: u64, must_be_aligned: bool) -> Bytes {
        let fits = |page: &&Bytes| {
            **page <= region / min_pages && (!must_be_aligned || region.is_multiple_of(**page))
        };
        self.page_sizes.iter().find(fits).copied().unwrap_or(base_page())
    }
    pub fn page_unaligned(&self, region: Bytes, min_pages: u64) -> Bytes {
        self.page_for(region, min_pages, false)
    }
    pub fn page_aligned(&self, region: Bytes, min_pages: u64) -> Bytes {
        self.page_for(region, min_pages, true)
    }

    /// `HeapAlignment`: MaxHeapSize is rounded up to it. gc/shared/gcArguments.cpp compute_heap_alignment: what one page of
    /// the card table covers, and the large page; G1 and Shenandoah also whole regions.
    fn heap_alignment(&self) -> Bytes {
        let cards_of_a_page = self.card_bytes().saturating_mul(base_page());
        match self.subject.gc {
            Gc::G1 => flags::g1_region(self.subject).max(cards_of_a_page).max(self.large()),
            Gc::Shenandoah | Gc::ShenandoahGenerational => {
                flags::shenandoah_region(self.subject, self.large()).max(self.large())
            }
            Gc::Z | Gc::ZGenerational => PAGE_2M,
            _ => cards_of_a_page.max(self.large()),
        }
    }
    /// Heap under one card: 512, and GCCardSizeInBytes since 18.
    pub fn card_bytes(&self) -> Bytes {
        match self.bytes("GCCardSizeInBytes") {
            Some(bytes @ (128 | 256 | 1024)) if self.feature() >= 18 => bytes,
            _ => 512,
        }
    }
    /// Heap under one bit of a mark bitmap is an object's alignment; under one byte eight times that.
    pub fn heap_per_bitmap_byte(&self) -> Bytes {
        match self.bytes("ObjectAlignmentInBytes") {
            Some(bytes) if bytes.is_power_of_two() && (8..=256).contains(&bytes) => bytes * 8,
            _ => 64,
        }
    }

    /// What happens where the pages of a common reservation lack. memory/virtualspace.cpp of 21 (25: memoryReserver.cpp) tries
    /// `next_smaller(page_size)` in turn; 17 has one try.
    fn without(&self, page: Bytes) -> Without {
        if self.feature() >= 21 && self.page_sizes.last().is_some_and(|least| page > *least) {
            Without::NextSmaller
        } else {
            Without::SmallPages
        }
    }

    /// A reservation whose size is rounded up to its page: all of it lies on `page`.
    pub fn whole(&self, area: Area, part: &str, bytes: Bytes, page: Bytes, rule: &str) -> Need {
        Need { without: self.without(page), ..Need::new(area, part, up(bytes, page), page, rule) }
    }

    /// `ReservedSpace(size)` with no page size asked for: large pages as far as they go, 4K for the rest. From 17 the
    /// reservation starts at a large page (os_linux.cpp reserve_memory_special_huge_tlbfs). Before, it starts anywhere
    /// (reserve_memory_special_huge_tlbfs_mixed), so the address decides whether the last page fits.
    pub fn mixed(&self, area: Area, part: &str, bytes: Bytes, rule: &str) -> Need {
        let bytes = up(bytes, base_page());
        let page = self.page_unaligned(bytes, 1);
        let mut need = self.whole(area, part, bytes, page, rule);
        if page == base_page() {
            return need;
        }
        need.bytes = bytes;
        need.pages = bytes / page;
        need.pages_at_least = if self.feature() >= 17 { need.pages } else { need.pages - 1 };
        if !bytes.is_multiple_of(page) || self.feature() < 17 {
            need.rule = format!("{rule}; the part that does not fill a large page is on 4K pages");
        }
        need
    }

    /// The heap: reserved and committed whole at the start with explicit large pages, whatever -Xms says
    /// (`os::can_commit_large_page_memory` is true for THP only).
    pub fn heap_need(&self, rule: &str) -> Need {
        let page = if self.heap.is_multiple_of(self.large()) {
            self.large()
        } else {
            self.page_aligned(self.heap, 1)
        };
        self.whole(Area::JavaHeap, "heap", self.heap, page, rule)
    }
}

/// `bytes` rounded up to a multiple of `unit`.
pub fn up(bytes: Bytes, unit: Bytes) -> Bytes {
    bytes.div_ceil(unit).saturating_mul(unit)
}

/// `bytes` rounded down to a multiple of `unit`.
pub fn down(bytes: Bytes, unit: Bytes) -> Bytes {
    bytes / unit * unit
}
