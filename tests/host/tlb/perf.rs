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
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SECONDS: u64 = 3;
/// Where the machine does other work, a switch may come late for one of both. What is lost or counted twice is so each time.
const TRIES: usize = 3;
/// perf gives up where a thread ends between its list and its counter (6.1: "No such process"), so it is started anew.
const STARTS_MAX: usize = 20;
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Event -> (count, scaled already by perf; the share of the time that it ran, in percent).
type Theirs = BTreeMap<String, (f64, f64)>;

/// `perf stat` on a process, waiting to be switched on.
struct Perf {
    child: Child,
    tell: File,
    answers: File,
    directory: PathBuf,
}

impl Perf {
    /// `None`: no perf here, or none that can be switched.
    fn start(pid: i32, events: &str) -> Option<Perf> {
        // Ubuntu's perf is a script that finds none for a foreign kernel.
        let tried = Command::new("perf").args(["stat", "-e", "task-clock", "true"]).output();
        if !tried.is_ok_and(|output| output.status.success()) {
            return None;
        }
        for _ in 0..STARTS_MAX {
            let mut perf = Perf::spawn(pid, events)?;
            match perf.say("ping") {
                Ok(()) => return Some(perf),
                Err(why) => assert!(why.contains("No such process"), "{why}"),
            }
        }
        panic!("perf met a thread that had ended, {STARTS_MAX} times");
    }

    fn spawn(pid: i32, events: &str) -> Option<Perf> {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("perf-{pid}"));
        std::fs::create_dir_all(&directory).expect("a directory");
        let (tell, answers) = (directory.join("tell"), directory.join("answers"));
        for path in [&tell, &answers] {
            let _ = std::fs::remove_file(path);
            let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
            assert!(made.success());
        }
        let control = format!("--control=fifo:{},{}", tell.display(), answers.display());
        let output = File::create(directory.join("counts")).expect("a file");
        let mut command = Command::new("perf");
        command.args(["stat", "-x,", "-D", "-1", &control, "-e", events, "-p", &pid.to_string()]);
        let child = command.stdout(Stdio::null()).stderr(output).stdin(Stdio::null()).spawn().ok()?;
        // Read and write, so that neither opening waits for the other side.
        let open = |path, flags| {
            File::options().read(true).write(true).custom_flags(flags).open(path).expect("a pipe")
        };
        Some(Perf { child, tell: open(tell, 0), answers: open(answers, libc::O_NONBLOCK), directory })
    }

    /// Fails where perf ended in the meantime, with its output, or does not answer.
    fn say(&mut self, word: &str) -> Result<(), String> {
        writeln!(self.tell, "{word}").expect("a pipe");
        let started = Instant::now();
        // Some versions send the zero byte of their string, too, so a line begins with the one of the last answer.
        let mut answer = Vec::new();
        while !answer.ends_with(b"\n") {
            let mut byte = [0];
            match self.answers.read(&mut byte) {
                Ok(_) => answer.extend(byte),
                Err(why) if why.kind() != ErrorKind::WouldBlock => return Err(why.to_string()),
                Err(_) if self.child.try_wait().expect("a child").is_some() => return Err(self.output()),
                Err(_) if started.elapsed() > ANSWER_MAX => return Err(format!("no answer to {word}")),
                Err(_) => std::thread::sleep(Duration::from_micros(200)),
            }
        }
        assert_eq!(String::from_utf8_lossy(&answer).trim_matches(['\0', '\n']), "ack");
        Ok(())
    }

    fn output(&self) -> String {
        std::fs::read_to_string(self.directory.join("counts")).expect("perf's output")
    }

    fn end(mut self) -> Theirs {
        signal(self.child.id() as i32, libc::SIGINT);
        self.child.wait().expect("perf ends");
        let text = self.output();
        let _ = std::fs::remove_dir_all(&self.directory);
        let counts = text.lines().filter_map(|line| {
            let columns: Vec<&str> = line.split(',').collect();
            let count = columns.first()?.parse().ok()?;
            Some((columns.get(2)?.to_string(), (count, columns.get(4)?.parse().ok()?)))
        });
        counts.collect()
    }
}

/// What both counted over the same seconds, and the share of these in which one did not.
struct Both {
    interval: Interval,
    names: Vec<String>,
    theirs: Theirs,
    apart: f64,
}

/// `None` where there is no perf.
fn both(pid: i32, set: EventSet, modes: &[Mode], events: &str) -> Option<Both> {
    let Some(mut perf) = Perf::start(pid, events) else {
        println!("skipped: no perf that works: apt-get install linux-perf");
        return None;
    };
    let process = Process::open(pid).expect("the JVM");
    let started = Instant::now();
    perf.say("enable").expect("perf listens");
    let mut counters = Counters::open(&process, set, modes).expect("root may count");
    let names = counters.slots().iter().map(|slot| slot.event.name.to_string()).collect();
    let start_lag = started.elapsed();
    std::thread::sleep(Duration::from_secs(SECONDS));
    let ended = Instant::now();
    perf.say("disable").expect("perf listens");
    let interval = counters.turn();
    let apart = apart([start_lag, ended.elapsed()]);
    Some(Both { interval, names, theirs: perf.end(), apart })
}

fn scaled(interval: &Interval, slot: usize) -> f64 {
    let mut sum = marusa::measure::interval::Count::default();
    interval.threads.iter().filter_map(|thread| thread.counts[slot]).for_each(|count| sum += count);
    sum.scaled().expect("it ran")
}

/// One event: its name, our count and that of perf.
type Pair = (String, f64, f64);

/// Within 2 %, for small counts within a few, and within what may have happened while only one of both counted: `apart`, as a
/// share of the time.
fn is_close((name, ours, theirs): &Pair, apart: f64) -> bool {
    let percent = (ours - theirs) / theirs.max(1.0) * 100.0;
    println!("{name}: {ours:.0} ours, {theirs:.0} perf ({percent:+.2} %), apart for {:.2} %", apart * 100.0);
    (ours - theirs).abs() <= (theirs * (0.02 + apart)).max(5.0)
}

/// The share of the time in which only one of both counted, at most: from the one's start to the other's, and so at the end.
fn apart(lags: [Duration; 2]) -> f64 {
    lags.iter().map(Duration::as_secs_f64).sum::<f64>() / SECONDS as f64
}

/// Takes counts until they are close. `None`: there is no perf.
fn assert_close(mut count: impl FnMut() -> Option<(Vec<Pair>, f64)>) {
    let mut last = Vec::new();
    for _ in 0..TRIES {
        let Some((pairs, apart)) = count() else { return };
        let far: Vec<Pair> = pairs.into_iter().filter(|pair| !is_close(pair, apart)).collect();
        if far.is_empty() {
            return;
        }
        last = far;
    }
    panic!("not what perf counts, {TRIES} times: {last:?}");
}

fn against_perf(program: &[&str]) {
    if !super::may_count() {
        return;
    }
    let Some(java) = java("21") else { return };
    let jvm = Jvm::start(&java, &["-Xmx96m", "-XX:+UseSerialGC"], program);
    // The compilers have done the most of their work.
    std::thread::sleep(Duration::from_secs(3));
    let events = "task-clock,page-faults,context-switches,cpu-migrations";
    assert_close(|| {
        let found = both(jvm.pid, events::software(), &[Mode::All], events)?;
        let pair = |(slot, name): (usize, &String)| {
            // perf gives the time in milliseconds.
            let unit = if name == "task-clock" { 1e6 } else { 1.0 };
            (name.clone(), scaled(&found.interval, slot) / unit, found.theirs[name].0)
        };
        Some((found.names.iter().enumerate().map(pair).collect(), found.apart))
    });
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
    if !super::may_count() {
        return;
    }
    let Some(java) = java("21") else { return };
    let program = ["marusa.Storm", "heap=16m", "workers=1", "rate=1000", "quiet=1"];
    let jvm = Jvm::start(&java, &["-Xmx96m", "-XX:+UseSerialGC"], &program);
    std::thread::sleep(Duration::from_secs(3));
    assert_close(|| turns(jvm.pid));
}

fn turns(pid: i32) -> Option<(Vec<Pair>, f64)> {
    let Some(mut perf) = Perf::start(pid, "task-clock,page-faults") else {
        println!("skipped: no perf that works: apt-get install linux-perf");
        return None;
    };
    let process = Process::open(pid).expect("the JVM");
    let started = Instant::now();
    perf.say("enable").expect("perf listens");
    let mut counters = Counters::open(&process, events::software(), &[Mode::All]).expect("root may count");
    let start_lag = started.elapsed();
    let until = Instant::now() + Duration::from_secs(SECONDS);
    let (mut time, mut faults, mut turns) = (0.0, 0.0, 0);
    let slot = |counters: &Counters, name| {
        counters.slots().iter().position(|slot| slot.event.name == name).expect("there")
    };
    let (clock, fault) = (slot(&counters, "task-clock"), slot(&counters, "page-faults"));
    let mut ended = Instant::now();
    while ended < until {
        std::thread::sleep(Duration::from_millis(200));
        ended = Instant::now();
        let interval = counters.turn();
        time += scaled(&interval, clock) / 1e6;
        faults += scaled(&interval, fault);
        turns += 1;
    }
    perf.say("disable").expect("perf listens");
    let apart = apart([start_lag, ended.elapsed()]);
    let theirs = perf.end();
    println!("{turns} turns");
    let pair = |name: &str, ours| (name.to_string(), ours, theirs[name].0);
    Some((vec![pair("task-clock", time), pair("page-faults", faults)], apart))
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
        assert_close(|| {
            let found = both(jvm.pid, only.clone(), &[Mode::User], &wanted)?;
            let pairs = found.names.iter().enumerate().filter_map(|(slot, name)| {
                let (theirs, ran) = found.theirs.get(&events[slot])?;
                println!("{name}: perf ran {ran} %");
                // What hardly happens is not the same in two samples.
                let is_busy = *theirs > 100_000.0 && *ran > 99.0;
                is_busy.then(|| (name.clone(), scaled(&found.interval, slot), *theirs))
            });
            Some((pairs.collect(), found.apart))
        });
    }
}
