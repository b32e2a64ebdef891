//! Hundreds of threads of one pool: what they hold in their stacks and in the arenas of malloc that they allocate from.

use crate::base::printable::escaped;
use crate::base::{Bytes, counted, human};
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};
use crate::map::model::{Amounts, ThreadAccount};
use crate::map::sums::group_of;
use std::collections::{BTreeMap, HashSet};

/// Servers have pools of 200 threads by default, and few have 500.
const INFO_THREADS: usize = 500;
const WARN_THREADS: usize = 2_000;

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let mut groups: BTreeMap<String, Vec<&ThreadAccount>> = BTreeMap::new();
    for thread in &jvm.account.threads {
        groups.entry(group_of(&thread.name)).or_default().push(thread);
    }
    let (name, threads) = groups.into_iter().max_by_key(|(_, threads)| threads.len())?;
    let level = Level::reached(threads.len(), [(WARN_THREADS, Level::Warn), (INFO_THREADS, Level::Info)])?;
    let stacks: Vec<&Amounts> = threads.iter().filter_map(|thread| thread.stack.as_ref()).collect();
    // A stack that was not found is not 0.
    let sum = |of: fn(&Amounts) -> Bytes| {
        (!stacks.is_empty()).then(|| stacks.iter().map(|stack| of(stack)).fold(0, Bytes::saturating_add))
    };
    let (held, reserved) = (sum(|stack| stack.resident_bytes), sum(|stack| stack.reserved_bytes));
    let name = escaped(&name).into_owned();
    let hold = held.map_or(String::new(), |held| format!(": their stacks hold {}", human(held)));
    let bytes = [
        ("their stacks, in memory", held, "the account: stack"),
        ("their stacks, address space", reserved, "the account: stack"),
        ("malloc arenas that mostly they use", arenas(jvm, &threads), "walk of malloc's arenas"),
    ];
    let bytes =
        bytes.into_iter().filter_map(|(what, bytes, source)| Some(Evidence::bytes(what, bytes?, source)));
    let count = Evidence::count("threads of this name", threads.len() as u64, "the VM's list of threads");
    let title = format!("{} named \"{name}\"{hold}", counted(threads.len(), "thread"));
    let evidence = std::iter::once(count).chain(bytes);
    let remedies = [
        Remedy::advice("bound the pool, or end the threads that are no longer needed"),
        Remedy::Command(format!("jcmd {} Thread.print", jvm.pid)),
    ];
    Some(
        Finding::on_jvm(jvm.pid, level, title, evidence, remedies)
            .costing(held.map_or(Cost::default(), Cost::bytes)),
    )
}

/// Resident bytes of the arenas most of whose threads are these; `None`: arenas were not read.
fn arenas(jvm: &JvmFacts, threads: &[&ThreadAccount]) -> Option<Bytes> {
    let tids: HashSet<i32> = threads.iter().map(|thread| thread.tid).collect();
    let arenas = &jvm.account.malloc.as_ref()?.arenas;
    let mostly = arenas.iter().filter(|arena| {
        let theirs = arena.threads.iter().filter(|tid| tids.contains(tid)).count();
        theirs * 2 > arena.threads.len()
    });
    Some(mostly.map(|arena| arena.resident_bytes).fold(0, Bytes::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::healthy_jvm;
    use crate::jvm::ThreadKind;

    #[test]
    fn a_pool_of_five_hundred() {
        let with = |count: i32| {
            let mut jvm = healthy_jvm();
            let thread = |at: i32| ThreadAccount {
                compiling: None,
                tid: 10_000 + at,
                name: format!("session-{at}"),
                kind: ThreadKind::Java,
                stack: None,
            };
            jvm.account.threads.extend((0..count).map(thread));
            find(&jvm)
        };
        assert_eq!((find(&healthy_jvm()), with(499)), (None, None));
        let finding = with(500).expect("500");
        assert_eq!(finding.level, Level::Info);
        assert_eq!(finding.title, "500 threads named \"session-#\"", "no stack was found, which is not 0");
        assert_eq!(with(2_000).map(|finding| finding.level), Some(Level::Warn));
    }
}
