//! Whatever a target looks like, each command ends within its time and its memory, names what it gave up, and ends soon after
//! a signal (`crates/marusa-account/src/os/budget.rs`). The targets are processes that are made to be slow or large to read.

mod limits;
mod signals;

use crate::common::hostile::Hostile;
use crate::common::*;
use serde_json::Value;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Output, Stdio};
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

#[allow(clippy::zombie_processes, reason = "wait4 waits for it, and says what it used")]
fn run(arguments: &[&str]) -> Ran {
    let started = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("marusa runs");
    let (mut out, mut said) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        said.read_to_end(&mut bytes).map(|_| bytes)
    });
    let mut stdout = Vec::new();
    out.read_to_end(&mut stdout).expect("a pipe");
    let stderr = reading.join().expect("no panic").expect("a pipe");
    let mut status = 0;
    // SAFETY: an all-zero rusage is one to write to.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pid is that of a child that nobody has waited for, and both places outlive the call.
    unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    let output = Output { status: ExitStatus::from_raw(status), stdout, stderr };
    Ran { output, took: started.elapsed(), peak_bytes: usage.ru_maxrss as u64 * 1024 }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}
