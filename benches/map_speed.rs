//! How long a reading takes, as ratios against the peers in the same run: `jcmd PID System.map` and `pmap -X PID`; and how
//! it grows with the heap, the mappings, the threads and the classes. `cargo bench --bench map_speed`.
//!
//! The contenders take turns on the same JVM, so that a machine that gets slower or faster in the meantime hits all alike.

#[path = "../tests/common/mod.rs"]
mod common;

use common::work::{free_mib, median, time};
use common::{Jvm, java};
use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;

fn main() {
    let Some(java) = java("21") else { return };
    // `cargo bench --bench map_speed -- peers`, or `blocks`: no more than that.
    let is_asked = |part: &str| std::env::args().any(|argument| argument == part);
    if is_asked("blocks") {
        return with_blocks(&java);
    }
    let free_mib = free_mib();
    let heap_mib = if free_mib > 6 << 10 { 4096 } else { 1024 };
    against_peers(&java, "JDK 21 of the tests", "jcmd System.map, its own, jlinked", heap_mib);
    for (release, java) in whole_jdks() {
        against_peers(&java, &format!("whole JDK {release}"), "jcmd System.map, its own", heap_mib);
    }
    if is_asked("peers") {
        return;
    }
    with_blocks(&java);
    println!("\ngrowth with the heap (all of it resident, 4 KiB pages), JDK 21, Parallel");
    for heap_mib in [200, 1024, 4096, 16384] {
        if free_mib < heap_mib + (2 << 10) {
            println!("{heap_mib:>6} MiB: not measured, {free_mib} MiB are free");
            continue;
        }
        let jvm = touched_heap(&java, heap_mib);
        println!("{heap_mib:>6} MiB: {:>8.1} ms", median(&map_times(jvm.pid)));
    }
    println!("\ngrowth with mappings, JDK 21, 64 MiB heap");
    for count in [200, 2_000, 20_000] {
        let directory = format!("dir={}", env!("CARGO_TARGET_TMPDIR"));
        let jvm =
            Jvm::start(&java, &["-Xmx64m"], &["marusa.Mappings", &format!("count={count}"), &directory]);
        println!("{count:>6} mapped pages: {:>8.1} ms", median(&map_times(jvm.pid)));
    }
    for (what, counts) in [("threads", [20, 500, 5_000]), ("classes", [2_000, 20_000, 70_000])] {
        println!("\ngrowth with {what}, JDK 21, 512 MiB heap");
        for count in counts {
            let option = format!("{what}={count}");
            let jvm = Jvm::start(&java, &["-Xmx512m", "-Xss256k"], &["marusa.Load", &option, "quiet=1"]);
            println!("{count:>6} {what}: {:>8.1} ms", median(&map_times(jvm.pid)));
        }
    }
}

/// Where distributions and vendors' packages put JDKs.
const PACKAGED: &str = "/usr/lib/jvm";
/// The first release whose JVM knows System.map.
const SYSTEM_MAP_SINCE: u32 = 21;

/// The whole JDKs of this machine whose JVM knows System.map: release and `java`.
fn whole_jdks() -> Vec<(String, PathBuf)> {
    let homes = std::fs::read_dir(PACKAGED).into_iter().flatten().flatten();
    let homes: BTreeSet<PathBuf> = homes.filter_map(|home| home.path().canonicalize().ok()).collect();
    let jdk = |home: PathBuf| {
        let text = std::fs::read_to_string(home.join("release")).ok()?;
        let release = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?.trim_matches('"');
        let major: u32 = release.split('.').next()?.parse().ok()?;
        let is_whole = home.join("bin/jcmd").exists();
        (is_whole && major >= SYSTEM_MAP_SINCE).then(|| (release.to_string(), home.join("bin/java")))
    };
    homes.into_iter().filter_map(jdk).collect()
}

/// Two `jcmd`s: that of a whole JDK on the PATH, and that which came with the JVM that is looked at, which people use; of the
/// tests' JVM it is part of a small runtime image (jlink) without an archive of its classes.
fn against_peers(java: &Path, target: &str, own_name: &'static str, heap_mib: u64) {
    let jvm = touched_heap(java, heap_mib);
    let pid = jvm.pid.to_string();
    let own = java.parent().map(|directory| directory.join("jcmd")).unwrap_or_default();
    let peers = [
        ("jcmd System.map, JDK on the PATH", PathBuf::from("jcmd"), vec![pid.as_str(), "System.map"], 0.1),
        (own_name, own, vec![pid.as_str(), "System.map"], 0.1),
        ("pmap -X", PathBuf::from("pmap"), vec!["-X", pid.as_str()], 0.5),
    ];
    let mut ours = Vec::new();
    let mut theirs = vec![Vec::new(); peers.len()];
    for _ in 0..ROUNDS {
        ours.push(time(Command::new(env!("CARGO_BIN_EXE_marusa")).args(["map", &pid, "--json"])));
        for ((_, program, arguments, _), times) in peers.iter().zip(&mut theirs) {
            times.push(time(Command::new(program).args(arguments)));
        }
    }
    let ours = median(&ours);
    println!(
        "{target}: JVM of {heap_mib} MiB resident in 4 KiB pages, Parallel; median of {ROUNDS} whole processes"
    );
    println!("{:<34} {ours:>8.1} ms", "marusa map --json");
    for ((name, _, _, limit), times) in peers.iter().zip(&theirs) {
        let theirs = median(times);
        println!("{name:<34} {theirs:>8.1} ms   marusa takes {:.3} of it (at most {limit})", ours / theirs);
    }
}

/// Blocks of malloc that are never freed, as a leak leaves them: each is read, as no list leads to the ones in use.
fn with_blocks(java: &Path) {
    println!("\ngrowth with blocks of malloc of 300 bytes, JDK 21; pmap -X in turns with it");
    for count in [50_000, 500_000, 5_000_000] {
        let option = format!("blocks={count}");
        let jvm = Jvm::start(java, &["-Xmx256m"], &["marusa.OffHeap", "buffers=10", &option, "size=300"]);
        let pid = jvm.pid.to_string();
        let (mut ours, mut theirs, mut copies) = (Vec::new(), Vec::new(), Vec::new());
        let arenas = arenas(jvm.pid);
        for _ in 0..ROUNDS {
            ours.push(time(Command::new(env!("CARGO_BIN_EXE_marusa")).args(["map", &pid, "--json"])));
            theirs.push(time(Command::new("pmap").args(["-X", &pid])));
            copies.push(copied_once(jvm.pid, &arenas));
        }
        let (ours, theirs, copy) = (median(&ours), median(&theirs), median(&copies));
        let mib = arenas.iter().map(|arena| arena.end - arena.start).sum::<u64>() >> 20;
        println!(
            "{count:>8} blocks: {ours:>8.1} ms, {:.1} times pmap -X ({theirs:.1} ms); only copying {mib} MiB of arenas: {copy:.1} ms",
            ours / theirs
        );
    }
}

/// What glibc's arenas have of the address space and may be read: the heap that `brk` makes, and mappings that start at a multiple of
/// HEAP_MAX_SIZE (malloc/arena.c). The small Java heap of this JVM lies below 4 GiB, where compressed pointers want it.
fn arenas(pid: i32) -> Vec<Range<u64>> {
    const HEAP_MAX_BYTES: u64 = 64 << 20;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("a JVM of our own");
    let arena = |line: &str| {
        let (addresses, rest) = line.split_once(' ')?;
        let (start, end) = addresses.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (number(start)?, number(end)?);
        let is_arena = line.ends_with("[heap]")
            || rest.ends_with(" 0 ") && start % HEAP_MAX_BYTES == 0 && start >> 32 > 0;
        (rest.starts_with("rw-p") && is_arena).then_some(start..end)
    };
    maps.lines().filter_map(arena).collect()
}

/// The least that reading every header costs: two threads copy the arenas once, and nobody looks at the bytes.
fn copied_once(pid: i32, arenas: &[Range<u64>]) -> Duration {
    const PIECE_BYTES: u64 = 1 << 20;
    let pieces: Vec<Range<u64>> = arenas
        .iter()
        .flat_map(|arena| {
            arena.clone().step_by(PIECE_BYTES as usize).map(|at| at..arena.end.min(at + PIECE_BYTES))
        })
        .collect();
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).expect("a JVM of our own");
    let start = Instant::now();
    std::thread::scope(|scope| {
        for half in pieces.chunks(pieces.len().div_ceil(2).max(1)) {
            let memory = &memory;
            scope.spawn(move || {
                let mut bytes = vec![0; PIECE_BYTES as usize];
                for piece in half {
                    let bytes = &mut bytes[..(piece.end - piece.start) as usize];
                    memory.read_exact_at(bytes, piece.start).expect("an arena");
                }
            });
        }
    });
    start.elapsed()
}

/// A JVM whose heap is all in memory, on 4 KiB pages.
fn touched_heap(java: &Path, heap_mib: u64) -> Jvm {
    let (min, max) = (format!("-Xms{heap_mib}m"), format!("-Xmx{heap_mib}m"));
    let options = ["-XX:+UseParallelGC", "-XX:+AlwaysPreTouch", "-XX:-UseTransparentHugePages", &min, &max];
    Jvm::start(java, &options, &["marusa.Load", "heap=30m", "threads=20", "classes=500", "quiet=1"])
}

fn map_times(pid: i32) -> Vec<Duration> {
    let pid = pid.to_string();
    (0..ROUNDS)
        .map(|_| time(Command::new(env!("CARGO_BIN_EXE_marusa")).args(["map", &pid, "--json"])))
        .collect()
}
