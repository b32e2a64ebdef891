//! How HotSpot chooses pages for a reservation and regions for a heap: what `os::page_size_for_region`, `ReservedSpace` and the
//! ergonomics do, by version. The rules of the single collectors rest on these.

use super::flags::{self, flag_bytes};
use crate::base::Bytes;
use crate::jvm::Gc;
use crate::map::Area;
use crate::os::machine::{base_page, hugetlb_sizes};
use crate::pages::types::{Mode, Need, PAGE_2M, Subject, Without};

/// Regions that G1 and Shenandoah aim at.
const TARGET_REGIONS: u64 = 2048;

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
            Gc::G1 => g1_region(self.subject).max(cards_of_a_page).max(self.large()),
            Gc::Shenandoah | Gc::ShenandoahGenerational => {
                shenandoah_region(self.subject, self.large()).max(self.large())
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

/// G1HeapRegionSize: heap / 2048 as a power of two, 1M to 32M (by hand to 512M since 18). To 11 from the mean of -Xms and
/// -Xmx and rounded down, from 17 from -Xmx and rounded up (gc/g1/heapRegion.cpp setup_heap_region_size).
pub fn g1_region(subject: &Subject) -> Bytes {
    const MIN: Bytes = 1 << 20;
    const ERGONOMIC_MAX: Bytes = 32 << 20;
    let max = if subject.feature >= 18 { 512 << 20 } else { ERGONOMIC_MAX };
    if let Some(bytes) = flag_bytes(&subject.flags, "G1HeapRegionSize").filter(|bytes| *bytes != 0) {
        return power_of_two(bytes, subject.feature >= 17).clamp(MIN, max);
    }
    let heap = if subject.feature < 17 {
        subject.heap_initial_bytes.min(subject.heap_max_bytes).saturating_add(subject.heap_max_bytes) / 2
    } else {
        subject.heap_max_bytes
    };
    power_of_two((heap / TARGET_REGIONS).clamp(MIN, ERGONOMIC_MAX), subject.feature >= 17)
        .clamp(MIN, ERGONOMIC_MAX)
}

/// The size of Shenandoah's regions: heap / 2048 between 256K and 32M, rounded up to the page and down to a power of two; at
/// least ten regions (gc/shenandoah/shenandoahHeapRegion.cpp setup_sizes, MIN_NUM_REGIONS).
pub fn shenandoah_region(subject: &Subject, page: Bytes) -> Bytes {
    const REGIONS_MIN: u64 = 10;
    let heap = subject.heap_max_bytes;
    let flag =
        |name, default| flag_bytes(&subject.flags, name).filter(|bytes| *bytes != 0).unwrap_or(default);
    let (least, most) =
        (flag("ShenandoahMinRegionSize", 256 << 10), flag("ShenandoahMaxRegionSize", 32 << 20));
    let target = flag("ShenandoahTargetNumRegions", TARGET_REGIONS);
    let region = flag("ShenandoahRegionSize", (heap / target).max(least).min(most)).min(1 << 40);
    let on_pages = up(region, page);
    let enough = up(heap, page) / on_pages >= REGIONS_MIN;
    power_of_two(if enough { on_pages } else { up(region, base_page()) }, false)
}

/// The power of two at or next to `bytes`.
fn power_of_two(bytes: Bytes, round_up: bool) -> Bytes {
    let below = 1 << bytes.max(1).ilog2();
    if round_up && below < bytes { below * 2 } else { below }
}

/// `bytes` rounded up to a multiple of `unit`.
pub fn up(bytes: Bytes, unit: Bytes) -> Bytes {
    bytes.div_ceil(unit).saturating_mul(unit)
}

/// `bytes` rounded down to a multiple of `unit`.
pub fn down(bytes: Bytes, unit: Bytes) -> Bytes {
    bytes / unit * unit
}
