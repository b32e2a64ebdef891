//! A pid that is used again by another process is never read by mistake.

use crate::common::*;
use marusa::os::process::Process;
use std::process::{Child, Command};

/// A process with the pid that `wanted` is, made by telling the kernel where to go on counting.
fn with_pid(wanted: u32) -> Option<Child> {
    for _ in 0..50 {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (wanted - 1).to_string()).ok()?;
        let mut child = Command::new("sleep").arg("30").spawn().ok()?;
        if child.id() == wanted {
            return Some(child);
        }
        // Somebody else started a process in between.
        let _ = child.kill();
        let _ = child.wait();
    }
    None
}

#[test]
fn another_process_with_the_same_pid_is_not_read() {
    let mut first = Command::new("sleep").arg("30").spawn().expect("sleep");
    let process = Process::open(first.id() as i32).expect("the first process");
    assert!(process.is_same() && process.mappings().is_ok());
    first.kill().expect("killed");
    first.wait().expect("waited for");
    let Some(mut second) = with_pid(first.id()) else {
        return skip("the pid could not be reused (needs root and /proc/sys/kernel/ns_last_pid)");
    };
    let gone = process.mappings();
    let same = process.is_same();
    second.kill().expect("killed");
    second.wait().expect("waited for");
    assert!(gone.is_err(), "the maps of another process were read");
    assert!(!same);
}
