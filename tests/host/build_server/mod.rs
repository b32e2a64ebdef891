//! JVMs that wait for huge pages, for real: the build server in small. What `marusa stalls` says of it is held against the
//! kernel's own text, and the remedy makes the figure fall.

mod raw_trace;
mod scene;
mod stalls;

use crate::common::{fragments::Fragments, host::Host, host::THP, is_root, java, marusa, skip, text};
use raw_trace::{Waits, sums};
use scene::{Figures, HARM, Policy, REMEDY, Work, measure, work};

const STEPS: usize = 4;
const TRIES: usize = 3;
/// Below it, what is compared is noise.
const HARM_MS_LEAST: f64 = 50.0;
const DIFFERENCE_MAX: f64 = 0.05;
/// The share of the figure with the harmful policy that may be left with the other.
const LEFT_MAX: f64 = 0.1;

const TEXT: &str = "\
     GC Thread#0-4321    (   4310) [001] ...1.   812.000100: mm_compaction_begin: zone_start=0x1000 mode=async
   C2 CompilerThre-7     (      5) [000] ...1.   812.000150: mm_vmscan_direct_reclaim_begin: order=9
CPU:1 [LOST 12 EVENTS]
             <...>-4321    (-------) [000] ...1.   812.000300: mm_compaction_end: zone_start=0x1000 mode=async
   C2 CompilerThre-7     (      5) [000] ...1.   812.001150: mm_vmscan_direct_reclaim_end: nr_reclaimed=3
     GC Thread#0-4321    (   4310) [001] ...1.   812.001500: mm_compaction_begin: zone_start=0x1000 mode=async
     GC Thread#0-4321    (   4310) [001] ...1.   812.001600: mm_compaction_end: zone_start=0x1000 mode=async
        kcompactd0-40    (     40) [000] ...1.   812.002000: mm_compaction_begin: zone_start=0x1000 mode=sync
        kcompactd0-40    (     40) [000] ...1.   812.003000: mm_compaction_end: zone_start=0x1000 mode=sync
             <...>-99    (-------) [000] ...1.   812.002000: mm_compaction_end: zone_start=0x1000 mode=sync
";

#[test]
fn the_oracle_adds_up_the_text_by_thread() {
    let sums = sums(TEXT.as_bytes());
    let us = |waits: Waits| (waits.count, (waits.seconds * 1e6).round() as u64);
    assert_eq!(us(raw_trace::of_programs(&sums.compaction)), (2, 300));
    assert_eq!(us(raw_trace::of_processes(&sums.compaction, &[4310].into())), (2, 300));
    assert_eq!(us(raw_trace::of_kernel(&sums.compaction)), (1, 1000));
    assert_eq!(us(raw_trace::of_processes(&sums.reclaim, &[5].into())), (1, 1000));
    assert_eq!(raw_trace::by_name(&sums.compaction).keys().collect::<Vec<_>>(), ["GC Thread", "kcompactd"]);
    assert_eq!((sums.lost, sums.unpaired), (12, 1));
}

/// What is needed of the machine.
fn may_run() -> Option<Work> {
    if !is_root() || !raw_trace::is_possible() {
        skip("needs root and the kernel's trace events of compaction (scripts/tracefs)");
        return None;
    }
    Some(work(java("17")?, STEPS))
}

fn under(policy: Policy, host: &mut Host, work: &Work) -> Figures {
    policy.set(host).expect("the policy");
    let figures = measure(work).expect("traced");
    let (ours, oracle) = figures.direct_ms();
    println!(
        "THP {}, defrag {}: marusa stalls {ours:.2} ms, the raw trace {oracle:.2} ms, in {:.1} s",
        policy.enabled,
        policy.defrag,
        figures.wall.as_secs_f64()
    );
    assert!(figures.steps.iter().all(|step| step.said == figures.steps[0].said), "each step does the same");
    assert!(figures.steps[0].said.starts_with("DONE"), "{:?}", figures.steps[0].said);
    assert_eq!((figures.trace.lost, figures.answer.lost()), (0, 0), "no event is lost");
    figures
}

#[test]
fn stalls_agrees_with_the_kernels_text_and_the_remedy_makes_it_fall() {
    let Some(work) = may_run() else { return };
    let mut host = Host::lock();
    let Some(mut fragments) = Fragments::make(&mut host) else { return };
    println!("{}", fragments.report);
    // How often the kernel must compact depends on where its scanners stand; it is tried again where they were lucky.
    let harm = (0..TRIES)
        .map(|_| under(HARM, &mut host, &work))
        .find(|figures| figures.direct_ms().1 >= HARM_MS_LEAST)
        .expect("memory is in pieces, and no JVM waited");
    let (ours, oracle) = harm.direct_ms();
    assert!((ours - oracle).abs() <= DIFFERENCE_MAX * oracle, "{ours} ms, {oracle} ms");
    let named = harm.answer.direct_ms(&harm.pids());
    assert!(!named.is_empty() && named.keys().all(|pid| harm.answer.is_jvm(*pid)), "JVMs by name: {named:?}");
    assert!(named.values().sum::<f64>() > ours / 2.0, "most of it has a name");
    assert!(harm.answer.all_ms() >= ours * (1.0 - DIFFERENCE_MAX), "the total holds it");

    let healed = under(REMEDY, &mut host, &work);
    let left = healed.direct_ms();
    assert!(left.0 <= ours * LEFT_MAX && left.1 <= oracle * LEFT_MAX, "{left:?} of {ours}, {oracle}");
    assert!(fragments.are_there(), "memory became short");
}

#[test]
fn bench_thp_sees_the_wait_and_restores_the_host() {
    let Some(work) = may_run() else { return };
    let _host = Host::lock();
    let home = work.java.parent().and_then(std::path::Path::parent).expect("bin/java").display().to_string();
    let state = tempfile::tempdir().expect("a directory");
    let words =
        || ["enabled", "defrag"].map(|file| std::fs::read_to_string(format!("{THP}/{file}")).expect("THP"));
    let before = words();
    let output = marusa(&[
        "bench",
        "thp",
        "--json",
        "--jdk",
        &home,
        "--steps",
        "4",
        "--rounds",
        "1",
        "--policies",
        "always,asked,never",
        "--quiet-wait",
        "0s",
        "--state",
        &state.path().display().to_string(),
    ]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(words(), before);
    let [always, asks, never] = [0, 1, 2].map(|arm| &found["arms"][arm]);
    assert_eq!([always, asks, never].map(|arm| arm["counted"].as_u64()), [Some(1); 3], "{found}");
    let number = |arm: &serde_json::Value, key: &str| {
        let value = &arm[key];
        value.as_f64().or_else(|| value["mean"].as_f64()).unwrap_or_else(|| panic!("{key}: {found}"))
    };
    // Whether the kernel finds one depends on how often it tried in vain before (defer_compaction in mm/compaction.c).
    let asked = |arm| number(arm, "huge_faults") + number(arm, "huge_fallbacks");
    assert!(asked(always) > 100.0 && asked(asks) > 100.0 && asked(never) == 0.0, "{found}");
    assert!(number(always, "waited_ms_per_step") > number(never, "waited_ms_per_step"), "{found}");
    assert!((0.0..1.0).contains(&number(always, "kernel_share")), "{found}");
    for trial in found["trials"].as_array().expect("trials") {
        let made = &trial["fragments"];
        let blocks = made["free"]["huge_blocks"].as_u64().expect("blocks");
        let free = made["free"]["bytes"].as_u64().expect("bytes");
        assert!(free > 1 << 30 && (blocks << 21) < free / 8, "{made}");
        assert_eq!(trial["steps"].as_u64(), Some(4));
    }
}

#[test]
fn only_the_heap_of_asked_asks() {
    let Some(java) = java("17") else { return };
    let home = java.parent().and_then(std::path::Path::parent).expect("bin/java").display().to_string();
    let output = marusa(&[
        "bench",
        "thp",
        "--dry-run",
        "--json",
        "--jdk",
        &home,
        "--memory",
        "as-is",
        "--policies",
        "always,asked",
    ]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let asks =
        |arm: usize| found["arms"][arm]["options"].to_string().contains("-XX:+UseTransparentHugePages");
    assert_eq!([asks(0), asks(1)], [false, true], "{found}");
}
