//! A Java heap of which a part is on large pages and the rest on small ones. Which objects are fast is then a matter of luck,
//! and a comparison of two starts says nothing.

use crate::base::{Bytes, human};
use crate::doctor::promise::{self, Kind};
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;
use crate::map::page_claims::Asked;
use crate::map::page_use::{PageUse, percent};

/// A heap without advice stays split until khugepaged gets to it; a small heap does not matter.
const UNASKED_BYTES_MIN: Bytes = 256 << 20;

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let Some(broken) = promise::broken_by(jvm, Kind::Split) else { return of_unasked(jvm) };
    let mut finding = of(jvm, &broken.heap, Level::Warn);
    finding.evidence.splice(0..0, broken.evidence());
    broken.is_worth_it().then_some(finding)
}

fn of_unasked(jvm: &JvmFacts) -> Option<Finding> {
    let heap = promise::area_use(jvm, Area::JavaHeap);
    let is_split = promise::is_between(promise::large_bytes(&heap), heap.resident_bytes);
    let is_asked = Asked::of(&jvm.snapshot).is_for_large();
    (!is_asked && is_split && heap.resident_bytes >= UNASKED_BYTES_MIN).then(|| of(jvm, &heap, Level::Info))
}

fn of(jvm: &JvmFacts, heap: &PageUse, level: Level) -> Finding {
    let large = promise::large_bytes(heap);
    let small = heap.resident_bytes.saturating_sub(large);
    let share = percent(small, heap.resident_bytes);
    let title = format!(
        "of the Java heap's {}, {} ({share}) are on small pages",
        human(heap.resident_bytes),
        human(small)
    );
    let mut evidence = vec![
        Evidence::bytes("the heap on large pages", large, "/proc/PID/pagemap"),
        Evidence::bytes("the heap on small pages", small, "/proc/PID/pagemap"),
    ];
    evidence.extend(promise::reasons(jvm, Area::JavaHeap));
    let remedies = vec![
        Remedy::Command(format!("marusa pages collapse {}", jvm.pid)),
        Remedy::jvm_option("-XX:+AlwaysPreTouch"),
        Remedy::Command(format!("marusa pages plan {}", jvm.pid)),
    ];
    Finding::on_jvm(jvm.pid, level, title, evidence, remedies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::doctor::rules::page_cases::{self, M, only_warning};

    #[test]
    fn half_of_what_was_asked_for() {
        let mut jvm = page_cases::asks_transparent();
        page_cases::advise(&mut jvm);
        page_cases::give_huge(&mut jvm, 450 * M);
        let found = only_warning(jvm, "heap-page-split");
        assert!(found.title.contains("450.0 MiB (50.0 %) are on small pages"), "{found:?}");
    }

    #[test]
    fn a_tenth_on_either_side_is_no_split() {
        for (huge, split) in [(88, false), (90, true), (810, true), (812, false)] {
            let mut jvm = page_cases::asks_transparent();
            page_cases::advise(&mut jvm);
            page_cases::give_huge(&mut jvm, huge * M);
            assert_eq!(
                rule_finds("heap-page-split", &page_cases::alone(jvm)).len(),
                usize::from(split),
                "{huge} of 900 MiB"
            );
        }
    }

    #[test]
    fn where_nobody_asked_it_is_only_worth_knowing() {
        let mut jvm = crate::doctor::facts::made_up::healthy_jvm();
        page_cases::give_huge(&mut jvm, 450 * M);
        let found = rule_finds("heap-page-split", &page_cases::alone(jvm.clone()));
        assert_eq!(found.iter().map(|found| found.level).collect::<Vec<_>>(), [Level::Info]);
        page_cases::touch_only(&mut jvm, 255 * M);
        assert_eq!(rule_finds("heap-page-split", &page_cases::alone(jvm)), []);
    }
}
