//! JVMs that asked for transparent huge pages pay for them at the fault: with this `defrag`, the thread that touches memory waits
//! until the kernel has made room.

use crate::doctor::compaction::{self, Stalls};
use crate::doctor::{Cost, Facts, Finding, Level, Remedy};
use crate::map::page_claims::Asked;

/// Modes in which a fault of advised memory waits.
const WAITING: [&str; 3] = ["always", "madvise", "defer+madvise"];

/// In mode always a JVM advises nothing (os_linux.cpp, `os::Linux::should_madvise_anonymous_thps`), so that only `defrag` at
/// always makes it wait: that is `thp-always-harm`.
pub(super) fn of(facts: &Facts) -> Option<Finding> {
    let (mode, defrag) = compaction::modes(&facts.host)?;
    if mode != "madvise" || !WAITING.contains(&defrag.as_str()) {
        return None;
    }
    let stalls = compaction::stalls(&facts.host)?;
    let advised = facts.jvms.iter().filter(|jvm| Asked::of(&jvm.snapshot).transparent);
    let pids: Vec<String> = advised.map(|jvm| jvm.pid.to_string()).collect();
    let is_now = matches!(stalls, Stalls::Now(_));
    // Past stalls are reported for the host, whichever programs run on it now.
    if is_now && pids.is_empty() {
        return None;
    }
    let who = match pids.is_empty() {
        true => "a thread that asks for huge pages".to_string(),
        false => format!("threads of pid {}", pids.join(", ")),
    };
    let title = format!(
        "with defrag at {defrag}, {who} may wait for compaction at a fault: {}",
        stalls.text(&facts.host)
    );
    let level = if is_now { Level::Warn } else { Level::Info };
    let cost = Cost { stall_ms: facts.host.waited_ms.filter(|_| is_now), ..Cost::default() };
    let mut remedies = vec![
        Remedy::command("marusa stalls"),
        Remedy::setting("echo defer > /sys/kernel/mm/transparent_hugepage/defrag"),
        Remedy::jvm_option("-XX:+AlwaysPreTouch"),
    ];
    let plan = |pid: &String| Remedy::Command(format!("marusa pages plan {pid} --mode hugetlb-2m"));
    remedies.extend(pids.first().map(plan));
    let evidence = compaction::evidence(&facts.host);
    Some(Finding::on_host(level, title, evidence, remedies).costing(cost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;
    use crate::doctor::rules::page_cases::{asks_transparent, counted, with_modes};

    fn level(enabled: &str, defrag: &str, stalls: u64, asks: bool) -> Option<Level> {
        let host = with_modes(counted(&[("compact_stall", 7, 7 + stalls)], 2.0), enabled, defrag);
        let jvm = if asks { asks_transparent() } else { made_up::healthy_jvm() };
        of(&Facts { host, jvms: vec![jvm] }).map(|found| found.level)
    }

    #[test]
    fn a_mode_that_waits_a_jvm_that_asks_and_stalls() {
        for defrag in WAITING {
            assert_eq!(level("madvise", defrag, 20, true), Some(Level::Warn));
            assert_eq!(level("madvise", defrag, 20, false), None, "no memory is advised");
            assert_eq!(level("madvise", defrag, 19, true), None, "too few");
        }
        assert_eq!(level("madvise", "defer", 1000, true), None, "no fault waits");
        assert_eq!(level("always", "always", 1000, true), None, "thp-always-harm says it");
    }

    #[test]
    fn what_was_since_the_start_is_only_worth_knowing() {
        let counters = [("compact_stall", 1000, 1000), ("thp_fault_alloc", 100_000, 100_000)];
        let host = with_modes(counted(&counters, 2.0), "madvise", "madvise");
        let mut facts = Facts { host, jvms: vec![asks_transparent()] };
        facts.host.waited_ms = Some(1.0);
        let found = of(&facts).expect("1 %");
        assert_eq!((found.level, found.cost.stall_ms), (Level::Info, None));
        facts.jvms.clear();
        assert!(of(&facts).is_some_and(|found| found.title.contains("a thread that asks")));
    }
}
