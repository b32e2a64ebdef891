//! Metaspace near a limit, and metaspace that holds nothing.

use super::class_loaders_many;
use crate::base::{Bytes, human};
use crate::doctor::facts::percent;
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;

/// Committed: a collection may still free some of it.
const NEAR_PERCENT: f64 = 90.0;
/// Used: the next classes do not fit.
const FULL_PERCENT: f64 = 98.0;
const STEP_BYTES: Bytes = 16 << 20;
/// MaxMetaspaceSize is nearly 2^64 where it is not set.
const NO_LIMIT: Bytes = 1 << 60;
const CLASS_SPACE: &str = "class space";
const COUNTERS: &str = "performance counters of the VM, as of the last collection";

/// What there is of one kind, and how much of it there may be.
struct Kind {
    name: &'static str,
    option: &'static str,
    committed: Bytes,
    used: Bytes,
    limit: Bytes,
}

/// Class metadata near a limit: past it the JVM collects in vain and throws OutOfMemoryError.
///
/// At most one: what is nearest to its limit.
pub(super) fn near_limit(jvm: &JvmFacts) -> Option<Finding> {
    let kinds = [class_space(jvm), metaspace(jvm)];
    let share = |kind: &Kind| percent(kind.committed.max(kind.used), kind.limit);
    let kind = kinds.into_iter().flatten().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    if share(&kind) < NEAR_PERCENT {
        return None;
    }
    let is_full = percent(kind.used, kind.limit) >= FULL_PERCENT;
    let Kind { name, option, committed, used, limit } = kind;
    let more = (limit.saturating_mul(3) / 2).next_multiple_of(STEP_BYTES) >> 20;
    let level = if is_full { Level::Critical } else { Level::Warn };
    let title = format!(
        "the {name} has {} of at most {}: when it is full, the JVM throws OutOfMemoryError",
        human(committed.max(used)),
        human(limit)
    );
    let evidence = [
        Evidence::bytes(
            format!("{name}, committed"),
            committed,
            "the account, and the VM's performance counters",
        ),
        Evidence::bytes(format!("{name}, used"), used, COUNTERS),
        Evidence::bytes(format!("-XX:{option}"), limit, "flags of the VM"),
    ];
    let remedies = [
        Remedy::JvmOption(format!("-XX:{option}={more}m")),
        Remedy::advice("find out whether classes are leaked: count class loaders twice, some hours apart"),
    ];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

fn class_space(jvm: &JvmFacts) -> Option<Kind> {
    let classes = jvm.jvm()?.classes.as_ref().ok()?;
    // JDK 27 has a class space in any case, and no flag for it.
    let has_none = jvm.flag("UseCompressedClassPointers") == Some("false");
    let limit = jvm.number("CompressedClassSpaceSize").filter(|_| !has_none)?;
    let resident = jvm.resident_bytes_of_parts(Area::ClassMetadata, CLASS_SPACE);
    let committed = classes.class_space_committed_bytes.as_ref().map_or(0, |bytes| *bytes).max(resident);
    let used = classes.class_space_used_bytes.as_ref().map_or(0, |bytes| *bytes);
    Some(Kind { name: CLASS_SPACE, option: "CompressedClassSpaceSize", committed, used, limit })
}

fn metaspace(jvm: &JvmFacts) -> Option<Kind> {
    let classes = jvm.jvm()?.classes.as_ref().ok()?;
    let limit = jvm.number("MaxMetaspaceSize").filter(|bytes| *bytes < NO_LIMIT)?;
    let resident = jvm.area(Area::ClassMetadata).resident_bytes;
    let committed = classes.metaspace_committed_bytes.as_ref().map_or(0, |bytes| *bytes).max(resident);
    let used = classes.metaspace_used_bytes.as_ref().map_or(0, |bytes| *bytes);
    Some(Kind { name: "metaspace", option: "MaxMetaspaceSize", committed, used, limit })
}

const INFO_BYTES: Bytes = 32 << 20;
const WARN_BYTES: Bytes = 64 << 20;
/// A JVM that only loads classes commits less than a tenth more than it uses.
const LOST_PERCENT: f64 = 25.0;
/// JEP 387: chunks are split and merged, and whole free granules of 64 KiB are given back.
const ELASTIC_SINCE: u32 = 16;

/// Metaspace that is committed and holds nothing: holes that unloaded classes left, and ends of loaders' chunks.
pub(super) fn fragmentation(jvm: &JvmFacts) -> Option<Finding> {
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
    mod limit {
        use super::super::*;
        use crate::doctor::facts::made_up::{M, healthy_jvm, set_flags, view};

        #[test]
        fn what_is_committed_warns_and_what_is_used_alarms() {
            let mut jvm = healthy_jvm();
            assert_eq!(near_limit(&jvm), None);
            // 48 + 8 MiB are committed.
            set_flags(&mut jvm, &[("MaxMetaspaceSize", "66060288")]);
            assert_eq!(near_limit(&jvm), None, "56 of 63 MiB");
            set_flags(&mut jvm, &[("MaxMetaspaceSize", "62914560")]);
            let finding = near_limit(&jvm).expect("56 of 60 MiB");
            assert_eq!(
                (finding.level, finding.remedies[0].text()),
                (Level::Warn, "-XX:MaxMetaspaceSize=96m")
            );
            view(&mut jvm).classes.as_mut().expect("made up").metaspace_used_bytes = Ok(59 * M);
            assert_eq!(near_limit(&jvm).map(|finding| finding.level), Some(Level::Critical));
        }

        #[test]
        fn the_class_space_has_a_limit_of_its_own() {
            let mut jvm = healthy_jvm();
            view(&mut jvm).classes.as_mut().expect("made up").class_space_committed_bytes = Ok(930 * M);
            let finding = near_limit(&jvm).expect("930 of 1024 MiB");
            assert!(
                finding.title.starts_with("the class space has 930.0 MiB of at most 1.0 GiB"),
                "{}",
                finding.title
            );
            set_flags(&mut jvm, &[("UseCompressedClassPointers", "false")]);
            assert_eq!(near_limit(&jvm), None);
        }
    }

    mod holes {
        use super::super::*;
        use crate::doctor::facts::made_up::{M, healthy_jvm, view};

        fn with(committed: Bytes, used: Bytes) -> JvmFacts {
            let mut jvm = healthy_jvm();
            let classes = view(&mut jvm).classes.as_mut().expect("made up");
            (classes.metaspace_committed_bytes, classes.metaspace_used_bytes) = (Ok(committed), Ok(used));
            jvm
        }

        #[test]
        fn both_the_share_and_the_bytes_must_be_large() {
            let level = |committed, used| fragmentation(&with(committed, used)).map(|finding| finding.level);
            assert_eq!(fragmentation(&healthy_jvm()), None);
            assert_eq!(level(400 * M, 330 * M), None, "70 MiB, but a sixth");
            assert_eq!(level(40 * M, 9 * M), None, "most, but 31 MiB");
            assert_eq!(level(64 * M, 32 * M), Some(Level::Info));
            assert_eq!(level(256 * M, 192 * M), Some(Level::Warn));
            assert_eq!(level(10 * M, 20 * M), None, "counters that make no sense");
        }

        #[test]
        fn only_old_jdks_get_advice_of_new_ones() {
            let mut jvm = with(256 * M, 100 * M);
            assert_eq!(fragmentation(&jvm).map(|finding| finding.remedies.len()), Some(1));
            view(&mut jvm).major = Ok(11);
            assert_eq!(fragmentation(&jvm).map(|finding| finding.remedies.len()), Some(2));
        }
    }
}
