//! The build server of docs/build-server.md: several JVMs that start, compile and end, while memory is in small pieces, under the
//! policy for huge pages that makes them wait, and under others. `cargo bench --bench build_server [-- STEPS]`; needs root,
//! JDK 17 and 5 GiB of available memory. It changes the host's policy in the meantime, and puts back what was there.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/host/build_server/raw_trace.rs"]
mod raw_trace;
#[path = "../tests/host/build_server/scene.rs"]
mod scene;
#[path = "../tests/host/build_server/stalls.rs"]
mod stalls;

use common::{fragments::Fragments, host::Host, is_root, java};
use raw_trace::{Threads, by_name, of_kernel, of_programs};
use scene::{Figures, HARM, Policy, REMEDY, Step, measure, work};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const STEPS: usize = 12;
/// The first comes last again: so a drift is seen.
const POLICIES: [Policy; 4] = [HARM, Policy { enabled: "always", defrag: "defer+madvise" }, REMEDY, HARM];

fn main() {
    let Some(java) = java("17") else { return };
    if !is_root() || !raw_trace::is_possible() {
        return println!("skipped: needs root and the kernel's trace events of compaction");
    }
    let count = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(STEPS);
    let work = work(java, count);
    println!(
        "{count} steps, {} at once: java {} {}",
        work.at_once,
        work.options.join(" "),
        work.program.join(" ")
    );
    let mut host = Host::lock();
    let Some(mut fragments) = Fragments::make(&mut host) else { return };
    println!("fragmenter: {}", fragments.report);
    for policy in POLICIES {
        policy.set(&mut host).expect("the policy");
        println!("\nTHP {}, defrag {}", policy.enabled, policy.defrag);
        match measure(&work) {
            Ok(figures) => tell(&figures),
            Err(why) => println!("  no figures: {why}"),
        }
        assert!(fragments.are_there(), "memory became short");
    }
}

fn tell(figures: &Figures) {
    let sum = |of: fn(&Step) -> Duration| figures.steps.iter().map(of).sum::<Duration>().as_secs_f64();
    let (user, system) = (sum(|step| step.user), sum(|step| step.system));
    let mut walls: Vec<f64> = figures.steps.iter().map(|step| step.wall.as_secs_f64()).collect();
    walls.sort_by(f64::total_cmp);
    println!(
        "  wall {:.2} s; a step {:.2} s median, {:.2} s the longest; CPU of the JVMs: {user:.2} s user, {system:.2} s kernel ({:.1} %)",
        figures.wall.as_secs_f64(),
        walls[walls.len() / 2],
        walls[walls.len() - 1],
        system / (user + system) * 100.0
    );
    let ((ours, oracle), trace) = (figures.direct_ms(), &figures.trace);
    let difference =
        if oracle > 0.0 { format!(" ({:+.2} %)", (ours / oracle - 1.0) * 100.0) } else { String::new() };
    println!(
        "  direct compaction of the JVMs: marusa stalls {ours:.1} ms, the raw trace {oracle:.1} ms{difference}; lost events: {}, {}",
        figures.answer.lost(),
        trace.lost
    );
    let named = figures.answer.direct_ms(&figures.pids());
    println!("  marusa stalls names {} JVMs that waited: {}", named.len(), by_pid(&named));
    table("raw trace, direct compaction", &trace.compaction);
    table("raw trace, direct reclaim", &trace.reclaim);
    let counters: Vec<String> =
        figures.counters.iter().map(|(key, value)| format!("{key} {value}")).collect();
    println!("  vmstat: {}", counters.join(", "));
    let said: BTreeSet<&str> = figures.steps.iter().map(|step| step.said.as_str()).collect();
    println!("  the steps said: {said:?}");
}

fn by_pid(named: &BTreeMap<i32, f64>) -> String {
    named.iter().map(|(pid, ms)| format!("pid {pid} {ms:.0} ms")).collect::<Vec<_>>().join(", ")
}

fn table(what: &str, threads: &Threads) {
    let (programs, kernel) = (of_programs(threads), of_kernel(threads));
    println!(
        "  {what}: {:.1} ms in {} calls, the longest {:.2} ms; the kernel's own threads {:.1} ms",
        programs.seconds * 1e3,
        programs.count,
        programs.worst * 1e3,
        kernel.seconds * 1e3
    );
    for (name, waits) in by_name(threads) {
        println!(
            "    {name:<16} {:>9.1} ms {:>7} {:>9.2} ms",
            waits.seconds * 1e3,
            waits.count,
            waits.worst * 1e3
        );
    }
}
