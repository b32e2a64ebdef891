//! A JVM that was started to ignore its cgroup, which limits it: it sizes heap, GC and compiler threads for the host.

use super::gc_threads::quota_of;
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy, Rule};

pub const RULE: Rule =
    Rule::of_each_jvm_here("container-support-off", "the JVM ignores the limits of its cgroup", of);

fn of(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    if jvm.flag("UseContainerSupport") != Some("false") {
        return None;
    }
    let limit = jvm.group.as_ref().ok().and_then(Option::as_ref);
    let limit = limit.filter(|group| facts.host.memory_bytes().is_none_or(|host| group.limit_bytes < host));
    let cpus = jvm.cpus.as_ref().ok().filter(|cpus| cpus.count() < cpus.allowed);
    let mut evidence = vec![Evidence::state("UseContainerSupport", "false", "flag of the VM")];
    let mut limits = Vec::new();
    if let Some(group) = limit {
        evidence.push(Evidence::bytes("memory that the cgroup may use", group.limit_bytes, &group.path));
        evidence.extend(
            jvm.number("MaxHeapSize").map(|heap| Evidence::bytes("largest heap", heap, "flag MaxHeapSize")),
        );
        limits.push("memory");
    }
    if let Some(cpus) = cpus {
        evidence.extend(cpus.quota.map(|quota| quota_of(quota, &jvm.bounds)));
        let allowed = u64::from(cpus.allowed);
        evidence.push(Evidence::count("CPUs that the JVM counts", allowed, "/proc/PID/status: Cpus_allowed"));
        limits.push("CPU");
    }
    if limits.is_empty() {
        return None;
    }
    let title = format!("UseContainerSupport is off, and the cgroup limits {}", limits.join(" and "));
    let remedies = [Remedy::jvm_option("-XX:+UseContainerSupport")];
    Some(RULE.on_jvm(jvm.pid, Level::Warn, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::GroupMemory;
    use crate::doctor::facts::made_up::{self, G};
    use crate::os::cpus::Cpus;

    #[test]
    fn only_where_there_is_a_limit_to_see() {
        let mut facts = made_up::healthy();
        made_up::set_flags(&mut facts.jvms[0], &[("UseContainerSupport", "false")]);
        assert_eq!(RULE.find(&facts), [], "nothing is limited");
        facts.jvms[0].cpus = Ok(Cpus { allowed: 4, quota: Some(1.5) });
        let finding = RULE.find(&facts).pop().expect("a quota");
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
        assert_eq!(RULE.find(&facts), [], "a quota of all CPUs, and all memory of the host");
        facts.jvms[0].group = Ok(Some(group(2 * G)));
        assert!(RULE.find(&facts)[0].title.ends_with("limits memory"));
        made_up::set_flags(&mut facts.jvms[0], &[("UseContainerSupport", "true")]);
        assert_eq!(RULE.find(&facts), []);
    }
}
