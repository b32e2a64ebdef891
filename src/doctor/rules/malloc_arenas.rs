//! Many arenas of malloc, with freed memory in each: what one thread frees serves only the threads of the same arena.

use super::malloc_freed_held::WALK;
use crate::base::{counted, human};
use crate::doctor::arenas::Spread;
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Remedy};

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let spread = Spread::of(jvm)?;
    let level = spread.level(jvm)?;
    let Spread { kept, arenas, beyond_bytes, attached_threads, .. } = spread;
    let set = match spread.set {
        Ok(Some(number)) => Evidence::count("MALLOC_ARENA_MAX", number, "/proc/PID/environ"),
        Ok(None) => {
            Evidence::state("MALLOC_ARENA_MAX", "not set: up to 8 arenas for each CPU", "/proc/PID/environ")
        }
        Err(_) => Evidence::state("MALLOC_ARENA_MAX", "could not be read", "/proc/PID/environ"),
    };
    let users = counted(attached_threads, "thread");
    let price = format!(
        "the price: {users} would take turns at {kept} locks instead of {arenas}, for blocks that their own \
         caches do not hold (glibc's hold blocks of up to 1 KiB); measure the throughput before and after"
    );
    let title = format!(
        "arenas of malloc ({arenas}) hold {} of freed memory; {} of it is beyond the {kept} that hold the most",
        human(spread.freed_bytes),
        human(beyond_bytes)
    );
    let evidence = [
        Evidence::count("arenas", arenas as u64, WALK),
        Evidence::count("arenas that hold 1 MiB or more", spread.holding as u64, WALK),
        Evidence::count("threads attached to them", attached_threads, WALK),
        Evidence::bytes("freed, yet resident", spread.freed_bytes, WALK),
        Evidence::bytes(format!("of it, beyond {}", counted(kept, "arena")), beyond_bytes, WALK),
        Evidence::percent("of what is resident", jvm.percent_of_resident(beyond_bytes), "the account"),
        set,
    ];
    let remedies = [
        Remedy::Environment(format!("MALLOC_ARENA_MAX={kept}")),
        Remedy::Advice(price),
        Remedy::Command(format!("marusa trim {}", jvm.pid)),
    ];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies).costing(Cost::bytes(beyond_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Addr, Bytes};
    use crate::doctor::Level;
    use crate::doctor::arenas::warns;
    use crate::doctor::facts::made_up::{M, alloc, healthy_jvm};

    fn with_arenas(held: &[Bytes]) -> JvmFacts {
        let mut jvm = healthy_jvm();
        let arenas = &mut alloc(&mut jvm).arenas;
        let one = arenas[1].clone();
        arenas.clear();
        for (number, bytes) in held.iter().enumerate() {
            let mut arena = crate::alloc::Arena { number, at: Addr(0x7000 + number as u64), ..one.clone() };
            let figures = arena.figures.as_mut().expect("made up");
            (figures.free_resident_bytes, figures.trimmable_bytes, figures.top_kept_bytes) =
                (*bytes, *bytes, 0);
            arenas.push(arena);
        }
        jvm
    }

    fn level(jvm: &JvmFacts) -> Option<Level> {
        find(jvm).map(|finding| finding.level)
    }

    #[test]
    fn what_counts_is_what_fewer_arenas_would_not_hold() {
        assert_eq!(level(&healthy_jvm()), None);
        assert_eq!(level(&with_arenas(&[M, 900 * M])), None, "one arena holds all");
        assert_eq!(level(&with_arenas(&[40 * M, 40 * M, 40 * M])), None, "one beyond two");
        let mut jvm = with_arenas(&[40 * M; 8]);
        let finding = find(&jvm).expect("240 MiB beyond two arenas");
        assert_eq!((finding.level, finding.cost.bytes), (Level::Warn, Some(240 * M)));
        assert_eq!(finding.remedies[0], Remedy::Environment("MALLOC_ARENA_MAX=2".to_string()));
        assert!(warns(&jvm));
        jvm.account.totals.resident_bytes = 100 << 30;
        assert_eq!(level(&jvm), None, "nothing next to what is resident");
    }

    #[test]
    fn whoever_chose_a_number_is_not_warned() {
        let mut jvm = with_arenas(&[40 * M; 8]);
        let mut set = |name: &str, value: &str| {
            jvm.environment = Ok([(name.to_string(), value.to_string())].into());
            level(&jvm)
        };
        assert_eq!(set("MALLOC_ARENA_MAX", "8"), Some(Level::Info));
        assert_eq!(set("MALLOC_ARENA_MAX", "0"), Some(Level::Warn));
        assert_eq!(set("MALLOC_ARENA_MAX", "2"), None, "fewer would not help");
        assert_eq!(set("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1"), None);
    }
}
