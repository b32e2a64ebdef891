//! The heap got its large pages and the JIT's code did not: code heaps are reserved apart, each of its own size.

use crate::base::{Bytes, human};
use crate::doctor::promise;
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;
use crate::map::page_claims::Asked;
use crate::map::page_use::percent;

/// Four times what a TLB of 2,048 entries reaches with 4 KiB.
const BYTES_MIN: Bytes = 32 << 20;

pub(super) fn of(jvm: &JvmFacts) -> Option<Finding> {
    let (heap, code) = (promise::area_use(jvm, Area::JavaHeap), promise::area_use(jvm, Area::JitCode));
    let small = code.resident_bytes.saturating_sub(promise::large_bytes(&code));
    let is_heap_served = promise::large_bytes(&heap) > heap.resident_bytes / 2;
    let is_asked = Asked::of(&jvm.snapshot).is_for_large();
    if !is_asked || !is_heap_served || small < BYTES_MIN || small < code.resident_bytes / 2 {
        return None;
    }
    let share = percent(small, code.resident_bytes);
    let title =
        format!("{} ({share}) of the JIT's code are on small pages; the heap is on large ones", human(small));
    let mut evidence = vec![
        Evidence::state("JIT code is on", code.text(), "/proc/PID/pagemap"),
        Evidence::state("the Java heap is on", heap.text(), "/proc/PID/pagemap"),
    ];
    evidence.extend(promise::reasons(jvm, Area::JitCode));
    let remedies = vec![
        Remedy::Command(format!("marusa pages collapse {}", jvm.pid)),
        Remedy::jvm_option("-XX:-SegmentedCodeCache"),
    ];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::doctor::rules::page_cases::{self, M};

    #[test]
    fn a_heap_on_large_pages_and_47_mib_of_code_that_is_not() {
        let mut jvm = page_cases::asks_transparent();
        page_cases::advise(&mut jvm);
        page_cases::give_huge(&mut jvm, 900 * M);
        let found = rule_finds("code-cache-small-pages", &page_cases::alone(jvm.clone()));
        assert!(found[0].title.contains("47.0 MiB (100 %) of the JIT's code"), "{found:#?}");
        let mut small = jvm.clone();
        crate::doctor::facts::made_up::set_resident(&mut small, Area::JitCode, 32 * M);
        assert_eq!(rule_finds("code-cache-small-pages", &page_cases::alone(small.clone())).len(), 1);
        crate::doctor::facts::made_up::set_resident(&mut small, Area::JitCode, 32 * M - 4096);
        assert_eq!(rule_finds("code-cache-small-pages", &page_cases::alone(small)), []);
        assert_eq!(
            rule_finds("code-cache-small-pages", &page_cases::alone(page_cases::asks_transparent())),
            [],
            "the heap has none either"
        );
        assert_eq!(rule_finds("code-cache-small-pages", &crate::doctor::facts::made_up::healthy()), []);
    }
}
