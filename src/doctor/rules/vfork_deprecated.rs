//! `jdk.lang.Process.launchMechanism=VFORK`: deprecated in JDK 25 as dangerous (JDK-8357179), to be removed after it
//! (JDK-8357089).

use super::fork_large_heap::mechanism;
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy, Rule, Subject, types::Cost};

pub const RULE: Rule = Rule {
    id: "vfork-deprecated",
    title: "the JVM starts processes by vfork, which its JDK has deprecated",
    find,
};

const SINCE: u32 = 25;

fn find(facts: &Facts) -> Vec<Finding> {
    facts.jvms.iter().filter_map(of).collect()
}

fn of(jvm: &JvmFacts) -> Option<Finding> {
    let (name, source) = mechanism(jvm).filter(|(name, _)| name == "VFORK")?;
    let major = jvm.major().filter(|major| *major >= SINCE)?;
    Some(Finding {
        id: RULE.id,
        level: Level::Info,
        subject: Subject::Jvm(jvm.pid),
        title: format!(
            "processes are started by vfork, which JDK {major} has deprecated: until exec the child writes in the JVM's memory"
        ),
        evidence: vec![
            Evidence::state("jdk.lang.Process.launchMechanism", name, source),
            Evidence::count("release of the JDK", major.into(), "Abstract_VM_Version::_s_vm_release"),
        ],
        cost: Cost::default(),
        remedies: vec![Remedy::JvmOption("-Djdk.lang.Process.launchMechanism=POSIX_SPAWN".to_string())],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;

    #[test]
    fn from_jdk_25_on() {
        let mut facts = made_up::healthy();
        let command = "java -Djdk.lang.Process.launchMechanism=VFORK Main";
        facts.jvms[0].snapshot.os.process.set_arguments(crate::base::redact::words_of(command));
        assert_eq!(find(&facts), [], "21 takes it as it is");
        made_up::view(&mut facts.jvms[0]).major = Ok(25);
        assert_eq!(find(&facts).pop().map(|finding| finding.level), Some(Level::Info));
        facts.jvms[0].snapshot.os.process.set_arguments(crate::base::redact::words_of("java Main"));
        assert_eq!(find(&facts), []);
    }
}
