//! What nobody should meet, and what must not make the walk fall or hang: a gap with its reason.

use super::compare::{broken_intervals, imbalances};
use super::glibcs;
use super::programs::{Program, TemporaryFile, snapshot};
use marusa::alloc::AllocView;
use marusa::base::{Known, Why};
use marusa::os::process::Process;
use marusa::snapshot::{Snapshot, Want, take};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longer than any reading takes, however slow the machine.
const READING_MAX: Duration = Duration::from_secs(60);

/// Reads, and fails the test rather than waits for ever.
fn read_in_time(pid: i32, what: &str) -> Known<Snapshot> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(snapshot(pid));
    });
    receiver.recv_timeout(READING_MAX).unwrap_or_else(|_| panic!("{what}: the reading hangs or fell"))
}

fn unresolved(view: &AllocView) -> u64 {
    view.arenas.iter().flat_map(|arena| &arena.figures).map(|figures| figures.unresolved_bytes).sum()
}

#[test]
fn a_heap_that_the_program_destroyed_is_a_gap() {
    let mut broken = Vec::new();
    for kind in ["sizes", "wrap", "cycle", "cache", "fast", "top", "ring", "heaps", "header", "noise"] {
        for libc in [Some(glibcs::system()), glibcs::of_suite("sid")].into_iter().flatten() {
            let program = Program::start(&libc, "corrupt", &[kind]);
            let name = format!("{kind} on {}", libc.name);
            let started = Instant::now();
            let alloc = read_in_time(program.pid, &name).and_then(|snapshot| snapshot.alloc);
            let took = started.elapsed().as_millis();
            match alloc {
                Err(gap) => println!("{name}: {took} ms: {gap}"),
                Ok(view) => {
                    let first = view.gaps.first().map(|gap| gap.to_string());
                    let unlisted: u64 = view
                        .arenas
                        .iter()
                        .flat_map(|arena| &arena.figures)
                        .map(|one| one.chunks.unlisted.bytes)
                        .sum();
                    let torn = unresolved(&view);
                    println!("{name}: {took} ms: {torn} bytes unresolved, {unlisted} unlisted, {first:?}");
                    broken.extend(imbalances(&view).into_iter().map(|text| format!("{name}: {text}")));
                    // What is free, the chunks say: a broken list only costs the list's name.
                    let is_list = ["cycle", "cache", "fast"].contains(&kind);
                    if first.is_none() && torn == 0 && unlisted == 0 && !is_list {
                        broken.push(format!("{name}: nothing is said of it"));
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_static_program_is_a_gap() {
    let report = TemporaryFile::new("malloc-info");
    let mut command = std::process::Command::new(glibcs::static_program("heap"));
    command.arg(&report.0).arg("mix");
    let program = Program::of(command);
    let gap = read_in_time(program.pid, "static").expect("a snapshot").alloc.expect_err("no libc is mapped");
    assert_eq!(gap.why, Why::NotInThisRuntime, "{gap}");
}

#[test]
fn a_program_that_never_allocated_is_a_gap() {
    let program = Program::start(&glibcs::system(), "restless", &[]);
    let alloc = read_in_time(program.pid, "never").expect("a snapshot").alloc;
    assert!(alloc.is_err(), "{alloc:?}");
}

#[test]
fn two_libcs_are_said() {
    let program = Program::start(&glibcs::system(), "two_libcs", &[]);
    let view = read_in_time(program.pid, "two").expect("a snapshot").alloc.expect("the first libc");
    assert!(view.gaps.iter().any(|gap| gap.what.contains("libc")), "{:?}", view.gaps);
    assert_eq!(imbalances(&view), Vec::<String>::new());
    // A thousand blocks of 1,000 bytes are in the first one's arena.
    assert!(view.arenas[0].system_bytes >= 1_000_000, "{:?}", view.arenas);
}

#[test]
fn heaps_that_come_and_go_are_read_as_they_are() {
    let mut program = Program::start(&glibcs::system(), "restless", &["vanish", "4"]);
    for _ in 0..20 {
        match read_in_time(program.pid, "vanish").and_then(|snapshot| snapshot.alloc) {
            Ok(view) => assert_eq!(broken_intervals(&view), Vec::<String>::new()),
            Err(gap) => {
                assert!(matches!(gap.why, Why::Torn | Why::BadData(_) | Why::NotInThisRuntime), "{gap}")
            }
        }
    }
    assert!(program.is_running(), "reading does no harm");
}

#[test]
fn a_program_that_forks_is_read() {
    let mut program = Program::start(&glibcs::system(), "restless", &["fork"]);
    for _ in 0..20 {
        let view = read_in_time(program.pid, "fork").expect("a snapshot").alloc.expect("glibc");
        assert_eq!(broken_intervals(&view), Vec::<String>::new());
    }
    assert!(program.is_running(), "reading does no harm");
}

#[test]
fn a_program_that_ends_while_it_is_read_is_a_gap() {
    for _ in 0..4 {
        let program = Program::start(&glibcs::system(), "restless", &["exit", "4", "40"]);
        let process = Process::open(program.pid).expect("it runs");
        let started = Instant::now();
        // It is gone after 150 ms, in the middle of one of these.
        while started.elapsed() < Duration::from_secs(10) {
            let Ok(taken) = take(&process, Want::default()) else { break };
            if taken.gaps().iter().any(|gap| gap.why == Why::Gone) {
                break;
            }
            if let Ok(view) = &taken.alloc {
                assert_eq!(broken_intervals(view), Vec::<String>::new());
            }
        }
        assert!(started.elapsed() < Duration::from_secs(10), "the end of the process is noticed");
    }
}
