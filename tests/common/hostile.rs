//! Processes that look like JVMs and are made to be slow or large to read: tests/native/hostile_jvm.c, compiled.

use super::{root, skip};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
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
    let source = root().join("tests/native/hostile_jvm.c");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{}", std::process::id()));
    let (program, library) = (folder.join("hostile_jvm"), folder.join("libjvm.so"));
    if program.exists() {
        return Some((program, library));
    }
    std::fs::create_dir_all(&folder).expect("a folder");
    let cc = |options: &[&str], into: &Path| {
        let mut command = Command::new("cc");
        command.args(["-O1", "-Wall", "-Werror"]).args(options).arg("-o").arg(into).arg(&source).arg("-ldl");
        command.status()
    };
    let built = cc(&["-DLIBRARY", "-shared", "-fPIC"], &library);
    if built.is_err() {
        skip("no C compiler");
        return None;
    }
    assert!(built.is_ok_and(|status| status.success()), "cc compiles the library");
    assert!(cc(&[], &program).is_ok_and(|status| status.success()), "cc compiles the program");
    Some((program, library))
}
