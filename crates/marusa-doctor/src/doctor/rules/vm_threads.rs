//! Threads of the VM itself against the CPUs that the process may use, by the JVM's own formulas.

use crate::doctor::facts::Bounds;
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};
use crate::jvm::ThreadKind;
use crate::os::cpus::Cpus;
use crate::pages::gc_threads::{by_formula, derived, is_few, is_many};
use crate::pages::need::compiler_threads;

/// GC threads against the CPUs that the process may use, by the JVM's own formula: more of them than CPUs wait for each other in
/// every pause, and spend a quota that the program needs.
pub(super) fn gc(jvm: &JvmFacts) -> Option<Finding> {
    let cpus = *jvm.cpus.as_ref().ok()?;
    let (gc, count) = (jvm.gc()?, cpus.count());
    let formula = by_formula(jvm.major()?, gc, count, jvm.number("MaxHeapSize")?);
    let parallel_formula = formula.parallel?;
    let flag = |name: &str| u32::try_from(jvm.number(name)?).ok().filter(|number| *number > 0);
    let parallel = flag("ParallelGCThreads")?;
    // What follows from ParallelGCThreads is not a second finding.
    let concurrent = flag("ConcGCThreads").filter(|is| Some(*is) != derived(gc, parallel));
    let numbers = [
        ("ParallelGCThreads", Some(parallel), Some(parallel_formula)),
        ("ConcGCThreads", concurrent, formula.concurrent),
    ];
    let known = || numbers.iter().filter_map(|(name, is, formula)| Some((*name, (*is)?, (*formula)?)));
    let many = known().find(|(_, is, formula)| is_many(*is, *formula));
    let (name, is, own) = many.or_else(|| known().find(|(_, is, formula)| is_few(*is, *formula)))?;
    let now = threads(jvm, ThreadKind::Gc)?;
    let mut evidence = vec![
        Evidence::count(name, is.into(), format!("flag {name} of the VM")),
        Evidence::count(
            format!("{name} by the JVM's formula"),
            own.into(),
            "workerPolicy.cpp and the collector's own",
        ),
        allowed(&cpus),
        Evidence::count("GC threads that exist now", now, "the VM's threads"),
    ];
    evidence.extend(cpus.quota.map(|quota| quota_of(quota, &jvm.bounds)));
    evidence.extend(why(jvm, count));
    let (level, meaning) = match many {
        Some(_) => (Level::Warn, "they wait for each other in each pause"),
        None => (Level::Info, "pauses take longer than they need"),
    };
    let title = format!("{name} is {is} on {count} CPUs, where the JVM itself would take {own}: {meaning}");
    let remedies = [
        Remedy::JvmOption(format!("-XX:{name}={own}")),
        Remedy::Advice(format!("leave {name} out: the JVM then counts the CPUs that it has at its start")),
    ];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

fn threads(jvm: &JvmFacts, kind: ThreadKind) -> Option<u64> {
    Some(jvm.jvm()?.threads.iter().filter(|thread| thread.kind == kind).count() as u64)
}

fn allowed(cpus: &Cpus) -> Evidence {
    let source = "/proc/PID/status: Cpus_allowed";
    Evidence::count("CPUs that the process may run on", cpus.allowed.into(), source)
}

pub fn quota_of(quota: f64, bounds: &Bounds) -> Evidence {
    Evidence {
        what: "CPU time that the cgroup may use".to_string(),
        value: format!("{quota:.2} CPUs"),
        number: Some(quota),
        unit: "count",
        source: bounds.quota_files().to_string(),
    }
}

/// Why the JVM may have counted other CPUs than `count`.
fn why(jvm: &JvmFacts, count: u32) -> Option<Evidence> {
    if jvm.flag("UseContainerSupport") == Some("false") {
        return Some(Evidence::state("the JVM ignores its cgroup", "UseContainerSupport is off", "flag"));
    }
    let said = jvm.number("ActiveProcessorCount").filter(|said| *said > 0 && *said < 1 << 31)?;
    (said != u64::from(count))
        .then(|| Evidence::count("CPUs that the JVM was given", said, "flag ActiveProcessorCount"))
}

/// Threads of the JIT compilers against the CPUs: each has a stack and an arena of its own, and while the program warms up
/// they take the CPU time of a small quota.
///
/// One or two more than twice are no harm; as a small code cache lowers the formula's, only more than this is judged.
pub(super) fn compiler(jvm: &JvmFacts) -> Option<Finding> {
    let cpus = *jvm.cpus.as_ref().ok()?;
    let (count, is) = (cpus.count(), u32::try_from(jvm.number("CICompilerCount")?).ok()?);
    let own = compiler_threads(count);
    if is <= own.saturating_mul(2) || is < own.saturating_add(4) {
        return None;
    }
    let now = threads(jvm, ThreadKind::Compiler)?;
    let mut evidence = vec![
        Evidence::count(
            "compiler threads that the JVM may start",
            is.into(),
            "flag CICompilerCount of the VM",
        ),
        Evidence::count("compiler threads by the JVM's formula", own.into(), "compilationPolicy.cpp"),
        Evidence::count("compiler threads that exist now", now, "the VM's threads"),
        allowed(&cpus),
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
    mod gc {
        use super::super::*;
        use crate::doctor::Subject;
        use crate::doctor::facts::made_up;
        use crate::doctor::facts::made_up::rule_finds;
        use crate::os::cpus::Cpus;

        fn found(allowed: u32, quota: Option<f64>, flags: &[(&str, &str)]) -> Option<Finding> {
            let mut facts = made_up::healthy();
            facts.jvms[0].cpus = Ok(Cpus { allowed, quota });
            made_up::set_flags(&mut facts.jvms[0], flags);
            rule_finds("gc-threads", &facts).pop()
        }

        #[test]
        fn the_threads_of_a_large_host_in_two_cpus() {
            let finding = found(64, Some(2.0), &[("ParallelGCThreads", "23"), ("ConcGCThreads", "6")])
                .expect("too many");
            assert_eq!((finding.level, finding.subject), (Level::Warn, Subject::Jvm(made_up::PID)));
            assert!(finding.title.contains("ParallelGCThreads is 23 on 2 CPUs"), "{}", finding.title);
            let off = found(2, None, &[("ParallelGCThreads", "43"), ("UseContainerSupport", "false")])
                .expect("too many");
            assert!(off.evidence.iter().any(|evidence| evidence.value.contains("UseContainerSupport")));
        }

        #[test]
        fn the_edges() {
            assert_eq!(found(4, None, &[]), None, "what the JVM takes itself");
            assert_eq!(found(4, None, &[("ParallelGCThreads", "8")]), None, "twice is not far");
            assert_eq!(found(4, None, &[("ParallelGCThreads", "9")]).map(|f| f.level), Some(Level::Warn));
            assert_eq!(
                found(1, None, &[("ParallelGCThreads", "2"), ("ConcGCThreads", "1")]),
                None,
                "one more"
            );
            assert_eq!(found(16, None, &[("ParallelGCThreads", "3")]).map(|f| f.level), Some(Level::Info));
            assert_eq!(found(16, None, &[("ParallelGCThreads", "4")]), None, "over a quarter of 13");
            let concurrent =
                found(8, None, &[("ParallelGCThreads", "8"), ("ConcGCThreads", "8")]).expect("of its own");
            assert!(concurrent.title.starts_with("ConcGCThreads is 8"), "{}", concurrent.title);
            assert_eq!(found(4, None, &[("UseSerialGC", "true"), ("ParallelGCThreads", "0")]), None);
        }
    }

    mod compiler {
        use super::super::*;
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
}
