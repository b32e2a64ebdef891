//! Heap that is committed and not in memory: nothing is lost, but what is resident can grow without a request of the JVM.

use crate::base::{Bytes, human};
use crate::doctor::facts::percent;
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;

const WORTH_BYTES: Bytes = 256 << 20;
const WORTH_PERCENT: f64 = 25.0;

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let committed = *jvm.jvm()?.heap.as_ref().ok()?.committed_bytes.as_ref().ok()?;
    let heap = jvm.area(Area::JavaHeap);
    let present = heap.resident_bytes.saturating_add(heap.swapped_bytes.unwrap_or(0));
    let untouched = committed.saturating_sub(present);
    let is_worth = untouched >= WORTH_BYTES && percent(untouched, committed) >= WORTH_PERCENT;
    // The kernel's pool gave a heap on HugeTLB pages all of them at the start.
    if !is_worth || jvm.has_pool_heap() {
        return None;
    }
    let max = jvm.heap_max_bytes().unwrap_or(committed).max(committed);
    let title = format!(
        "{} of the {} of committed heap are not in memory: RSS can grow by that, and by {} up to -Xmx",
        human(untouched),
        human(committed),
        human(max.saturating_sub(present))
    );
    let evidence = [
        Evidence::bytes("heap, committed", committed, "rights of the heap's mappings"),
        Evidence::bytes("heap, in memory or swapped out", present, "the account: java_heap"),
        Evidence::bytes("-Xmx", max, "flags of the VM"),
        Evidence::state(
            "AlwaysPreTouch",
            jvm.flag("AlwaysPreTouch").unwrap_or("not known"),
            "flags of the VM",
        ),
    ];
    let remedies = [
        Remedy::Advice(format!("plan the host's and the container's memory for {} of heap", human(max))),
        Remedy::jvm_option("-XX:+AlwaysPreTouch, if a shortage shall show at the start and not under load"),
    ];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{G, M, healthy_jvm, set_flags, view};

    #[test]
    fn a_quarter_of_the_committed_heap_and_256_mib() {
        let mut jvm = healthy_jvm();
        assert_eq!(find(&jvm), None, "900 of 1024 MiB are resident");
        let mut committed = |bytes| {
            view(&mut jvm).heap.as_mut().expect("made up").committed_bytes = Ok(bytes);
            find(&jvm).map(|finding| finding.title)
        };
        assert_eq!(committed(1200 * M - 1), None);
        let title = committed(2 * G).expect("1148 MiB");
        assert!(title.starts_with("1.1 GiB of the 2.0 GiB"), "{title}");
        jvm.snapshot.os.status.hugetlb_bytes = Some(G);
        set_flags(&mut jvm, &[("UseLargePages", "true")]);
        assert_eq!(find(&jvm), None, "taken from the pool");
    }
}
