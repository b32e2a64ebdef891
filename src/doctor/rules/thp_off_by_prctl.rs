//! `THP_enabled: 0` of a process that asks for transparent huge pages: its launcher called prctl(PR_SET_THP_DISABLE),
//! which children inherit. The JVM does not check, and logs 2 MiB pages.

use crate::base::human;
use crate::doctor::facts::{Facts, JvmFacts};
use crate::doctor::promise::{self, Kind};
use crate::doctor::types::{Cost, Evidence, Finding, Level, Remedy, Rule, Subject};
use crate::map::Area;
use crate::map::page_claims::Asked;

pub const RULE: Rule = Rule {
    id: "thp-off-by-prctl",
    title: "transparent huge pages were asked for, and are switched off for the process",
    find,
};

const SOURCE: &str = "/proc/PID/status: THP_enabled";

fn find(facts: &Facts) -> Vec<Finding> {
    facts.jvms.iter().filter_map(of).collect()
}

/// Also of an untouched heap: it never gets any.
fn of(jvm: &JvmFacts) -> Option<Finding> {
    let is_off = jvm.snapshot.os.status.thp_enabled == Some(false);
    if !is_off || !Asked::of(&jvm.snapshot).is_for_transparent() {
        return None;
    }
    let heap = jvm.area(Area::JavaHeap).resident_bytes;
    let title = format!(
        "-XX:+UseTransparentHugePages can have no effect: they are off for this process (THP_enabled: 0); the heap has {} on {}",
        human(heap),
        promise::area_use(jvm, Area::JavaHeap).text()
    );
    let mut evidence = vec![Evidence::state("transparent huge pages of this process", "off", SOURCE)];
    if let Some(broken) = promise::broken(jvm).filter(|broken| broken.kind == Kind::ProcessDisabled) {
        evidence.extend(broken.evidence());
    }
    let remedies = vec![
        Remedy::Advice(
            "start it without PR_SET_THP_DISABLE: systemd MemoryTHP=, a wrapper, or the container's runtime sets it"
                .to_string(),
        ),
        Remedy::Command(format!("marusa pages plan {} --mode hugetlb-2m", jvm.pid)),
    ];
    let subject = Subject::Jvm(jvm.pid);
    Some(Finding {
        id: RULE.id,
        level: Level::Warn,
        subject,
        title,
        evidence,
        cost: Cost::default(),
        remedies,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rules::page_cases::{self, M, only_warning};

    #[test]
    fn off_for_a_process_that_asks() {
        let mut jvm = page_cases::asks_transparent();
        jvm.snapshot.os.status.thp_enabled = Some(false);
        let found = only_warning(jvm.clone(), RULE.id);
        assert!(found.title.contains("THP_enabled: 0"), "{found:?}");
        jvm.snapshot.os.status.thp_enabled = None;
        assert_eq!(find(&page_cases::alone(jvm)), [], "an old kernel does not tell");
        let mut nobody_asks = crate::doctor::facts::made_up::healthy_jvm();
        nobody_asks.snapshot.os.status.thp_enabled = Some(false);
        assert_eq!(find(&page_cases::alone(nobody_asks)), []);
    }

    #[test]
    fn a_heap_that_is_not_touched_yet_too() {
        let mut jvm = page_cases::asks_transparent();
        jvm.snapshot.os.status.thp_enabled = Some(false);
        page_cases::touch_only(&mut jvm, 4 * M);
        assert_eq!(find(&page_cases::alone(jvm)).len(), 1);
    }
}
