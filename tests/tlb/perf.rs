//! Our counts against those of `perf stat -p` over the same interval. perf is started first and then switched on and off
//! through a pipe, so that both count for the same time to some milliseconds.

use crate::common::*;
use marusa::measure::counters::{Counters, Interval};
use marusa::measure::events::{self, EventSet};
use marusa::os::cpu;
use marusa::os::perf::Mode;
use marusa::os::process::Process;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SECONDS: u64 = 5;

/// Event -> (count, scaled already by perf; the share of the time that it ran, in percent).
type Theirs = BTreeMap<String, (f64, f64)>;

/// `perf stat` on a process, waiting to be switched on.
struct Perf {
    child: Child,
    tell: File,
    told: File,
    folder: PathBuf,
}

impl Perf {
    /// `None`: no perf here, or none that can be switched.
    fn start(pid: i32, events: &str) -> Option<Perf> {
        // Ubuntu's perf is a script that finds none for a foreign kernel.
        let tried = Command::new("perf").args(["stat", "-e", "task-clock", "true"]).output();
        if !tried.is_ok_and(|output| output.status.success()) {
            return None;
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("perf-{pid}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (tell, told) = (folder.join("tell"), folder.join("told"));
        for path in [&tell, &told] {
            let _ = std::fs::remove_file(path);
            let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
            assert!(made.success());
        }
        let control = format!("--control=fifo:{},{}", tell.display(), told.display());
        let output = File::create(folder.join("counts")).expect("a file");
        let mut command = Command::new("perf");
        command.args(["stat", "-x,", "-D", "-1", &control, "-e", events, "-p", &pid.to_string()]);
        let child = command.stdout(Stdio::null()).stderr(output).stdin(Stdio::null()).spawn().ok()?;
        // Read and write, so that neither opening waits for the other side.
        let open = |path| File::options().read(true).write(true).open(path).expect("a pipe");
        Some(Perf { child, tell: open(tell), told: open(told), folder })
    }

    fn say(&mut self, word: &str) {
        writeln!(self.tell, "{word}").expect("perf listens");
        // Some versions send the zero byte of their string, too, so a line begins with the one of the last answer.
        let mut answer = Vec::new();
        while !answer.ends_with(b"\n") {
            let mut byte = [0];
            self.told.read_exact(&mut byte).expect("perf answers");
            answer.extend(byte);
        }
        assert_eq!(String::from_utf8_lossy(&answer).trim_matches(['\0', '\n']), "ack");
    }

    fn end(mut self) -> Theirs {
        signal(self.child.id() as i32, libc::SIGINT);
        self.child.wait().expect("perf ends");
        let text = std::fs::read_to_string(self.folder.join("counts")).expect("perf's counts");
        let _ = std::fs::remove_dir_all(&self.folder);
        let counts = text.lines().filter_map(|line| {
            let columns: Vec<&str> = line.split(',').collect();
            let count = columns.first()?.parse().ok()?;
            Some((columns.get(2)?.to_string(), (count, columns.get(4)?.parse().ok()?)))
        });
        counts.collect()
    }
}

/// Both over the same seconds. `None` where there is no perf.
fn both(pid: i32, set: EventSet, modes: &[Mode], events: &str) -> Option<(Interval, Vec<String>, Theirs)> {
    let Some(mut perf) = Perf::start(pid, events) else {
        println!("skipped: no perf that works: apt-get install linux-perf");
        return None;
    };
    perf.say("ping");
    let process = Process::open(pid).expect("the JVM");
    perf.say("enable");
    let mut counters = Counters::open(&process, set, modes).expect("root may count");
    let names = counters.slots().iter().map(|slot| slot.event.name.to_string()).collect();
    std::thread::sleep(Duration::from_secs(SECONDS));
    perf.say("disable");
    let interval = counters.turn();
    Some((interval, names, perf.end()))
}

fn scaled(interval: &Interval, slot: usize) -> f64 {
    let mut sum = marusa::measure::interval::Count::default();
    interval.threads.iter().filter_map(|thread| thread.counts[slot]).for_each(|count| sum += count);
    sum.scaled().expect("it ran")
}

/// Within 2 %, and for small counts within a few: both see the same process, but not to the same microsecond.
fn assert_close(name: &str, ours: f64, theirs: f64) {
    println!(
        "{name}: {ours:.0} ours, {theirs:.0} perf ({:+.2} %)",
        (ours - theirs) / theirs.max(1.0) * 100.0
    );
    let room = (theirs * 0.02).max(5.0);
    assert!((ours - theirs).abs() <= room, "{name}: {ours} and {theirs}");
}

fn against_perf(program: &[&str]) {
    if !crate::may_count() {
        return;
    }
    let Some(java) = java("21") else { return };
    let jvm = Jvm::start(&java, &["-Xmx96m", "-XX:+UseSerialGC"], program);
    // The compilers have done the most of their work.
    std::thread::sleep(Duration::from_secs(3));
    let events = "task-clock,page-faults,context-switches,cpu-migrations";
    let Some((interval, names, theirs)) = both(jvm.pid, events::software(), &[Mode::All], events) else {
        return;
    };
    for (slot, name) in names.iter().enumerate() {
        // perf gives the time in milliseconds.
        let unit = if name == "task-clock" { 1e6 } else { 1.0 };
        assert_close(name, scaled(&interval, slot) / unit, theirs[name].0);
    }
}

#[test]
fn software_events_of_a_busy_jvm_are_those_of_perf() {
    against_perf(&["marusa.Storm", "heap=32m", "workers=2"]);
}

/// perf lists the threads once, as we do within one interval: what is born then counts with who started it.
#[test]
fn thousands_of_short_threads_are_counted_as_perf_counts_them() {
    against_perf(&["marusa.Storm", "heap=16m", "workers=1", "rate=1000", "quiet=1"]);
}

/// Many turns: each opens new sets for threads that come and go. Nothing is lost and nothing counts twice.
#[test]
fn turns_in_a_storm_of_threads_sum_to_what_perf_counts() {
    if !crate::may_count() {
        return;
    }
    let Some(java) = java("21") else { return };
    let program = ["marusa.Storm", "heap=16m", "workers=1", "rate=1000", "quiet=1"];
    let jvm = Jvm::start(&java, &["-Xmx96m", "-XX:+UseSerialGC"], &program);
    std::thread::sleep(Duration::from_secs(3));
    let Some(mut perf) = Perf::start(jvm.pid, "task-clock,page-faults") else {
        return println!("skipped: no perf that works: apt-get install linux-perf");
    };
    perf.say("ping");
    let process = Process::open(jvm.pid).expect("the JVM");
    perf.say("enable");
    let mut counters = Counters::open(&process, events::software(), &[Mode::All]).expect("root may count");
    let until = Instant::now() + Duration::from_secs(SECONDS);
    let (mut time, mut faults, mut turns) = (0.0, 0.0, 0);
    let slot = |counters: &Counters, name| {
        counters.slots().iter().position(|slot| slot.event.name == name).expect("there")
    };
    let (clock, fault) = (slot(&counters, "task-clock"), slot(&counters, "page-faults"));
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(200));
        let interval = counters.turn();
        time += scaled(&interval, clock) / 1e6;
        faults += scaled(&interval, fault);
        turns += 1;
    }
    perf.say("disable");
    let theirs = perf.end();
    println!("{turns} turns");
    assert_close("task-clock", time, theirs["task-clock"].0);
    assert_close("page-faults", faults, theirs["page-faults"].0);
}

/// The events that `marusa tlb` uses on this processor, where it has counters.
#[test]
fn hardware_events_are_those_of_perf() {
    let cpu = cpu::read();
    let set = match events::choose(&cpu) {
        Ok(set) => set,
        // Not `skip`: no machine of CI can be made to have counters.
        Err(gap) => return println!("skipped: {gap}"),
    };
    let Some(java) = java("21") else { return };
    let jvm =
        Jvm::start(&java, &["-Xmx512m", "-XX:+UseSerialGC"], &["marusa.Storm", "heap=256m", "workers=1"]);
    std::thread::sleep(Duration::from_secs(3));
    // One group at a time: with all of them perf and we would share the counters, and both would only estimate.
    let raw = |config: u64| format!("r{config:x}:u");
    for group in set.groups.iter().filter(|group| group.len() > 1) {
        let events: Vec<String> = group.iter().map(|event| raw(event.config)).collect();
        let only = EventSet { groups: vec![group], ..set.clone() };
        let wanted = format!("{{{}}}", events.join(","));
        let Some((interval, names, theirs)) = both(jvm.pid, only, &[Mode::User], &wanted) else { return };
        for (slot, name) in names.iter().enumerate() {
            let Some((theirs, ran)) = theirs.get(&events[slot]) else { continue };
            println!("{name}: perf ran {ran} %");
            let ours = scaled(&interval, slot);
            // What hardly happens is not the same in two looks.
            if *theirs > 100_000.0 && *ran > 99.0 {
                assert_close(name, ours, *theirs);
            }
        }
    }
}
