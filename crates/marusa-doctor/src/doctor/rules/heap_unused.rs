//! Heap that is committed or in memory and holds nothing.

use crate::base::{Bytes, counted, human};
use crate::doctor::facts::percent;
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};
use crate::jvm::Gc;
use crate::map::Area;

/// Every heap has some that is free: the young generation after a collection.
const WORTH_BYTES: Bytes = 256 << 20;
const FREE_PERCENT: f64 = 50.0;
/// G1 gives free regions back at the end of a concurrent cycle (JEP 346).
const G1_GIVES_BACK_SINCE: u32 = 12;

/// Heap that is in memory and holds nothing, in a JVM that could give it back: by which option depends on the collector.
pub(super) fn can_shrink(jvm: &JvmFacts) -> Option<Finding> {
    let used = *jvm.jvm()?.heap.as_ref().ok()?.used_bytes.as_ref().ok()?;
    let resident = jvm.area(Area::JavaHeap).resident_bytes;
    let free = resident.saturating_sub(used);
    let is_worth = free >= WORTH_BYTES && percent(free, resident) >= FREE_PERCENT;
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
    let remedies = ways_to_shrink(jvm, resident);
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies).costing(Cost::bytes(free)))
}

fn ways_to_shrink(jvm: &JvmFacts, resident: Bytes) -> Vec<Remedy> {
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

const UNTOUCHED_PERCENT: f64 = 25.0;

/// Heap that is committed and not in memory: nothing is lost, but what is resident can grow without a request of the JVM.
pub(super) fn untouched(jvm: &JvmFacts) -> Option<Finding> {
    let committed = *jvm.jvm()?.heap.as_ref().ok()?.committed_bytes.as_ref().ok()?;
    let heap = jvm.area(Area::JavaHeap);
    let present = heap.resident_bytes.saturating_add(heap.swapped_bytes.unwrap_or(0));
    let untouched = committed.saturating_sub(present);
    let is_worth = untouched >= WORTH_BYTES && percent(untouched, committed) >= UNTOUCHED_PERCENT;
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

/// The least loss, in bytes and as part of what the heap has in use.
const INFO_BYTES: Bytes = 64 << 20;
const INFO_PERCENT: f64 = 10.0;
const WARN_BYTES: Bytes = 128 << 20;
const WARN_PERCENT: f64 = 25.0;
/// Regions of more than 32 MiB: JDK-8275056.
const REGION_BYTES_MAX: Bytes = 32 << 20;

/// G1: objects of half a region and more have regions of their own, and what is left behind each in its last region is lost.
pub(super) fn humongous_tails(jvm: &JvmFacts) -> Option<Finding> {
    let heap = jvm.jvm()?.heap.as_ref().ok()?;
    let (region, humongous, used) = (heap.region_bytes?, heap.humongous?, *heap.used_bytes.as_ref().ok()?);
    let whole = humongous.regions.saturating_mul(region);
    let lost = whole.saturating_sub(humongous.object_bytes);
    let share = percent(lost, used);
    let level = match lost {
        WARN_BYTES.. if share >= WARN_PERCENT => Level::Warn,
        INFO_BYTES.. if share >= INFO_PERCENT => Level::Info,
        _ => return None,
    };
    let mean = humongous.object_bytes / humongous.objects.max(1);
    const OBJECTS: &str = "headers of the objects in the heap";
    let title = format!(
        "{} after {} are lost, {share:.0} % of the heap in use: each fills regions of {} of its own",
        human(lost),
        counted(humongous.objects, "humongous object"),
        human(region)
    );
    let evidence = [
        Evidence::count("humongous objects", humongous.objects, OBJECTS),
        Evidence::bytes("an object, on average", mean, OBJECTS),
        Evidence::bytes("their regions", whole, "G1's region table"),
        Evidence::bytes("heap in use, as G1 counts it", used, "G1's region table"),
    ];
    let remedies = [smaller_tails(mean, region)];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies).costing(Cost::bytes(lost)))
}

/// An object of less than half a region is not humongous.
fn smaller_tails(mean: Bytes, region: Bytes) -> Remedy {
    let needed = mean.saturating_mul(2).saturating_add(1).checked_next_power_of_two().unwrap_or(Bytes::MAX);
    match needed > region && needed <= REGION_BYTES_MAX {
        true => Remedy::JvmOption(format!("-XX:G1HeapRegionSize={}m", needed >> 20)),
        false => Remedy::advice(
            "smaller arrays, or arrays a little smaller than a whole number of regions (-XX:G1HeapRegionSize)",
        ),
    }
}

#[cfg(test)]
mod tests {
    mod shrink {
        use super::super::*;
        use crate::doctor::facts::made_up::{M, healthy_jvm, set_flags, view};

        fn with_used(bytes: Bytes) -> JvmFacts {
            let mut jvm = healthy_jvm();
            view(&mut jvm).heap.as_mut().expect("made up").used_bytes = Ok(bytes);
            jvm
        }

        #[test]
        fn half_of_what_is_resident_must_be_free() {
            assert_eq!(can_shrink(&healthy_jvm()), None, "600 of 900 MiB are in use");
            assert_eq!(can_shrink(&with_used(451 * M)), None);
            let mut jvm = with_used(400 * M);
            let finding = can_shrink(&jvm).expect("500 of 900 MiB are free");
            assert_eq!((finding.level, finding.cost.bytes), (Level::Info, Some(500 * M)));
            set_flags(&mut jvm, &[("AlwaysPreTouch", "true")]);
            assert_eq!(can_shrink(&jvm), None);
        }

        #[test]
        fn each_collector_has_its_own_option() {
            let mut jvm = with_used(100 * M);
            let text = |jvm: &JvmFacts| can_shrink(jvm).expect("800 MiB").remedies[0].text().to_string();
            assert_eq!(text(&jvm), "-XX:G1PeriodicGCInterval=300000");
            view(&mut jvm).gc = Ok(Gc::ZGenerational);
            set_flags(&mut jvm, &[("ZUncommit", "false")]);
            assert_eq!(text(&jvm), "-XX:+ZUncommit");
            set_flags(&mut jvm, &[("MinHeapSize", "2147483648")]);
            assert!(text(&jvm).starts_with("-Xms keeps it"));
        }
    }

    mod untouched {
        use super::super::*;
        use crate::doctor::facts::made_up::{G, M, healthy_jvm, set_flags, view};

        #[test]
        fn a_quarter_of_the_committed_heap_and_256_mib() {
            let mut jvm = healthy_jvm();
            assert_eq!(untouched(&jvm), None, "900 of 1024 MiB are resident");
            let mut committed = |bytes| {
                view(&mut jvm).heap.as_mut().expect("made up").committed_bytes = Ok(bytes);
                untouched(&jvm).map(|finding| finding.title)
            };
            assert_eq!(committed(1200 * M - 1), None);
            let title = committed(2 * G).expect("1148 MiB");
            assert!(title.starts_with("1.1 GiB of the 2.0 GiB"), "{title}");
            jvm.snapshot.os.status.hugetlb_bytes = Some(G);
            set_flags(&mut jvm, &[("UseLargePages", "true")]);
            assert_eq!(untouched(&jvm), None, "taken from the pool");
        }
    }

    mod tails {
        use super::super::*;
        use crate::doctor::facts::made_up::{M, healthy_jvm, view};
        use crate::jvm::Humongous;

        /// A heap with 600 MiB in use.
        fn with(objects: u64, bytes: Bytes) -> Option<Finding> {
            let mut jvm = healthy_jvm();
            let regions = objects * bytes.div_ceil(M);
            view(&mut jvm).heap.as_mut().expect("made up").humongous =
                Some(Humongous { objects, regions, object_bytes: objects * bytes });
            humongous_tails(&jvm)
        }

        #[test]
        fn half_of_each_region() {
            let level = |objects| with(objects, M / 2).map(|finding| finding.level);
            assert_eq!(humongous_tails(&healthy_jvm()), None);
            assert_eq!((level(127), level(128)), (None, Some(Level::Info)));
            assert_eq!((level(299), level(300)), (Some(Level::Info), Some(Level::Warn)));
            assert_eq!(with(300, M / 2).expect("150 MiB").remedies[0].text(), "-XX:G1HeapRegionSize=2m");
            assert_eq!(with(4, 100 * M), None, "whole regions");
        }
    }
}
