//! Large pages that a JVM asked for and has not got: a finding for each main cause (`promise::Kind`), so that one rule speaks
//! of it. The causes themselves, their texts and what to do are those of `pages verify`.

use super::hugetlb_node_split;
use crate::base::human;
use crate::doctor::promise::{self, Broken, Kind};
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;
use crate::map::page_claims::Asked;
use crate::map::why::{CauseId, Reason};

/// The JVM says once that it failed, puts the space on 4 KiB pages, and goes on reporting large pages.
pub(super) fn pool(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let broken = promise::broken_by(jvm, Kind::Pool)?;
    is_of_host(facts, jvm).then(|| broken.lacking(jvm))
}

/// It found not one large page when it started: it switched its flag off, with a warning in a log that is long gone.
pub(super) fn switched_off(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let broken = promise::broken_by(jvm, Kind::SwitchedOff)?;
    let level = if broken.is_worth_it() { Level::Warn } else { Level::Info };
    let title = format!(
        "the JVM found no HugeTLB pages at start and switched -XX:+UseLargePages off: the heap is on {}; {}",
        broken.heap.text(),
        broken.because()
    );
    is_of_host(facts, jvm).then(|| broken.finding(level, jvm, title))
}

/// The pool has pages, and the cgroup of the JVM may not have them (hugetlb.2MB.max, or limit_in_bytes of version 1).
pub(super) fn group_limit(jvm: &JvmFacts) -> Option<Finding> {
    Some(promise::broken_by(jvm, Kind::GroupLimit)?.lacking(jvm))
}

/// The host's policy says never, no page was free at the fault, or compaction has not assembled one.
pub(super) fn transparent(jvm: &JvmFacts) -> Option<Finding> {
    let broken = promise::broken_by(jvm, Kind::Transparent)?;
    let comes = broken.causes.iter().any(|cause| cause.code == CauseId::NotYet);
    let first = comes.then(|| Remedy::Command(format!("marusa pages collapse {}", jvm.pid)));
    not_on(jvm, &broken, first)
}

/// The JVM believes to have 2 MiB pages; the kernel gave folios of another size, since the switch of that size is on and that of
/// 2 MiB is off. smaps and the JVM's own log do not show it.
pub(super) fn other_size(jvm: &JvmFacts) -> Option<Finding> {
    let broken = promise::broken_by(jvm, Kind::OtherSize)?;
    let file = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
    let mut finding = not_on(jvm, &broken, [Remedy::Setting(format!("echo inherit > {file}"))])?;
    let (missing, heap) = (broken.missing(), broken.heap.text());
    finding.title = format!("{missing} are on no 2M pages: the heap is on {heap}, and the JVM says 2M");
    Some(finding)
}

/// The heap of ZGC is shared memory, for which `shmem_enabled` decides and not `enabled`. JDK 17 and 21 look only at the
/// latter, and report transparent huge pages that cannot come.
pub(super) fn shared_off(jvm: &JvmFacts) -> Option<Finding> {
    let broken = promise::broken_by(jvm, Kind::SharedOff)?;
    let file = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let setting = Remedy::Setting(format!("echo advise > {file}"));
    let collapse = Remedy::Command(format!("marusa pages collapse {}", jvm.pid));
    not_on(jvm, &broken, [setting, collapse])
}

/// Enough pages, but on the wrong nodes, is reported as such.
fn is_of_host(facts: &Facts, jvm: &JvmFacts) -> bool {
    hugetlb_node_split::of_jvm(facts, jvm).is_none()
}

/// Memory that is not on transparent pages, where that is enough to matter; `first`: remedies before those of the causes.
fn not_on(jvm: &JvmFacts, broken: &Broken, first: impl IntoIterator<Item = Remedy>) -> Option<Finding> {
    let title = format!("{} are not on {}: {}", broken.missing(), broken.asked(), broken.because());
    let mut finding = broken.finding(Level::Warn, jvm, title);
    finding.remedies.splice(0..0, first);
    broken.is_worth_it().then_some(finding)
}

/// `THP_enabled: 0`: the launcher called prctl(PR_SET_THP_DISABLE), which children inherit. The JVM does not check, and logs
/// 2 MiB pages. Also of an untouched heap: it never gets any.
pub(super) fn process_disabled(jvm: &JvmFacts) -> Option<Finding> {
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
    let source = "/proc/PID/status: THP_enabled";
    let mut evidence = vec![Evidence::state("transparent huge pages of this process", "off", source)];
    if let Some(broken) = promise::broken(jvm).filter(|broken| broken.kind == Kind::ProcessDisabled) {
        evidence.extend(broken.evidence());
    }
    let remedies = vec![
        Remedy::Advice(Reason::ProcessDisabled.remedy(Area::JavaHeap, &Asked::of(&jvm.snapshot))),
        Remedy::Command(format!("marusa pages plan {} --mode hugetlb-2m", jvm.pid)),
    ];
    Some(Finding::on_jvm(jvm.pid, Level::Warn, title, evidence, remedies))
}

#[cfg(test)]
#[path = "asked_not_got_tests.rs"]
mod tests;
