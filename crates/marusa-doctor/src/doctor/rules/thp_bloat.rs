//! Huge pages of which much is pages of zeros: memory that is resident only because it shares a huge page with something
//! that is used.
//!
//! Malloc and stacks have findings of their own. A heap that was touched on purpose is not bloat, but a split gives
//! its unused part back anyway: that is info only.

use crate::base::Bytes;
use crate::doctor::{Cost, Evidence, Facts, Finding, JvmFacts, Level, Remedy, thp_remedies};
use crate::map::Area;
use crate::map::bloat::{Bloat, Sums};
use crate::os::zero_ranges::Sort;

/// The least that is worth a finding, with its least shares of resident memory and of the huge pages. A busy heap
/// always has an eden that was not filled yet.
const BYTES_MIN: Bytes = 64 << 20;
const RESIDENT_PERCENT_MIN: u64 = 10;
const HUGE_PERCENT_MIN: u64 = 25;
/// Areas that have a smaller share of the zeros are not named.
const AREA_PERCENT_MIN: u64 = 5;

/// One area, apart from what malloc has of it: bytes of huge pages, and of zeros at least and about.
struct Found {
    area: Area,
    huge: Bytes,
    zero_low: Bytes,
    zero: Bytes,
}

pub(super) fn of_jvm(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let bloat = jvm.bloat.as_ref().ok()?;
    let found: Vec<Found> = bloat.areas.iter().filter_map(|(area, sums)| of_area(*area, sums)).collect();
    let was_touched = |found: &&Found| found.area == Area::JavaHeap && jvm.is_on("AlwaysPreTouch");
    let (touched, untouched): (Vec<&Found>, Vec<&Found>) = found.iter().partition(was_touched);
    let is_much = |found: &[&Found]| {
        let low: Bytes = found.iter().map(|found| found.zero_low).sum();
        let huge: Bytes = found.iter().map(|found| found.huge).sum();
        low >= BYTES_MIN
            && low.saturating_mul(100) >= jvm.resident_bytes().saturating_mul(RESIDENT_PERCENT_MIN)
            && low.saturating_mul(100) >= huge.saturating_mul(HUGE_PERCENT_MIN)
    };
    match () {
        () if is_much(&untouched) => Some(finding(facts, jvm, bloat, &untouched, Level::Warn)),
        () if is_much(&touched) => Some(finding(facts, jvm, bloat, &touched, Level::Info)),
        () => None,
    }
}

fn of_area(area: Area, sums: &Sums) -> Option<Found> {
    // What malloc holds is in these and a few more, in blocks of many areas; the finding about arenas has it.
    let is_others = [Area::Stack, Area::MallocFreed, Area::Overhead].contains(&area);
    let thp = sums.of(Sort::Thp);
    let found = Found { area, huge: thp.resident_bytes, zero_low: thp.zero.low, zero: thp.zero.bytes };
    (!is_others && found.huge > 0).then_some(found)
}

fn finding(facts: &Facts, jvm: &JvmFacts, bloat: &Bloat, found: &[&Found], level: Level) -> Finding {
    let zero: Bytes = found.iter().map(|found| found.zero).sum();
    let huge: Bytes = found.iter().map(|found| found.huge).sum();
    let share = zero as f64 * 100.0 / huge.max(1) as f64;
    let source = if bloat.is_sampled { "/proc/PID/mem, a sample" } else { "/proc/PID/mem" };
    let mut evidence = vec![
        Evidence::bytes("pages of zeros in huge pages", zero, source),
        Evidence::percent("of these huge pages", share, source),
    ];
    let named: Vec<&&Found> =
        found.iter().filter(|found| found.zero * 100 >= zero.saturating_mul(AREA_PERCENT_MIN)).collect();
    for found in &named {
        evidence.push(Evidence::bytes(format!("of it {}", found.area.title()), found.zero, source));
    }
    let kernel = bloat.shrinker.text();
    evidence.push(Evidence::state(
        "what the kernel splits by itself",
        kernel,
        "/sys/kernel/mm/transparent_hugepage",
    ));
    let why = match level {
        Level::Info => "of a heap that was touched in advance (-XX:+AlwaysPreTouch) was not used since",
        _ => "of its huge pages is zeros: resident, and without content",
    };
    let title = format!("{share:.0} % {why}");
    let remedies = remedies(facts, jvm, bloat, &named, level);
    Finding::on_jvm(jvm.pid, level, title, evidence, remedies).costing(Cost::bytes(zero))
}

fn remedies(facts: &Facts, jvm: &JvmFacts, bloat: &Bloat, named: &[&&Found], level: Level) -> Vec<Remedy> {
    let areas: Vec<&str> = named.iter().map(|found| found.area.name()).collect();
    let mut remedies = Vec::new();
    if bloat.split_gives_back {
        remedies.push(Remedy::Command(format!("marusa pages split {} --area {}", jvm.pid, areas.join(","))));
        remedies.extend(thp_remedies::not_refilled(facts));
    } else {
        let advice = "a split gives pages of zeros back since Linux 6.12 only; here a new start does";
        remedies.push(Remedy::Advice(advice.to_string()));
    }
    if level > Level::Info {
        remedies.extend(thp_remedies::not_unasked(facts));
        if jvm.is_on("UseTransparentHugePages") {
            remedies.push(Remedy::jvm_option("-XX:-UseTransparentHugePages"));
        }
    } else {
        remedies.push(Remedy::jvm_option("-XX:-AlwaysPreTouch"));
    }
    remedies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::doctor::facts::made_up::{G, M, healthy, set_flags};
    use crate::map::bloat::{Estimate, ZeroSum};

    fn with(area: Area, resident_bytes: Bytes, zero: Bytes) -> Facts {
        let mut facts = healthy();
        let sum = ZeroSum {
            resident_bytes,
            read_bytes: resident_bytes,
            zero: Estimate::exactly(zero),
            ..ZeroSum::default()
        };
        let sums = Sums([(Sort::Thp, sum)].into());
        let areas = [(area, sums.clone())].into();
        facts.jvms[0].bloat = Ok(Bloat { total: sums, areas, split_gives_back: true, ..Bloat::default() });
        facts
    }

    #[test]
    fn a_heap_of_zeros_is_found_and_what_a_split_gives_back() {
        let facts = with(Area::JavaHeap, 800 * M, 500 * M);
        let found = rule_finds("thp-bloat", &facts);
        assert_eq!((found.len(), found[0].level, found[0].cost.bytes), (1, Level::Warn, Some(500 * M)));
        let commands: Vec<&str> = found[0].remedies.iter().map(Remedy::text).collect();
        assert!(commands[0].ends_with("--area java_heap"), "{commands:?}");
        assert!(commands[1].contains("max_ptes_none"), "{commands:?}");
    }

    #[test]
    fn what_was_touched_on_purpose_is_no_harm() {
        let mut facts = with(Area::JavaHeap, 800 * M, 500 * M);
        set_flags(&mut facts.jvms[0], &[("AlwaysPreTouch", "true")]);
        assert_eq!(rule_finds("thp-bloat", &facts)[0].level, Level::Info);
    }

    #[test]
    fn an_old_kernel_gives_nothing_back_and_little_is_not_worth_a_word() {
        let mut facts = with(Area::Gc, 800 * M, 500 * M);
        if let Ok(bloat) = &mut facts.jvms[0].bloat {
            bloat.split_gives_back = false;
        }
        facts.host.pages.thp.as_mut().expect("made up").enabled = "always".to_string();
        let remedies = &rule_finds("thp-bloat", &facts)[0].remedies;
        assert!(remedies.iter().all(|remedy| !matches!(remedy, Remedy::Command(_))), "{remedies:?}");
        assert!(remedies.iter().any(|remedy| remedy.text().starts_with("echo madvise")));
        assert!(rule_finds("thp-bloat", &with(Area::JavaHeap, 800 * M, 50 * M)).is_empty(), "bytes");
        assert!(
            rule_finds("thp-bloat", &with(Area::JavaHeap, 8 * G, 80 * M)).is_empty(),
            "of the huge pages"
        );
        assert!(
            rule_finds("thp-bloat", &with(Area::MallocFreed, 800 * M, 500 * M)).is_empty(),
            "another finding has it"
        );
        assert!(rule_finds("thp-bloat", &healthy()).is_empty());
    }
}
