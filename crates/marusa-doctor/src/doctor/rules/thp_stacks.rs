//! Thread stacks on huge pages: a thread that uses 100 KiB of its stack has 2 MiB of memory, or the whole stack.
//!
//! It needs `transparent_hugepage/enabled` = always, a kernel before 6.7 (which maps stacks with VM_NOHUGEPAGE:
//! include/linux/mman.h, `calc_vm_flag_bits`, commit c4608d1bf7c6), and a JVM without JDK-8312182. Often the huge pages were
//! taken apart again when the threads set up their guard pages, and the memory stayed: so stacks on small pages that are
//! parts of huge folios count as well.

use crate::base::Bytes;
use crate::doctor::{Cost, Evidence, Facts, Finding, JvmFacts, Level, Remedy, thp_remedies};
use crate::map::Area;
use crate::map::bloat::is_since;

/// The least unused memory of stacks, its share of the process, and its share of the stacks on large pages.
const BYTES_MIN: Bytes = 32 << 20;
const RESIDENT_PERCENT_MIN: u64 = 3;
const LARGE_PERCENT_MIN: u64 = 50;
const FORBIDDEN_SINCE: (u32, u32) = (6, 7);
/// In KiB: stacks of a multiple of it are aligned like huge pages.
const HUGE_KIB: u64 = 2048;

pub(super) fn of_jvm(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let bloat = jvm.bloat.as_ref().ok()?;
    let sums = bloat.area(Area::Stack);
    let (large, zero) = (sums.large_bytes(), sums.large_zero());
    let is_much = zero.low >= BYTES_MIN
        && zero.low.saturating_mul(100) >= jvm.resident_bytes().saturating_mul(RESIDENT_PERCENT_MIN)
        && zero.low.saturating_mul(100) >= large.saturating_mul(LARGE_PERCENT_MIN);
    if !is_much {
        return None;
    }
    let threads = bloat.threads_on_large;
    let resident = jvm.area(Area::Stack).resident_bytes;
    let each = (large / threads.max(1) as u64) >> 10;
    let evidence = vec![
        Evidence::count("threads with stacks on large pages", threads as u64, "account: stack"),
        Evidence::bytes("stacks, resident", resident, "account: stack"),
        Evidence::bytes("of it on large pages", large, "/proc/PID/pagemap, /proc/kpageflags"),
        Evidence::bytes(
            "of that pages of zeros, below what the threads ever used",
            zero.bytes,
            "/proc/PID/mem",
        ),
        Evidence::state("transparent_hugepage/enabled", facts.host.thp_mode(), "/sys/kernel/mm"),
        Evidence::state("kernel", kernel(facts), "/proc/sys/kernel/osrelease"),
        Evidence::state("JDK-8312182", fix(jvm), "flag THPStackMitigation"),
    ];
    let title =
        format!("the stacks of {threads} threads are on huge pages: {each} KiB each, most of it never used");
    let remedies = remedies(facts, jvm);
    Some(Finding::on_jvm(jvm.pid, Level::Warn, title, evidence, remedies).costing(Cost::bytes(zero.bytes)))
}

fn kernel(facts: &Facts) -> String {
    let release = &facts.host.kernel;
    match is_since(release, FORBIDDEN_SINCE) {
        true => format!(
            "{release}: gives none to stacks that are mapped as such (MAP_STACK); these were mapped otherwise"
        ),
        false => format!("{release}: may put stacks on huge pages (6.7 does not)"),
    }
}

fn fix(jvm: &JvmFacts) -> &'static str {
    match jvm.flag("THPStackMitigation") {
        Some("true") => "in this JDK, and on",
        // The JVM turns it off itself where the mode of the host was another one when it started.
        Some(_) => {
            "in this JDK, but off: the mode of the host was not always when it started, or an option says so"
        }
        None => "not in this JDK",
    }
}

fn remedies(facts: &Facts, jvm: &JvmFacts) -> Vec<Remedy> {
    let mut remedies = thp_remedies::not_unasked(facts);
    remedies.push(Remedy::advice(match jvm.flag("THPStackMitigation") {
        Some(_) => "start the JVM again: it keeps its stacks off huge pages then",
        None => "a JDK with JDK-8312182: 22 and later, and updates of 17 and 21; it has the flag THPStackMitigation",
    }));
    if let Some(kib) = jvm.number("ThreadStackSize").filter(|kib| *kib > 0 && kib % HUGE_KIB == 0) {
        // Stacks that are no multiple of a huge page are rarely aligned like one.
        remedies.push(Remedy::JvmOption(format!("-Xss{}k", kib - 8)));
    }
    remedies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::doctor::facts::made_up::{M, healthy, set_flags};
    use crate::map::bloat::{Bloat, Estimate, Sums, ZeroSum};
    use crate::os::zero_ranges::Sort;

    fn blown_up(sort: Sort, zero: Bytes) -> Facts {
        let mut facts = healthy();
        facts.host.kernel = "5.14.0-427.el9".to_string();
        facts.host.pages.thp.as_mut().expect("made up").enabled = "always".to_string();
        let sum = ZeroSum { resident_bytes: 200 * M, zero: Estimate::exactly(zero), ..ZeroSum::default() };
        let areas = [(Area::Stack, Sums([(sort, sum)].into()))].into();
        facts.jvms[0].bloat = Ok(Bloat { areas, threads_on_large: 100, ..Bloat::default() });
        facts
    }

    #[test]
    fn whole_huge_pages_and_the_pieces_of_them_are_found() {
        for sort in [Sort::Thp, Sort::Folio] {
            let mut facts = blown_up(sort, 180 * M);
            facts.jvms[0].snapshot.jvm.as_mut().expect("made up").flags.remove("THPStackMitigation");
            set_flags(&mut facts.jvms[0], &[("ThreadStackSize", "2048")]);
            let found = rule_finds("thp-stacks", &facts);
            assert_eq!((found.len(), found[0].level, found[0].cost.bytes), (1, Level::Warn, Some(180 * M)));
            assert!(found[0].title.contains("100 threads") && found[0].title.contains("2048 KiB each"));
            let remedies: Vec<&str> = found[0].remedies.iter().map(Remedy::text).collect();
            assert!(
                remedies[0].starts_with("echo madvise") && remedies.contains(&"-Xss2040k"),
                "{remedies:?}"
            );
            assert!(remedies.iter().any(|text| text.contains("JDK-8312182")), "{remedies:?}");
        }
    }

    #[test]
    fn small_pages_and_stacks_that_are_used_are_none() {
        assert!(
            rule_finds("thp-stacks", &blown_up(Sort::StackSmall, 180 * M)).is_empty(),
            "the JVM touches pages below each frame"
        );
        assert!(rule_finds("thp-stacks", &blown_up(Sort::Thp, 80 * M)).is_empty());
        assert!(rule_finds("thp-stacks", &blown_up(Sort::Thp, 20 * M)).is_empty());
        assert!(rule_finds("thp-stacks", &healthy()).is_empty());
    }

    #[test]
    fn a_jvm_with_the_fix_needs_a_new_start_only() {
        let mut facts = blown_up(Sort::Thp, 180 * M);
        set_flags(&mut facts.jvms[0], &[("THPStackMitigation", "false")]);
        let found = rule_finds("thp-stacks", &facts);
        assert!(found[0].evidence.iter().any(|evidence| evidence.value.contains("but off")));
        assert!(found[0].remedies.iter().any(|remedy| remedy.text().contains("start the JVM again")));
    }
}
