//! Open files against RLIMIT_NOFILE: at the limit no connection is accepted and no jar opened.

use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};

const INFO_PERCENT: f64 = 80.0;
const WARN_PERCENT: f64 = 95.0;

pub(super) fn of(jvm: &JvmFacts) -> Option<Finding> {
    let files = jvm.bounds.files.as_ref()?;
    let level = Level::reached(files.percent(), [(WARN_PERCENT, Level::Warn), (INFO_PERCENT, Level::Info)])?;
    let title = format!("{} of {} open files are in use", files.used, files.limit);
    let evidence = [
        Evidence::count("open files", files.used, "/proc/PID/fd"),
        Evidence::count("that may be", files.limit, &files.source),
    ];
    let remedies = [
        Remedy::Command(format!("prlimit --pid {} --nofile={}", jvm.pid, files.limit.saturating_mul(2))),
        Remedy::advice("HotSpot raised its soft limit to the hard one at its start: the hard one is short"),
    ];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::os::ceilings::Ceiling;

    #[test]
    fn the_edges() {
        let level = |used: u64| {
            let mut facts = made_up::healthy();
            let source = "/proc/PID/limits".to_string();
            facts.jvms[0].bounds.files = Some(Ceiling { what: "open files", used, limit: 1000, source });
            rule_finds("files-near-limit", &facts).pop().map(|finding| finding.level)
        };
        assert_eq!((level(799), level(800), level(949)), (None, Some(Level::Info), Some(Level::Info)));
        assert_eq!(level(950), Some(Level::Warn));
        assert_eq!(rule_finds("files-near-limit", &made_up::healthy()), []);
    }
}
