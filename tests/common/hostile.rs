//! Processes that look like JVMs and are made to be slow or large to read: tests/native/hostile_jvm.c, compiled.

use super::native;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// One such process, ended when dropped.
pub struct Hostile {
    child: Child,
    pub pid: i32,
}

impl Hostile {
    /// Starts one and waits until it is as it will stay. `None`: there is no compiler.
    pub fn start(how: &[&str]) -> Option<Hostile> {
        let (program, library) = compiled()?;
        let mut child = Command::new(program)
            .arg(library)
            .args(how)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was just compiled");
        let mut line = String::new();
        let _ = BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line);
        assert_eq!(line, "READY\n", "{how:?}");
        let pid = child.id() as i32;
        Some(Hostile { child, pid })
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program, and the libjvm.so that it loads.
fn compiled() -> Option<(PathBuf, PathBuf)> {
    let libraries = ["-ldl".to_string()];
    let library = ["-DLIBRARY", "-shared", "-fPIC"];
    Some((
        native::compiled("hostile_jvm", "hostile_jvm", &[], &libraries)?,
        native::compiled("hostile_jvm", "hostile/libjvm.so", &library, &libraries)?,
    ))
}
