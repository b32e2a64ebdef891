//! A heap that never holds still: 8 threads that only allocate and free.

use super::compare::imbalances;
use super::glibcs;
use super::programs::Program;
use marusa::alloc::{self, AllocView};
use marusa::base::Known;
use marusa::base::blocks::NoWitness;
use marusa::os::Target;
use marusa::os::process::Process;
use marusa::snapshot::take::with_target;
use std::time::{Duration, Instant};

/// How many walks, and how many in a hundred of them must leave nothing unresolved. Without optimisation a walk takes longer,
/// so that more changes under it.
const WALKS: usize = if cfg!(debug_assertions) { 40 } else { 150 };
const RESOLVED_PERCENT_MIN: usize = if cfg!(debug_assertions) { 75 } else { 99 };

/// One walk, without the second and third try that a snapshot would give it, and how long it took.
fn walk(process: &Process) -> (Known<AllocView>, Duration) {
    let mut took = Duration::ZERO;
    let view = with_target(process, |taking, memory, symbols| {
        let target = Target { view: &taking.os, memory, symbols };
        let started = Instant::now();
        let heap = alloc::read(&target, &[], &NoWitness);
        let view = heap.map(|heap| heap.finish());
        took = started.elapsed();
        view
    });
    (view, took)
}

#[test]
fn nothing_is_left_unresolved_while_8_threads_allocate_and_free() {
    let program = Program::start(&glibcs::system(), "restless", &["churn", "8", "65"]);
    std::thread::sleep(Duration::from_secs(1));
    let process = Process::open(program.pid).expect("the program");
    let (mut times, mut resolved, mut retries, mut worst, mut bytes) = (Vec::new(), 0, 0, 0, 0);
    let mut broken = Vec::new();
    for _ in 0..WALKS {
        let (view, took) = walk(&process);
        times.push(took);
        let view = match view {
            Ok(view) => view,
            Err(gap) => {
                broken.push(gap.to_string());
                continue;
            }
        };
        broken.extend(imbalances(&view));
        let missing = view.arenas.iter().filter(|arena| arena.figures.is_err()).count();
        let figures = || view.arenas.iter().flat_map(|arena| &arena.figures);
        let unresolved: u64 = figures().map(|figures| figures.unresolved_bytes).sum();
        retries += figures().map(|figures| figures.retries).sum::<u64>();
        bytes = view.arenas.iter().map(|arena| arena.system_bytes).sum();
        worst = worst.max(unresolved);
        resolved += usize::from(unresolved == 0 && missing == 0);
    }
    times.sort();
    println!(
        "{WALKS} walks of {} MB, 8 threads: {resolved} whole, at most {worst} bytes unresolved, {retries} heaps tried again; \
         median {:.1} ms, 95 % {:.1} ms",
        bytes / 1_000_000,
        times[WALKS / 2].as_secs_f64() * 1e3,
        times[WALKS * 95 / 100].as_secs_f64() * 1e3,
    );
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(resolved * 100 >= WALKS * RESOLVED_PERCENT_MIN, "{resolved} of {WALKS} walks are whole");
}
