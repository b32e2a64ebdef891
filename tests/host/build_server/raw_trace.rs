//! An oracle for `marusa stalls`: the kernel's own text of its trace events, from a tracefs instance of this test, written to a
//! file as it comes and added up afterwards. It shares nothing with Marusa: not the binary records, not the decoding.

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, read_dir, read_to_string, write};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const TRACEFS: &str = "/sys/kernel/tracing";
const NAME: &str = "marusa-test-scene-";
const EVENTS: [&str; 4] = [
    "compaction/mm_compaction_begin",
    "compaction/mm_compaction_end",
    "vmscan/mm_vmscan_direct_reclaim_begin",
    "vmscan/mm_vmscan_direct_reclaim_end",
];
const BUFFER_KIB: &str = "4096";
const PAUSE: Duration = Duration::from_millis(20);
/// Threads of the kernel, that compact and reclaim for others and make nobody wait.
const KERNEL: [&str; 3] = ["kcompactd", "kswapd", "khugepaged"];

pub struct RawTrace {
    instance: PathBuf,
    text: PathBuf,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<std::io::Result<()>>>,
}

/// Sections of one kind, by thread.
pub type Threads = BTreeMap<i32, Thread>;

#[derive(Default)]
pub struct Thread {
    pub name: String,
    /// 0: the kernel did not know.
    pub pid: i32,
    pub waits: Waits,
}

/// How often, how long in all, the longest.

#[derive(Clone, Copy, Default)]
pub struct Waits {
    pub count: u64,
    pub seconds: f64,
    pub worst: f64,
}

/// What the text says.
#[derive(Default)]
pub struct Sums {
    pub compaction: Threads,
    pub reclaim: Threads,
    /// Begun before, or ended after; not counted.
    pub unpaired: u64,
    /// The ring was full: the sums are too small.
    pub lost: u64,
}

pub fn is_possible() -> bool {
    EVENTS.iter().all(|event| Path::new(TRACEFS).join("events").join(event).join("enable").exists())
}

impl RawTrace {
    pub fn start() -> Result<RawTrace, String> {
        remove_stale();
        let name = format!("{NAME}{}", std::process::id());
        let instance = Path::new(TRACEFS).join("instances").join(name);
        std::fs::create_dir(&instance).map_err(|error| format!("{}: {error}", instance.display()))?;
        let text = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("scene-{}.trace", std::process::id()));
        let mut trace = RawTrace { instance, text, stop: Arc::default(), reader: None };
        trace.set("trace_clock", "mono")?;
        trace.set("buffer_size_kb", BUFFER_KIB)?;
        trace.set("options/record-tgid", "1")?;
        for event in EVENTS {
            trace.set(&format!("events/{event}/enable"), "1")?;
        }
        let from = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(trace.instance.join("trace_pipe"))
            .map_err(|error| format!("trace_pipe: {error}"))?;
        let into = File::create(&trace.text).map_err(|error| format!("{}: {error}", trace.text.display()))?;
        let stop = trace.stop.clone();
        trace.reader = Some(std::thread::spawn(move || copy(from, into, &stop)));
        Ok(trace)
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        write(self.instance.join(file), value).map_err(|error| format!("{file}: {error}"))
    }

    pub fn finish(mut self) -> Result<Sums, String> {
        self.set("tracing_on", "0")?;
        self.stop.store(true, Ordering::Relaxed);
        let read = self.reader.take().expect("a reader").join().expect("the reader ends");
        read.map_err(|error| format!("trace_pipe: {error}"))?;
        let text = File::open(&self.text).map_err(|error| format!("{}: {error}", self.text.display()))?;
        Ok(sums(BufReader::new(text)))
    }
}

impl Drop for RawTrace {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        if let Err(error) = std::fs::remove_dir(&self.instance) {
            eprintln!("{} is left: {error}", self.instance.display());
        }
        if std::env::var("MARUSA_KEEP_TRACE").is_err() {
            let _ = std::fs::remove_file(&self.text);
        }
    }
}

/// Until there is nothing left to read after `stop`.
fn copy(mut from: File, mut into: File, stop: &AtomicBool) -> std::io::Result<()> {
    let mut piece = vec![0; 1 << 16];
    loop {
        let is_last = stop.load(Ordering::Relaxed);
        loop {
            match from.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => into.write_all(&piece[..length])?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if is_last {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
}

/// What a test that was killed left behind.
fn remove_stale() {
    for entry in read_dir(Path::new(TRACEFS).join("instances")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_stale =
            name.strip_prefix(NAME).is_some_and(|pid| read_to_string(format!("/proc/{pid}/comm")).is_err());
        if is_stale {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// Pairs begin and end by thread. A line, as trace_pipe prints it:
/// `   GC Thread#0-4321    (   4310) [001] ...1.   812.345678: mm_compaction_begin: zone_start=0x100000 ... mode=async`.
pub fn sums(text: impl BufRead) -> Sums {
    let line_of = concat!(
        r"^\s*(.{1,16})-(\d+)\s+\(\s*([-\d]+)\)\s+\[\d+\]\s+\S+\s+(\d+\.\d+): ",
        r"mm_(compaction|vmscan_direct_reclaim)_(begin|end):"
    );
    let line_of = Regex::new(line_of).expect("a pattern");
    let lost_of = Regex::new(r"LOST (\d+) EVENTS").expect("a pattern");
    let mut all = Sums::default();
    let mut open: BTreeMap<(i32, bool), f64> = BTreeMap::new();
    for line in text.lines().map_while(Result::ok) {
        if let Some(lost) = lost_of.captures(&line) {
            all.lost += lost[1].parse::<u64>().unwrap_or(1);
        }
        let Some(found) = line_of.captures(&line) else { continue };
        let (tid, at) = (found[2].parse().unwrap_or(0), found[4].parse::<f64>().unwrap_or(0.0));
        let is_reclaim = &found[5] == "vmscan_direct_reclaim";
        if &found[6] == "begin" {
            all.unpaired += u64::from(open.insert((tid, is_reclaim), at).is_some());
            continue;
        }
        let Some(begun) = open.remove(&(tid, is_reclaim)) else {
            all.unpaired += 1;
            continue;
        };
        let threads = if is_reclaim { &mut all.reclaim } else { &mut all.compaction };
        let thread = threads.entry(tid).or_default();
        // The kernel forgets the names of threads that ended; any line that has it will do.
        if thread.name.is_empty() || thread.name == "<...>" {
            thread.name = found[1].to_string();
        }
        thread.pid = thread.pid.max(found[3].parse().unwrap_or(0));
        thread.waits.add(at - begun);
    }
    all.unpaired += open.len() as u64;
    all
}

impl Waits {
    fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.seconds += seconds;
        self.worst = self.worst.max(seconds);
    }

    fn join(&mut self, other: &Waits) {
        self.count += other.count;
        self.seconds += other.seconds;
        self.worst = self.worst.max(other.worst);
    }
}

/// What threads of programs waited.
pub fn of_programs(threads: &Threads) -> Waits {
    sum_where(threads, |thread| !is_of_kernel(&thread.name))
}

/// What the kernel's own threads did in the background.
pub fn of_kernel(threads: &Threads) -> Waits {
    sum_where(threads, |thread| is_of_kernel(&thread.name))
}

pub fn of_processes(threads: &Threads, pids: &BTreeSet<i32>) -> Waits {
    sum_where(threads, |thread| pids.contains(&thread.pid))
}

/// By kind of thread: "GC Thread#1" counts as "GC Thread".
pub fn by_name(threads: &Threads) -> BTreeMap<String, Waits> {
    let mut all: BTreeMap<String, Waits> = BTreeMap::new();
    for thread in threads.values() {
        let kind =
            thread.name.trim_end_matches(|letter: char| letter.is_ascii_digit() || "#-".contains(letter));
        all.entry(kind.to_string()).or_default().join(&thread.waits);
    }
    all
}

fn is_of_kernel(name: &str) -> bool {
    KERNEL.iter().any(|thread| name.starts_with(thread))
}

fn sum_where(threads: &Threads, wanted: impl Fn(&Thread) -> bool) -> Waits {
    let mut all = Waits::default();
    threads.values().filter(|thread| wanted(thread)).for_each(|thread| all.join(&thread.waits));
    all
}
