//! GC threads against the CPUs that the process may use, by the JVM's own formula: more of them than CPUs wait for each other in
//! every pause, and spend a quota that the program needs.

use crate::doctor::facts::Bounds;
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};
use crate::jvm::ThreadKind;
use crate::pages::gc_threads::{by_formula, derived, is_few, is_many};

pub(super) fn of(jvm: &JvmFacts) -> Option<Finding> {
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
    let view = jvm.jvm()?;
    let now = view.threads.iter().filter(|thread| thread.kind == ThreadKind::Gc).count();
    let mut evidence = vec![
        Evidence::count(name, is.into(), format!("flag {name} of the VM")),
        Evidence::count(
            format!("{name} by the JVM's formula"),
            own.into(),
            "workerPolicy.cpp and the collector's own",
        ),
        Evidence::count(
            "CPUs that the process may run on",
            cpus.allowed.into(),
            "/proc/PID/status: Cpus_allowed",
        ),
        Evidence::count("GC threads that exist now", now as u64, "the VM's threads"),
    ];
    if let Some(quota) = cpus.quota {
        evidence.push(quota_of(quota, &jvm.bounds));
    }
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
pub fn why(jvm: &JvmFacts, count: u32) -> Option<Evidence> {
    if jvm.flag("UseContainerSupport") == Some("false") {
        return Some(Evidence::state("the JVM ignores its cgroup", "UseContainerSupport is off", "flag"));
    }
    let said = jvm.number("ActiveProcessorCount").filter(|said| *said > 0 && *said < 1 << 31)?;
    (said != u64::from(count))
        .then(|| Evidence::count("CPUs that the JVM was given", said, "flag ActiveProcessorCount"))
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let finding =
            found(64, Some(2.0), &[("ParallelGCThreads", "23"), ("ConcGCThreads", "6")]).expect("too many");
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
        assert_eq!(found(1, None, &[("ParallelGCThreads", "2"), ("ConcGCThreads", "1")]), None, "one more");
        assert_eq!(found(16, None, &[("ParallelGCThreads", "3")]).map(|f| f.level), Some(Level::Info));
        assert_eq!(found(16, None, &[("ParallelGCThreads", "4")]), None, "over a quarter of 13");
        let concurrent =
            found(8, None, &[("ParallelGCThreads", "8"), ("ConcGCThreads", "8")]).expect("of its own");
        assert!(concurrent.title.starts_with("ConcGCThreads is 8"), "{}", concurrent.title);
        assert_eq!(found(4, None, &[("UseSerialGC", "true"), ("ParallelGCThreads", "0")]), None);
    }
}
