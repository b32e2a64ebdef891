//! The number of mappings against `vm.max_map_count`: at the limit mmap and mprotect fail, and a JVM does not survive that.

use crate::base::counted;
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::jvm::Gc;

const WARN_PERCENT: u64 = 70;
const CRITICAL_PERCENT: u64 = 90;

/// What ZGC with three views of the heap says it may need: three mappings for each granule of 2 MiB, and 20 % for all else
/// (JDK 11 to 17: gc/z/zPhysicalMemoryBacking_linux.cpp, `warn_max_map_count`).
fn z_needs(jvm: &JvmFacts) -> Option<u64> {
    let granules = jvm.number("MaxHeapSize")? / (2 << 20);
    (jvm.gc()? == Gc::Z).then(|| granules.saturating_mul(36) / 10)
}

pub(super) fn of(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let limit: u64 = facts.host.sysctl.get("vm/max_map_count")?.parse().ok().filter(|limit| *limit > 0)?;
    let used = jvm.snapshot.os.mappings.len() as u64;
    let percent = used.saturating_mul(100) / limit;
    let needed = z_needs(jvm).filter(|needed| *needed > limit);
    let level = match percent {
        percent if percent >= CRITICAL_PERCENT => Level::Critical,
        percent if percent >= WARN_PERCENT => Level::Warn,
        _ if needed.is_some() => Level::Info,
        _ => return None,
    };
    let mut evidence = vec![
        Evidence::count("mappings of the JVM", used, "/proc/PID/maps"),
        Evidence::count("mappings that a process may have", limit, "/proc/sys/vm/max_map_count"),
        Evidence::percent("of the limit", used as f64 * 100.0 / limit as f64, "both"),
    ];
    evidence.extend(needed.map(|needed| {
        Evidence::count("mappings that ZGC says it may need", needed, "zPhysicalMemoryBacking_linux.cpp")
    }));
    let wanted = needed.unwrap_or(0).max(used.saturating_mul(2)).max(65_530).next_multiple_of(1 << 10);
    let title = match level {
        Level::Info => format!(
            "ZGC may need {} for this heap, and a process may have {limit}",
            counted(needed.unwrap_or(0), "mapping")
        ),
        _ => format!("{used} of {limit} mappings are in use: at the limit the JVM ends"),
    };
    let remedies = [Remedy::Setting(format!("sysctl vm.max_map_count={wanted}"))];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;
    use crate::doctor::facts::made_up::rule_finds;

    fn found(limit: u64, change: impl Fn(&mut JvmFacts)) -> Option<Finding> {
        let mut facts = made_up::healthy();
        change(&mut facts.jvms[0]);
        facts.host.sysctl.insert("vm/max_map_count".to_string(), limit.to_string());
        rule_finds("max-map-count-near", &facts).pop()
    }

    #[test]
    fn the_edges() {
        let used = made_up::healthy_jvm().snapshot.os.mappings.len() as u64;
        let level = |limit| found(limit, |_| ()).map(|finding| finding.level);
        assert_eq!(level(65_530), None);
        assert_eq!(level(used * 100 / 70), Some(Level::Warn));
        assert_eq!(level(used * 100 / 68), None);
        assert_eq!(level(used + 1), Some(Level::Critical));
        assert_eq!(level(0), None, "no limit that could be read");
        assert!(found(used, |_| ()).is_some_and(|finding| finding.remedies[0].text().ends_with("=65536")));
    }

    #[test]
    fn zgc_with_three_views_may_need_more_than_it_has() {
        let zgc = |heap: &'static str| {
            move |jvm: &mut JvmFacts| {
                made_up::view(jvm).gc = Ok(Gc::Z);
                made_up::set_flags(jvm, &[("MaxHeapSize", heap)]);
            }
        };
        let finding = found(65_530, zgc("68719476736")).expect("64 GiB");
        assert_eq!(finding.level, Level::Info);
        assert!(finding.title.contains("117964"), "{}", finding.title);
        assert_eq!(found(65_530, zgc("34359738368")), None, "32 GiB");
    }
}
