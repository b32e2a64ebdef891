//! How fast malloc's heap is walked: C programs with heaps of small and of large chunks, half of them free, and a small
//! JVM. `cargo bench --bench malloc_walk [WORD]` runs the rows that have the word in their name.
//!
//! `MALLOC_PROGRAM=FILE cargo bench --bench malloc_walk PROGRAM ARGUMENT ...` walks another program that prints the same.
//!
//! Columns with a star: what two cores that do nothing else would reach, from the CPU time.
//!
//! Each row is checked against the program's own malloc_info(3), so a fast walk that is wrong is seen.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Jvm, java, root};
use marusa::alloc::{self, AllocView};
use marusa::base::blocks::NoWitness;
use marusa::os::process::Process;
use marusa::os::target::Target;
use marusa::snapshot::take;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;

/// Name, threads, chunks of each, bytes of a chunk, scattered, every which block is kept.
type Row = (&'static str, u64, u64, u64, bool, u64);

const ROWS: &[Row] = &[
    ("64 B, none free", 16, 1_000_000, 56, false, 0),
    ("64 B, half free in order", 16, 1_000_000, 56, false, 2),
    ("64 B, half free, scattered", 16, 100_000, 56, true, 2),
    ("200 B, half free in order", 16, 400_000, 200, false, 2),
    ("200 B, half free, scattered", 16, 100_000, 200, true, 2),
    ("2,000 B, half free in order", 16, 40_000, 2_000, false, 2),
    ("20,000 B, half free in order", 16, 5_000, 20_000, false, 2),
    ("64 B, one arena, half free", 0, 8_000_000, 56, false, 2),
    ("mixed, one arena, scattered", 0, 10_000, 0, true, 3),
];

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let program = compile();
    println!(
        "{:<30} {:>9} {:>11} {:>9} {:>7} {:>9} {:>9} {:>8} {:>7} {:>7}  against malloc_info",
        "", "heap MB", "chunks", "ms", "GB/s", "M/s", "finish ms", "CPU ms", "GB/s*", "M/s*"
    );
    for row in ROWS.iter().filter(|row| row.0.contains(&wanted)) {
        let (name, threads, chunks, bytes, scattered, keep) = row;
        let order = u8::from(*scattered);
        let numbers = [*threads, *chunks, *bytes, order.into(), *keep].map(|number| number.to_string());
        let (child, info) = start(Command::new(&program).args(&numbers));
        print(name, child.0.id() as i32, Some(&info));
    }
    if let Some(program) = std::env::var_os("MALLOC_PROGRAM") {
        let arguments = std::env::args().skip(2).filter(|argument| !argument.starts_with('-'));
        let (child, info) = start(Command::new(program).args(arguments));
        print("MALLOC_PROGRAM", child.0.id() as i32, Some(&info));
    }
    if "JVM".contains(&wanted)
        && let Some(java) = java("17")
    {
        let jvm = Jvm::start(&java, &["-Xmx64m"], &["marusa.Load", "quiet=1"]);
        print("small JVM", jvm.pid, None);
    }
}

/// CPU time of this process, all its threads. On a busy machine wall time tells how busy it was.
fn cpu_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec into `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn compile() -> PathBuf {
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("malloc_load");
    let source = root().join("tests/native/malloc_load.c");
    let status = Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(source).status();
    assert!(status.is_ok_and(|status| status.success()), "cc failed");
    program
}

/// Starts the program; what malloc_info printed before READY.
fn start(command: &mut Command) -> (Ended, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let text: Vec<String> = lines.map_while(Result::ok).take_while(|line| line != "READY").collect();
    (Ended(child), text.join("\n"))
}

fn print(name: &str, pid: i32, info: Option<&str>) {
    let process = Process::open(pid).expect("the process");
    let (mut walk, mut cpu) = (Vec::new(), Vec::new());
    let mut finish = Vec::new();
    let mut last = None;
    for _ in 0..ROUNDS {
        let timed = take::with_target(&process, |taking, memory, symbols| {
            let target = Target { view: &taking.os, memory, symbols };
            let (started, cpu_started) = (Instant::now(), cpu_time());
            let heap = alloc::read(&target, &[], &NoWitness)?;
            let walked = started.elapsed();
            let view = heap.finish();
            Ok((walked, started.elapsed() - walked, cpu_time() - cpu_started, view))
        });
        let (walked, finished, used, view) = timed.expect("a walk");
        walk.push(walked);
        cpu.push(used);
        finish.push(finished);
        last = Some(view);
    }
    let Some(view) = last else { return };
    let best = |times: &[Duration]| times.iter().min().map_or(0.0, Duration::as_secs_f64);
    let seconds = best(&walk) + best(&finish);
    let (bytes, chunks) = (heap_bytes(&view), chunk_count(&view));
    println!(
        "{name:<30} {:>9.1} {chunks:>11} {:>9.2} {:>7.2} {:>9.2} {:>9.2} {:>8.2} {:>7.2} {:>7.2}  {}",
        bytes as f64 / 1e6,
        seconds * 1e3,
        bytes as f64 / 1e9 / seconds,
        chunks as f64 / 1e6 / seconds,
        best(&finish) * 1e3,
        best(&cpu) * 1e3,
        bytes as f64 / 1e9 / (best(&cpu) / 2.0),
        chunks as f64 / 1e6 / (best(&cpu) / 2.0),
        info.map_or(String::new(), |info| compared(&view, info)),
    );
    for gap in &view.gaps {
        println!("    {gap}");
    }
}

fn heap_bytes(view: &AllocView) -> u64 {
    view.arenas.iter().flat_map(|arena| &arena.heaps).map(|heap| heap.in_arena.bytes()).sum()
}

fn chunk_count(view: &AllocView) -> u64 {
    let figures = view.arenas.iter().filter_map(|arena| arena.figures.as_ref().ok());
    figures
        .map(|figures| &figures.chunks)
        .flat_map(|f| [f.in_use, f.tcache, f.fast, f.unsorted, f.small, f.large, f.unlisted, f.top])
        .map(|count| count.chunks)
        .sum()
}

/// The last three totals of malloc_info are those of the whole process.
fn compared(view: &AllocView, info: &str) -> String {
    let (mut fast, mut rest) = ((0, 0), (0, 0));
    for figures in view.arenas.iter().filter_map(|arena| arena.figures.as_ref().ok()) {
        fast = (fast.0 + figures.chunks.fast.chunks, fast.1 + figures.chunks.fast.bytes);
        // Sizes in bins are summed with PREV_INUSE, which all of them have (malloc/malloc.c, `__malloc_info`).
        for count in [figures.chunks.unsorted, figures.chunks.small, figures.chunks.large] {
            rest = (rest.0 + count.chunks, rest.1 + count.bytes + count.chunks);
        }
        rest = (rest.0 + figures.chunks.top.chunks, rest.1 + figures.chunks.top.bytes);
    }
    let total = |kind: &str| {
        let line =
            info.lines().rev().find(|line| line.contains(&format!("<total type=\"{kind}\""))).unwrap_or("");
        let number = |key: &str| {
            let rest = line.split_once(&format!("{key}=\""))?.1;
            rest.split('"').next()?.parse::<u64>().ok()
        };
        (number("count").unwrap_or(0), number("size").unwrap_or(0))
    };
    let said = (total("fast"), total("rest"));
    if said == (fast, rest) {
        "equal".to_string()
    } else {
        format!("{:?} but it says {said:?}", (fast, rest))
    }
}
