//! `vm.overcommit_memory` 2: the kernel promises no more memory than its commit limit, and what was promised is near it. Then mmap
//! and fork fail with ENOMEM while memory is free.

use crate::base::human;
use crate::doctor::facts::percent;
use crate::doctor::{Evidence, Facts, Finding, Level, Remedy};

/// The heap that a JVM commits as it grows, or a fork of one, is often a tenth of a host.
const WARN_PERCENT: f64 = 90.0;
/// Within 3 % (mm/util.c keeps that much for root and for each process), single allocations fail.
const CRITICAL_PERCENT: f64 = 97.0;
/// `OVERCOMMIT_NEVER`, include/uapi/linux/mman.h.
const NEVER: &str = "2";

pub(super) fn of(facts: &Facts) -> Option<Finding> {
    let host = &facts.host;
    let number = |name: &str| host.meminfo.get(name).copied();
    let (limit, promised) = (number("CommitLimit")?, number("Committed_AS")?);
    let used = percent(promised, limit);
    if host.sysctl.get("vm/overcommit_memory")? != NEVER || limit == 0 || used < WARN_PERCENT {
        return None;
    }
    let left = limit.saturating_sub(promised);
    let figures = [("promised", promised, "Committed_AS"), ("limit", limit, "CommitLimit")];
    let free = number("MemAvailable")
        .map(|bytes| Evidence::bytes("available", bytes, "/proc/meminfo: MemAvailable"));
    let mut evidence = vec![
        Evidence::state("vm.overcommit_memory", NEVER, "/proc/sys/vm/overcommit_memory"),
        Evidence::percent("of the limit", used, "/proc/meminfo"),
    ];
    evidence.extend(
        figures.map(|(what, bytes, name)| Evidence::bytes(what, bytes, format!("/proc/meminfo: {name}"))),
    );
    evidence.extend(free);
    let level = if used >= CRITICAL_PERCENT { Level::Critical } else { Level::Warn };
    let title = format!(
        "vm.overcommit_memory is 2, and the kernel promises {} more: a JVM that commits heap, starts a thread or a process \
         past it gets ENOMEM and ends, whatever is free",
        human(left)
    );
    let remedies = [
        Remedy::setting("sysctl vm.overcommit_memory=0"),
        Remedy::advice("or a higher limit: vm.overcommit_ratio (percent of memory) or more swap"),
    ];
    Some(Finding::on_host(level, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{self, M};

    fn level(mode: &str, promised_percent: u64) -> Option<Level> {
        let mut facts = made_up::healthy();
        facts.host.sysctl.insert("vm/overcommit_memory".to_string(), mode.to_string());
        facts.host.meminfo.insert("CommitLimit".to_string(), 10_000 * M);
        facts.host.meminfo.insert("Committed_AS".to_string(), promised_percent * 100 * M);
        of(&facts).map(|finding| finding.level)
    }

    #[test]
    fn only_where_the_kernel_keeps_to_the_limit() {
        assert_eq!(of(&made_up::healthy()), None);
        assert_eq!(
            [89, 90, 96, 97].map(|percent| level("2", percent)),
            [None, Some(Level::Warn), Some(Level::Warn), Some(Level::Critical)]
        );
        assert_eq!(
            (level("0", 150), level("1", 99)),
            (None, None),
            "no commit limit applies in modes 0 and 1"
        );
        assert_eq!(level("2", 150), Some(Level::Critical));
    }
}
