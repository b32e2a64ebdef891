//! Memory that is swapped out, and comes back.

use crate::base::{Bytes, human};
use crate::doctor::facts::percent;
use crate::doctor::{Cost, Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;
use crate::map::model::AreaAccount;
use crate::os::machine::base_page;

/// A few pages of a class loader's garbage are harmless.
const WARN_BYTES: Bytes = 8 << 20;
const WARN_PERCENT: f64 = 1.0;
/// A disk reads some 100 MB a second in pages: a collection then stands for a second or more.
const CRITICAL_BYTES: Bytes = 128 << 20;
const CRITICAL_PERCENT: f64 = 10.0;
const PAGES: &str = "/proc/PID/pagemap";

/// Java heap that is swapped out: the collector touches all that lives, so each collection reads it back.
pub(super) fn heap(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let heap = jvm.area(Area::JavaHeap);
    let swapped = heap.swapped_bytes?;
    let share = percent(swapped, swapped.saturating_add(heap.resident_bytes));
    if swapped < WARN_BYTES || share < WARN_PERCENT {
        return None;
    }
    let is_critical = swapped >= CRITICAL_BYTES && share >= CRITICAL_PERCENT;
    let mut evidence = vec![
        Evidence::bytes("heap, swapped out", swapped, PAGES),
        Evidence::bytes("heap, in memory", heap.resident_bytes, PAGES),
    ];
    let all = jvm.account.totals.swapped_bytes;
    evidence.extend(all.map(|all| Evidence::bytes("all of the process, swapped out", all, PAGES)));
    let of_area = |area: &AreaAccount| Some((area.area, area.amounts.swapped_bytes.filter(|it| *it > 0)?));
    let mut areas: Vec<(Area, Bytes)> = jvm.areas_outside_the_heap().filter_map(of_area).collect();
    areas.sort_by_key(|(area, bytes)| (std::cmp::Reverse(*bytes), *area));
    evidence.extend(
        areas
            .into_iter()
            .take(3)
            .map(|(area, bytes)| Evidence::bytes(format!("{}, swapped out", area.title()), bytes, PAGES)),
    );
    let swappiness = facts.host.sysctl.get("vm/swappiness");
    evidence
        .extend(swappiness.map(|value| Evidence::state("vm.swappiness", value, "/proc/sys/vm/swappiness")));
    let mut remedies = vec![Remedy::advice(
        "make room: a smaller -Xmx, or more memory for the host; a heap that does not fit is not helped by swap",
    )];
    if swappiness.and_then(|value| value.parse::<u32>().ok()).is_some_and(|value| value > 1) {
        remedies.push(Remedy::setting("sysctl -w vm.swappiness=1"));
    }
    if let Ok(Some(group)) = &jvm.group
        && group.swap_limit_bytes != Some(0)
    {
        remedies.push(Remedy::Setting(format!("echo 0 > {}", group.no_swap_file())));
    }
    let level = if is_critical { Level::Critical } else { Level::Warn };
    let title = format!(
        "{} of the Java heap, {share:.0} %, are swapped out: each full collection reads them back",
        human(swapped)
    );
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies).costing(Cost::bytes(swapped)))
}

/// Bytes a second: 256 pages, each of which a thread waits for.
const WARN_RATE: f64 = (1 << 20) as f64;
const CRITICAL_RATE: f64 = (16 << 20) as f64;
const SECONDS_MIN: f64 = 0.5;

/// Pages come back from swap while we watch: the threads that need them wait for the disk, and a GC needs all of the heap.
pub(super) fn swapping(facts: &Facts) -> Option<Finding> {
    let seconds = Some(facts.host.seconds).filter(|seconds| *seconds >= SECONDS_MIN)?;
    let bytes = |counter: &str| Some(facts.host.grown(counter)?.saturating_mul(base_page()));
    let (come, gone) = (bytes("pswpin")?, bytes("pswpout").unwrap_or(0));
    let rate = come as f64 / seconds;
    let level = Level::reached(rate, [(CRITICAL_RATE, Level::Critical), (WARN_RATE, Level::Warn)])?;
    let mut evidence = vec![
        Evidence::bytes("came back from swap while watched", come, "/proc/vmstat: pswpin"),
        Evidence::bytes("went to swap while watched", gone, "/proc/vmstat: pswpout"),
        Evidence::ms("time that was watched", seconds * 1000.0, "our clock"),
    ];
    for jvm in &facts.jvms {
        if let Some(swapped @ 1..) = jvm.account.totals.swapped_bytes {
            evidence.push(Evidence::bytes(
                format!("of JVM {} in swap", jvm.pid),
                swapped,
                "account: swapped",
            ));
        }
    }
    let title = format!("{:.1} MiB a second come back from swap", rate / (1 << 20) as f64);
    let remedies = [
        Remedy::setting("sysctl vm.swappiness=1"),
        Remedy::advice(
            "give the host's programs less memory to begin with: a smaller -Xmx beats a heap in swap",
        ),
    ];
    Some(Finding::on_host(level, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    mod heap {
        use super::super::*;
        use crate::doctor::facts::GroupMemory;
        use crate::doctor::facts::made_up::{M, healthy, healthy_jvm, rule_finds};

        fn with_swapped(swapped: Bytes, resident: Bytes) -> JvmFacts {
            let mut jvm = healthy_jvm();
            let heap = jvm.account.areas.iter_mut().find(|area| area.area == Area::JavaHeap);
            let amounts = &mut heap.expect("it was made up").amounts;
            (amounts.swapped_bytes, amounts.resident_bytes) = (Some(swapped), resident);
            jvm
        }

        #[test]
        fn the_file_of_the_remedy_is_one_that_the_group_has() {
            let remedy = |limit_file: &str| {
                let mut jvm = with_swapped(128 * M, 1000 * M);
                let path = "/sys/fs/cgroup/x".to_string();
                let limit_file = format!("{path}/{limit_file}");
                jvm.group = Ok(Some(GroupMemory {
                    path,
                    limit_file,
                    limit_bytes: 2048 * M,
                    ..GroupMemory::default()
                }));
                let found = heap(&healthy(), &jvm).expect("a finding");
                found.remedies.iter().map(|remedy| remedy.text().to_string()).collect::<Vec<_>>().join("\n")
            };
            assert!(remedy("memory.max").contains("echo 0 > /sys/fs/cgroup/x/memory.swap.max"));
            let first = remedy("memory.limit_in_bytes");
            assert!(first.contains("echo 0 > /sys/fs/cgroup/x/memory.swappiness"), "{first}");
            assert!(!first.contains("swap.max"), "{first}");
        }

        #[test]
        fn a_few_pages_are_none_and_a_tenth_is_an_alarm() {
            assert!(rule_finds("swap-heap", &healthy()).is_empty());
            let level = |swapped, resident| {
                heap(&healthy(), &with_swapped(swapped, resident)).map(|finding| finding.level)
            };
            assert_eq!(level(7 * M, 100 * M), None);
            assert_eq!(level(8 * M, 1000 * M), None, "under a hundredth");
            assert_eq!(level(8 * M, 700 * M), Some(Level::Warn));
            assert_eq!(level(127 * M, 127 * M), Some(Level::Warn));
            assert_eq!(level(128 * M, 2000 * M), Some(Level::Warn), "6 %");
            assert_eq!(level(128 * M, 1000 * M), Some(Level::Critical));
        }
    }

    mod rate {
        use super::super::*;
        use crate::doctor::facts::made_up;
        use crate::doctor::facts::made_up::rule_finds;

        #[test]
        fn a_mebibyte_a_second_and_sixteen() {
            let level = |pages: u64, seconds: f64| {
                let mut facts = made_up::healthy();
                facts.host.seconds = seconds;
                facts.host.vmstat.insert("pswpin".to_string(), pages);
                rule_finds("swapping", &facts).pop().map(|finding| finding.level)
            };
            assert_eq!((level(0, 1.0), level(255, 1.0)), (None, None));
            assert_eq!((level(256, 1.0), level(256, 2.0)), (Some(Level::Warn), None));
            assert_eq!((level(4096, 1.0), level(4096, 0.1)), (Some(Level::Critical), None));
        }
    }
}
