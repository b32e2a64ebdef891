//! kcompactd moves pages so that free memory comes together: where it is busy, processes ask for large pages all the time.

use crate::doctor::{Evidence, Facts, Finding, Level, Remedy, types::Cost};

/// Percentage of one CPU.
const WARN_PERCENT: f64 = 10.0;
const CRITICAL_PERCENT: f64 = 50.0;
/// The kernel counts this time in ticks of 10 ms: in less than half a second a few of them would be 10 %.
const SECONDS_MIN: f64 = 0.5;

/// A finding about the kernel's threads whose names begin with `name`, one for each node of memory, all together.
pub fn busy(facts: &Facts, name: &str) -> Option<(Level, f64, Vec<Evidence>)> {
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

pub(super) fn of(facts: &Facts) -> Option<Finding> {
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

#[cfg(test)]
mod tests {
    use super::*;
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
