//! A C program that runs, ended when dropped, and the snapshot of it.

use super::glibcs::Glibc;
use marusa::base::Known;
use marusa::os::process::Process;
use marusa::snapshot::{Snapshot, Want, take};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Program {
    child: Child,
    pub pid: i32,
}

impl Program {
    /// Starts it and waits for its line "READY".
    pub fn of(mut command: Command) -> Program {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        output.read_line(&mut line).expect("text");
        let pid = child.id() as i32;
        let program = Program { child, pid };
        assert_eq!(line, "READY\n", "{command:?} did not get ready");
        program
    }

    pub fn start(libc: &Glibc, name: &str, arguments: &[&str]) -> Program {
        let mut command = libc.command(&libc.program(name), &[]);
        command.args(arguments);
        Program::of(command)
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the library reads of a process.
pub fn snapshot(pid: i32) -> Known<Snapshot> {
    take::take(&Process::open(pid).expect("a process that runs"), Want::default())
}

/// A name of a file that no other test uses, removed when dropped.
pub struct TemporaryFile(pub PathBuf);

impl TemporaryFile {
    pub fn new(what: &str) -> TemporaryFile {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{what}-{}-{number}", std::process::id());
        TemporaryFile(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
