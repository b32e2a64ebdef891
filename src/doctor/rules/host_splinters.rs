//! In a virtual machine a translation is as large as the smaller of two pages, the guest's and the host's. A host that backs its
//! guest with 4 KiB pages takes from large pages the better part of what they give.

use crate::base::human;
use crate::doctor::facts::Facts;
use crate::doctor::promise;
use crate::doctor::types::{Cost, Evidence, Finding, Level, Remedy, Rule, Subject};
use crate::map::Area;

pub const RULE: Rule =
    Rule { id: "host-splinters", title: "the host below this virtual machine splinters large pages", find };

fn find(facts: &Facts) -> Vec<Finding> {
    if facts.host.is_splintered != Some(true) || facts.host.has_hypervisor == Some(false) {
        return Vec::new();
    }
    let large: u64 = facts
        .jvms
        .iter()
        .map(|jvm| promise::large_bytes(&promise::area_use(jvm, Area::JavaHeap)))
        .fold(0, u64::saturating_add);
    let title = match large {
        0 => "the host splinters large pages: they make walks shorter here, not fewer".to_string(),
        _ => format!(
            "the host splinters large pages: {} of Java heaps on them save less than they could",
            human(large)
        ),
    };
    let evidence = vec![
        Evidence::state(
            "a few large pages still need walks",
            "yes: the TLB holds small entries of them",
            "marusa tlb --calibrate",
        ),
        Evidence::bytes("Java heaps on large pages", large, "/proc/PID/pagemap"),
    ];
    let remedies = vec![
        Remedy::Advice(
            "ask the host's owner to back this machine with huge pages (hugetlb, or THP for the hypervisor's process)"
                .to_string(),
        ),
        Remedy::Command("marusa tlb --calibrate".to_string()),
    ];
    let (subject, cost) = (Subject::Host, Cost::default());
    vec![Finding { id: RULE.id, level: Level::Info, subject, title, evidence, cost, remedies }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::HostFacts;
    use crate::doctor::facts::made_up::{M, healthy, healthy_host};
    use crate::doctor::rules::page_cases;

    #[test]
    fn only_where_the_calibration_says_so() {
        let mut facts = healthy();
        facts.host.has_hypervisor = Some(true);
        assert_eq!(find(&facts), []);
        facts.host.is_splintered = Some(true);
        assert!(find(&facts)[0].title.contains("shorter here, not fewer"));
        page_cases::give_huge(&mut facts.jvms[0], 450 * M);
        assert!(find(&facts)[0].title.contains("450.0 MiB of Java heaps"), "{:?}", find(&facts));
        facts.host = HostFacts { is_splintered: Some(true), ..healthy_host() };
        assert_eq!(find(&facts), [], "no hypervisor");
    }
}
