//! Metaspace that is committed and holds nothing: holes that unloaded classes left, and ends of loaders' chunks.

use super::class_loaders_many;
use crate::base::{Bytes, human};
use crate::doctor::facts::percent;
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};

const INFO_BYTES: Bytes = 32 << 20;
const WARN_BYTES: Bytes = 64 << 20;
/// A JVM that only loads classes commits less than a tenth more than it uses.
const LOST_PERCENT: f64 = 25.0;
/// JEP 387: chunks are split and merged, and whole free granules of 64 KiB are given back.
const ELASTIC_SINCE: u32 = 16;
const COUNTERS: &str = "performance counters of the VM, as of the last collection";

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let classes = jvm.jvm()?.classes.as_ref().ok()?;
    // Of the same moment, or they could not be compared: classes may have been loaded since.
    let committed = *classes.metaspace_committed_bytes.as_ref().ok()?;
    let used = *classes.metaspace_used_bytes.as_ref().ok()?;
    let lost = committed.saturating_sub(used);
    let share = percent(lost, committed);
    if lost < INFO_BYTES || share < LOST_PERCENT {
        return None;
    }
    let mut evidence = vec![
        Evidence::bytes("committed", committed, COUNTERS),
        Evidence::bytes("used", used, COUNTERS),
        Evidence::percent("committed and unused", share, COUNTERS),
    ];
    evidence.extend(
        classes
            .loaders
            .clone()
            .ok()
            .map(|count| Evidence::count("class loaders", count, "ClassLoaderDataGraph")),
    );
    evidence.extend(
        classes.classes.clone().ok().map(|count| Evidence::count("classes", count, "ClassLoaderDataGraph")),
    );
    let advice = match class_loaders_many::is_held(classes) {
        Some(true) => {
            "few classes were ever unloaded, so the loaders are held: chunks of many loaders are each used in part"
        }
        _ => {
            "look for what makes and drops class loaders: scripts and proxies that are compiled again, frameworks that reload"
        }
    };
    let mut remedies = vec![Remedy::Advice(advice.to_string())];
    if jvm.major().is_some_and(|major| major < ELASTIC_SINCE) {
        remedies.push(Remedy::advice("JDK 16 and later give such memory back (JEP 387)"));
    }
    let level = if lost >= WARN_BYTES { Level::Warn } else { Level::Info };
    let title = format!(
        "{} of {} of the metaspace, {share:.0} %, are committed and hold nothing",
        human(lost),
        human(committed)
    );
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies).costing(Cost::bytes(lost)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, view};

    fn with(committed: Bytes, used: Bytes) -> JvmFacts {
        let mut jvm = healthy_jvm();
        let classes = view(&mut jvm).classes.as_mut().expect("made up");
        (classes.metaspace_committed_bytes, classes.metaspace_used_bytes) = (Ok(committed), Ok(used));
        jvm
    }

    #[test]
    fn both_the_share_and_the_bytes_must_be_large() {
        let level = |committed, used| find(&with(committed, used)).map(|finding| finding.level);
        assert_eq!(find(&healthy_jvm()), None);
        assert_eq!(level(400 * M, 330 * M), None, "70 MiB, but a sixth");
        assert_eq!(level(40 * M, 9 * M), None, "most, but 31 MiB");
        assert_eq!(level(64 * M, 32 * M), Some(Level::Info));
        assert_eq!(level(256 * M, 192 * M), Some(Level::Warn));
        assert_eq!(level(10 * M, 20 * M), None, "counters that make no sense");
    }

    #[test]
    fn only_old_jdks_get_advice_of_new_ones() {
        let mut jvm = with(256 * M, 100 * M);
        assert_eq!(find(&jvm).map(|finding| finding.remedies.len()), Some(1));
        view(&mut jvm).major = Ok(11);
        assert_eq!(find(&jvm).map(|finding| finding.remedies.len()), Some(2));
    }
}
