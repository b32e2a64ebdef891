//! The files of the JDK were replaced under the running JVM: what it loads from now on is of another build. Processes are the
//! first to fail, since the new `jspawnhelper` does not speak with the old JVM (JDK-8325567, JDK-8325621).

use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};
use crate::os::maps::Mapping;

/// The libraries of a JDK that every JVM has mapped.
fn is_jdks(mapping: &Mapping) -> bool {
    // A file that only ever existed in memory was not replaced.
    !mapping.is_memory_file()
        && ["libjvm.so", "libjava.so", "modules", "libjli.so"].contains(&mapping.file_name())
}

pub(super) fn of(jvm: &JvmFacts) -> Option<Finding> {
    let mut gone: Vec<&str> = Vec::new();
    for mapping in jvm.snapshot.os.mappings.iter().filter(|mapping| is_jdks(mapping) && mapping.is_deleted())
    {
        if !gone.contains(&mapping.file_path()) {
            gone.push(mapping.file_path());
        }
    }
    let first = *gone.iter().find(|path| path.ends_with("libjvm.so"))?;
    let mut evidence =
        vec![Evidence::state("no longer on the disk", gone.join(", "), "/proc/PID/maps: (deleted)")];
    let version = jvm.jvm().and_then(|view| view.version.clone().ok());
    evidence.extend(
        version.map(|version| {
            Evidence::state("release that runs", version, "Abstract_VM_Version::_s_vm_release")
        }),
    );
    // JDK 13 and later start processes through jspawnhelper by default (JDK-8213192).
    let spawns = jvm.major().is_some_and(|major| major >= 13);
    let harm =
        if spawns { "starting processes may fail" } else { "what it loads from now on is of another build" };
    let title = format!("{first} was replaced while the JVM runs: {harm}");
    let remedies = [Remedy::advice("restart the JVM: it runs code that is no longer installed")];
    Some(Finding::on_jvm(jvm.pid, Level::Warn, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;
    use crate::doctor::facts::made_up::rule_finds;

    #[test]
    fn libjvm_that_is_gone() {
        let mut facts = made_up::healthy();
        assert_eq!(rule_finds("jdk-replaced", &facts), []);
        let mappings = &mut facts.jvms[0].snapshot.os.mappings;
        let library =
            mappings.iter_mut().find(|mapping| mapping.path.ends_with("libjvm.so")).expect("it has one");
        library.path.push_str(" (deleted)");
        let finding = rule_finds("jdk-replaced", &facts).pop().expect("replaced");
        assert_eq!(finding.level, Level::Warn);
        assert!(finding.title.contains("/opt/jdk-21/lib/server/libjvm.so was replaced"), "{}", finding.title);
        assert!(finding.title.ends_with("may fail"));
        let mappings = &mut facts.jvms[0].snapshot.os.mappings;
        let library = mappings.iter_mut().find(|it| it.is_deleted()).expect("it is there");
        library.path = "/memfd:/x/libjvm.so (deleted)".to_string();
        assert_eq!(rule_finds("jdk-replaced", &facts), [], "it never was on a disk");
    }
}
