//! The host has no memory left to give: tasks wait for it now, or the killer is near.

use crate::doctor::{Evidence, Facts, Finding, Level, Remedy};

/// Percentage of the last minute in which all runnable tasks waited: 1 % is 0.6 s in which the host stood still.
const FULL_WARN: f64 = 1.0;
const FULL_CRITICAL: f64 = 10.0;
/// The share of time in which a task waited.
const SOME_WARN: f64 = 10.0;
/// Percentage of the host's memory that is available.
const AVAILABLE_WARN: f64 = 5.0;
const AVAILABLE_CRITICAL: f64 = 2.0;

/// What waits, and what is left: the worse of both.
pub(super) fn of(facts: &Facts) -> Option<Finding> {
    let mut said: Vec<(Level, String)> = Vec::new();
    let mut evidence = Vec::new();
    if let Some(pressure) = facts.host.memory_pressure {
        let source = "/proc/pressure/memory: avg60";
        evidence.push(Evidence::percent(
            "time in which some tasks waited for memory",
            pressure.some_60,
            source,
        ));
        evidence.push(Evidence::percent("time in which all waited", pressure.full_60, source));
        let level = match pressure {
            pressure if pressure.full_60 >= FULL_CRITICAL => Some(Level::Critical),
            pressure if pressure.full_60 >= FULL_WARN || pressure.some_60 >= SOME_WARN => Some(Level::Warn),
            _ => None,
        };
        let text = format!("tasks waited for memory {:.1} % of the last minute", pressure.some_60);
        said.extend(level.map(|level| (level, text)));
    }
    let meminfo = |name: &str| facts.host.meminfo.get(name).copied();
    if let (Some(available), Some(total)) =
        (meminfo("MemAvailable"), meminfo("MemTotal").filter(|bytes| *bytes > 0))
    {
        let percent = available as f64 * 100.0 / total as f64;
        evidence.push(Evidence::bytes("memory that is available", available, "/proc/meminfo: MemAvailable"));
        evidence.push(Evidence::percent("of the host's memory", percent, "/proc/meminfo"));
        let swap_free = meminfo("SwapFree").unwrap_or(0);
        evidence.push(Evidence::bytes("swap that is free", swap_free, "/proc/meminfo: SwapFree"));
        let level = match percent {
            // As long as there is swap, pages go there before a process is killed.
            percent if percent < AVAILABLE_CRITICAL && swap_free < total / 50 => Some(Level::Critical),
            percent if percent < AVAILABLE_WARN => Some(Level::Warn),
            _ => None,
        };
        said.extend(level.map(|level| (level, format!("{percent:.1} % of the host's memory is available"))));
    }
    let level = said.iter().map(|(level, _)| *level).max()?;
    let texts: Vec<String> = said.into_iter().map(|(_, text)| text).collect();
    let title = texts.join(", and ");
    let remedies = [
        Remedy::command("marusa doctor"),
        Remedy::advice("each JVM's findings say what it could give back; in a container this is the host"),
    ];
    Some(Finding::on_host(level, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::doctor::facts::made_up::{self, G, M};
    use crate::os::pressure_averages::Averages;

    fn level(some_60: f64, full_60: f64, available: u64, swap_free: u64) -> Option<Level> {
        let mut facts = made_up::healthy();
        facts.host.memory_pressure = Some(Averages { some_60, full_60 });
        facts.host.meminfo.insert("MemAvailable".to_string(), available);
        facts.host.meminfo.insert("SwapFree".to_string(), swap_free);
        rule_finds("memory-pressure", &facts).pop().map(|finding| finding.level)
    }

    #[test]
    fn who_waits() {
        assert_eq!(level(0.0, 0.0, 8 * G, 0), None);
        assert_eq!(level(9.9, 0.9, 8 * G, 0), None);
        assert_eq!(level(10.0, 0.0, 8 * G, 0), Some(Level::Warn));
        assert_eq!(level(2.0, 1.0, 8 * G, 0), Some(Level::Warn));
        assert_eq!(level(40.0, 10.0, 8 * G, 0), Some(Level::Critical));
    }

    #[test]
    fn what_is_left_of_16_gib() {
        assert_eq!(level(0.0, 0.0, 820 * M, 0), None);
        assert_eq!(level(0.0, 0.0, 800 * M, 0), Some(Level::Warn));
        assert_eq!(level(0.0, 0.0, 300 * M, 0), Some(Level::Critical));
        assert_eq!(level(0.0, 0.0, 300 * M, 2 * G), Some(Level::Warn), "swap comes before the killer");
    }

    #[test]
    fn without_psi_what_is_left_still_counts() {
        let mut facts = made_up::healthy();
        facts.host.memory_pressure = None;
        facts.host.meminfo.insert("MemAvailable".to_string(), 100 * M);
        facts.host.meminfo.insert("SwapFree".to_string(), 0);
        assert!(
            rule_finds("memory-pressure", &facts)[0].title.starts_with("0.6 %"),
            "{:?}",
            rule_finds("memory-pressure", &facts)
        );
    }
}
