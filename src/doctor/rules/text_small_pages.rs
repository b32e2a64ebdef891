//! The text of libraries on small pages, where the kernel could give it larger ones and the user cares: a JVM that has its heap
//! on large pages walks for its instructions next.

use crate::base::{Bytes, human};
use crate::doctor::promise;
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::jvm::JvmView;
use crate::map::Area;
use crate::map::page_claims::Asked;

/// What a second-level TLB of 2,048 entries reaches with 4 KiB is 8 MiB; below that there is nothing to gain.
const BYTES_MIN: Bytes = 8 << 20;

pub(super) fn find(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let heap = promise::area_use(jvm, Area::JavaHeap);
    let is_served =
        Asked::of(&jvm.snapshot).is_for_large() && promise::large_bytes(&heap) > heap.resident_bytes / 2;
    let text = promise::area_use(jvm, Area::Code);
    let small = text.resident_bytes.saturating_sub(promise::large_bytes(&text));
    // Without CONFIG_READ_ONLY_THP_FOR_FS only a copy on a tmpfs has them, which is a change to the JDK: not proposed.
    let has_huge_files = facts.host.pages.file_huge_pages == Some(true);
    if !has_huge_files || !is_served || small < BYTES_MIN {
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
    use super::*;
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
