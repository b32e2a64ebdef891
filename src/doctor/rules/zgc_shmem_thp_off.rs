//! The heap of ZGC is shared memory, for which `shmem_enabled` decides and not `enabled`. JDK 17 and 21 look only at the
//! latter, and report transparent huge pages that cannot come.

use crate::doctor::facts::Facts;
use crate::doctor::promise::{self, Kind};
use crate::doctor::types::{Finding, Level, Remedy, Rule};

pub const RULE: Rule = Rule {
    id: "zgc-shmem-thp-off",
    title: "ZGC asked for transparent huge pages, and shared memory gets none",
    find,
};

fn find(facts: &Facts) -> Vec<Finding> {
    promise::find(facts, Kind::SharedOff, |jvm, broken| {
        if !broken.is_worth_it() {
            return None;
        }
        let title = format!("{} are not on {}: {}", broken.missing(), broken.asked(), broken.because());
        let mut finding = broken.finding(RULE.id, Level::Warn, jvm, title);
        let file = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
        finding.remedies.insert(0, Remedy::Setting(format!("echo advise > {file}")));
        finding.remedies.insert(1, Remedy::Command(format!("marusa pages collapse {}", jvm.pid)));
        Some(finding)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rules::page_cases::{self, M, only_warning};
    use crate::jvm::Gc;

    #[test]
    fn a_heap_in_shared_memory() {
        let mut jvm = page_cases::asks_transparent();
        page_cases::share_heap(&mut jvm, Gc::Z);
        let found = only_warning(jvm.clone(), RULE.id);
        assert!(found.title.contains("shmem_enabled is never"), "{found:?}");
        page_cases::thp(&mut jvm).shmem_enabled = Some("advise".to_string());
        page_cases::give_huge(&mut jvm, 900 * M);
        assert_eq!(find(&page_cases::alone(jvm)), []);
        assert_eq!(find(&page_cases::alone(page_cases::asks_transparent())), [], "no shared memory");
    }
}
