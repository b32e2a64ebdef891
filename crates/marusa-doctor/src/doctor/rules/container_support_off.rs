//! A JVM that was started to ignore its cgroup, which limits it: it sizes heap, GC and compiler threads for the host.

use super::known_conditions::{self, memory_limit};
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};

pub(super) fn of(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    if jvm.flag("UseContainerSupport") != Some("false") {
        return None;
    }
    let cpus = jvm.cpus.as_ref().ok().filter(|cpus| cpus.count() < cpus.allowed);
    let limits = [memory_limit(facts, jvm).map(|_| "memory"), cpus.map(|_| "CPU")];
    let limits: Vec<&str> = limits.into_iter().flatten().collect();
    if limits.is_empty() {
        return None;
    }
    let mut evidence = vec![Evidence::state("UseContainerSupport", "false", "flag of the VM")];
    evidence.extend(known_conditions::limits(facts, jvm));
    evidence.extend(cpus.map(|cpus| {
        let allowed = u64::from(cpus.allowed);
        Evidence::count("CPUs that the JVM counts", allowed, "/proc/PID/status: Cpus_allowed")
    }));
    let title = format!("UseContainerSupport is off, and the cgroup limits {}", limits.join(" and "));
    let remedies = [Remedy::jvm_option("-XX:+UseContainerSupport")];
    Some(Finding::on_jvm(jvm.pid, Level::Warn, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::GroupMemory;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::doctor::facts::made_up::{self, G};
    use crate::os::cpus::Cpus;

    #[test]
    fn only_where_there_is_a_limit_to_see() {
        let mut facts = made_up::healthy();
        made_up::set_flags(&mut facts.jvms[0], &[("UseContainerSupport", "false")]);
        assert_eq!(rule_finds("container-support-off", &facts), [], "nothing is limited");
        facts.jvms[0].cpus = Ok(Cpus { allowed: 4, quota: Some(1.5) });
        let finding = rule_finds("container-support-off", &facts).pop().expect("a quota");
        assert_eq!(finding.level, Level::Warn);
        assert!(finding.title.ends_with("limits CPU"), "{}", finding.title);
        facts.jvms[0].cpus = Ok(Cpus { allowed: 4, quota: Some(4.0) });
        let group = |limit_bytes| GroupMemory {
            path: "/sys/fs/cgroup/app".to_string(),
            limit_bytes,
            current_bytes: G,
            ..GroupMemory::default()
        };
        facts.jvms[0].group = Ok(Some(group(16 * G)));
        assert_eq!(
            rule_finds("container-support-off", &facts),
            [],
            "a quota of all CPUs, and all memory of the host"
        );
        facts.jvms[0].group = Ok(Some(group(2 * G)));
        assert!(rule_finds("container-support-off", &facts)[0].title.ends_with("limits memory"));
        made_up::set_flags(&mut facts.jvms[0], &[("UseContainerSupport", "true")]);
        assert_eq!(rule_finds("container-support-off", &facts), []);
    }
}
