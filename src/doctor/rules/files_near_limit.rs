//! Open files against RLIMIT_NOFILE: at the limit no connection is accepted and no jar opened.

use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy, Rule};

pub const RULE: Rule = Rule::of_each_jvm("files-near-limit", "the limit of open files is nearly reached", of);

const INFO_PERCENT: f64 = 80.0;
const WARN_PERCENT: f64 = 95.0;

fn of(jvm: &JvmFacts) -> Option<Finding> {
    let files = jvm.bounds.files.as_ref()?;
    let level = match files.percent() {
        percent if percent >= WARN_PERCENT => Level::Warn,
        percent if percent >= INFO_PERCENT => Level::Info,
        _ => return None,
    };
    let title = format!("{} of {} open files are in use", files.used, files.limit);
    let evidence = [
        Evidence::count("open files", files.used, "/proc/PID/fd"),
        Evidence::count("that may be", files.limit, &files.source),
    ];
    let remedies = [
        Remedy::Command(format!("prlimit --pid {} --nofile={}", jvm.pid, files.limit.saturating_mul(2))),
        Remedy::advice("HotSpot raised its soft limit to the hard one at its start: the hard one is short"),
    ];
    Some(RULE.on_jvm(jvm.pid, level, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;
    use crate::os::ceilings::Ceiling;

    #[test]
    fn the_edges() {
        let level = |used: u64| {
            let mut facts = made_up::healthy();
            let source = "/proc/PID/limits".to_string();
            facts.jvms[0].bounds.files = Some(Ceiling { what: "open files", used, limit: 1000, source });
            RULE.find(&facts).pop().map(|finding| finding.level)
        };
        assert_eq!((level(799), level(800), level(949)), (None, Some(Level::Info), Some(Level::Info)));
        assert_eq!(level(950), Some(Level::Warn));
        assert_eq!(RULE.find(&made_up::healthy()), []);
    }
}
