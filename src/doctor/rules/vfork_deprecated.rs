//! `jdk.lang.Process.launchMechanism=VFORK`: deprecated in JDK 25 as dangerous (JDK-8357179), to be removed after it
//! (JDK-8357089).

use super::fork_large_heap::mechanism;
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};

const SINCE: u32 = 25;

pub(super) fn of(jvm: &JvmFacts) -> Option<Finding> {
    let (name, source) = mechanism(jvm).filter(|(name, _)| name == "VFORK")?;
    let major = jvm.major().filter(|major| *major >= SINCE)?;
    let title = format!(
        "processes are started by vfork, which JDK {major} has deprecated: until exec the child writes in the JVM's memory"
    );
    let evidence = [
        Evidence::state("jdk.lang.Process.launchMechanism", name, source),
        Evidence::count("release of the JDK", major.into(), "Abstract_VM_Version::_s_vm_release"),
    ];
    let remedies = [Remedy::jvm_option("-Djdk.lang.Process.launchMechanism=POSIX_SPAWN")];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;
    use crate::doctor::facts::made_up::rule_finds;

    #[test]
    fn from_jdk_25_on() {
        let mut facts = made_up::healthy();
        let command = "java -Djdk.lang.Process.launchMechanism=VFORK Main";
        facts.jvms[0].snapshot.os.process.set_arguments(crate::base::redact::words_of(command));
        assert_eq!(rule_finds("vfork-deprecated", &facts), [], "21 takes it as it is");
        made_up::view(&mut facts.jvms[0]).major = Ok(25);
        assert_eq!(
            rule_finds("vfork-deprecated", &facts).pop().map(|finding| finding.level),
            Some(Level::Info)
        );
        facts.jvms[0].snapshot.os.process.set_arguments(crate::base::redact::words_of("java Main"));
        assert_eq!(rule_finds("vfork-deprecated", &facts), []);
    }
}
