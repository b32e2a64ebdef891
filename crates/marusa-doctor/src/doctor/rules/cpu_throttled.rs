//! The quota of the cgroup stops the JVM: no thread of it runs until the next period, also none that is in a GC pause.

use super::vm_threads::quota_of;
use crate::doctor::facts::percent;
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy, types::Cost};
use crate::os::cpu_stat::CpuStat;

/// Percentage of the periods in which the group ran.
const WARN_PERCENT: f64 = 10.0;
/// Half a second at the usual period of 100 ms: fewer show nothing.
const PERIODS_MIN: u64 = 5;
/// Throttling before the watched time may be over, as the start of a JVM is: it is reported, not judged.
const PAST_PERCENT: f64 = 25.0;
const PAST_PERIODS_MIN: u64 = 100;

fn share(stat: &CpuStat) -> f64 {
    percent(stat.throttled, stat.periods)
}

pub(super) fn of(jvm: &JvmFacts) -> Option<Finding> {
    let watched = jvm.bounds.throttled().filter(|stat| stat.periods >= PERIODS_MIN);
    if let Some(stat) = watched {
        return (share(&stat) >= WARN_PERCENT)
            .then(|| finding(jvm, Level::Warn, &stat, "while it was watched"));
    }
    let past = jvm.bounds.cpu_stat.as_ref().filter(|_| jvm.bounds.cpu_stat_first.is_none())?;
    (past.periods >= PAST_PERIODS_MIN && share(past) >= PAST_PERCENT)
        .then(|| finding(jvm, Level::Info, past, "since the cgroup was made"))
}

fn finding(jvm: &JvmFacts, level: Level, stat: &CpuStat, when: &str) -> Finding {
    let share = share(stat);
    let stopped_ms = stat.throttled_us as f64 / 1000.0;
    let mut evidence = vec![
        Evidence::percent(format!("periods at whose end the JVM was stopped, {when}"), share, &stat.path),
        Evidence::count("periods in which it ran", stat.periods, &stat.path),
        Evidence::ms("time that it was stopped, summed over CPUs", stopped_ms, &stat.path),
    ];
    evidence
        .extend(jvm.cpus.as_ref().ok().and_then(|cpus| cpus.quota).map(|quota| quota_of(quota, &jvm.bounds)));
    let title = format!("the CPU quota stopped the JVM in {share:.0} % of its periods {when}");
    let remedies = [
        Remedy::advice("raise the quota of the cgroup, or leave it out and set a weight only"),
        Remedy::jvm_option(
            "-XX:+UseSerialGC, where the quota is below two CPUs: a pause of one thread spends it slower",
        ),
    ];
    Finding::on_jvm(jvm.pid, level, title, evidence, remedies)
        .costing(Cost { stall_ms: (level == Level::Warn).then_some(stopped_ms), ..Cost::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;
    use crate::doctor::facts::made_up::rule_finds;

    fn stat(periods: u64, throttled: u64) -> Option<CpuStat> {
        Some(CpuStat {
            path: "/a/cpu.stat".to_string(),
            periods,
            throttled,
            throttled_us: throttled * 40_000,
        })
    }
    fn found(first: Option<CpuStat>, last: Option<CpuStat>) -> Option<Finding> {
        let mut facts = made_up::healthy();
        facts.jvms[0].bounds.cpu_stat_first = first;
        facts.jvms[0].bounds.cpu_stat = last;
        rule_finds("cpu-throttled", &facts).pop()
    }

    #[test]
    fn what_happens_now_is_a_warning_and_what_is_past_is_not() {
        let finding = found(stat(1000, 900), stat(1010, 904)).expect("4 of 10 periods");
        assert_eq!((finding.level, finding.cost.stall_ms), (Level::Warn, Some(160.0)));
        assert!(finding.title.contains("40 %"), "{}", finding.title);
        assert_eq!(found(stat(1000, 900), stat(1010, 900)), None, "the start is over");
        assert_eq!(found(None, stat(1000, 250)).map(|finding| finding.level), Some(Level::Info));
    }

    #[test]
    fn the_edges() {
        assert!(found(stat(0, 0), stat(100, 10)).is_some());
        assert_eq!(found(stat(0, 0), stat(100, 9)), None);
        assert_eq!(found(stat(0, 0), stat(4, 4)), None, "too short to say");
        assert_eq!(
            (found(None, stat(99, 99)), found(None, stat(1000, 249)), found(None, None)),
            (None, None, None)
        );
    }
}
