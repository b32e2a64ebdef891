//! Memory that the program freed, that malloc keeps, and that stays in memory: "malloc-then-freed" of the OOPSLA 2010 paper.

use crate::base::{Bytes, human};
use crate::doctor::arenas;
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

#[cfg(test)]
mod tests {
    use super::*;
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
