//! Open files against RLIMIT_NOFILE: at the limit no connection is accepted and no jar opened.

use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy, Rule, Subject, types::Cost};

pub const RULE: Rule =
    Rule { id: "files-near-limit", title: "the limit of open files is nearly reached", find };

const INFO_PERCENT: f64 = 80.0;
const WARN_PERCENT: f64 = 95.0;

fn find(facts: &Facts) -> Vec<Finding> {
    facts.jvms.iter().filter_map(of).collect()
}

fn of(jvm: &JvmFacts) -> Option<Finding> {
    let files = jvm.bounds.files.as_ref()?;
    let level = match files.percent() {
        percent if percent >= WARN_PERCENT => Level::Warn,
        percent if percent >= INFO_PERCENT => Level::Info,
        _ => return None,
    };
    Some(Finding {
        id: RULE.id,
        level,
        subject: Subject::Jvm(jvm.pid),
        title: format!("{} of {} open files are in use", files.used, files.limit),
        evidence: vec![
            Evidence::count("open files", files.used, "/proc/PID/fd"),
            Evidence::count("that may be", files.limit, &files.source),
        ],
        cost: Cost::default(),
        remedies: vec![
            Remedy::Command(format!("prlimit --pid {} --nofile={}", jvm.pid, files.limit.saturating_mul(2))),
            Remedy::Advice(
                "HotSpot raised its soft limit to the hard one at its start: the hard one is short"
                    .to_string(),
            ),
        ],
    })
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
            find(&facts).pop().map(|finding| finding.level)
        };
        assert_eq!((level(799), level(800), level(949)), (None, Some(Level::Info), Some(Level::Info)));
        assert_eq!(level(950), Some(Level::Warn));
        assert_eq!(find(&made_up::healthy()), []);
    }
}
