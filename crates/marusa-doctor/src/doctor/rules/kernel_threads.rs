//! Threads of the kernel that take CPU time for the host's memory.

use crate::base::{Bytes, human};
use crate::doctor::{Cost, Evidence, Facts, Finding, HostFacts, JvmFacts, Level, Remedy};
use crate::map::Area;
use crate::map::why::{self, Reason};

/// Percentage of one CPU.
const WARN_PERCENT: f64 = 10.0;
const CRITICAL_PERCENT: f64 = 50.0;
/// The kernel counts this time in ticks of 10 ms: in less than half a second a few of them would be 10 %.
const SECONDS_MIN: f64 = 0.5;

/// A finding about the kernel's threads whose names begin with `name`, one for each node of memory, all together.
fn busy(facts: &Facts, name: &str) -> Option<(Level, f64, Vec<Evidence>)> {
    if facts.host.seconds < SECONDS_MIN {
        return None;
    }
    let threads = facts.host.daemons.iter().filter(|daemon| daemon.name.starts_with(name));
    let watched_ms: f64 = threads.clone().map(|daemon| daemon.watched_ms).sum();
    let percent = watched_ms / (facts.host.seconds * 10.0);
    let level = Level::reached(percent, [(CRITICAL_PERCENT, Level::Critical), (WARN_PERCENT, Level::Warn)])?;
    let mut evidence = vec![Evidence::ms("time that was watched", facts.host.seconds * 1000.0, "our clock")];
    for thread in threads {
        let source = "/proc/PID/stat: utime + stime";
        evidence.push(Evidence::ms(format!("CPU time of {} in it", thread.name), thread.watched_ms, source));
        evidence.push(Evidence::ms(
            format!("CPU time of {} since the host started", thread.name),
            thread.cpu_ms,
            source,
        ));
    }
    Some((level, percent, evidence))
}

/// kcompactd moves pages so that free memory comes together: where it is busy, processes ask for large pages all the time.
pub(super) fn kcompactd(facts: &Facts) -> Option<Finding> {
    let (level, percent, mut evidence) = busy(facts, "kcompactd")?;
    evidence.extend(facts.host.watched([
        "compact_daemon_wake",
        "compact_daemon_migrate_scanned",
        "compact_stall",
    ]));
    let proactive = facts.host.sysctl.get("vm/compaction_proactiveness").filter(|text| *text != "0");
    let mut remedies = Vec::new();
    if let Some(text) = proactive {
        let source = "/proc/sys/vm/compaction_proactiveness";
        evidence.push(Evidence::state("vm.compaction_proactiveness", text, source));
        remedies.push(Remedy::setting("sysctl vm.compaction_proactiveness=0"));
    }
    let defrag = facts.host.pages.thp.as_ref().and_then(|thp| thp.defrag.clone());
    if let Some(defrag) = defrag.filter(|defrag| defrag.starts_with("defer") || defrag == "always") {
        let file = "/sys/kernel/mm/transparent_hugepage/defrag";
        evidence.push(Evidence::state("find which process keeps asking for huge pages", defrag, file));
        remedies.push(Remedy::Setting(format!("echo madvise > {file}")));
    }
    remedies.push(Remedy::command("marusa stalls"));
    let title = format!("kcompactd took {percent:.0} % of a CPU to move pages together");
    Some(Finding::on_host(level, title, evidence, remedies).costing(Cost::cpu(percent)))
}

/// kswapd frees memory in the background: where it is busy all the time, the host has too little, or one node of it has.
pub(super) fn kswapd(facts: &Facts) -> Option<Finding> {
    let (level, percent, mut evidence) = busy(facts, "kswapd")?;
    let available = facts.host.meminfo.get("MemAvailable");
    evidence.extend(
        available
            .map(|bytes| Evidence::bytes("memory that is available", *bytes, "/proc/meminfo: MemAvailable")),
    );
    evidence.extend(facts.host.watched(["pgscan_kswapd", "pgsteal_kswapd", "pgscan_direct", "pswpout"]));
    let mut remedies = vec![Remedy::advice(
        "free memory on this host: `marusa doctor` names what each JVM could give back, `marusa trim` returns what malloc keeps",
    )];
    // Direct reclaim means that kswapd starts too late: a wider gap between the watermarks starts it earlier.
    if facts.host.grown("pgscan_direct").is_some_and(|grown| grown > 0) {
        remedies.push(Remedy::setting("sysctl vm.watermark_scale_factor=100"));
    }
    let title = format!("kswapd took {percent:.0} % of a CPU to find memory");
    Some(Finding::on_host(level, title, evidence, remedies).costing(Cost::cpu(percent)))
}

/// CPU time of the kernel's threads comes in steps of 10 ms: ten of them.
const KHUGEPAGED_MS_MIN: f64 = 100.0;
/// The least memory of heaps that it could still put on huge pages.
const WAITING_BYTES_MIN: Bytes = 64 << 20;

/// khugepaged puts heaps of JVMs on huge pages page by page, while threads that fault in that memory wait. It is meant to take
/// next to no CPU; where it takes some, its settings were sharpened, or there is much to do that could be done once.
pub(super) fn khugepaged(facts: &Facts) -> Option<Finding> {
    // Percentage of one CPU. With the kernel's default settings (4096 pages every 10 s) it takes far less than 1 %.
    const WARN_PERCENT: f64 = 20.0;
    const INFO_PERCENT: f64 = 5.0;
    let host = &facts.host;
    let ms = watched_ms(host)?;
    let percent = ms / 10.0 / host.seconds;
    let level = Level::reached(percent, [(WARN_PERCENT, Level::Warn), (INFO_PERCENT, Level::Info)])?;
    let waiting: Vec<(i32, Bytes)> = facts.jvms.iter().map(|jvm| (jvm.pid, waiting_bytes(jvm))).collect();
    let sum = waiting.iter().fold(0, |sum: Bytes, (_, bytes)| sum.saturating_add(*bytes));
    if sum < WAITING_BYTES_MIN {
        return None;
    }
    let title = format!(
        "khugepaged takes {percent:.0} % of a CPU, with {} of Java heaps to put on huge pages",
        human(sum)
    );
    let mut evidence = vec![
        Evidence::ms("CPU time of khugepaged, watched", ms, "/proc/PID/stat"),
        Evidence::ms("watched for", host.seconds * 1000.0, "clock"),
    ];
    let collapsed = host.grown("thp_collapse_alloc");
    evidence.extend(collapsed.map(|pages| {
        Evidence::count("huge pages put together, watched", pages, "/proc/vmstat: thp_collapse_alloc")
    }));
    let of_jvm = |(pid, bytes): &(i32, Bytes)| {
        Evidence::bytes(format!("heap of pid {pid} still to do"), *bytes, "account: why not on larger pages")
    };
    evidence.extend(waiting.iter().filter(|(_, bytes)| *bytes > 0).map(of_jvm));
    if let Some(thp) = &host.pages.thp {
        let knobs = thp.khugepaged.iter().filter(|(name, _)| name.contains("scan"));
        evidence.extend(knobs.map(|(name, value)| {
            Evidence::count(name.clone(), *value, "/sys/kernel/mm/transparent_hugepage/khugepaged")
        }));
    }
    let most = waiting.iter().max_by_key(|(_, bytes)| *bytes).map_or(0, |(pid, _)| *pid);
    let remedies = vec![
        Remedy::Command(format!("marusa pages collapse {most}")),
        Remedy::jvm_option("-XX:+AlwaysPreTouch"),
        Remedy::setting("echo 10000 > /sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"),
    ];
    Some(Finding::on_host(level, title, evidence, remedies).costing(Cost::cpu(percent)))
}

fn watched_ms(host: &HostFacts) -> Option<f64> {
    let daemon = host.daemons.iter().find(|daemon| daemon.name == "khugepaged")?;
    (daemon.watched_ms >= KHUGEPAGED_MS_MIN && host.seconds > 0.0).then_some(daemon.watched_ms)
}

/// The part of the heap that nothing keeps from huge pages.
fn waiting_bytes(jvm: &JvmFacts) -> Bytes {
    let findings = why::findings(&jvm.snapshot, &jvm.map);
    let is_waiting = |finding: &&why::Finding| {
        finding.area == Area::JavaHeap && matches!(finding.reason, Reason::NotYet { .. } | Reason::Split)
    };
    findings.iter().filter(is_waiting).map(|finding| finding.bytes).fold(0, Bytes::saturating_add)
}

#[cfg(test)]
mod tests {
    mod kcompactd {
        use super::super::*;
        use crate::doctor::facts::made_up::rule_finds;
        use crate::doctor::facts::{Daemon, made_up};

        fn found(seconds: f64, watched_ms: &[f64]) -> Option<Finding> {
            let mut facts = made_up::healthy();
            facts.host.seconds = seconds;
            let daemon = |(node, watched_ms): (usize, &f64)| Daemon {
                name: format!("kcompactd{node}"),
                cpu_ms: 100_000.0,
                watched_ms: *watched_ms,
            };
            facts.host.daemons = watched_ms.iter().enumerate().map(daemon).collect();
            facts.host.daemons.push(Daemon { name: "kswapd0".to_string(), cpu_ms: 0.0, watched_ms: 900.0 });
            rule_finds("kcompactd-busy", &facts).pop()
        }

        #[test]
        fn a_tenth_of_a_cpu_and_half_of_one() {
            let finding = found(1.0, &[60.0, 40.0]).expect("both nodes together");
            assert_eq!((finding.level, finding.cost.cpu_percent), (Level::Warn, Some(10.0)));
            assert!(finding.remedies[0].text().contains("compaction_proactiveness=0"));
            assert_eq!(found(2.0, &[1000.0]).map(|finding| finding.level), Some(Level::Critical));
            assert_eq!((found(1.0, &[90.0]), found(0.4, &[400.0]), found(1.0, &[])), (None, None, None));
        }
    }

    mod kswapd {
        use crate::doctor::Level;
        use crate::doctor::facts::made_up::rule_finds;
        use crate::doctor::facts::{Daemon, made_up};

        #[test]
        fn busy_and_late() {
            let mut facts = made_up::healthy();
            let mut found = |watched_ms: f64| {
                facts.host.daemons =
                    vec![Daemon { name: "kswapd0".to_string(), cpu_ms: 5_000.0, watched_ms }];
                facts.host.vmstat_first.insert("pgscan_direct".to_string(), 10);
                facts.host.vmstat.insert("pgscan_direct".to_string(), 900);
                rule_finds("kswapd-busy", &facts).pop()
            };
            let finding = found(120.0).expect("12 %");
            assert_eq!(finding.level, Level::Warn);
            assert!(finding.remedies.iter().any(|remedy| remedy.text().contains("watermark_scale_factor")));
            assert_eq!(found(500.0).map(|finding| finding.level), Some(Level::Critical));
            assert_eq!(found(90.0), None);
        }
    }

    mod khugepaged {
        use super::super::*;
        use crate::doctor::facts::Daemon;
        use crate::doctor::rules::page_cases::{self, M};

        fn level(watched_ms: f64, heap: Bytes) -> Option<Level> {
            let mut jvm = page_cases::asks_transparent();
            page_cases::advise(&mut jvm);
            page_cases::touch_only(&mut jvm, heap);
            let mut facts = page_cases::alone(jvm);
            facts.host.seconds = 2.0;
            facts.host.daemons = vec![Daemon { name: "khugepaged".to_string(), cpu_ms: 1e6, watched_ms }];
            khugepaged(&facts).map(|found| found.level)
        }

        #[test]
        fn shares_of_a_cpu_and_heaps_that_wait() {
            assert_eq!(level(400.0, 900 * M), Some(Level::Warn));
            assert_eq!(
                (level(390.0, 900 * M), level(100.0, 900 * M)),
                (Some(Level::Info), Some(Level::Info))
            );
            assert_eq!(level(90.0, 900 * M), None);
            assert_eq!((level(400.0, 64 * M), level(400.0, 62 * M)), (Some(Level::Warn), None));
        }

        #[test]
        fn a_heap_that_may_have_none_is_not_waiting() {
            let jvm = crate::doctor::facts::made_up::healthy_jvm();
            assert_eq!(waiting_bytes(&jvm), 0, "it is not advised");
        }
    }
}
