//! Transparent huge pages for all processes, and measured harm from them: threads that never asked for one wait while
//! the kernel makes room, or it does so in the background without end.

use crate::doctor::compaction::{self, Stalls};
use crate::doctor::{Evidence, Facts, Finding, HostFacts, Level, Remedy};
use crate::map::page_claims::Asked;

/// The percentage of one CPU that kcompactd takes to make room in the background.
const DAEMON_PERCENT_MIN: f64 = 20.0;
const DAEMON_MS_MIN: f64 = 200.0;
/// Percentage of the huge pages that faults asked for while they were watched.
const FALLBACK_PERCENT_MIN: u64 = 50;
const FALLBACKS_MIN: u64 = 1000;

pub(super) fn find(facts: &Facts) -> Option<Finding> {
    let (_, defrag) = compaction::modes(&facts.host).filter(|(mode, _)| mode == "always")?;
    let stalls = compaction::stalls(&facts.host).filter(|_| defrag == "always");
    Some(match (stalls, daemon_ms(&facts.host), fallbacks(&facts.host)) {
        (Some(stalls @ Stalls::Now(_)), _, _) => of_stalls(facts, stalls, Level::Warn),
        (_, Some(ms), _) => {
            let share = ms / 10.0 / facts.host.seconds;
            let title = format!(
                "THP is on for all, and kcompactd takes {share:.0} % of a CPU to make room for huge pages"
            );
            let mut finding = of(facts, Level::Warn, title);
            finding.evidence.insert(0, Evidence::ms("CPU time of kcompactd, watched", ms, "/proc/PID/stat"));
            finding.cost.cpu_percent = Some(share);
            finding
        }
        (Some(stalls), _, _) => of_stalls(facts, stalls, Level::Info),
        (_, _, Some(share)) => {
            let title = format!(
                "THP is on for all, and {share} % of the huge pages that faults ask for are unavailable"
            );
            of(facts, Level::Info, title)
        }
        _ => return None,
    })
}

fn of_stalls(facts: &Facts, stalls: Stalls, level: Level) -> Finding {
    let title = format!(
        "THP is on for all, and any thread that touches memory waits for compaction: {}",
        stalls.text(&facts.host)
    );
    let mut finding = of(facts, level, title);
    if level > Level::Info {
        finding.cost.stall_ms = facts.host.waited_ms;
    }
    finding
}

fn daemon_ms(host: &HostFacts) -> Option<f64> {
    let daemons = host.daemons.iter().filter(|daemon| daemon.name.starts_with("kcompactd"));
    let ms: f64 = daemons.map(|daemon| daemon.watched_ms).sum();
    let is_much = ms >= DAEMON_MS_MIN && ms / 10.0 >= DAEMON_PERCENT_MIN * host.seconds;
    (is_much && host.seconds > 0.0).then_some(ms)
}

/// The share in percent, if it is large.
fn fallbacks(host: &HostFacts) -> Option<u64> {
    let (got, not) = (host.grown("thp_fault_alloc")?, host.grown("thp_fault_fallback")?);
    let share = not.saturating_mul(100) / got.saturating_add(not).max(1);
    (not >= FALLBACKS_MIN && share >= FALLBACK_PERCENT_MIN).then_some(share)
}

fn of(facts: &Facts, level: Level, title: String) -> Finding {
    let directory = "/sys/kernel/mm/transparent_hugepage";
    let mut evidence = compaction::evidence(&facts.host);
    let huge = facts.host.meminfo.get("AnonHugePages");
    evidence.extend(
        huge.map(|bytes| Evidence::bytes("memory on huge pages", *bytes, "/proc/meminfo: AnonHugePages")),
    );
    let asks = facts.jvms.iter().filter(|jvm| Asked::of(&jvm.snapshot).is_for_transparent());
    let keeps: Vec<String> = asks.map(|jvm| jvm.pid.to_string()).collect();
    let mut remedies = vec![
        Remedy::Setting(format!("echo madvise > {directory}/enabled")),
        Remedy::Setting(format!("echo defer+madvise > {directory}/defrag")),
        Remedy::command("marusa stalls"),
    ];
    remedies.push(match keeps.is_empty() {
        true => Remedy::jvm_option("-XX:+UseTransparentHugePages"),
        false => {
            let pids = keeps.join(", ");
            Remedy::Advice(format!(
                "restart pid {pids}: in mode always a JVM advises nothing, and would lose its huge pages"
            ))
        }
    });
    Finding::on_host(level, title, evidence, remedies)
}

#[cfg(test)]
#[path = "thp_always_harm_tests.rs"]
mod tests;
