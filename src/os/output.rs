//! The standard output of a process where it goes to a regular file: what the process has said of itself there.

use super::process::Process;
use crate::base::limits::OUTPUT_BYTES_MAX;
use std::io::Read;

/// Its start. `None` for a terminal, a pipe, or a file that may not be read: opening those could do something.
pub fn start(process: &Process) -> Option<String> {
    let is_file = std::fs::metadata(process.path("fd/1")).is_ok_and(|facts| facts.is_file());
    let file = is_file.then(|| process.open_file("fd/1").ok()).flatten()?;
    let mut bytes = Vec::new();
    file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    process.is_same().then(|| String::from_utf8_lossy(&bytes).into_owned())
}
