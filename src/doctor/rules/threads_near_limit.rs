//! Threads against the limits of the user, the cgroup and the host: the next thread is refused, which the JVM reports as
//! `OutOfMemoryError: unable to create native thread`.

use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};

const WARN_PERCENT: f64 = 80.0;
const CRITICAL_PERCENT: f64 = 95.0;

pub(super) fn of(jvm: &JvmFacts) -> Option<Finding> {
    let nearest = jvm.bounds.threads.iter().max_by(|a, b| a.percent().total_cmp(&b.percent()))?;
    let level = Level::reached(
        nearest.percent(),
        [(CRITICAL_PERCENT, Level::Critical), (WARN_PERCENT, Level::Warn)],
    )?;
    let own = jvm.snapshot.os.status.threads;
    let mut evidence = vec![
        Evidence::count(nearest.what, nearest.used, &nearest.source),
        Evidence::count("that may be", nearest.limit, &nearest.source),
    ];
    evidence.extend(own.map(|own| Evidence::count("threads of this JVM", own, "/proc/PID/status: Threads")));
    let title =
        format!("{}: {} of {}, then no thread can be started", nearest.what, nearest.used, nearest.limit);
    let remedies = [Remedy::Advice(format!(
        "raise the limit ({}), or bound the program's thread pools",
        nearest.source
    ))];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::os::ceilings::Ceiling;

    #[test]
    fn the_nearest_limit_counts() {
        let level = |used: u64| {
            let mut facts = made_up::healthy();
            let ceiling = |what, used, limit| Ceiling { what, used, limit, source: "x".to_string() };
            let far = ceiling("threads of the host", 500, 30_000);
            facts.jvms[0].bounds.threads = vec![far, ceiling("threads of the cgroup", used, 100)];
            rule_finds("threads-near-limit", &facts).pop().map(|finding| (finding.level, finding.title))
        };
        assert_eq!(level(79), None);
        assert!(level(80).is_some_and(|(level, title)| level == Level::Warn && title.contains("80 of 100")));
        assert!(level(94).is_some_and(|(level, _)| level == Level::Warn));
        assert!(level(95).is_some_and(|(level, _)| level == Level::Critical));
        assert_eq!(rule_finds("threads-near-limit", &made_up::healthy()), []);
    }
}
