//! The crowd: many processes of tests/native/crowd.c of each kind, all of a user that no account of the host has.

use crate::common::{is_long, root, skip};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const KINDS: [&str; 8] = ["fifo", "link", "truncate", "fork", "exec", "map", "thread", "flood"];
const UID: u32 = 54_321;

/// Running hostile processes, ended when dropped.
pub struct Crowd {
    members: Vec<(&'static str, Child)>,
    directory: PathBuf,
}

impl Crowd {
    /// All of them at work. `None`: there is no compiler.
    pub fn gather() -> Option<Crowd> {
        let directory = std::env::temp_dir().join(format!("marusa-crowd-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let program = compiled(&directory)?;
        let mut crowd = Crowd { members: Vec::new(), directory };
        for kind in KINDS {
            for number in 0..if is_long() { 25 } else { 3 } {
                let child = start(&program, kind, &crowd.directory.join(format!("{kind}-{number}")));
                crowd.members.push((kind, child));
            }
        }
        for (kind, child) in &mut crowd.members {
            let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            assert!(first.starts_with("READY"), "{kind} did not get ready: {first:?}");
        }
        Some(crowd)
    }

    pub fn one_of_each(&self) -> Vec<(&'static str, u32)> {
        let of = |kind: &&'static str| {
            let (kind, child) = self.members.iter().find(|(other, _)| other == kind).expect("each kind");
            (*kind, child.id())
        };
        KINDS.iter().map(of).collect()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for (_, child) in &mut self.members {
            let _ = child.kill();
            let _ = child.wait();
            let _ = std::fs::remove_file(format!("/tmp/.java_pid{}", child.id()));
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn start(program: &Path, kind: &str, directory: &Path) -> Child {
    std::fs::create_dir_all(directory).expect("a directory");
    chown(directory, Some(UID), Some(UID)).expect("root");
    let mut command = Command::new(program);
    command.args([kind, &directory.display().to_string(), &UID.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a process")
}

fn compiled(directory: &Path) -> Option<PathBuf> {
    let (source, program) = (root().join("tests/native/crowd.c"), directory.join("crowd"));
    let built = Command::new("cc").args(["-O2", "-pthread", "-o"]).arg(&program).arg(&source).status();
    match built {
        Ok(status) => assert!(status.success(), "{} does not compile", source.display()),
        Err(error) => {
            skip(&format!("no compiler: {error}"));
            return None;
        }
    }
    Some(program)
}
