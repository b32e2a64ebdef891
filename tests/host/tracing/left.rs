//! Nothing is left behind: after a normal end, a panic, Ctrl-C, and kill -9 at any moment. And nothing that is shared is touched.

use super::{directory, instances, tracing};
use crate::common::{is_root, signal, skip};
use marusa::act::tracing::{Tracing, Wanted};
use std::collections::BTreeMap;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set for the process that is killed.
const HOLDER: &str = "MARUSA_TRACES_UNTIL_KILLED";

/// Instances of a process.
fn instances_of(pid: u32) -> Vec<String> {
    instances().into_iter().filter(|name| name.starts_with(&format!("marusa-{pid}-"))).collect()
}

/// Small files of the top level that say how the host traces.
fn top_level() -> BTreeMap<&'static str, String> {
    let names = [
        "tracing_on",
        "current_tracer",
        "trace_clock",
        "buffer_size_kb",
        "buffer_percent",
        "trace_options",
        "set_event",
        "set_event_pid",
        "set_ftrace_pid",
        "set_ftrace_filter",
        "tracing_cpumask",
        "saved_cmdlines_size",
        "tracing_thresh",
        "dynamic_events",
        "events/enable",
        "events/kmem/filter",
        "events/kmem/mm_page_alloc/filter",
        "events/compaction/enable",
        "per_cpu/cpu0/buffer_size_kb",
    ];
    let text = |name: &str| std::fs::read_to_string(directory().join(name)).ok();
    names.into_iter().filter_map(|name| Some((name, text(name)?))).collect()
}

/// Not a test: what the tests below start and kill. It traces and stops again and again.
#[test]
fn traces_until_it_is_killed() {
    if std::env::var(HOLDER).is_err() {
        return;
    }
    for round in 0.. {
        let mut tracing = Tracing::start(&Wanted::default()).expect("a trace");
        for _ in 0..round % 4 {
            tracing.read().expect("events");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn holder() -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "tracing::left::traces_until_it_is_killed"]).env(HOLDER, "1");
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().expect("it starts")
}

fn gone_within(pid: u32, limit: Duration) -> Duration {
    let started = Instant::now();
    while !instances_of(pid).is_empty() {
        assert!(started.elapsed() < limit, "{:?} is left after {limit:?}", instances_of(pid));
        std::thread::sleep(Duration::from_millis(2));
    }
    started.elapsed()
}

#[test]
fn a_normal_end_and_a_panic_leave_nothing_and_touch_nothing_that_is_shared() {
    let Some(first) = tracing(&Wanted::default()) else { return };
    drop(first);
    let own = std::process::id();
    let before = top_level();
    assert!(before.len() > 15, "{:?}", before.keys());
    let mut tracing = Tracing::start(&Wanted::default()).expect("a trace");
    tracing.read().expect("events");
    let changed = || {
        let now = top_level();
        before.keys().filter(|name| now.get(*name) != before.get(*name)).copied().collect::<Vec<_>>()
    };
    assert_eq!(changed(), [""; 0], "while it traces");
    assert_eq!(instances_of(own).len(), 1);
    drop(tracing);
    assert!(instances_of(own).is_empty());
    let panicked = std::thread::spawn(|| {
        let _tracing = Tracing::start(&Wanted::default()).expect("a trace");
        panic!("as a reader of bytes might");
    });
    assert!(panicked.join().is_err());
    assert!(instances_of(own).is_empty());
    assert_eq!(changed(), [""; 0], "after it");
}

#[test]
fn a_removed_instance_is_a_gap() {
    let Some(mut tracing) = tracing(&Wanted::default()) else { return };
    std::fs::remove_dir(tracing.directory()).expect("nothing of it is held open");
    let gap = tracing.read().expect_err("it is gone");
    assert_eq!(gap.why, marusa::base::Why::Gone);
}

#[test]
fn kill_9_at_any_moment_leaves_nothing() {
    let Some(first) = tracing(&Wanted::default()) else { return };
    drop(first);
    let mut slowest = Duration::ZERO;
    for round in 0..20 {
        let mut child = holder();
        let started = Instant::now();
        while instances_of(child.id()).is_empty() && started.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(fastrand::u64(0..120_000)));
        // Half of them by a signal to end that the whole group gets, as from a terminal: the guardian must not. Not Ctrl-C's own,
        // which is ignored by what a shell starts in the background.
        let number = if round % 2 == 0 { libc::SIGKILL } else { libc::SIGTERM };
        signal(-(child.id() as i32), number);
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(number), "it traced until then: {status}");
        slowest = slowest.max(gone_within(child.id(), Duration::from_secs(2)));
    }
    println!("gone within {slowest:?}");
}

/// What a kill of a whole cgroup leaves is swept away by the next; what lives and what is others' stays.
#[test]
fn the_next_start_sweeps() {
    if !is_root() {
        return skip("only root may trace");
    }
    let Some(living) = tracing(&Wanted::default()) else { return };
    let mut dead = Command::new("true").spawn().expect("true");
    dead.wait().expect("it ends");
    let own = living.directory().file_name().expect("a name").to_string_lossy().into_owned();
    let namespace = own.rsplit('-').next().and_then(|rest| rest.split('.').next()).expect("a namespace");
    let stale = format!("marusa-{}-1-{namespace}.0", dead.id());
    let recycled = format!("marusa-{}-1-{namespace}.0", std::process::id());
    let others = format!("test-of-marusa-other-{}", std::process::id());
    let unlike = format!("marusa-{}", dead.id());
    for name in [&stale, &recycled, &others, &unlike] {
        std::fs::create_dir(directory().join("instances").join(name)).expect("an instance");
    }
    drop(Tracing::start(&Wanted::default()).expect("a trace"));
    let left = instances();
    for name in [&others, &unlike] {
        std::fs::remove_dir(directory().join("instances").join(name)).expect("it was kept");
    }
    assert!(!left.contains(&stale) && !left.contains(&recycled), "{left:?}");
    assert!(left.contains(&own), "{left:?}");
}

/// Without rights there is a gap that says what is missing.
#[test]
fn without_rights_there_is_a_gap() {
    if !is_root() {
        return skip("only root can give rights away");
    }
    let gap = std::thread::spawn(|| {
        // The system call changes this thread alone; glibc's function would change all of them.
        // SAFETY: a system call with three numbers.
        let changed = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
        assert_eq!(changed, 0);
        Tracing::start(&Wanted::default()).map(|_| ())
    });
    let gap = gap.join().expect("no panic").expect_err("nobody may not trace");
    assert_eq!(gap.why, marusa::base::Why::Denied, "{gap}");
    assert!(gap.hint.is_some_and(|hint| hint.contains("run marusa as root")));
}
