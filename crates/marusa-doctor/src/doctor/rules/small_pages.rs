//! Memory on small pages: a heap of which a part is on large ones, or for which nothing was asked; and what is left on small ones
//! where the heap got large ones.

use crate::base::{Bytes, human};
use crate::doctor::promise::{self, Kind};
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::jvm::JvmView;
use crate::map::Area;
use crate::map::page_claims::Asked;
use crate::map::page_use::{PageUse, percent};
use crate::map::why::has_shared_heap;

/// A heap without advice stays split until khugepaged gets to it; a small heap does not matter.
const UNASKED_BYTES_MIN: Bytes = 256 << 20;

/// A Java heap of which a part is on large pages and the rest on small ones. Which objects are fast is then a matter of luck,
/// and a comparison of two starts says nothing.
pub(super) fn heap_split(jvm: &JvmFacts) -> Option<Finding> {
    let Some(broken) = promise::broken_by(jvm, Kind::Split) else { return of_unasked(jvm) };
    let mut finding = heap_split_of(jvm, &broken.heap, Level::Warn);
    finding.evidence.splice(0..0, broken.evidence());
    broken.is_worth_it().then_some(finding)
}

fn of_unasked(jvm: &JvmFacts) -> Option<Finding> {
    let heap = promise::area_use(jvm, Area::JavaHeap);
    let is_split = promise::is_between(promise::large_bytes(&heap), heap.resident_bytes);
    let is_asked = Asked::of(&jvm.snapshot).is_for_large();
    (!is_asked && is_split && heap.resident_bytes >= UNASKED_BYTES_MIN)
        .then(|| heap_split_of(jvm, &heap, Level::Info))
}

fn heap_split_of(jvm: &JvmFacts, heap: &PageUse, level: Level) -> Finding {
    let (large, small) = (promise::large_bytes(heap), small_bytes(heap));
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

fn small_bytes(area: &PageUse) -> Bytes {
    area.resident_bytes.saturating_sub(promise::large_bytes(area))
}

/// Whether large pages were asked for, and most of the heap got them.
fn is_served(jvm: &JvmFacts, heap: &PageUse) -> bool {
    Asked::of(&jvm.snapshot).is_for_large() && promise::large_bytes(heap) > heap.resident_bytes / 2
}

/// A million small pages. From here the page tables of the heap alone (8 MiB) fill the caches that a walk reads from.
const HEAP_BYTES_MIN: Bytes = 4 << 30;
const LARGE_PERCENT_MAX: u64 = 10;

/// A large heap on 4 KiB pages, on a host that would give it larger ones if asked. Whether it gains is a matter of the
/// program, and can be measured on the running JVM.
pub(super) fn large_heap(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let thp = facts.host.pages.thp.as_ref()?;
    let heap = promise::area_use(jvm, Area::JavaHeap);
    let large = promise::large_bytes(&heap);
    let is_small = u128::from(large) * 100 <= u128::from(heap.resident_bytes) * u128::from(LARGE_PERCENT_MAX);
    let is_off = jvm.snapshot.os.status.thp_enabled == Some(false);
    if heap.resident_bytes < HEAP_BYTES_MIN || !is_small || is_off || Asked::of(&jvm.snapshot).is_for_large()
    {
        return None;
    }
    let is_shared = has_shared_heap(&jvm.snapshot);
    let policy = if is_shared { thp.shared(thp.pmd_bytes) } else { thp.private(thp.pmd_bytes) };
    if !["always", "madvise", "advise", "within_size", "force"].contains(&policy.mode.as_str()) {
        return None;
    }
    let title = format!(
        "a Java heap of {} is on {}, and huge pages are available: {}",
        human(heap.resident_bytes),
        heap.text(),
        policy.text()
    );
    let evidence = vec![
        Evidence::bytes("Java heap in memory", heap.resident_bytes, "account: java_heap"),
        Evidence::bytes("of it on 2 MiB pages or more", large, "/proc/PID/pagemap"),
        Evidence::state("asked for", "nothing", "flags of the JVM, command line"),
        Evidence::state("policy", policy.text(), "/sys/kernel/mm/transparent_hugepage"),
    ];
    let remedies = vec![
        Remedy::Command(format!("marusa pages prove {}", jvm.pid)),
        Remedy::Command(format!("marusa pages plan {}", jvm.pid)),
        Remedy::jvm_option("-XX:+UseTransparentHugePages"),
    ];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

/// Four times what a TLB of 2,048 entries reaches with 4 KiB.
const CODE_BYTES_MIN: Bytes = 32 << 20;

/// The heap got its large pages and the JIT's code did not: code heaps are reserved apart, each of its own size.
pub(super) fn code_cache(jvm: &JvmFacts) -> Option<Finding> {
    let (heap, code) = (promise::area_use(jvm, Area::JavaHeap), promise::area_use(jvm, Area::JitCode));
    let small = small_bytes(&code);
    if !is_served(jvm, &heap) || small < CODE_BYTES_MIN || small < code.resident_bytes / 2 {
        return None;
    }
    let share = percent(small, code.resident_bytes);
    let title =
        format!("{} ({share}) of the JIT's code are on small pages; the heap is on large ones", human(small));
    let mut evidence = vec![
        Evidence::state("JIT code is on", code.text(), "/proc/PID/pagemap"),
        Evidence::state("the Java heap is on", heap.text(), "/proc/PID/pagemap"),
    ];
    evidence.extend(promise::reasons(jvm, Area::JitCode));
    let remedies = vec![
        Remedy::Command(format!("marusa pages collapse {}", jvm.pid)),
        Remedy::jvm_option("-XX:-SegmentedCodeCache"),
    ];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

/// What a second-level TLB of 2,048 entries reaches with 4 KiB is 8 MiB; below that there is nothing to gain.
const TEXT_BYTES_MIN: Bytes = 8 << 20;

/// The text of libraries on small pages, where the kernel could give it larger ones and the user cares: a JVM that has its heap
/// on large pages walks for its instructions next.
pub(super) fn libraries(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let heap = promise::area_use(jvm, Area::JavaHeap);
    let small = small_bytes(&promise::area_use(jvm, Area::Code));
    // Without CONFIG_READ_ONLY_THP_FOR_FS only a copy on a tmpfs has them, which is a change to the JDK: not proposed.
    let has_huge_files = facts.host.pages.file_huge_pages == Some(true);
    if !has_huge_files || !is_served(jvm, &heap) || small < TEXT_BYTES_MIN {
        return None;
    }
    let title = format!(
        "{} of executables and libraries are on small pages; the heap is on large ones",
        human(small)
    );
    let evidence = vec![
        Evidence::bytes("text and data of libraries on small pages", small, "/proc/PID/pagemap"),
        Evidence::state("huge pages of files", "built into this kernel", "CONFIG_READ_ONLY_THP_FOR_FS"),
        Evidence::state("the Java heap is on", heap.text(), "/proc/PID/pagemap"),
    ];
    let home = jvm.jvm().and_then(JvmView::java_home);
    let collapse = Remedy::Command(format!("marusa pages collapse {} --area code", jvm.pid));
    let copy = home.map(|home| Remedy::Command(format!("marusa pages plan --code --jdk {home}")));
    let remedies = std::iter::once(collapse).chain(copy);
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    mod split {
        use super::super::*;
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

    mod large_heap {
        use super::super::*;
        use crate::doctor::facts::made_up::rule_finds;
        use crate::doctor::facts::made_up::{G, healthy_jvm, set_resident};
        use crate::doctor::rules::page_cases;

        #[test]
        fn four_gib_of_which_nothing_was_asked() {
            let of = |bytes: Bytes| {
                let mut jvm = healthy_jvm();
                set_resident(&mut jvm, Area::JavaHeap, bytes);
                page_cases::alone(jvm)
            };
            let found = rule_finds("large-heap-small-pages", &of(4 * G));
            assert!(found[0].title.contains("4.0 GiB is on 4K 100 %"), "{found:#?}");
            assert_eq!(found[0].remedies[0].text(), "marusa pages prove 4711");
            assert_eq!(rule_finds("large-heap-small-pages", &of(4 * G - 4096)), []);
            let mut never = of(8 * G);
            never.host.pages.thp.as_mut().expect("a kernel with THP").enabled = "never".to_string();
            never.host.pages.thp.as_mut().expect("a kernel with THP").sizes.clear();
            assert_eq!(rule_finds("large-heap-small-pages", &never), [], "not available");
            let mut asked = of(8 * G);
            page_cases::flag(&mut asked.jvms[0], "UseTransparentHugePages", "true");
            assert_eq!(rule_finds("large-heap-small-pages", &asked), [], "another finding");
        }
    }

    mod code_cache {
        use super::super::*;
        use crate::doctor::facts::made_up::rule_finds;
        use crate::doctor::rules::page_cases::{self, M};

        #[test]
        fn a_heap_on_large_pages_and_47_mib_of_code_that_is_not() {
            let mut jvm = page_cases::asks_transparent();
            page_cases::advise(&mut jvm);
            page_cases::give_huge(&mut jvm, 900 * M);
            let found = rule_finds("code-cache-small-pages", &page_cases::alone(jvm.clone()));
            assert!(found[0].title.contains("47.0 MiB (100 %) of the JIT's code"), "{found:#?}");
            let mut small = jvm.clone();
            crate::doctor::facts::made_up::set_resident(&mut small, Area::JitCode, 32 * M);
            assert_eq!(rule_finds("code-cache-small-pages", &page_cases::alone(small.clone())).len(), 1);
            crate::doctor::facts::made_up::set_resident(&mut small, Area::JitCode, 32 * M - 4096);
            assert_eq!(rule_finds("code-cache-small-pages", &page_cases::alone(small)), []);
            assert_eq!(
                rule_finds("code-cache-small-pages", &page_cases::alone(page_cases::asks_transparent())),
                [],
                "the heap has none either"
            );
            assert_eq!(rule_finds("code-cache-small-pages", &crate::doctor::facts::made_up::healthy()), []);
        }
    }

    mod text {
        use super::super::*;
        use crate::doctor::facts::made_up::rule_finds;
        use crate::doctor::rules::page_cases::{self, M};

        fn facts(heap_huge: Bytes, text: Bytes) -> Facts {
            let mut jvm = page_cases::asks_transparent();
            page_cases::advise(&mut jvm);
            page_cases::give_huge(&mut jvm, heap_huge);
            crate::doctor::facts::made_up::set_resident(&mut jvm, Area::Code, text);
            let mut facts = page_cases::alone(jvm);
            facts.host.pages.file_huge_pages = Some(true);
            facts
        }

        #[test]
        fn text_beyond_the_reach_of_the_tlb_of_a_jvm_that_has_large_pages() {
            let found = rule_finds("text-small-pages", &facts(900 * M, 8 * M));
            assert!(found[0].title.starts_with("8.0 MiB of executables"), "{found:#?}");
            assert!(found[0].remedies[1].text().ends_with("--jdk /opt/jdk-21"), "{found:#?}");
            assert_eq!(rule_finds("text-small-pages", &facts(900 * M, 8 * M - 4096)), []);
            assert_eq!(rule_finds("text-small-pages", &facts(400 * M, 16 * M)), [], "the heap comes first");
            let mut without = facts(900 * M, 16 * M);
            without.host.pages.file_huge_pages = Some(false);
            assert_eq!(rule_finds("text-small-pages", &without), []);
        }
    }
}
