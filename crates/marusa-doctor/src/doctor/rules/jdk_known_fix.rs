//! A fault of this release of the JDK that shows on this JVM, and that a later release has not. Faults that do not show
//! are not reported: a release is not old because a newer one exists.

use super::known_fixes::{FIXES, Fix, Held};
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Remedy, types::Cost};
use crate::jvm::hotspot::version::update;

pub(super) fn find(facts: &Facts, jvm: &JvmFacts) -> Vec<Finding> {
    let release = || Some((jvm.major()?, jvm.jvm()?.version.clone().ok()?));
    let Some((major, version)) = release() else { return Vec::new() };
    let Some(update) = update(&version) else { return Vec::new() };
    let affected = FIXES.iter().filter(|fix| fix.affects(major, update));
    affected.filter_map(|fix| Some(finding(jvm, &version, fix, (fix.holds)(facts, jvm)?))).collect()
}

fn finding(jvm: &JvmFacts, version: &str, fix: &Fix, held: Held) -> Finding {
    let mut evidence = vec![
        Evidence::state("release", version, "Abstract_VM_Version::_s_vm_release"),
        Evidence::state("fixed in", fix.fixed, fix.url()),
    ];
    evidence.extend(held.evidence);
    let title = format!("{}: {}; fixed in {}", fix.bug, fix.what, fix.fixed);
    let remedies = [
        Remedy::Advice(format!("a JDK with the fix: {}", fix.fixed)),
        Remedy::Advice(format!("until then: {}", fix.workaround)),
    ];
    Finding::on_jvm(jvm.pid, fix.level, title, evidence, remedies)
        .costing(Cost { bytes: held.bytes, ..Cost::default() })
}

#[cfg(test)]
#[path = "jdk_known_fix_tests.rs"]
mod tests;
