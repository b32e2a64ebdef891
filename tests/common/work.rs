//! How much a program did, what CPU time and how long it took: for benches that compare the two.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What `java/marusa/CompileAgain.java` and its like count in a file.
pub fn rounds(file: &Path) -> f64 {
    let bytes = std::fs::read(file).expect("the program counts its rounds");
    u64::from_ne_bytes(bytes[..8].try_into().expect("8 bytes")) as f64
}

/// CPU time of a process; 0 is this one.
pub fn cpu_seconds(pid: i32) -> f64 {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both places to write to outlive the calls.
    let failed =
        unsafe { libc::clock_getcpuclockid(pid, &mut clock) | libc::clock_gettime(clock, &mut time) };
    assert_eq!(failed, 0, "the clock of {pid}");
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Wall time of a whole process.
pub fn time(command: &mut Command) -> Duration {
    let started = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?}");
    started.elapsed()
}

/// In milliseconds.
pub fn median(times: &[Duration]) -> f64 {
    let mut times = times.to_vec();
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// What programs may still take of the machine's memory.
pub fn free_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}
