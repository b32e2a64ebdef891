//! Threads of the JIT compilers against the CPUs: each has a stack and an arena of its own, and while the program warms up
//! they take the CPU time of a small quota.

use super::gc_threads::{quota_of, why};
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};
use crate::jvm::ThreadKind;
use crate::pages::need::compiler_threads;

/// One or two more than twice are no harm; as a small code cache lowers the formula's, only more than this is judged.
pub(super) fn of(jvm: &JvmFacts) -> Option<Finding> {
    let cpus = *jvm.cpus.as_ref().ok()?;
    let (count, is) = (cpus.count(), u32::try_from(jvm.number("CICompilerCount")?).ok()?);
    let own = compiler_threads(count);
    if is <= own.saturating_mul(2) || is < own.saturating_add(4) {
        return None;
    }
    let now = jvm.jvm()?.threads.iter().filter(|thread| thread.kind == ThreadKind::Compiler).count();
    let mut evidence = vec![
        Evidence::count(
            "compiler threads that the JVM may start",
            is.into(),
            "flag CICompilerCount of the VM",
        ),
        Evidence::count("compiler threads by the JVM's formula", own.into(), "compilationPolicy.cpp"),
        Evidence::count("compiler threads that exist now", now as u64, "the VM's threads"),
        Evidence::count(
            "CPUs that the process may run on",
            cpus.allowed.into(),
            "/proc/PID/status: Cpus_allowed",
        ),
    ];
    evidence.extend(cpus.quota.map(|quota| quota_of(quota, &jvm.bounds)));
    evidence.extend(why(jvm, count));
    // Without a quota they only wait for each other; with one they stop the program with them.
    let level = if cpus.quota.is_some() { Level::Warn } else { Level::Info };
    let title = format!("CICompilerCount is {is} on {count} CPUs, where the JVM itself would take {own}");
    let remedies = [
        Remedy::JvmOption(format!("-XX:CICompilerCount={own}")),
        Remedy::advice("leave CICompilerCount out, and see to it that the JVM counts the right CPUs"),
    ];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::os::cpus::Cpus;

    #[test]
    fn the_formula_gives_what_the_jvms_print() {
        let numbers: Vec<u32> = [1, 2, 4, 8, 16, 32, 64, 96].into_iter().map(compiler_threads).collect();
        assert_eq!(numbers, [2, 2, 3, 4, 12, 15, 18, 18]);
    }

    #[test]
    fn those_of_a_large_host_in_two_cpus() {
        let found = |allowed, quota, count: &str| {
            let mut facts = made_up::healthy();
            facts.jvms[0].cpus = Ok(Cpus { allowed, quota });
            made_up::set_flags(&mut facts.jvms[0], &[("CICompilerCount", count)]);
            rule_finds("compiler-threads", &facts).pop()
        };
        let finding = found(64, Some(2.0), "18").expect("the host's");
        assert_eq!(finding.level, Level::Warn);
        assert!(finding.title.contains("is 18 on 2 CPUs"), "{}", finding.title);
        assert_eq!(found(2, None, "18").map(|finding| finding.level), Some(Level::Info));
        assert_eq!((found(2, None, "5"), found(4, None, "6"), found(4, None, "3")), (None, None, None));
        assert!(found(2, None, "6").is_some(), "the edge");
        assert_eq!(found(64, None, "0"), None, "the interpreter only");
    }
}
