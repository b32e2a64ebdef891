//! Kernel same-page merging at work on a JVM: a page that was merged must be copied at its next write, and a collector writes
//! all over the heap.

use crate::base::Bytes;
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy, Rule};

pub const RULE: Rule = Rule::of_each_jvm_here(
    "ksm-on-heap",
    "ksmd merges pages of a JVM, which are copied again when written",
    of,
);

const MERGED_MIN: Bytes = 16 << 20;

fn of(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let merged = jvm.bounds.ksm_merged_bytes.filter(|bytes| *bytes >= MERGED_MIN)?;
    let mut evidence = vec![Evidence::bytes(
        "pages of the JVM that are merged with others",
        merged,
        "/proc/PID/ksm_merging_pages",
    )];
    for counter in ["cow_ksm", "ksm_swpin_copy"] {
        let grown = facts.host.grown(counter);
        evidence.extend(
            grown.map(|grown| Evidence::count(format!("{counter} while watched"), grown, "/proc/vmstat")),
        );
    }
    let title = "ksmd has merged pages of the JVM: each is copied again when written, and none is part of a huge page".to_string();
    let remedies = [
        Remedy::advice(
            "leave MemoryKSM= out of the JVM's service, or PR_SET_MEMORY_MERGE out of what starts it",
        ),
        Remedy::setting("echo 2 > /sys/kernel/mm/ksm/run"),
    ];
    Some(RULE.on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;

    #[test]
    fn from_sixteen_mebibytes_on() {
        let level = |bytes| {
            let mut facts = made_up::healthy();
            facts.jvms[0].bounds.ksm_merged_bytes = bytes;
            RULE.find(&facts).pop().map(|finding| finding.level)
        };
        assert_eq!((level(None), level(Some(0)), level(Some((16 << 20) - 1))), (None, None, None));
        assert_eq!(level(Some(16 << 20)), Some(Level::Info));
    }
}
