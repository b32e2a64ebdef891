//! With THP at always and `max_ptes_none` at 511 khugepaged makes a huge page of 2 MiB in which a single page was ever touched.
//! A heap that is touched here and there then grows by its holes, without the JVM doing anything.

use crate::base::{Addr, Bytes, Range, human};
use crate::doctor::{Cost, Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;
use crate::map::page_use::percent;
use crate::os::machine::base_page;

const HOLES_BYTES_MIN: Bytes = 64 << 20;
/// Percentage of the heap's resident memory.
const HOLES_PERCENT_MIN: u64 = 10;

pub(super) fn find(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let thp = facts.host.pages.thp.as_ref()?;
    let allowed = *thp.khugepaged.get("max_ptes_none")?;
    if thp.private(thp.pmd_bytes).mode != "always" || jvm.snapshot.os.status.thp_enabled == Some(false) {
        return None;
    }
    let (holes, heap) = (holes(jvm, thp.pmd_bytes, allowed), jvm.area(Area::JavaHeap).resident_bytes);
    let is_much = u128::from(holes) * 100 >= u128::from(heap) * u128::from(HOLES_PERCENT_MIN);
    if holes < HOLES_BYTES_MIN || !is_much {
        return None;
    }
    let title = format!(
        "khugepaged may make the Java heap {} larger ({} of what it has in memory): that much is untouched between its pages",
        human(holes),
        percent(holes, heap)
    );
    let directory = "/sys/kernel/mm/transparent_hugepage";
    let evidence = vec![
        Evidence::bytes("holes in huge pages that khugepaged may fill", holes, "/proc/PID/pagemap"),
        Evidence::bytes("Java heap in memory", heap, "account: java_heap"),
        Evidence::state("THP enabled", &thp.enabled, format!("{directory}/enabled")),
        Evidence::count("max_ptes_none", allowed, format!("{directory}/khugepaged/max_ptes_none")),
    ];
    let remedies = vec![
        Remedy::Setting(format!("echo 0 > {directory}/khugepaged/max_ptes_none")),
        Remedy::Setting(format!("echo madvise > {directory}/enabled")),
    ];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies).costing(Cost::bytes(holes)))
}

/// What is not in memory of whole huge pages of private heap of which some is, where at most `allowed` pages lack.
fn holes(jvm: &JvmFacts, huge: Bytes, allowed: u64) -> Bytes {
    let mut found = 0u64;
    for mapping in
        jvm.snapshot.os.mappings.iter().filter(|mapping| mapping.is_anonymous() && mapping.rights.write)
    {
        let spans = &jvm.map.spans;
        let at = spans.partition_point(|span| span.range.end <= mapping.range.start);
        let is_heap = spans.get(at).is_some_and(|span| {
            span.shares.iter().any(|share| jvm.map.owners[share.owner].area == Area::JavaHeap)
        });
        if is_heap {
            let whole = Range::new(mapping.range.start.up_to(huge), mapping.range.end.down_to(huge));
            found =
                found.saturating_add(holes_within(&jvm.snapshot.os.resident_ranges(whole), huge, allowed));
        }
    }
    found
}

/// The holes within resident ranges, which are in the order of addresses. Huge pages that a range fills are passed over.
fn holes_within(resident: &[Range], huge: Bytes, allowed: u64) -> Bytes {
    let hole = |(_, filled): (Addr, Bytes)| {
        let hole = huge.saturating_sub(filled);
        if hole / base_page() <= allowed { hole } else { 0 }
    };
    let (mut sum, mut last): (Bytes, Option<(Addr, Bytes)>) = (0, None);
    for range in resident {
        let mut at = range.start;
        while at < range.end {
            let block = at.down_to(huge);
            let whole_until = range.end.down_to(huge);
            if at == block && whole_until > at {
                at = whole_until;
                continue;
            }
            let end = block.plus(huge).min(range.end);
            let bytes = Range::new(at, end).bytes();
            last = match last {
                Some((same, filled)) if same == block => Some((block, filled.saturating_add(bytes))),
                other => {
                    sum = sum.saturating_add(other.map_or(0, hole));
                    Some((block, bytes))
                }
            };
            at = end;
        }
    }
    sum.saturating_add(last.map_or(0, hole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::PAGE;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::doctor::rules::page_cases::{self, M};

    fn sum(resident: &[(u64, u64)], allowed: u64) -> Bytes {
        let ranges: Vec<Range> = resident.iter().map(|(start, end)| Range::of(*start, *end)).collect();
        holes_within(&ranges, 2 * M, allowed)
    }

    #[test]
    fn what_lies_between_touched_pages() {
        assert_eq!(sum(&[(0, 4 * M)], 511), 0);
        assert_eq!(sum(&[(0, PAGE), (M, M + PAGE)], 511), 2 * M - 2 * PAGE);
        assert_eq!(sum(&[(0, PAGE)], 511), 2 * M - PAGE);
        assert_eq!(sum(&[(0, PAGE)], 510), 0, "one page of 512: 511 lack");
        assert_eq!(sum(&[(M, 5 * M)], 511), 2 * M, "half at both ends");
        assert_eq!(sum(&[], 511), 0);
    }

    /// One MiB of each of `huge_pages` huge pages.
    fn sparse(huge_pages: u64) -> Facts {
        let mut jvm = crate::doctor::facts::made_up::healthy_jvm();
        page_cases::touch_each(&mut jvm, huge_pages, M);
        let mut facts = page_cases::alone(jvm);
        facts.host = page_cases::with_modes(facts.host, "always", "madvise");
        facts
    }

    #[test]
    fn a_heap_with_64_mib_of_holes() {
        let found = rule_finds("thp-sparse-heap", &sparse(64));
        assert!(found[0].title.contains("64.0 MiB larger (100 %"), "{found:#?}");
        assert_eq!(rule_finds("thp-sparse-heap", &sparse(63)), []);
        let mut kept = sparse(200);
        kept.host.pages.thp.as_mut().expect("THP").khugepaged.insert("max_ptes_none".to_string(), 255);
        assert_eq!(rule_finds("thp-sparse-heap", &kept), [], "256 pages lack in each");
        let mut asked = sparse(200);
        asked.host = page_cases::with_modes(asked.host, "madvise", "madvise");
        assert_eq!(rule_finds("thp-sparse-heap", &asked), []);
    }
}
