//! Limits of the kernel that a JVM runs into: what fails then is not memory of its own.

use crate::base::{counted, human};
use crate::doctor::facts::percent;
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::jvm::Gc;

/// Open files against RLIMIT_NOFILE: at the limit no connection is accepted and no jar opened.
pub(super) fn files(jvm: &JvmFacts) -> Option<Finding> {
    const INFO_PERCENT: f64 = 80.0;
    const WARN_PERCENT: f64 = 95.0;
    let files = jvm.bounds.files.as_ref()?;
    let level = Level::reached(files.percent(), [(WARN_PERCENT, Level::Warn), (INFO_PERCENT, Level::Info)])?;
    let title = format!("{} of {} open files are in use", files.used, files.limit);
    let evidence = [
        Evidence::count("open files", files.used, "/proc/PID/fd"),
        Evidence::count("that may be", files.limit, &files.source),
    ];
    let remedies = [
        Remedy::Command(format!("prlimit --pid {} --nofile={}", jvm.pid, files.limit.saturating_mul(2))),
        Remedy::advice("HotSpot raised its soft limit to the hard one at its start: the hard one is short"),
    ];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

/// Threads against the limits of the user, the cgroup and the host: the next thread is refused, which the JVM reports as
/// `OutOfMemoryError: unable to create native thread`.
pub(super) fn threads(jvm: &JvmFacts) -> Option<Finding> {
    const WARN_PERCENT: f64 = 80.0;
    const CRITICAL_PERCENT: f64 = 95.0;
    let nearest = jvm.bounds.threads.iter().max_by(|a, b| a.percent().total_cmp(&b.percent()))?;
    let level = Level::reached(
        nearest.percent(),
        [(CRITICAL_PERCENT, Level::Critical), (WARN_PERCENT, Level::Warn)],
    )?;
    let own = jvm.snapshot.os.status.threads;
    let mut evidence = vec![
        Evidence::count(nearest.what, nearest.used, &nearest.source),
        Evidence::count("that may be", nearest.limit, &nearest.source),
    ];
    evidence.extend(own.map(|own| Evidence::count("threads of this JVM", own, "/proc/PID/status: Threads")));
    let title =
        format!("{}: {} of {}, then no thread can be started", nearest.what, nearest.used, nearest.limit);
    let remedies = [Remedy::Advice(format!(
        "raise the limit ({}), or bound the program's thread pools",
        nearest.source
    ))];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

/// What ZGC with three views of the heap says it may need: three mappings for each granule of 2 MiB, and 20 % for all else
/// (JDK 11 to 17: gc/z/zPhysicalMemoryBacking_linux.cpp, `warn_max_map_count`).
fn z_needs(jvm: &JvmFacts) -> Option<u64> {
    let granules = jvm.number("MaxHeapSize")? / (2 << 20);
    (jvm.gc()? == Gc::Z).then(|| granules.saturating_mul(36) / 10)
}

/// The number of mappings against `vm.max_map_count`: at the limit mmap and mprotect fail, and a JVM does not survive that.
pub(super) fn mappings(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    const WARN_PERCENT: u64 = 70;
    const CRITICAL_PERCENT: u64 = 90;
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

/// `OVERCOMMIT_NEVER`, include/uapi/linux/mman.h.
const NEVER: &str = "2";

/// `vm.overcommit_memory` 2: the kernel promises no more memory than its commit limit, and what was promised is near it. Then mmap
/// and fork fail with ENOMEM while memory is free.
pub(super) fn commit(facts: &Facts) -> Option<Finding> {
    // The heap that a JVM commits as it grows, or a fork of one, is often a tenth of a host.
    const WARN_PERCENT: f64 = 90.0;
    // Within 3 % (mm/util.c keeps that much for root and for each process), single allocations fail.
    const CRITICAL_PERCENT: f64 = 97.0;
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
    mod files {
        use super::super::*;
        use crate::doctor::facts::made_up;
        use crate::doctor::facts::made_up::rule_finds;
        use crate::os::ceilings::Ceiling;

        #[test]
        fn the_edges() {
            let level = |used: u64| {
                let mut facts = made_up::healthy();
                let source = "/proc/PID/limits".to_string();
                facts.jvms[0].bounds.files = Some(Ceiling { what: "open files", used, limit: 1000, source });
                rule_finds("files-near-limit", &facts).pop().map(|finding| finding.level)
            };
            assert_eq!((level(799), level(800), level(949)), (None, Some(Level::Info), Some(Level::Info)));
            assert_eq!(level(950), Some(Level::Warn));
            assert_eq!(rule_finds("files-near-limit", &made_up::healthy()), []);
        }
    }

    mod threads {
        use super::super::*;
        use crate::doctor::facts::made_up;
        use crate::doctor::facts::made_up::rule_finds;
        use crate::os::ceilings::Ceiling;

        #[test]
        fn the_nearest_limit_counts() {
            let level = |used: u64| {
                let mut facts = made_up::healthy();
                let ceiling = |what, used, limit| Ceiling { what, used, limit, source: "x".to_string() };
                let far = ceiling("threads of the host", 500, 30_000);
                facts.jvms[0].bounds.threads = vec![far, ceiling("threads of the cgroup", used, 100)];
                rule_finds("threads-near-limit", &facts).pop().map(|finding| (finding.level, finding.title))
            };
            assert_eq!(level(79), None);
            assert!(
                level(80).is_some_and(|(level, title)| level == Level::Warn && title.contains("80 of 100"))
            );
            assert!(level(94).is_some_and(|(level, _)| level == Level::Warn));
            assert!(level(95).is_some_and(|(level, _)| level == Level::Critical));
            assert_eq!(rule_finds("threads-near-limit", &made_up::healthy()), []);
        }
    }

    mod mappings {
        use super::super::*;
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
            assert!(
                found(used, |_| ()).is_some_and(|finding| finding.remedies[0].text().ends_with("=65536"))
            );
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

    mod commit {
        use super::super::*;
        use crate::doctor::facts::made_up::{self, M};

        fn level(mode: &str, promised_percent: u64) -> Option<Level> {
            let mut facts = made_up::healthy();
            facts.host.sysctl.insert("vm/overcommit_memory".to_string(), mode.to_string());
            facts.host.meminfo.insert("CommitLimit".to_string(), 10_000 * M);
            facts.host.meminfo.insert("Committed_AS".to_string(), promised_percent * 100 * M);
            commit(&facts).map(|finding| finding.level)
        }

        #[test]
        fn only_where_the_kernel_keeps_to_the_limit() {
            assert_eq!(commit(&made_up::healthy()), None);
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
}
