//! Kernel same-page merging at work on a JVM: a page that was merged must be copied at its next write, and a collector writes
//! all over the heap.

use crate::base::Bytes;
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};

const MERGED_MIN: Bytes = 16 << 20;

pub(super) fn of(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let merged = jvm.bounds.ksm_merged_bytes.filter(|bytes| *bytes >= MERGED_MIN)?;
    let mut evidence = vec![Evidence::bytes(
        "pages of the JVM that are merged with others",
        merged,
        "/proc/PID/ksm_merging_pages",
    )];
    evidence.extend(facts.host.watched(["cow_ksm", "ksm_swpin_copy"]));
    let title = "ksmd has merged pages of the JVM: each is copied again when written, and none is part of a huge page".to_string();
    let remedies = [
        Remedy::advice(
            "leave MemoryKSM= out of the JVM's service, or PR_SET_MEMORY_MERGE out of what starts it",
        ),
        Remedy::setting("echo 2 > /sys/kernel/mm/ksm/run"),
    ];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;
    use crate::doctor::facts::made_up::rule_finds;

    #[test]
    fn from_sixteen_mebibytes_on() {
        let level = |bytes| {
            let mut facts = made_up::healthy();
            facts.jvms[0].bounds.ksm_merged_bytes = bytes;
            rule_finds("ksm-on-heap", &facts).pop().map(|finding| finding.level)
        };
        assert_eq!((level(None), level(Some(0)), level(Some((16 << 20) - 1))), (None, None, None));
        assert_eq!(level(Some(16 << 20)), Some(Level::Info));
    }
}
