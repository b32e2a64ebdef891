//! malloc's arenas on huge pages: what is freed comes back in whole huge pages only, and what is not used yet is resident.
//!
//! malloc_trim gives 4 KiB pages back (MADV_DONTNEED). In a huge page that only unmaps them: the process shows less, and
//! the host gets the memory when it runs short and splits the page (mm/huge_memory.c, `deferred_split_folio`); before that,
//! khugepaged fills the holes again. The end of each arena, which malloc keeps for what comes, is resident up to the next
//! multiple of 2 MiB.

use crate::base::Bytes;
use crate::doctor::{Cost, Evidence, Facts, Finding, JvmFacts, Level, Remedy, thp_remedies};
use crate::map::Area;
use crate::os::machine::huge_page;
use crate::os::page_kind::{Backing, PageKind};
use crate::os::zero_ranges::Sort;
use std::collections::{BTreeMap, BTreeSet};

/// The least bytes of malloc on huge pages, the share of them that is free or zeros, and the share of the process.
const HUGE_BYTES_MIN: Bytes = 64 << 20;
const LOST_BYTES_MIN: Bytes = 32 << 20;
const HUGE_PERCENT_MIN: u64 = 25;
const RESIDENT_PERCENT_MIN: u64 = 5;
const TUNABLE: &str = "glibc.malloc.hugetlb";

pub(super) fn of_jvm(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let bloat = jvm.bloat.as_ref().ok()?;
    let thp = bloat.malloc.of(Sort::Thp);
    let freed = freed_on_huge(jvm);
    // Freed memory holds zeros too, so they are not added.
    let lost = freed.max(thp.zero.low);
    let is_much = thp.resident_bytes >= HUGE_BYTES_MIN
        && lost >= LOST_BYTES_MIN
        && lost.saturating_mul(100) >= thp.resident_bytes.saturating_mul(HUGE_PERCENT_MIN)
        && lost.saturating_mul(100) >= jvm.resident_bytes().saturating_mul(RESIDENT_PERCENT_MIN);
    if !is_much {
        return None;
    }
    let mut evidence = vec![
        Evidence::bytes("malloc's memory on huge pages", thp.resident_bytes, "account, PAGEMAP_SCAN"),
        Evidence::bytes("freed, on huge pages", freed, "account: malloc_freed"),
        Evidence::bytes("pages of zeros in them", thp.zero.bytes, "/proc/PID/mem"),
        Evidence::state("transparent_hugepage/enabled", facts.host.thp_mode(), "/sys/kernel/mm"),
    ];
    if let Some(setting) = tunable(jvm) {
        evidence.push(Evidence::state("GLIBC_TUNABLES", setting, "/proc/PID/environ"));
    }
    let title = format!(
        "{:.0} % of malloc's memory on huge pages is freed or was never used",
        lost as f64 * 100.0 / thp.resident_bytes as f64
    );
    let remedies = remedies(facts, jvm, bloat.split_gives_back);
    Some(Finding::on_jvm(jvm.pid, Level::Warn, title, evidence, remedies).costing(Cost::bytes(lost)))
}

fn huge(kinds: &BTreeMap<PageKind, Bytes>) -> Bytes {
    kinds
        .iter()
        .filter(|(kind, _)| kind.backing == Backing::Anonymous && kind.entry_bytes >= huge_page())
        .map(|(_, bytes)| bytes)
        .sum()
}

fn freed_on_huge(jvm: &JvmFacts) -> Bytes {
    jvm.area(Area::MallocFreed).by_page_kind.as_ref().map_or(0, huge)
}

/// "glibc.malloc.hugetlb=1", where it is set.
fn tunable(jvm: &JvmFacts) -> Option<&str> {
    let all = jvm.environment.as_ref().ok()?.get("GLIBC_TUNABLES")?;
    all.split(':').find(|one| one.starts_with(TUNABLE) && !one.ends_with("=0"))
}

fn remedies(facts: &Facts, jvm: &JvmFacts, split_gives_back: bool) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if split_gives_back {
        // Every area that has blocks there: a huge page is split only where all of it is asked for.
        let of_malloc = jvm
            .map
            .shares()
            .filter(|(owner, share)| owner.instance.is_mallocs() && huge(&share.figures.by_page_kind) > 0);
        let areas: BTreeSet<Area> = of_malloc.map(|(owner, _)| owner.area).collect();
        let names: Vec<&str> = areas.into_iter().map(Area::name).collect();
        if !names.is_empty() {
            remedies.push(Remedy::Command(format!(
                "marusa pages split {} --area {}",
                jvm.pid,
                names.join(",")
            )));
        }
        remedies.extend(thp_remedies::not_refilled(facts));
    }
    remedies.push(Remedy::Command(format!("marusa trim {}", jvm.pid)));
    if tunable(jvm).is_some() {
        remedies.push(Remedy::Environment(format!("GLIBC_TUNABLES={TUNABLE}=0")));
    }
    remedies.extend(thp_remedies::not_unasked(facts));
    remedies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::doctor::facts::made_up::{M, healthy, recount, set_resident};
    use crate::map::bloat::{Bloat, Estimate, Sums, ZeroSum};
    use crate::os::page_kind::PageKind;

    fn on_huge(freed: Bytes, zero: Bytes) -> Facts {
        let mut facts = healthy();
        let jvm = &mut facts.jvms[0];
        set_resident(jvm, Area::MallocFreed, freed);
        let kind =
            PageKind { entry_bytes: huge_page(), ..PageKind::of_folio(Backing::Anonymous, huge_page()) };
        for span in &mut jvm.map.spans {
            for share in &mut span.shares {
                let owner = &mut jvm.map.owners[share.owner];
                if owner.area == Area::MallocFreed && share.figures.resident > 0 {
                    owner.instance = crate::map::Instance::Arena(0);
                    share.figures.by_page_kind = [(kind, share.figures.resident)].into();
                }
            }
        }
        recount(jvm);
        let sum = ZeroSum { resident_bytes: 300 * M, zero: Estimate::exactly(zero), ..ZeroSum::default() };
        let malloc = Sums([(Sort::Thp, sum)].into());
        jvm.bloat = Ok(Bloat { malloc, split_gives_back: true, ..Bloat::default() });
        facts
    }

    #[test]
    fn freed_memory_on_huge_pages_is_found() {
        let mut facts = on_huge(200 * M, 10 * M);
        let tunables = "glibc.malloc.arena_max=2:glibc.malloc.hugetlb=1".to_string();
        facts.jvms[0].environment = Ok([("GLIBC_TUNABLES".to_string(), tunables)].into());
        let found = rule_finds("thp-malloc-arenas", &facts);
        assert_eq!((found.len(), found[0].level, found[0].cost.bytes), (1, Level::Warn, Some(200 * M)));
        let remedies: Vec<&str> = found[0].remedies.iter().map(Remedy::text).collect();
        assert!(
            remedies[0].contains("pages split") && remedies[0].ends_with("--area malloc_freed"),
            "{remedies:?}"
        );
        assert!(remedies.contains(&"GLIBC_TUNABLES=glibc.malloc.hugetlb=0"), "{remedies:?}");
    }

    #[test]
    fn memory_that_was_never_used_is_found_and_little_is_not() {
        assert_eq!(rule_finds("thp-malloc-arenas", &on_huge(M, 150 * M))[0].cost.bytes, Some(150 * M));
        assert!(rule_finds("thp-malloc-arenas", &on_huge(20 * M, 20 * M)).is_empty());
        assert!(rule_finds("thp-malloc-arenas", &on_huge(70 * M, 70 * M)).is_empty(), "less than a quarter");
        assert!(rule_finds("thp-malloc-arenas", &healthy()).is_empty());
    }
}
