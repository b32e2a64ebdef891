//! The threads of the collector by the JVM's own formula, and advice where a hand-set number is out of proportion to it: a
//! JVM in a container with two CPUs and the 23 GC threads of its old host spends its quota on them.

use super::types::{GcThreads, Subject};
use crate::base::Bytes;
use crate::jvm::Gc;

/// What the formula gives; `None` where the collector has no such threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByFormula {
    pub parallel: Option<u32>,
    pub concurrent: Option<u32>,
}

/// All CPUs up to `switch_at`, then `part` of `of` of each further one (gc/shared/workerPolicy.cpp nof_parallel_worker_threads;
/// 8: runtime/vm_version.cpp).
pub fn scaled(cpus: u32, switch_at: u32, part: u32, of: u32) -> u32 {
    let cpus = cpus.max(1);
    if cpus <= switch_at {
        cpus
    } else {
        switch_at.saturating_add(((u64::from(cpus - switch_at) * u64::from(part)) / u64::from(of)) as u32)
    }
}

/// ParallelGCThreads and ConcGCThreads for a number of CPUs (`os::initial_active_processor_count`) and this -Xmx.
pub fn by_formula(feature: u32, gc: Gc, cpus: u32, heap_max: Bytes) -> ByFormula {
    let cpus = cpus.clamp(1, 1 << 16);
    let common = scaled(cpus, 8, 5, 8);
    let (parallel, concurrent) = match gc {
        Gc::Serial | Gc::Epsilon => (None, None),
        Gc::Parallel => (Some(common), None),
        // gc/g1/g1ConcurrentMark.cpp scale_concurrent_worker_threads; CMS: concurrentMarkSweepGeneration.cpp.
        Gc::G1 => (Some(common), Some(((common + 2) / 4).max(1))),
        Gc::Cms => (Some(common), Some(common.div_ceil(4))),
        Gc::Z | Gc::ZGenerational => z_both(feature, cpus, heap_max),
        // gc/shenandoah/shenandoahArguments.cpp: a half and a quarter of the CPUs.
        Gc::Shenandoah | Gc::ShenandoahGenerational => (Some((cpus / 2).max(1)), Some((cpus / 4).max(1))),
    };
    ByFormula { parallel, concurrent }
}

/// ConcGCThreads where it follows from ParallelGCThreads: gc/g1/g1ConcurrentMark.cpp scale_concurrent_worker_threads;
/// concurrentMarkSweepGeneration.cpp.
pub fn derived(gc: Gc, parallel: u32) -> Option<u32> {
    match gc {
        Gc::G1 => Some((parallel.saturating_add(2) / 4).max(1)),
        Gc::Cms => Some(parallel.saturating_add(3) / 4),
        _ => None,
    }
}

/// 60 % and 25 % of the CPUs; in 11 60 % and 12.5 %, whatever the heap.
fn z_both(feature: u32, cpus: u32, heap_max: Bytes) -> (Option<u32>, Option<u32>) {
    if feature < 17 {
        (Some(z(cpus, 600, Bytes::MAX)), Some(z(cpus, 125, Bytes::MAX)))
    } else {
        (Some(z(cpus, 600, heap_max)), Some(z(cpus, 250, heap_max)))
    }
}

/// gc/z/zHeuristics.cpp: a share of the CPUs, rounded up, but no more than have 2M each in 2 % of the heap.
fn z(cpus: u32, per_mille: u64, heap_max: Bytes) -> u32 {
    let by_cpus = (u64::from(cpus) * per_mille).div_ceil(1000);
    let by_heap = heap_max / 50 / (2 << 20);
    by_cpus.min(by_heap).max(1) as u32
}

/// The threads of `subject`; `None` for a collector that has none. Advice only where a number set by hand is more than twice, or
/// at most a quarter of, what the formula gives.
pub fn gc_threads(subject: &Subject) -> Option<GcThreads> {
    let formula = by_formula(subject.feature, subject.gc, subject.cpus, subject.heap_max_bytes);
    let parallel_by_formula = formula.parallel?;
    let flag = |name: &str| {
        subject.flags.get(name).and_then(|text| text.trim().parse::<u32>().ok()).filter(|n| *n > 0)
    };
    let parallel = flag("ParallelGCThreads").unwrap_or(parallel_by_formula);
    let concurrent = flag("ConcGCThreads").or(formula.concurrent);
    let advice: Vec<String> = [
        judge("ParallelGCThreads", Some(parallel), formula.parallel, subject.cpus),
        // What follows from the other number was not set.
        judge(
            "ConcGCThreads",
            concurrent.filter(|is| Some(*is) != derived(subject.gc, parallel)),
            formula.concurrent,
            subject.cpus,
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    Some(GcThreads {
        cpus: subject.cpus,
        parallel,
        concurrent,
        parallel_by_formula,
        concurrent_by_formula: formula.concurrent,
        advice: (!advice.is_empty()).then(|| advice.join("; ")),
    })
}

/// More than twice the formula's, and more than one more.
pub fn is_many(is: u32, formula: u32) -> bool {
    is > formula.saturating_mul(2) && is > formula.saturating_add(1)
}

/// A quarter or less.
pub fn is_few(is: u32, formula: u32) -> bool {
    is.saturating_mul(4) <= formula
}

fn judge(flag: &str, is: Option<u32>, formula: Option<u32>, cpus: u32) -> Option<String> {
    let (is, formula) = (is?, formula?);
    (is_many(is, formula) || is_few(is, formula)).then(|| {
        format!("{flag}={is} where the JVM itself would take {formula} for {cpus} CPUs: leave the flag out, or say why it is set")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::types::Vm;

    const CPUS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 96];

    /// Parallel and concurrent threads for `CPUS` and a heap of 4G, as -XX:+PrintFlagsFinal prints them.
    fn printed(feature: u32, gc: Gc) -> Vec<(u32, u32)> {
        let both = |cpus: &u32| {
            let threads = by_formula(feature, gc, *cpus, 4 << 30);
            (threads.parallel.unwrap_or(0), threads.concurrent.unwrap_or(0))
        };
        CPUS.iter().map(both).collect()
    }

    #[test]
    fn the_formulas_give_what_the_jvms_print() {
        let parallel = [1, 2, 4, 8, 13, 23, 43, 63];
        for feature in [8, 11, 17, 21, 25] {
            let expected: Vec<_> = parallel.iter().map(|p| (*p, 0)).collect();
            assert_eq!(printed(feature, Gc::Parallel), expected, "{feature}");
            let expected: Vec<_> = parallel.iter().copied().zip([1, 1, 1, 2, 3, 6, 11, 16]).collect();
            assert_eq!(printed(feature, Gc::G1), expected, "{feature}");
        }
        for feature in [17, 21, 25] {
            let expected = [(1, 1), (2, 1), (3, 1), (5, 2), (10, 4), (20, 8), (39, 16), (40, 24)];
            assert_eq!(printed(feature, Gc::Z), expected, "{feature}");
        }
        let expected = [(1, 1), (2, 1), (3, 1), (5, 1), (10, 2), (20, 4), (39, 8), (58, 12)];
        assert_eq!(printed(11, Gc::Z), expected);
        for feature in [11, 17, 21, 25] {
            let expected = [(1, 1), (1, 1), (2, 1), (4, 2), (8, 4), (16, 8), (32, 16), (48, 24)];
            assert_eq!(printed(feature, Gc::Shenandoah), expected, "{feature}");
        }
        assert_eq!(printed(8, Gc::Cms)[3..], [(8, 2), (13, 4), (23, 6), (43, 11), (63, 16)]);
        assert_eq!(by_formula(17, Gc::Serial, 64, 4 << 30), ByFormula { parallel: None, concurrent: None });
    }

    fn subject(cpus: u32, flags: &[(&str, &str)]) -> Subject {
        Subject {
            vm: Vm::HotSpot,
            feature: 17,
            version: None,
            java_home: None,
            gc: Gc::G1,
            heap_initial_bytes: 1 << 30,
            heap_max_bytes: 1 << 30,
            cpus,
            flags: flags.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        }
    }

    #[test]
    fn advice_only_where_a_number_is_far_from_the_formula() {
        let advice = |cpus, flags: &[(&str, &str)]| {
            gc_threads(&subject(cpus, flags)).and_then(|threads| threads.advice)
        };
        assert_eq!(advice(2, &[]), None);
        assert_eq!(advice(4, &[("ParallelGCThreads", "6")]), None);
        assert_eq!(advice(1, &[("ParallelGCThreads", "2")]), None, "one more is not a disproportion");
        let text = advice(2, &[("ParallelGCThreads", "23"), ("ConcGCThreads", "9")]).expect("advice");
        assert!(text.contains("ParallelGCThreads=23") && text.contains("ConcGCThreads=9"), "{text}");
        assert!(
            advice(32, &[("ParallelGCThreads", "2")]).is_some_and(|text| text.contains("take 23 for 32"))
        );
        let text = advice(2, &[("ParallelGCThreads", "23"), ("ConcGCThreads", "6")]).expect("advice");
        assert!(!text.contains("ConcGCThreads"), "6 follows from 23: {text}");
        assert_eq!(advice(2, &[("ParallelGCThreads", "99999999999")]), None, "no number, no advice");
    }
}
