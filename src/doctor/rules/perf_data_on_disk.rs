//! The JVM's counters (`/tmp/hsperfdata_USER/PID`) in a file of a disk that is busy: a write to such a page may wait for the disk,
//! and the JVM writes its counters within safepoints (Evan Jones, hotspot-runtime-dev, March 2015).

use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy, Rule, Subject, types::Cost};
use crate::os::maps::Mapping;

pub const RULE: Rule = Rule {
    id: "perf-data-on-disk",
    title: "the JVM's counters are on a busy disk, and safepoints may wait for it",
    find,
};

/// Percentage of the last minute in which some tasks waited for input or output: on an idle disk no task waits.
const BUSY_PERCENT: f64 = 5.0;

fn find(facts: &Facts) -> Vec<Finding> {
    facts.jvms.iter().filter_map(|jvm| of(facts, jvm)).collect()
}

/// On a disk: file systems without one (tmpfs, overlayfs, btrfs) have devices whose major number is 0.
fn is_on_disk(mapping: &Mapping) -> bool {
    let is_perf_data = mapping.path.contains("/hsperfdata_") && mapping.rights.shared && mapping.rights.write;
    let major = mapping.device.split(':').next().and_then(|text| u32::from_str_radix(text, 16).ok());
    is_perf_data && major.is_some_and(|major| major != 0)
}

fn of(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let waiting = facts.host.io_pressure.filter(|pressure| pressure.some_60 >= BUSY_PERCENT)?.some_60;
    let mapping = jvm.snapshot.os.mappings.iter().find(|mapping| is_on_disk(mapping))?;
    Some(Finding {
        id: RULE.id,
        level: Level::Info,
        subject: Subject::Jvm(jvm.pid),
        title: format!(
            "the JVM's counters are on a disk, and tasks waited for disks {waiting:.0} % of the last minute"
        ),
        evidence: vec![
            Evidence::state("file of the counters", &mapping.path, "/proc/PID/maps"),
            Evidence::state("device", &mapping.device, "/proc/PID/maps"),
            Evidence::percent(
                "time in which some tasks waited for input or output",
                waiting,
                "/proc/pressure/io: avg60",
            ),
        ],
        cost: Cost::default(),
        remedies: vec![
            Remedy::JvmOption("-XX:+PerfDisableSharedMem (jps and jstat no longer see the JVM)".to_string()),
            Remedy::Advice("mount a tmpfs on /tmp".to_string()),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Addr, Range};
    use crate::doctor::facts::made_up;
    use crate::os::maps::Rights;
    use crate::os::pressure_averages::Averages;

    #[test]
    fn a_busy_disk_and_counters_on_it() {
        let found = |device: &str, some_60: f64| {
            let mut facts = made_up::healthy();
            facts.host.io_pressure = Some(Averages { some_60, ..Averages::default() });
            facts.jvms[0].snapshot.os.mappings.push(Mapping {
                range: Range::sized(Addr(0x7fff_0000_0000), 32 << 10),
                rights: Rights { read: true, write: true, execute: false, shared: true },
                offset: 0,
                device: device.to_string(),
                inode: 77,
                path: "/tmp/hsperfdata_app/4711".to_string(),
            });
            find(&facts).pop().map(|finding| finding.level)
        };
        assert_eq!(found("fe:00", 5.0), Some(Level::Info));
        assert_eq!((found("fe:00", 4.9), found("00:2b", 50.0)), (None, None));
        let mut facts = made_up::healthy();
        facts.host.io_pressure = Some(Averages { some_60: 90.0, ..Averages::default() });
        assert_eq!(find(&facts), [], "no such file");
    }
}
