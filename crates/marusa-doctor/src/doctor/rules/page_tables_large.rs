//! Page tables that are out of proportion: of a process that touches a page here and there over a huge address space, or of many
//! processes that each map the same memory with tables of their own. No heap shows it, and it cannot be swapped.

use crate::base::{Bytes, human};
use crate::doctor::{Cost, Evidence, Facts, Finding, HostFacts, JvmFacts, Level, Remedy};
use crate::map::page_use::percent;

/// Percentage of the resident memory. Small pages without a gap take 8 bytes for 4096: 0.2 %.
const PERCENT_MIN: u64 = 1;
const WARN_BYTES_MIN: Bytes = 256 << 20;
const INFO_BYTES_MIN: Bytes = 32 << 20;
/// Percentage of the host's memory.
const HOST_PERCENT_MIN: u64 = 2;
const HOST_BYTES_MIN: Bytes = 512 << 20;

pub(super) fn find(facts: &Facts) -> Vec<Finding> {
    facts.jvms.iter().filter_map(of_jvm).chain(of_host(&facts.host, &facts.jvms)).collect()
}

fn is_share(part: Bytes, whole: Bytes, percent: u64) -> bool {
    u128::from(part) * 100 > u128::from(whole) * u128::from(percent)
}

fn of_jvm(jvm: &JvmFacts) -> Option<Finding> {
    let tables = jvm.snapshot.os.status.page_table_bytes?;
    let resident = jvm.resident_bytes();
    let level = match tables {
        _ if !is_share(tables, resident, PERCENT_MIN) => return None,
        WARN_BYTES_MIN.. => Level::Warn,
        INFO_BYTES_MIN.. => Level::Info,
        _ => return None,
    };
    let share = percent(tables, resident);
    let title = format!("page tables take {}, {share} of the {} in memory", human(tables), human(resident));
    let full = resident / 512;
    let evidence = vec![
        Evidence::bytes("page tables", tables, "/proc/PID/status: VmPTE"),
        Evidence::bytes("in memory", resident, "account"),
        Evidence::bytes("what as much memory takes without a gap, on 4 KiB", full, "8 bytes for 4096"),
    ];
    let remedies = vec![
        Remedy::Command(format!("marusa map {} --by mapping", jvm.pid)),
        Remedy::Command(format!("marusa pages plan {} --mode hugetlb-2m", jvm.pid)),
    ];
    Some(
        Finding::on_jvm(jvm.pid, level, title, evidence, remedies)
            .costing(Cost::bytes(tables.saturating_sub(full))),
    )
}

fn of_host(host: &HostFacts, jvms: &[JvmFacts]) -> Option<Finding> {
    let (tables, memory) = (*host.meminfo.get("PageTables")?, host.memory_bytes()?);
    if tables < HOST_BYTES_MIN || !is_share(tables, memory, HOST_PERCENT_MIN) {
        return None;
    }
    let share = percent(tables, memory);
    let title = format!("page tables of all processes take {}, {share} of the host's memory", human(tables));
    let mut evidence = vec![
        Evidence::bytes("page tables", tables, "/proc/meminfo: PageTables"),
        Evidence::bytes("memory of the host", memory, "/proc/meminfo: MemTotal"),
    ];
    let mut most: Vec<(Bytes, i32)> =
        jvms.iter().filter_map(|jvm| Some((jvm.snapshot.os.status.page_table_bytes?, jvm.pid))).collect();
    most.sort_unstable_by(|one, other| other.cmp(one));
    evidence.extend(most.into_iter().take(5).map(|(bytes, pid)| {
        Evidence::bytes(format!("of pid {pid}"), bytes, format!("/proc/{pid}/status: VmPTE"))
    }));
    let remedies = vec![Remedy::advice(
        "put memory that many processes share on HugeTLB pages, whose tables they share too",
    )];
    Some(Finding::on_host(Level::Warn, title, evidence, remedies).costing(Cost::bytes(tables)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Subject;
    use crate::doctor::facts::made_up::{G, M, healthy};

    fn level(tables: Bytes, resident: Bytes) -> Option<Level> {
        let mut facts = healthy();
        facts.jvms[0].snapshot.os.status.page_table_bytes = Some(tables);
        facts.jvms[0].account.totals.resident_bytes = resident;
        find(&facts).first().map(|found| found.level)
    }

    #[test]
    fn one_percent_and_32_or_256_mib() {
        assert_eq!((level(32 * M, G), level(32 * M - 1, G)), (Some(Level::Info), None));
        assert_eq!((level(256 * M, G), level(256 * M - 1, G)), (Some(Level::Warn), Some(Level::Info)));
        assert_eq!((level(256 * M, 24 * G), level(256 * M, 25 * G)), (Some(Level::Warn), None));
        assert_eq!(level(200 * M, 100 * G), None, "small pages without a gap");
    }

    #[test]
    fn of_all_processes_together() {
        let host = |tables: Bytes| {
            let mut facts = healthy();
            facts.host.meminfo.insert("MemTotal".to_string(), 25 * G);
            facts.host.meminfo.insert("PageTables".to_string(), tables);
            find(&facts)
        };
        assert_eq!(host(512 * M), [], "2 % exactly");
        let found = host(512 * M + 1);
        assert_eq!((found[0].level, found[0].subject), (Level::Warn, Subject::Host));
        assert_eq!(find(&healthy()), [], "no such line");
    }
}
