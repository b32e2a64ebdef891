//! Class metadata near a limit: past it the JVM collects in vain and throws OutOfMemoryError.

use crate::base::{Bytes, human};
use crate::doctor::facts::percent;
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;

/// Committed: a collection may still free some of it.
const NEAR_PERCENT: f64 = 90.0;
/// Used: the next classes do not fit.
const FULL_PERCENT: f64 = 98.0;
const STEP_BYTES: Bytes = 16 << 20;
/// MaxMetaspaceSize is nearly 2^64 where it is not set.
const NO_LIMIT: Bytes = 1 << 60;
const CLASS_SPACE: &str = "class space";

/// What there is of one kind, and how much of it there may be.
struct Kind {
    name: &'static str,
    option: &'static str,
    committed: Bytes,
    used: Bytes,
    limit: Bytes,
}

/// At most one: what is nearest to its limit.
pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
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
        Evidence::bytes(
            format!("{name}, used"),
            used,
            "performance counters of the VM, as of the last collection",
        ),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, set_flags, view};

    #[test]
    fn what_is_committed_warns_and_what_is_used_alarms() {
        let mut jvm = healthy_jvm();
        assert_eq!(find(&jvm), None);
        // 48 + 8 MiB are committed.
        set_flags(&mut jvm, &[("MaxMetaspaceSize", "66060288")]);
        assert_eq!(find(&jvm), None, "56 of 63 MiB");
        set_flags(&mut jvm, &[("MaxMetaspaceSize", "62914560")]);
        let finding = find(&jvm).expect("56 of 60 MiB");
        assert_eq!((finding.level, finding.remedies[0].text()), (Level::Warn, "-XX:MaxMetaspaceSize=96m"));
        view(&mut jvm).classes.as_mut().expect("made up").metaspace_used_bytes = Ok(59 * M);
        assert_eq!(find(&jvm).map(|finding| finding.level), Some(Level::Critical));
    }

    #[test]
    fn the_class_space_has_a_limit_of_its_own() {
        let mut jvm = healthy_jvm();
        view(&mut jvm).classes.as_mut().expect("made up").class_space_committed_bytes = Ok(930 * M);
        let finding = find(&jvm).expect("930 of 1024 MiB");
        assert!(
            finding.title.starts_with("the class space has 930.0 MiB of at most 1.0 GiB"),
            "{}",
            finding.title
        );
        set_flags(&mut jvm, &[("UseCompressedClassPointers", "false")]);
        assert_eq!(find(&jvm), None);
    }
}
