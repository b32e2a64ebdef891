//! The JVM's counters (`/tmp/hsperfdata_USER/PID`) in a file of a disk that is busy: a write to such a page may wait for the disk,
//! and the JVM writes its counters within safepoints (Evan Jones, hotspot-runtime-dev, March 2015).

use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::os::maps::Mapping;

/// Percentage of the last minute in which some tasks waited for input or output: on an idle disk no task waits.
const BUSY_PERCENT: f64 = 5.0;

/// On a disk: file systems without one (tmpfs, overlayfs, btrfs) have devices whose major number is 0.
fn is_on_disk(mapping: &Mapping) -> bool {
    let is_perf_data = mapping.path.contains("/hsperfdata_") && mapping.rights.shared && mapping.rights.write;
    let major = mapping.device.split(':').next().and_then(|text| u32::from_str_radix(text, 16).ok());
    is_perf_data && major.is_some_and(|major| major != 0)
}

pub(super) fn of(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let waiting = facts.host.io_pressure.filter(|pressure| pressure.some_60 >= BUSY_PERCENT)?.some_60;
    let mapping = jvm.snapshot.os.mappings.iter().find(|mapping| is_on_disk(mapping))?;
    let title = format!(
        "the JVM's counters are on a disk, and tasks waited for disks {waiting:.0} % of the last minute"
    );
    let evidence = [
        Evidence::state("file of the counters", &mapping.path, "/proc/PID/maps"),
        Evidence::state("device", &mapping.device, "/proc/PID/maps"),
        Evidence::percent(
            "time in which some tasks waited for input or output",
            waiting,
            "/proc/pressure/io: avg60",
        ),
    ];
    let remedies = [
        Remedy::jvm_option("-XX:+PerfDisableSharedMem (jps and jstat no longer see the JVM)"),
        Remedy::advice("mount a tmpfs on /tmp"),
    ];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Addr, Range};
    use crate::doctor::facts::made_up;
    use crate::doctor::facts::made_up::rule_finds;
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
            rule_finds("perf-data-on-disk", &facts).pop().map(|finding| finding.level)
        };
        assert_eq!(found("fe:00", 5.0), Some(Level::Info));
        assert_eq!((found("fe:00", 4.9), found("00:2b", 50.0)), (None, None));
        let mut facts = made_up::healthy();
        facts.host.io_pressure = Some(Averages { some_60: 90.0, ..Averages::default() });
        assert_eq!(rule_finds("perf-data-on-disk", &facts), [], "no such file");
    }
}
