//! Whatever a target looks like, each command ends within its time and its memory, names what it gave up, and ends soon after
//! a signal (`src/os/budget.rs`). The targets are processes that are made to be slow or large to read.

#[path = "../common/mod.rs"]
mod common;

mod limits;
mod signals;

use common::hostile::Hostile;
use common::*;
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Mappings of 8,192 runs of pages each: reading them takes a test build far longer than any deadline here.
const MANY_RUNS: [&str; 2] = ["runs", "150"];
/// Commands end within a second. A busy machine may take longer to let them; what they did before took minutes.
const SLACK: Duration = Duration::from_secs(30);

/// What a command printed, how long it took, and the most memory that it had.
struct Ran {
    output: Output,
    took: Duration,
    peak_bytes: u64,
}

fn run(arguments: &[&str]) -> Ran {
    let started = Instant::now();
    let peak_of_children = || {
        // SAFETY: an all-zero rusage is one to write to.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` outlives the call.
        unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) };
        usage.ru_maxrss as u64 * 1024
    };
    let output = marusa(arguments);
    Ran { output, took: started.elapsed(), peak_bytes: peak_of_children() }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}
