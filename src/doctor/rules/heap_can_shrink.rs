//! Heap that is in memory and holds nothing, in a JVM that could give it back: by which option depends on the collector.

use crate::base::{Bytes, human};
use crate::doctor::facts::percent;
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};
use crate::jvm::Gc;
use crate::map::Area;

/// Every heap has some that is free: the young generation after a collection.
const WORTH_BYTES: Bytes = 256 << 20;
const WORTH_PERCENT: f64 = 50.0;
/// G1 gives free regions back at the end of a concurrent cycle (JEP 346).
const G1_GIVES_BACK_SINCE: u32 = 12;

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let used = *jvm.jvm()?.heap.as_ref().ok()?.used_bytes.as_ref().ok()?;
    let resident = jvm.area(Area::JavaHeap).resident_bytes;
    let free = resident.saturating_sub(used);
    let is_worth = free >= WORTH_BYTES && percent(free, resident) >= WORTH_PERCENT;
    // Who asks for all of it at the start wants to keep it.
    if !is_worth || jvm.is_on("AlwaysPreTouch") || jvm.has_pool_heap() {
        return None;
    }
    let mut evidence = vec![
        Evidence::bytes("heap, in memory", resident, "the account: java_heap"),
        Evidence::bytes("heap, in use", used, "the collector's own structures"),
    ];
    for name in ["MinHeapSize", "InitialHeapSize", "MaxHeapSize"] {
        evidence.extend(jvm.number(name).map(|bytes| Evidence::bytes(name, bytes, "flags of the VM")));
    }
    let title = format!(
        "{} of the {} of heap in memory, {:.0} %, hold nothing at the moment",
        human(free),
        human(resident),
        percent(free, resident)
    );
    let remedies = remedies(jvm, resident);
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies).costing(Cost::bytes(free)))
}

fn remedies(jvm: &JvmFacts, resident: Bytes) -> Vec<Remedy> {
    let (advice, option) = (Remedy::advice, Remedy::jvm_option);
    let least = jvm.number("MinHeapSize").or_else(|| jvm.number("InitialHeapSize"));
    if least.is_some_and(|least| least >= resident) {
        return vec![advice(
            "-Xms keeps it: no collector goes below; a smaller -Xms lets it give memory back",
        )];
    }
    let is = |name: &str, value: &str| jvm.flag(name) == Some(value);
    let remedy = match jvm.gc() {
        Some(Gc::G1) if jvm.major() < Some(G1_GIVES_BACK_SINCE) => advice(
            "this G1 gives back only in a full collection (jcmd PID GC.run); from 12 on also after a concurrent cycle",
        ),
        Some(Gc::G1) if is("G1PeriodicGCInterval", "0") => option("-XX:G1PeriodicGCInterval=300000"),
        Some(Gc::Z | Gc::ZGenerational) if is("ZUncommit", "false") => option("-XX:+ZUncommit"),
        Some(Gc::Shenandoah | Gc::ShenandoahGenerational) if is("ShenandoahUncommit", "false") => {
            option("-XX:+ShenandoahUncommit")
        }
        Some(Gc::Z | Gc::ZGenerational | Gc::Shenandoah | Gc::ShenandoahGenerational) => advice(
            "this collector gives it back when it was free for its delay (ZUncommitDelay, ShenandoahUncommitDelay)",
        ),
        Some(Gc::Serial | Gc::Parallel) => option("-XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=30"),
        _ => advice("a smaller -Xmx"),
    };
    vec![remedy]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, set_flags, view};

    fn with_used(bytes: Bytes) -> JvmFacts {
        let mut jvm = healthy_jvm();
        view(&mut jvm).heap.as_mut().expect("made up").used_bytes = Ok(bytes);
        jvm
    }

    #[test]
    fn half_of_what_is_resident_must_be_free() {
        assert_eq!(find(&healthy_jvm()), None, "600 of 900 MiB are in use");
        assert_eq!(find(&with_used(451 * M)), None);
        let mut jvm = with_used(400 * M);
        let finding = find(&jvm).expect("500 of 900 MiB are free");
        assert_eq!((finding.level, finding.cost.bytes), (Level::Info, Some(500 * M)));
        set_flags(&mut jvm, &[("AlwaysPreTouch", "true")]);
        assert_eq!(find(&jvm), None);
    }

    #[test]
    fn each_collector_has_its_own_option() {
        let mut jvm = with_used(100 * M);
        let text = |jvm: &JvmFacts| find(jvm).expect("800 MiB").remedies[0].text().to_string();
        assert_eq!(text(&jvm), "-XX:G1PeriodicGCInterval=300000");
        view(&mut jvm).gc = Ok(Gc::ZGenerational);
        set_flags(&mut jvm, &[("ZUncommit", "false")]);
        assert_eq!(text(&jvm), "-XX:+ZUncommit");
        set_flags(&mut jvm, &[("MinHeapSize", "2147483648")]);
        assert!(text(&jvm).starts_with("-Xms keeps it"));
    }
}
