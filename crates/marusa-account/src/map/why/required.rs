//! Why memory is not on the pages that a requirement names. The findings explain why a page is smaller than it could be; but a
//! page of 2 MiB may be no answer either: HugeTLB is not a thp, thp no HugeTLB, and neither is a page of 1 GiB.

use super::context::Context;
use super::reason::Reason;
use super::{Finding, is_vms, lies_as};
use crate::base::Bytes;
use crate::map::page_use::{PageUse, Provider};
use crate::map::require::Wanted;
use crate::map::{Area, MemoryMap};
use crate::snapshot::Snapshot;

/// What holds memory back, with the remedy for the area that has most of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub reason: Reason,
    pub bytes: Bytes,
    pub remedy: String,
}

/// The owners that are `meant`, and their findings; the most bytes first.
pub fn held_back<'a>(
    wanted: Wanted,
    snapshot: &Snapshot,
    map: &MemoryMap,
    meant: &[bool],
    findings: impl Iterator<Item = &'a Finding>,
) -> Vec<Held> {
    let context = Context::new(snapshot);
    let look = Look { wanted, context, snapshot, map, meant };
    let mut held = match wanted {
        Wanted::Transparent if look.context.asked.hugetlb => look.for_transparent(findings),
        Wanted::Hugetlb(page_bytes) => {
            let page_bytes = page_bytes.or(look.context.asked.page_bytes);
            look.for_hugetlb(page_bytes.unwrap_or(look.context.pmd_bytes))
        }
        Wanted::Size(page_bytes) if page_bytes > look.context.pmd_bytes => look.for_hugetlb(page_bytes),
        Wanted::Size(page_bytes) => merged(findings.filter(
            |finding| !matches!(finding.reason, Reason::OtherSize { page_bytes: of } if of >= page_bytes),
        )),
        Wanted::Transparent => merged(findings),
    };
    held.retain(|held| held.bytes > 0);
    held.sort_by_key(|held| std::cmp::Reverse(held.bytes));
    held
}

/// By reason; the first finding, which has the most bytes, gives the remedy.
fn merged<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<Held> {
    let mut held: Vec<Held> = Vec::new();
    for finding in findings {
        match held.iter_mut().find(|held| held.reason == finding.reason) {
            Some(held) => held.bytes += finding.bytes,
            None => held.push(Held {
                reason: finding.reason.clone(),
                bytes: finding.bytes,
                remedy: finding.remedy(),
            }),
        }
    }
    held
}

/// Whether the heap is a memfd, as that of ZGC is (zPhysicalMemoryBacking_linux.cpp): other files decide for shared memory.
pub fn has_shared_heap(snapshot: &Snapshot) -> bool {
    snapshot.os.mappings.iter().any(|mapping| mapping.path.starts_with("/memfd:java_heap"))
}

struct Look<'a> {
    wanted: Wanted,
    context: Context<'a>,
    snapshot: &'a Snapshot,
    map: &'a MemoryMap,
    meant: &'a [bool],
}

impl Look<'_> {
    /// The page use of the owners for which the JVM can ask large pages, or of the others.
    fn used(&self, by_vm: bool) -> PageUse {
        let owners = &self.map.owners;
        PageUse::of(self.snapshot, self.map, |_, owner| {
            self.meant[owner] && is_vms(lies_as(&owners[owner])) == by_vm
        })
    }

    fn missing(&self, used: &PageUse) -> Bytes {
        let fitting = used.on(|provider, bytes| self.wanted.fits(provider, bytes));
        used.resident_bytes.saturating_sub(fitting)
    }

    /// What an empty pool of HugeTLB would change is nothing to thp.
    fn for_transparent<'a>(&self, findings: impl Iterator<Item = &'a Finding>) -> Vec<Held> {
        let (of_hugetlb, rest): (Vec<&Finding>, Vec<&Finding>) =
            findings.partition(|finding| finding.reason.is_of_hugetlb());
        let on_hugetlb = self.used(true).on(|provider, _| provider == Provider::Hugetlb);
        let bytes = of_hugetlb.iter().map(|finding| finding.bytes).sum::<Bytes>() + on_hugetlb;
        let behind = self.context.against_transparent(has_shared_heap(self.snapshot)).map(Box::new);
        let mut held = merged(rest.into_iter());
        held.push(self.held(Reason::HugetlbInstead { behind }, bytes, Area::JavaHeap));
        held
    }

    fn for_hugetlb(&self, page_bytes: Bytes) -> Vec<Held> {
        let pmd_bytes = self.context.pmd_bytes;
        let asked_bytes = self.context.asked.page_bytes.unwrap_or(pmd_bytes);
        let zgc = has_shared_heap(self.snapshot) && page_bytes > pmd_bytes;
        let fits = match self.wanted {
            Wanted::Size(_) => asked_bytes >= page_bytes,
            _ => asked_bytes == page_bytes,
        };
        let of_vm = self.missing(&self.used(true));
        let reason = match self.context.asked.hugetlb && fits && !zgc {
            true => self.context.no_hugetlb(asked_bytes, of_vm),
            false => Reason::HugetlbNotAsked { page_bytes, zgc },
        };
        let others = self.used(false);
        let mut held = vec![self.held(reason, of_vm, Area::JavaHeap)];
        held.push(self.held(
            Reason::NoHugetlbForIt { page_bytes },
            self.missing(&others),
            self.largest_other(),
        ));
        held
    }

    /// The area that has most of what the JVM asks no large pages for.
    fn largest_other(&self) -> Area {
        let of = |area: Area| {
            let is_of = |owner: usize| self.meant[owner] && lies_as(&self.map.owners[owner]) == area;
            PageUse::of(self.snapshot, self.map, |_, owner| is_of(owner)).resident_bytes
        };
        let others = Area::ALL.iter().copied().filter(|area| !is_vms(*area));
        others.max_by_key(|area| of(*area)).unwrap_or(Area::Unattributed)
    }

    fn held(&self, reason: Reason, bytes: Bytes, area: Area) -> Held {
        let remedy = reason.remedy(area, &self.context.asked);
        Held { reason, bytes, remedy }
    }
}
