//! khugepaged puts heaps of JVMs on huge pages page by page, while threads that fault in that memory wait. It is meant to take
//! next to no CPU; where it takes some, its settings were sharpened, or there is much to do that could be done once.

use crate::base::{Bytes, human};
use crate::doctor::{Cost, Evidence, Facts, Finding, HostFacts, JvmFacts, Level, Remedy};
use crate::map::Area;
use crate::map::why::{self, Reason};

/// Percentage of one CPU. With the kernel's default settings (4096 pages every 10 s) it takes far less than 1 %.
const WARN_PERCENT_MIN: f64 = 20.0;
const INFO_PERCENT_MIN: f64 = 5.0;
/// CPU time of the kernel's threads comes in steps of 10 ms: ten of them.
const MS_MIN: f64 = 100.0;
/// The least memory of heaps that it could still put on huge pages.
const WAITING_BYTES_MIN: Bytes = 64 << 20;

pub(super) fn of(facts: &Facts) -> Option<Finding> {
    let host = &facts.host;
    let ms = watched_ms(host)?;
    let percent = ms / 10.0 / host.seconds;
    let level = Level::reached(percent, [(WARN_PERCENT_MIN, Level::Warn), (INFO_PERCENT_MIN, Level::Info)])?;
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
    (daemon.watched_ms >= MS_MIN && host.seconds > 0.0).then_some(daemon.watched_ms)
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
    use super::*;
    use crate::doctor::facts::Daemon;
    use crate::doctor::rules::page_cases::{self, M};

    fn level(watched_ms: f64, heap: Bytes) -> Option<Level> {
        let mut jvm = page_cases::asks_transparent();
        page_cases::advise(&mut jvm);
        page_cases::touch_only(&mut jvm, heap);
        let mut facts = page_cases::alone(jvm);
        facts.host.seconds = 2.0;
        facts.host.daemons = vec![Daemon { name: "khugepaged".to_string(), cpu_ms: 1e6, watched_ms }];
        of(&facts).map(|found| found.level)
    }

    #[test]
    fn shares_of_a_cpu_and_heaps_that_wait() {
        assert_eq!(level(400.0, 900 * M), Some(Level::Warn));
        assert_eq!((level(390.0, 900 * M), level(100.0, 900 * M)), (Some(Level::Info), Some(Level::Info)));
        assert_eq!(level(90.0, 900 * M), None);
        assert_eq!((level(400.0, 64 * M), level(400.0, 62 * M)), (Some(Level::Warn), None));
    }

    #[test]
    fn a_heap_that_may_have_none_is_not_waiting() {
        let jvm = crate::doctor::facts::made_up::healthy_jvm();
        assert_eq!(waiting_bytes(&jvm), 0, "it is not advised");
    }
}
