//! The counting itself, on what the kernel counts without a PMU, in threads of our own.

use marusa::measure::counters::{Counters, Interval};
use marusa::measure::events::{self, Event, EventSet, Meaning};
use marusa::os::perf::Mode;
use marusa::os::process::Process;
use std::sync::mpsc;
use std::time::Duration;

fn sum(interval: &Interval, slot: usize) -> u64 {
    interval.threads.iter().filter_map(|thread| thread.counts[slot]).map(|count| count.raw).sum()
}

/// Faults in `pages` pages of fresh memory.
fn touch(pages: usize) {
    let memory = vec![0_u8; pages * 4096 + 4096];
    let start = std::hint::black_box(memory.as_ptr());
    let mut memory = memory;
    assert_eq!(start, memory.as_ptr());
    for page in 0..pages {
        memory[page * 4096] = 1;
    }
    std::hint::black_box(&memory);
}

fn own() -> Process {
    Process::open(std::process::id() as i32).expect("myself")
}

fn slot_of(counters: &Counters, name: &str) -> usize {
    counters.slots().iter().position(|slot| slot.event.name == name).expect("a software event")
}

/// Kernels and sandboxes may refuse; then there is nothing to test.
fn open(process: &Process) -> Option<Counters<'_>> {
    match Counters::open(process, events::software(), &[Mode::User]) {
        Ok(counters) => Some(counters),
        Err(gap) => {
            println!("skipped: {gap}");
            None
        }
    }
}

#[test]
fn threads_of_every_age_are_counted_once() {
    let process = own();
    let (start, begin) = mpsc::channel::<()>();
    let old = std::thread::spawn(move || {
        begin.recv().expect("a signal to begin");
        touch(2000);
        let born = std::thread::spawn(|| touch(3000));
        born.join().expect("it ends");
    });
    let Some(mut counters) = open(&process) else { return };
    let faults = slot_of(&counters, "page-faults");
    start.send(()).expect("the thread waits");
    old.join().expect("it ends");
    let interval = counters.turn();
    let counted = sum(&interval, faults);
    // The tests that run next to fault too, but not millions of times.
    assert!((5000..1_000_000).contains(&counted), "{counted} page faults");
    assert!(!interval.is_last && interval.seconds > 0.0);
}

#[test]
fn a_thread_born_within_an_interval_has_its_own_counters_in_the_next() {
    let process = own();
    let Some(mut counters) = open(&process) else { return };
    let clock = slot_of(&counters, "task-clock");
    let (tell, tids) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let spinner = std::thread::spawn(move || {
        let own = std::fs::read_link("/proc/thread-self").expect("a thread");
        let tid: i32 = own.file_name().and_then(|name| name.to_str()?.parse().ok()).expect("a number");
        tell.send(tid).expect("somebody waits");
        while ended.try_recv().is_err() {
            std::hint::black_box(0);
        }
    });
    let tid = tids.recv().expect("the thread tells");
    let first = counters.turn();
    assert!(first.threads.iter().all(|thread| thread.tid != tid), "not there when the interval began");
    std::thread::sleep(Duration::from_millis(100));
    let second = counters.turn();
    let own = second.threads.iter().find(|thread| thread.tid == tid).expect("a row of its own");
    let nanoseconds = own.counts[clock].expect("counted").raw;
    assert!((1_000_000..=1_000_000_000_000).contains(&nanoseconds), "{nanoseconds} ns");
    end.send(()).expect("the thread listens");
    spinner.join().expect("it ends");
    let third = counters.turn();
    assert!(third.threads.iter().any(|thread| thread.tid == tid), "what it did before it ended counts");
    assert!(counters.turn().threads.iter().all(|thread| thread.tid != tid), "then it is gone");
}

#[test]
fn a_target_that_ends_leaves_a_last_table() {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "read x; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().expect("sh");
    let process = Process::open(child.id() as i32).expect("a process");
    let counters = open(&process);
    drop(child.stdin.take());
    child.wait().expect("it ends");
    let Some(mut counters) = counters else { return };
    let interval = counters.turn();
    assert!(interval.is_last && sum(&interval, slot_of(&counters, "task-clock")) > 100_000, "{interval:?}");
}

#[test]
fn events_that_are_not_there_are_one_gap() {
    const GROUPS: &[&[Event]] = &[
        &[Event { name: "task-clock", config: 1, meaning: Meaning::Other }],
        &[
            Event { name: "no-such-event", config: 0x7fff_ffff, meaning: Meaning::Cycles },
            Event { name: "nor-this", config: 2, meaning: Meaning::Other },
        ],
    ];
    let set = EventSet { groups: GROUPS.to_vec(), ..events::software() };
    let process = own();
    let Ok(counters) = Counters::open(&process, set.clone(), &[Mode::User]) else { return };
    assert_eq!(counters.slots().len(), 1);
    assert_eq!(counters.gaps.len(), 1);
    assert!(counters.gaps[0].what.contains("no-such-event, nor-this"), "{}", counters.gaps[0]);
    let none = EventSet { groups: GROUPS[1..].to_vec(), ..set };
    assert!(Counters::open(&process, none, &[Mode::User]).is_err());
}
