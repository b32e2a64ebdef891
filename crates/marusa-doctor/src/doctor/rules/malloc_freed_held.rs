//! Memory that the program freed and that malloc keeps: how much, in which of its arenas, and what would give it back.

use crate::base::{Bytes, counted, human};
use crate::doctor::arenas::{self, Spread};
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};
use crate::map::trim::{self, Advice, ArenaPrediction, Prediction};

/// A JVM that compiles frees and takes some tens of MiB all the time: less is not a loss. And less than one heap of an arena,
/// 64 MiB, which one block that is pinned at its end keeps.
pub const WORTH_BYTES: Bytes = 48 << 20;
pub const INFO_PERCENT: f64 = 5.0;
pub const WARN_PERCENT: f64 = 15.0;
/// `System.trim_native_heap` came with 18; updates of 17 that have it have the flag as well.
const COMMAND_SINCE: u32 = 18;
const ARENAS_SHOWN: usize = 3;
pub const WALK: &str = "malloc's own lists (walk of its arenas)";

/// Memory that the program freed, that malloc keeps, and that stays in memory: "malloc-then-freed" of the OOPSLA 2010 paper.
pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let freed = jvm.freed()?;
    let held = freed.total.free_resident_bytes;
    let percent = jvm.percent_of_resident(held);
    if held < WORTH_BYTES || percent < INFO_PERCENT {
        return None;
    }
    // Where the arenas are the cause, that finding warns, and this one would say the same bytes twice.
    let is_warned = arenas::warns(jvm);
    let level = if percent >= WARN_PERCENT && !is_warned { Level::Warn } else { Level::Info };
    let title = format!(
        "malloc holds {} that the program freed, {percent:.0} % of what is resident; a trim would give back {} now",
        human(held),
        human(freed.total.trimmable_bytes)
    );
    let evidence = evidence(jvm, &freed);
    let remedies = remedies(jvm, &freed);
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies).costing(Cost::bytes(held)))
}

fn evidence(jvm: &JvmFacts, freed: &Prediction) -> Vec<Evidence> {
    let total = &freed.total;
    let mut evidence = vec![
        Evidence::bytes("resident, all of the process", jvm.resident_bytes(), "the account"),
        Evidence::bytes("freed, yet resident", total.free_resident_bytes, WALK),
        Evidence::bytes("of it, what malloc_trim would give back", total.trimmable_bytes, WALK),
        Evidence::bytes(
            "of it, ends of threads' arenas, which malloc_trim leaves",
            total.top_kept_bytes,
            WALK,
        ),
        Evidence::bytes("of it, on pages that blocks in use share", total.scattered_bytes(), WALK),
    ];
    let bytes = |arena: &ArenaPrediction| arena.held.as_ref().map_or(0, |held| held.free_resident_bytes);
    let mut arenas: Vec<&ArenaPrediction> = freed.arenas.iter().collect();
    arenas.sort_by_key(|arena| (std::cmp::Reverse(bytes(arena)), arena.number));
    let shown = arenas.into_iter().take(ARENAS_SHOWN);
    evidence
        .extend(shown.map(|arena| Evidence::bytes(format!("arena {}", arena.number), bytes(arena), WALK)));
    evidence
}

/// What gives it back now, and what keeps it from being held after the next start.
pub fn remedies(jvm: &JvmFacts, freed: &Prediction) -> Vec<Remedy> {
    let has_command = jvm.major().is_some_and(|major| major >= COMMAND_SINCE)
        || jvm.flag("TrimNativeHeapInterval").is_some();
    let agent = if has_command { "" } else { " --load-agent" };
    let mut remedies = vec![Remedy::Command(format!("marusa trim {}{agent}", jvm.pid))];
    for advice in trim::advice(&jvm.snapshot, freed) {
        remedies.extend(match advice {
            Advice::TrimInterval { experimental, .. } => Some(interval(experimental)),
            Advice::TrimIntervalIsSet { .. } => None,
            Advice::NewerJvm { .. } => Some(Remedy::advice(
                "17.0.9 and later, updates of 21, and 22 on can give it back by themselves: -XX:TrimNativeHeapInterval",
            )),
            // A finding of its own, with the figures.
            Advice::FewerArenas { .. } => None,
            Advice::TrimThreshold { top_kept_bytes } if top_kept_bytes >= WORTH_BYTES => {
                Some(Remedy::Environment("MALLOC_TRIM_THRESHOLD_=131072".to_string()))
            }
            Advice::TrimThreshold { .. } => None,
        });
    }
    remedies
}

pub fn interval(experimental: bool) -> Remedy {
    let unlock = if experimental { "-XX:+UnlockExperimentalVMOptions " } else { "" };
    Remedy::JvmOption(format!("{unlock}-XX:TrimNativeHeapInterval=5000"))
}

/// Many arenas of malloc, with freed memory in each: what one thread frees serves only the threads of the same arena.
pub(super) fn many_arenas(jvm: &JvmFacts) -> Option<Finding> {
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

/// What a trim would give back now. A trim takes locks and milliseconds, and what is given back is asked for again.
const TRIM_WORTH_BYTES: Bytes = 48 << 20;
const TRIM_WORTH_PERCENT: f64 = 5.0;
/// The flag is experimental in updates of 17 (17.0.9).
const EXPERIMENTAL: u32 = 17;

/// A JVM that could return malloc's freed memory by itself, and is not set to.
pub(super) fn no_trim_set(jvm: &JvmFacts) -> Option<Finding> {
    let milliseconds = jvm.number("TrimNativeHeapInterval")?;
    let trimmable = jvm.freed()?.total.trimmable_bytes;
    let is_worth = trimmable >= TRIM_WORTH_BYTES && jvm.percent_of_resident(trimmable) >= TRIM_WORTH_PERCENT;
    if milliseconds > 0 || !is_worth {
        return None;
    }
    let title = format!(
        "this JVM can trim by itself, and its flag is not set; {} would come back now",
        human(trimmable)
    );
    let evidence = [
        Evidence::count("TrimNativeHeapInterval", milliseconds, "flags of the VM"),
        Evidence::bytes("what malloc_trim would give back", trimmable, WALK),
        Evidence::percent("of what is resident", jvm.percent_of_resident(trimmable), "the account"),
    ];
    let remedies = [interval(jvm.major() == Some(EXPERIMENTAL))];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies).costing(Cost::bytes(trimmable)))
}

#[cfg(test)]
mod tests {
    mod freed {
        use super::super::*;
        use crate::doctor::facts::made_up::{M, alloc, healthy_jvm, view};

        /// A JVM with `bytes` free in the main arena, all of it trimmable.
        fn with_freed(bytes: Bytes) -> JvmFacts {
            let mut jvm = healthy_jvm();
            for (number, arena) in alloc(&mut jvm).arenas.iter_mut().enumerate() {
                let figures = arena.figures.as_mut().expect("made up");
                let bytes = if number == 0 { bytes } else { 0 };
                (figures.free_resident_bytes, figures.trimmable_bytes, figures.top_kept_bytes) =
                    (bytes, bytes, 0);
            }
            jvm
        }

        #[test]
        fn both_the_bytes_and_the_share_must_be_large() {
            assert_eq!(find(&healthy_jvm()), None);
            let level = |freed, resident| {
                let mut jvm = with_freed(freed);
                jvm.account.totals.resident_bytes = resident;
                find(&jvm).map(|finding| finding.level)
            };
            assert_eq!(level(WORTH_BYTES - 1, 100 * M), None);
            assert_eq!(level(WORTH_BYTES, 300 * M), Some(Level::Warn));
            assert_eq!(level(99 * M, 2000 * M), None);
            assert_eq!(level(100 * M, 2000 * M), Some(Level::Info));
            assert_eq!(level(299 * M, 2000 * M), Some(Level::Info));
            assert_eq!(level(300 * M, 2000 * M), Some(Level::Warn));
        }

        #[test]
        fn each_jdk_gets_the_remedies_that_it_has() {
            let texts = |jvm: &JvmFacts| {
                let finding = find(jvm).expect("it holds much");
                finding.remedies.iter().map(|remedy| remedy.text().to_string()).collect::<Vec<_>>()
            };
            let mut jvm = with_freed(500 * M);
            assert_eq!(texts(&jvm), ["marusa trim 4711", "-XX:TrimNativeHeapInterval=5000"]);
            view(&mut jvm).major = Ok(17);
            assert_eq!(texts(&jvm)[1], "-XX:+UnlockExperimentalVMOptions -XX:TrimNativeHeapInterval=5000");
            view(&mut jvm).major = Ok(11);
            view(&mut jvm).flags.remove("TrimNativeHeapInterval");
            assert_eq!(texts(&jvm)[0], "marusa trim 4711 --load-agent");
            alloc(&mut jvm).allocator = "jemalloc 5.3.0".to_string();
            assert_eq!(find(&jvm), None);
        }
    }

    mod many_arenas {
        use super::super::*;
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
                let mut arena =
                    marusa_account::alloc::Arena { number, at: Addr(0x7000 + number as u64), ..one.clone() };
                let figures = arena.figures.as_mut().expect("made up");
                (figures.free_resident_bytes, figures.trimmable_bytes, figures.top_kept_bytes) =
                    (*bytes, *bytes, 0);
                arenas.push(arena);
            }
            jvm
        }

        fn level(jvm: &JvmFacts) -> Option<Level> {
            many_arenas(jvm).map(|finding| finding.level)
        }

        #[test]
        fn what_counts_is_what_fewer_arenas_would_not_hold() {
            assert_eq!(level(&healthy_jvm()), None);
            assert_eq!(level(&with_arenas(&[M, 900 * M])), None, "one arena holds all");
            assert_eq!(level(&with_arenas(&[40 * M, 40 * M, 40 * M])), None, "one beyond two");
            let mut jvm = with_arenas(&[40 * M; 8]);
            let finding = many_arenas(&jvm).expect("240 MiB beyond two arenas");
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

    mod trim {
        use super::super::*;
        use crate::doctor::facts::made_up::{M, alloc, healthy_jvm, set_flags, view};

        fn with_trimmable(bytes: Bytes) -> JvmFacts {
            let mut jvm = healthy_jvm();
            let arenas = &mut alloc(&mut jvm).arenas;
            arenas.truncate(1);
            let figures = arenas[0].figures.as_mut().expect("made up");
            (figures.free_resident_bytes, figures.trimmable_bytes) = (bytes, bytes);
            jvm
        }

        #[test]
        fn only_where_the_flag_is_there_and_off_and_much_would_come_back() {
            assert_eq!(no_trim_set(&healthy_jvm()), None);
            assert_eq!(no_trim_set(&with_trimmable(TRIM_WORTH_BYTES - 1)), None);
            let mut jvm = with_trimmable(200 * M);
            assert_eq!(no_trim_set(&jvm).map(|finding| finding.level), Some(Level::Info));
            set_flags(&mut jvm, &[("TrimNativeHeapInterval", "5000")]);
            assert_eq!(no_trim_set(&jvm), None);
            view(&mut jvm).flags.remove("TrimNativeHeapInterval");
            assert_eq!(no_trim_set(&jvm), None, "no such flag");
        }
    }
}
