//! A large heap on 4 KiB pages, on a host that would give it larger ones if asked. Whether it gains is a matter of the
//! program, and can be measured on the running JVM.

use crate::base::{Bytes, human};
use crate::doctor::promise;
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;
use crate::map::page_claims::Asked;
use crate::map::why::has_shared_heap;

/// A million small pages. From here the page tables of the heap alone (8 MiB) fill the caches that a walk reads from.
const HEAP_BYTES_MIN: Bytes = 4 << 30;
const LARGE_PERCENT_MAX: u64 = 10;

pub(super) fn find(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let thp = facts.host.pages.thp.as_ref()?;
    let heap = promise::area_use(jvm, Area::JavaHeap);
    let large = promise::large_bytes(&heap);
    let is_small = u128::from(large) * 100 <= u128::from(heap.resident_bytes) * u128::from(LARGE_PERCENT_MAX);
    let is_off = jvm.snapshot.os.status.thp_enabled == Some(false);
    if heap.resident_bytes < HEAP_BYTES_MIN || !is_small || is_off || Asked::of(&jvm.snapshot).is_for_large()
    {
        return None;
    }
    let is_shared = has_shared_heap(&jvm.snapshot);
    let policy = if is_shared { thp.shared(thp.pmd_bytes) } else { thp.private(thp.pmd_bytes) };
    if !["always", "madvise", "advise", "within_size", "force"].contains(&policy.mode.as_str()) {
        return None;
    }
    let title = format!(
        "a Java heap of {} is on {}, and huge pages are available: {}",
        human(heap.resident_bytes),
        heap.text(),
        policy.text()
    );
    let evidence = vec![
        Evidence::bytes("Java heap in memory", heap.resident_bytes, "account: java_heap"),
        Evidence::bytes("of it on 2 MiB pages or more", large, "/proc/PID/pagemap"),
        Evidence::state("asked for", "nothing", "flags of the JVM, command line"),
        Evidence::state("policy", policy.text(), "/sys/kernel/mm/transparent_hugepage"),
    ];
    let remedies = vec![
        Remedy::Command(format!("marusa pages prove {}", jvm.pid)),
        Remedy::Command(format!("marusa pages plan {}", jvm.pid)),
        Remedy::jvm_option("-XX:+UseTransparentHugePages"),
    ];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::doctor::facts::made_up::{G, healthy_jvm, set_resident};
    use crate::doctor::rules::page_cases;

    #[test]
    fn four_gib_of_which_nothing_was_asked() {
        let of = |bytes: Bytes| {
            let mut jvm = healthy_jvm();
            set_resident(&mut jvm, Area::JavaHeap, bytes);
            page_cases::alone(jvm)
        };
        let found = rule_finds("large-heap-small-pages", &of(4 * G));
        assert!(found[0].title.contains("4.0 GiB is on 4K 100 %"), "{found:#?}");
        assert_eq!(found[0].remedies[0].text(), "marusa pages prove 4711");
        assert_eq!(rule_finds("large-heap-small-pages", &of(4 * G - 4096)), []);
        let mut never = of(8 * G);
        never.host.pages.thp.as_mut().expect("a kernel with THP").enabled = "never".to_string();
        never.host.pages.thp.as_mut().expect("a kernel with THP").sizes.clear();
        assert_eq!(rule_finds("large-heap-small-pages", &never), [], "not available");
        let mut asked = of(8 * G);
        page_cases::flag(&mut asked.jvms[0], "UseTransparentHugePages", "true");
        assert_eq!(rule_finds("large-heap-small-pages", &asked), [], "another finding");
    }
}
