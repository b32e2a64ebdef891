//! The JVM asked for transparent huge pages and believes to have 2 MiB pages; the kernel gave folios of another size, since
//! the switch of that size is on and that of 2 MiB is off. smaps and the JVM's own log do not show it.

use crate::doctor::facts::Facts;
use crate::doctor::promise::{self, Kind};
use crate::doctor::types::{Finding, Level, Remedy, Rule};

pub const RULE: Rule = Rule {
    id: "thp-other-size",
    title: "transparent huge 2 MiB pages were asked for, and others were given",
    find,
};

fn find(facts: &Facts) -> Vec<Finding> {
    promise::find(facts, Kind::OtherSize, |jvm, broken| {
        if !broken.is_worth_it() {
            return None;
        }
        let title = format!(
            "{} are on no 2M pages: the heap is on {}, and the JVM says 2M",
            broken.missing(),
            broken.heap.text()
        );
        let mut finding = broken.finding(RULE.id, Level::Warn, jvm, title);
        let file = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
        finding.remedies.insert(0, Remedy::Setting(format!("echo inherit > {file}")));
        Some(finding)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rules::page_cases::{self, only_warning};

    #[test]
    fn folios_of_64_kib_instead_of_2_mib() {
        let mut jvm = page_cases::asks_transparent();
        page_cases::advise(&mut jvm);
        page_cases::give_folios(&mut jvm, 64 << 10);
        page_cases::sizes(&mut jvm, "never", "madvise");
        let found = only_warning(jvm, RULE.id);
        assert!(found.title.contains("64K transparent"), "{found:?}");
        let mut jvm = page_cases::asks_transparent();
        page_cases::advise(&mut jvm);
        assert_eq!(find(&page_cases::alone(jvm)), [], "small pages are another matter");
    }
}
