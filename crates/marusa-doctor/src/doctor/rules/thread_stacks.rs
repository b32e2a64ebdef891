//! Stacks of very many threads: each holds what it once needed at its deepest, until the thread ends.

use crate::base::alike::group_of;
use crate::base::printable::escaped;
use crate::base::{Bytes, counted, human};
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;
use std::collections::BTreeMap;

/// A server with a pool of 200 has some 30 MiB.
const INFO_BYTES: Bytes = 96 << 20;
const INFO_PERCENT: f64 = 5.0;
const WARN_BYTES: Bytes = 256 << 20;
const WARN_PERCENT: f64 = 15.0;
/// Whatever they hold: the kernel, the collector (roots) and each safepoint pay for each thread.
const INFO_THREADS: u64 = 2_000;
const GROUPS_SHOWN: usize = 3;
/// A group of fewer is not a pool.
const GROUP_THREADS_MIN: u64 = 10;
/// With virtual threads (JEP 444).
const VIRTUAL_SINCE: u32 = 21;

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let threads = jvm.snapshot.os.tasks.len() as u64;
    let stacks = jvm.area(Area::Stack);
    let (held, percent) = (stacks.resident_bytes, jvm.percent_of_resident(stacks.resident_bytes));
    let level = match held {
        WARN_BYTES.. if percent >= WARN_PERCENT => Level::Warn,
        INFO_BYTES.. if percent >= INFO_PERCENT => Level::Info,
        _ if threads >= INFO_THREADS => Level::Info,
        _ => return None,
    };
    let mut evidence = vec![
        Evidence::count("threads", threads, "/proc/PID/task"),
        Evidence::bytes("their stacks, in memory", held, "the account: stack"),
        Evidence::bytes("a stack, on average", held / threads.max(1), "both"),
        Evidence::bytes("address space of the stacks", stacks.reserved_bytes, "the account: stack"),
    ];
    evidence.extend(
        groups(jvm).into_iter().take(GROUPS_SHOWN).map(|(name, count)| {
            Evidence::count(format!("threads named \"{name}\""), count, "/proc/PID/task")
        }),
    );
    let mut remedies = vec![Remedy::advice(
        "a bound for the pools named above: an idle thread keeps the pages of its deepest call",
    )];
    if jvm.major() >= Some(VIRTUAL_SINCE) {
        remedies.push(Remedy::advice("virtual threads, whose stacks are in the heap while they wait"));
    }
    let title = format!(
        "{} hold {} in their stacks, {percent:.0} % of what is resident",
        counted(threads, "thread"),
        human(held)
    );
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies).costing(Cost::bytes(held)))
}

/// Threads whose names differ only in numbers, the most first: "http-nio-#-exec-#".
fn groups(jvm: &JvmFacts) -> Vec<(String, u64)> {
    let mut groups: BTreeMap<String, u64> = BTreeMap::new();
    for task in &jvm.snapshot.os.tasks {
        *groups.entry(group_of(&escaped(&task.name))).or_default() += 1;
    }
    let mut groups: Vec<(String, u64)> =
        groups.into_iter().filter(|(_, count)| *count >= GROUP_THREADS_MIN).collect();
    groups.sort_by(|(a, one), (b, other)| other.cmp(one).then(a.cmp(b)));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, set_resident};
    use crate::os::process::Task;

    #[test]
    fn what_the_stacks_hold_and_how_many_there_are() {
        assert_eq!(find(&healthy_jvm()), None);
        let level = |stacks, resident| {
            let mut jvm = healthy_jvm();
            set_resident(&mut jvm, Area::Stack, stacks);
            jvm.account.totals.resident_bytes = resident;
            find(&jvm).map(|finding| finding.level)
        };
        assert_eq!(level(95 * M, 1000 * M), None);
        assert_eq!(level(96 * M, 2000 * M), None, "4.8 %");
        assert_eq!(level(96 * M, 1000 * M), Some(Level::Info));
        assert_eq!(level(256 * M, 2000 * M), Some(Level::Info), "12.8 %");
        assert_eq!(level(256 * M, 1000 * M), Some(Level::Warn));
    }

    #[test]
    fn threads_are_grouped_by_their_names_without_numbers() {
        let mut jvm = healthy_jvm();
        let task = |tid| Task { tid, name: format!("http-8080-x-{tid}"), inner_tid: None };
        jvm.snapshot.os.tasks.extend((0..2_000).map(task));
        let finding = find(&jvm).expect("2,030 threads");
        assert_eq!(finding.level, Level::Info);
        assert_eq!(finding.evidence[4].what, "threads named \"http-#-x-#\"");
        assert_eq!(finding.evidence[4].number, Some(2_000.0));
    }
}
