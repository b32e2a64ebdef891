//! A JVM that could return malloc's freed memory by itself, and is not set to.

use super::malloc_freed_held::{WALK, interval};
use crate::base::{Bytes, human};
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level};

/// What a trim would give back now. A trim takes locks and milliseconds, and what is given back is asked for again.
const WORTH_BYTES: Bytes = 48 << 20;
const WORTH_PERCENT: f64 = 5.0;
/// The flag is experimental in updates of 17 (17.0.9).
const EXPERIMENTAL: u32 = 17;

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let milliseconds = jvm.number("TrimNativeHeapInterval")?;
    let trimmable = jvm.freed()?.total.trimmable_bytes;
    let is_worth = trimmable >= WORTH_BYTES && jvm.percent_of_resident(trimmable) >= WORTH_PERCENT;
    if milliseconds > 0 || !is_worth {
        return None;
    }
    let title = format!(
        "this JVM can trim by itself, and its flag is not set; {} would come back now",
        human(trimmable)
    );
    let evidence = [
        Evidence::count("TrimNativeHeapInterval", milliseconds, "flags of the VM"),
        Evidence::bytes("what malloc_trim would give back", trimmable, WALK),
        Evidence::percent("of what is resident", jvm.percent_of_resident(trimmable), "the account"),
    ];
    let remedies = [interval(jvm.major() == Some(EXPERIMENTAL))];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies).costing(Cost::bytes(trimmable)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, alloc, healthy_jvm, set_flags, view};

    fn with_trimmable(bytes: Bytes) -> JvmFacts {
        let mut jvm = healthy_jvm();
        let arenas = &mut alloc(&mut jvm).arenas;
        arenas.truncate(1);
        let figures = arenas[0].figures.as_mut().expect("made up");
        (figures.free_resident_bytes, figures.trimmable_bytes) = (bytes, bytes);
        jvm
    }

    #[test]
    fn only_where_the_flag_is_there_and_off_and_much_would_come_back() {
        assert_eq!(find(&healthy_jvm()), None);
        assert_eq!(find(&with_trimmable(WORTH_BYTES - 1)), None);
        let mut jvm = with_trimmable(200 * M);
        assert_eq!(find(&jvm).map(|finding| finding.level), Some(Level::Info));
        set_flags(&mut jvm, &[("TrimNativeHeapInterval", "5000")]);
        assert_eq!(find(&jvm), None);
        view(&mut jvm).flags.remove("TrimNativeHeapInterval");
        assert_eq!(find(&jvm), None, "no such flag");
    }
}
