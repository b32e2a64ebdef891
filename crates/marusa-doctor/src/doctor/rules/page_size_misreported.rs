//! Words of the JVM about its page sizes that are wrong, as far as they can be known without asking it: its log is printed when
//! memory is reserved, before any page exists, and System.map shows the page size of the mapping, which is 4 KiB for
//! transparent huge pages too.

use crate::doctor::promise;
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;
use crate::map::page_claims::Verdict;
use crate::map::page_use::{Provider, percent};
use crate::os::machine::huge_page;

pub(super) fn of(jvm: &JvmFacts) -> Option<Finding> {
    let mut evidence: Vec<Evidence> = promise::claims(jvm)
        .iter()
        .filter(|claim| claim.verdict == Verdict::False && claim.source.starts_with("-Xlog"))
        .map(|claim| {
            let is = format!("{}; it is on {}", claim.says, claim.is.text());
            Evidence::state(
                format!("{} says of: {}", claim.source, claim.about),
                is,
                "its log, /proc/PID/pagemap",
            )
        })
        .collect();
    let logged = evidence.len();
    evidence.extend(system_map(jvm));
    let title = match (logged, evidence.len() - logged) {
        (0, 0) => return None,
        (0, _) => "jcmd System.map says 4K of a heap on transparent huge pages".to_string(),
        (some, _) => format!("the JVM's log names page sizes that {some} of its reservations do not have"),
    };
    let remedies = vec![Remedy::Command(format!("marusa map {} --by page-size", jvm.pid))];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

/// Its column `pgsz` came with JDK-8322475 (23, 21.0.8): KernelPageSize of smaps.
fn system_map(jvm: &JvmFacts) -> Option<Evidence> {
    let has_column = jvm.major().is_some_and(|major| major == 21 || major >= 23);
    let heap = promise::area_use(jvm, Area::JavaHeap);
    let large = heap.on(|provider, bytes| provider == Provider::Transparent && bytes >= huge_page());
    let share = percent(large, heap.resident_bytes);
    (has_column && large > heap.resident_bytes / 2).then(|| {
        let value = format!("4K, for a heap of which {share} is on 2M");
        Evidence::state("the column pgsz of jcmd System.map", value, "KernelPageSize of /proc/PID/smaps")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::doctor::rules::page_cases::{self, M};
    use crate::jvm::hotspot::report::large_pages::Logged;

    #[test]
    fn a_log_of_2m_for_a_heap_on_4k() {
        let mut jvm = made_up::healthy_jvm();
        let logged = |page_bytes| Logged { what: "Heap".to_string(), range: made_up::HEAP, page_bytes };
        jvm.logged = vec![logged(2 * M)];
        let found = rule_finds("page-size-misreported", &page_cases::alone(jvm.clone()));
        assert_eq!(found[0].level, Level::Info);
        assert!(found[0].evidence[0].value.contains("page_size=2M; it is on 4K 100 %"), "{found:#?}");
        jvm.logged = vec![logged(4096)];
        assert_eq!(rule_finds("page-size-misreported", &page_cases::alone(jvm)), []);
    }

    #[test]
    fn system_map_where_the_jvm_has_its_column() {
        let mut jvm = made_up::healthy_jvm();
        page_cases::give_huge(&mut jvm, 452 * M);
        let found = rule_finds("page-size-misreported", &page_cases::alone(jvm.clone()));
        assert!(found[0].title.contains("System.map says 4K"), "{found:#?}");
        made_up::view(&mut jvm).major = Ok(17);
        assert_eq!(rule_finds("page-size-misreported", &page_cases::alone(jvm)), []);
        let mut jvm = made_up::healthy_jvm();
        page_cases::give_huge(&mut jvm, 450 * M);
        assert_eq!(rule_finds("page-size-misreported", &page_cases::alone(jvm)), [], "half of it");
    }
}
