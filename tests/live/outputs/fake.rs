//! A hostile process that looks like a JVM (tests/native/answering_jvm.c), and how it is started: as another user, in namespaces
//! of its own.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Nobody: the user of the hostile processes.
pub const STRANGER: u32 = 65_534;

/// Long on purpose: a busy machine is not a finding.
const READY_MAX: Duration = Duration::from_secs(60);

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let directory = std::env::temp_dir().join(format!("marusa-fake-jvm-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let program = directory.join("answering_jvm");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native/answering_jvm.c");
        let built =
            Command::new("cc").arg("-O1").arg("-o").arg(&program).arg(source).status().expect("cc runs");
        assert!(built.success(), "answering_jvm.c");
        program
    })
}

/// A directory that others may look into, with a file that is called libjvm.so.
pub struct Library {
    pub directory: tempfile::TempDir,
    pub path: PathBuf,
}

/// `name`: a directory in between.
pub fn library(name: &str) -> Library {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::Builder::new().prefix("marusa-fake-").tempdir_in("/tmp").expect("a directory");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    std::fs::create_dir_all(directory.path().join(name)).expect("a directory");
    let path = directory.path().join(name).join("libjvm.so");
    std::fs::write(&path, [0_u8; 4096]).expect("a file");
    Library { directory, path }
}

pub struct Fake {
    child: Child,
    lines: Receiver<String>,
    pub pid: i32,
}

/// `wrapper`: what starts it, with what is run before it in a shell; `words`: what it calls itself, and its arguments.
pub fn start(library: &Path, mode: &str, thread: &str, shell: Option<(&str, &str)>, words: &[&str]) -> Fake {
    let mut command = match shell {
        None => {
            let mut command = Command::new(program());
            if let Some((name, arguments)) = words.split_first() {
                command.arg0(name).args(arguments);
            }
            command
        }
        Some((wrapper, script)) => {
            let mut parts = wrapper.split(' ');
            let mut command = Command::new(parts.next().expect("a wrapper"));
            command
                .args(parts)
                .arg("sh")
                .arg("-c")
                .arg(format!("exec 8<{0}; {script}; exec /proc/self/fd/8", program().display()));
            command
        }
    };
    command.env("FAKE_LIBRARY", library).env("FAKE_MODE", mode).env("FAKE_THREAD", thread);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    // A killed JVM of the same pid may have left its socket, and the program's user may not be able to remove it.
    let _ = std::fs::remove_file(format!("/tmp/.java_pid{}", child.id()));
    child.stdin.as_ref().expect("a pipe").write_all(b"\n").expect("it waits");
    let output = child.stdout.take().expect("a pipe");
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    assert_eq!(lines.recv_timeout(READY_MAX).ok().as_deref(), Some("READY"));
    // setpriv and unshare without --fork become what they start.
    let pid = child.id() as i32;
    Fake { child, lines, pid }
}

impl Fake {
    /// All that it printed after it was ready; it is ended.
    pub fn said(mut self) -> Vec<String> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.lines.iter().collect()
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(format!("/tmp/.java_pid{}", self.pid));
    }
}
