//! The effective page size: what the account says is mapped, next to what the TLB really reloaded. In a virtual machine a
//! translation is as large as the smaller of the two pages that it goes through, the guest's and the host's; so a host that
//! backs its guest with 4 KiB pages splinters every large page of the guest in the TLB. Documentation/admin-guide/mm/
//! transhuge.rst, Linux 6.12: "the TLB can be mapped of larger size only if both KVM and the Linux guest are using hugepages
//! but a significant speedup already happens if only one of the two is using hugepages".

use super::events::{SIZE_2M, SIZE_4K, SIZE_32K};
use std::collections::BTreeMap;

/// The share of the mapped bytes that must lie on large pages before their reloads are expected to be large.
const MAPPED_LARGE_MIN: f64 = 0.5;
/// The largest share of small reloads while the pages count as whole. What lies on small pages next to a large
/// heap (stacks, metaspace, malloc) is reloaded small by right.
const RELOADS_SMALL_MAX: f64 = 0.8;
/// Fewer reloads say nothing.
const RELOADS_MIN: f64 = 10_000.0;

/// Bytes on each page size, as shares of what is mapped, and reloads as shares of what was reloaded.
#[derive(Clone, Debug, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct Effective {
    pub mapped_large_share: f64,
    pub reloaded_small_share: f64,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Mapped large, reloaded small, and a hypervisor is below.
    HostSplinters,
    /// The same without one: the reloads are of other memory.
    SmallElsewhere,
    /// The TLB holds what is mapped.
    AsMapped,
    /// Most memory is on small pages; whether the host would splinter large ones is not to be seen.
    MappedSmall,
}

/// `mapped`: resident bytes by page size, `reloads`: data-side reloads by size, with those of unknown size left out. `None`:
/// too little of either to say.
pub fn effective(
    mapped: &BTreeMap<u64, u64>,
    reloads: &BTreeMap<u64, f64>,
    has_hypervisor: Option<bool>,
) -> Option<Effective> {
    let mapped_total: u64 = mapped.values().fold(0, |sum, bytes| sum.saturating_add(*bytes));
    let reloaded: f64 = reloads.values().sum();
    if mapped_total == 0 || reloaded < RELOADS_MIN {
        return None;
    }
    let large: u64 = mapped.range(SIZE_2M..).fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let small: f64 = reloads.range(SIZE_4K..=SIZE_32K).map(|(_, count)| count).sum();
    let mapped_large_share = large as f64 / mapped_total as f64;
    let reloaded_small_share = small / reloaded;
    let verdict = match (mapped_large_share >= MAPPED_LARGE_MIN, reloaded_small_share > RELOADS_SMALL_MAX) {
        (false, _) => Verdict::MappedSmall,
        (true, false) => Verdict::AsMapped,
        (true, true) if has_hypervisor == Some(true) => Verdict::HostSplinters,
        (true, true) => Verdict::SmallElsewhere,
    };
    Some(Effective { mapped_large_share, reloaded_small_share, verdict })
}

impl Effective {
    /// What it means and what to do, in a sentence or two.
    pub fn sentence(&self) -> String {
        let mapped = format!(
            "{:.0} % of the resident memory is on 2 MiB pages or more",
            self.mapped_large_share * 100.0
        );
        let reloaded =
            format!("{:.0} % of the TLB's reloads are of 4 to 32 KiB", self.reloaded_small_share * 100.0);
        match self.verdict {
            Verdict::HostSplinters => format!(
                "The host splinters large pages: {mapped}, but {reloaded}. Larger pages here make each walk shorter, not \
                 the misses fewer: expect a part of what they give on bare metal, nothing near 512 times fewer misses. \
                 Ask the host's owner to back this machine's memory with huge pages (HugeTLB, or transparent huge pages \
                 for the hypervisor's process)."
            ),
            Verdict::SmallElsewhere => format!(
                "{mapped}, but {reloaded}: the misses are of the memory that is still on small pages; \
                 `marusa map --by page-size` says which."
            ),
            Verdict::AsMapped => format!("The TLB holds what is mapped: {mapped}, and only {reloaded}."),
            Verdict::MappedSmall => format!(
                "{mapped}, {reloaded}. Whether the host would keep large pages whole can be seen only when there are some."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mapped: &[(u64, u64)], reloads: &[(u64, f64)], has_hypervisor: Option<bool>) -> Option<Effective> {
        effective(&mapped.iter().copied().collect(), &reloads.iter().copied().collect(), has_hypervisor)
    }

    const HUGE_HEAP: &[(u64, u64)] = &[(SIZE_4K, 100 << 20), (SIZE_2M, 3 << 30)];

    #[test]
    fn large_pages_that_reload_small_in_a_virtual_machine_are_splintered() {
        let found =
            of(HUGE_HEAP, &[(SIZE_4K, 9.3e6), (16 << 10, 1e5), (SIZE_2M, 6e5)], Some(true)).expect("enough");
        assert_eq!(found.verdict, Verdict::HostSplinters);
        let text = found.sentence();
        assert!(
            text.contains("host splinters")
                && text.contains("shorter")
                && text.contains("Ask the host's owner")
        );
        assert!(text.contains("97 % of the resident") && text.contains("94 % of the TLB"), "{text}");
    }

    #[test]
    fn on_bare_metal_the_small_reloads_are_of_other_memory() {
        let found = of(HUGE_HEAP, &[(SIZE_4K, 9e6), (SIZE_2M, 6e5)], Some(false)).expect("enough");
        assert_eq!(found.verdict, Verdict::SmallElsewhere);
        assert_eq!(
            of(HUGE_HEAP, &[(SIZE_4K, 9e6)], None).map(|it| it.verdict),
            Some(Verdict::SmallElsewhere)
        );
    }

    #[test]
    fn a_host_that_keeps_them_whole_and_memory_that_is_small() {
        let found = of(HUGE_HEAP, &[(SIZE_4K, 1e6), (SIZE_2M, 6e6)], Some(true)).expect("enough");
        assert_eq!(found.verdict, Verdict::AsMapped);
        let found =
            of(&[(SIZE_4K, 3 << 30), (SIZE_2M, 1 << 20)], &[(SIZE_4K, 9e6)], Some(true)).expect("enough");
        assert_eq!(found.verdict, Verdict::MappedSmall);
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(of(HUGE_HEAP, &[(SIZE_4K, 9_999.0)], Some(true)), None);
        assert_eq!(of(&[], &[(SIZE_4K, 1e9)], Some(true)), None);
        assert_eq!(of(HUGE_HEAP, &[], Some(true)), None);
    }
}
