//! Pages of hugetlb that nothing uses, and pages that are in use and that nothing promises to the next start.

use crate::base::{Bytes, human, size};
use crate::doctor::promise::{self, Kind};
use crate::doctor::{Cost, Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::os::hugetlb::{DIRECTORY, Pool};

const WARN_BYTES_MIN: Bytes = 64 << 20;
/// Percentage of the host's memory.
const WARN_PERCENT_MIN: u64 = 1;
const INFO_BYTES_MIN: Bytes = 16 << 20;

/// Pages of hugetlb that are set aside, neither in use nor reserved. The kernel gives such memory to nothing else,
/// not even before it OOM-kills a process.
pub(super) fn unused(facts: &Facts) -> Vec<Finding> {
    facts.host.pages.pools.iter().filter_map(|pool| unused_of(facts, pool)).collect()
}

fn unused_of(facts: &Facts, pool: &Pool) -> Option<Finding> {
    let lacking = lacking(facts, pool.page_bytes);
    // What a cgroup keeps from a JVM is not unused, and that JVM's own finding says it.
    let kept_away = lacking.iter().filter(|it| it.kind == Kind::GroupLimit).map(|it| it.bytes);
    let kept_away = kept_away.fold(0, u64::saturating_add) / pool.page_bytes.max(1);
    let idle = pool.free.saturating_sub(pool.reserved).saturating_sub(kept_away);
    let bytes = idle.saturating_mul(pool.page_bytes);
    let memory = facts.host.memory_bytes();
    let is_large =
        |memory: Bytes| u128::from(bytes) * 100 >= u128::from(memory) * u128::from(WARN_PERCENT_MIN);
    let level = match bytes {
        WARN_BYTES_MIN.. if memory.is_some_and(is_large) => Level::Warn,
        INFO_BYTES_MIN.. => Level::Info,
        _ => return None,
    };
    let page = size(pool.page_bytes);
    let title = format!("pages of {page} set aside, neither used nor reserved: {idle} ({})", human(bytes));
    let directory = directory(pool);
    let count = |what, pages, file| count(pool, what, pages, file);
    let mut evidence = vec![
        Evidence::bytes("idle", bytes, format!("{directory}: free_hugepages less resv_hugepages")),
        count("pages in the pool", pool.pages, "nr_hugepages"),
        count("free", pool.free, "free_hugepages"),
        count("promised, not touched yet", pool.reserved, "resv_hugepages"),
        Evidence::state("idle since", "not known: the kernel keeps no time", directory.clone()),
    ];
    evidence.extend(memory.map(|memory| Evidence::bytes("memory of the host", memory, "/proc/meminfo")));
    if kept_away > 0 {
        let what = "free, and kept from JVMs by cgroups: not counted";
        evidence.push(count(what, kept_away, "free_hugepages"));
    }
    let mut remedies = Vec::new();
    for Lack { pid, bytes, .. } in lacking.iter().filter(|it| it.kind != Kind::GroupLimit) {
        let text = format!("restart pid {pid}, which asked for such pages and lacks {}", human(*bytes));
        remedies.push(Remedy::Advice(text));
        let what = format!("lacking in pid {pid}, which asked for such pages");
        evidence.push(Evidence::bytes(what, *bytes, format!("/proc/{pid}/pagemap")));
    }
    let kept = pool.pages.saturating_sub(pool.surplus).saturating_sub(idle);
    remedies.push(Remedy::Setting(format!("echo {kept} > {directory}/nr_hugepages")));
    Some(Finding::on_host(level, title, evidence, remedies).costing(Cost::bytes(bytes)))
}

fn directory(pool: &Pool) -> String {
    format!("{DIRECTORY}/hugepages-{}kB", pool.page_bytes >> 10)
}

fn count(pool: &Pool, what: &str, pages: u64, file: &str) -> Evidence {
    Evidence::count(what, pages, format!("{}/{file}", directory(pool)))
}

/// A JVM that asked for pages of this pool and lacks some.
struct Lack {
    pid: i32,
    bytes: Bytes,
    kind: Kind,
}

fn lacking(facts: &Facts, page_bytes: Bytes) -> Vec<Lack> {
    let of = |jvm: &JvmFacts| {
        let broken = promise::broken(jvm)?;
        let is_of_pool = [Kind::Pool, Kind::SwitchedOff, Kind::GroupLimit].contains(&broken.kind);
        let is_size = broken.promise.needs.iter().any(|need| need.page_bytes == page_bytes);
        (is_of_pool && is_size).then_some(Lack {
            pid: jvm.pid,
            bytes: broken.missing_bytes,
            kind: broken.kind,
        })
    };
    facts.jvms.iter().filter_map(of).collect()
}

/// Pages of hugetlb beyond the number that is set aside: taken from free memory as JVMs asked (nr_overcommit_hugepages), or left
/// after the number was made smaller. They go as soon as they are free, and nothing promises them to the next start.
pub(super) fn surplus(facts: &Facts) -> Vec<Finding> {
    facts.host.pages.pools.iter().filter_map(surplus_of).collect()
}

fn surplus_of(pool: &Pool) -> Option<Finding> {
    if pool.surplus == 0 {
        return None;
    }
    let (page, bytes) = (size(pool.page_bytes), pool.surplus.saturating_mul(pool.page_bytes));
    let directory = directory(pool);
    let how = match pool.overcommit {
        0 => "the pool was made smaller while they were in use",
        _ => "overcommit took them from free memory when they were asked for",
    };
    let title =
        format!("pages of {page} above the number set aside: {} ({}); {how}", pool.surplus, human(bytes));
    let count = |what, pages, file| count(pool, what, pages, file);
    let evidence = vec![
        Evidence::bytes("surplus", bytes, format!("{directory}/surplus_hugepages")),
        count("pages, surplus included", pool.pages, "nr_hugepages"),
        count("surplus pages allowed", pool.overcommit, "nr_overcommit_hugepages"),
    ];
    let remedies = vec![
        Remedy::advice("nothing, if a start that gets small pages instead is acceptable"),
        Remedy::Setting(format!("echo {} > {directory}/nr_hugepages", pool.pages)),
    ];
    Some(Finding::on_host(Level::Info, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    mod unused {
        use super::super::*;
        use crate::doctor::facts::made_up::{G, M, healthy};
        use crate::doctor::rules::page_cases;
        use crate::os::hugetlb::Limit;

        fn host(memory: Bytes, pages: u64, free: u64, reserved: u64) -> Facts {
            let mut facts = healthy();
            facts.host.meminfo.insert("MemTotal".to_string(), memory);
            let pool = Pool { page_bytes: 2 * M, pages, free, reserved, surplus: 0, overcommit: 0 };
            facts.host.pages.pools = vec![pool];
            facts
        }

        fn level(facts: &Facts) -> Option<Level> {
            unused(facts).first().map(|found| found.level)
        }

        #[test]
        fn pages_that_are_used_or_promised_are_no_matter() {
            assert_eq!(level(&host(16 * G, 512, 0, 0)), None);
            assert_eq!(level(&host(16 * G, 512, 300, 300)), None);
            assert_eq!(level(&host(16 * G, 512, 300, 293)), None, "14 MiB");
            assert_eq!(level(&host(16 * G, 512, 300, 292)), Some(Level::Info));
        }

        #[test]
        fn one_percent_of_memory_and_64_mib_are_worth_a_warning() {
            assert_eq!(level(&host(2 * G, 512, 31, 0)), Some(Level::Info), "62 MiB of 2 GiB");
            assert_eq!(level(&host(2 * G, 512, 32, 0)), Some(Level::Warn));
            assert_eq!(level(&host(200 * M * 100, 512, 99, 0)), Some(Level::Info));
            assert_eq!(level(&host(200 * M * 100, 512, 100, 0)), Some(Level::Warn));
        }

        #[test]
        fn what_to_do_with_them() {
            let mut facts = host(16 * G, 512, 300, 44);
            let found = unused(&facts);
            let file = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
            assert_eq!(found[0].remedies, [Remedy::Setting(format!("echo 256 > {file}"))]);
            assert_eq!(found[0].cost, Cost::bytes(512 * M));
            facts.jvms = vec![page_cases::asks_hugetlb()];
            assert!(unused(&facts)[0].remedies[0].text().contains("restart pid 4711"), "{found:#?}");
        }

        #[test]
        fn what_a_group_keeps_from_a_jvm_is_the_jvms_finding_alone() {
            let mut jvm = page_cases::asks_hugetlb();
            let missing = promise::broken(&jvm).expect("all is on small pages").missing_bytes / (2 * M);
            page_cases::pools(&mut jvm)[0] =
                Pool { page_bytes: 2 * M, pages: missing, free: missing, ..Pool::default() };
            let file = "/sys/fs/cgroup/app/hugetlb.2MB.max".to_string();
            page_cases::settings(&mut jvm).limits =
                vec![Limit { page_bytes: 2 * M, limit_bytes: 4 * M, used_bytes: Some(0), file }];
            let mut facts = host(16 * G, missing, missing, 0);
            facts.jvms = vec![jvm];
            assert_eq!(unused(&facts), []);
            (facts.host.pages.pools[0].pages, facts.host.pages.pools[0].free) =
                (missing + 100, missing + 100);
            let found = unused(&facts);
            assert_eq!(found[0].cost, Cost::bytes(200 * M), "the rest is unused");
            assert!(found[0].remedies.iter().all(|remedy| !remedy.text().contains("restart")), "{found:#?}");
        }
    }

    mod surplus {
        use super::super::*;
        use crate::doctor::facts::made_up::{M, healthy};

        #[test]
        fn by_overcommit_and_by_a_pool_made_smaller() {
            let mut facts = healthy();
            let pool =
                Pool { page_bytes: 2 * M, pages: 100, surplus: 100, overcommit: 200, ..Pool::default() };
            facts.host.pages.pools = vec![pool.clone()];
            assert!(surplus(&facts)[0].title.contains("above the number set aside: 100 (200.0 MiB)"));
            facts.host.pages.pools = vec![Pool { overcommit: 0, ..pool.clone() }];
            assert!(surplus(&facts)[0].title.contains("made smaller"));
            facts.host.pages.pools = vec![Pool { surplus: 0, ..pool }];
            assert_eq!(surplus(&facts), []);
        }
    }
}
