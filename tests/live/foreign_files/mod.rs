//! What a process names may be a trap: a FIFO in place of a file, a link out of a container, a device, a library that is cut off
//! while it is read. Each command ends, reads nothing that the process could not read, and still shows the JVMs next to it.

mod cut;

use crate::common::*;
use serde_json::Value;
use std::ffi::CString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A command that waits for something that never comes is ended after this; then the test fails.
const ENDS_MAX: Duration = Duration::from_secs(120);
/// What a file says that must not be read.
const SECRET: &str = "JAVA_VERSION=\"99.secret\"\n";

/// A process that maps a file called libjvm.so, ended when dropped.
struct Fake {
    child: Child,
    pid: i32,
}

impl Fake {
    fn start(arguments: &[&str]) -> Option<Fake> {
        let mut child = Command::new(program()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        assert_eq!(line, "READY\n", "{arguments:?}: {:?}", child.try_wait());
        let pid = child.id() as i32;
        Some(Fake { child, pid })
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> Option<PathBuf> {
    native::compiled("fake_jvm", "fake_jvm", &["-static"], &[])
}

/// The directory of a made-up JDK, which every user may read.
fn jdk(top: &Path) -> PathBuf {
    let server = top.join("jdk/lib/server");
    fs::create_dir_all(&server).expect("directories");
    fs::write(server.join("libjvm.so"), vec![7; 2 << 20]).expect("a file");
    fs::set_permissions(top, fs::Permissions::from_mode(0o755)).expect("its mode");
    top.join("jdk")
}

fn library(jdk: &Path) -> String {
    jdk.join("lib/server/libjvm.so").display().to_string()
}

fn fifo(path: &Path) {
    let name = CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
    // SAFETY: the name is a NUL-terminated string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o644) }, 0);
}

struct Ended {
    status: ExitStatus,
    out: String,
    errors: String,
}

/// Runs a command to its end, which must come.
fn ends(mut command: Command) -> Ended {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let drain = |mut pipe: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            text(&bytes)
        })
    };
    let out = drain(Box::new(child.stdout.take().expect("a pipe")));
    let errors = drain(Box::new(child.stderr.take().expect("a pipe")));
    let started = Instant::now();
    let status = loop {
        match child.try_wait().expect("our child") {
            Some(status) => break status,
            None if started.elapsed() > ENDS_MAX => {
                let _ = child.kill();
                let _ = child.wait();
                panic!("{command:?} does not end");
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let ended = Ended { status, out: out.join().expect("read"), errors: errors.join().expect("read") };
    assert_eq!(ended.status.signal(), None, "{command:?} was ended: {}", ended.errors);
    ended
}

fn run(arguments: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.args(arguments);
    ends(command)
}

/// As `run`, without the right to follow /proc/PID/map_files, so that files are found by their paths.
fn run_by_path(arguments: &[&str]) -> Ended {
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set", "-sys_admin,-checkpoint_restore", env!("CARGO_BIN_EXE_marusa")])
        .args(arguments);
    ends(command)
}

fn listed(list: &Ended, pid: i32) -> Value {
    assert!(list.status.success(), "{}", list.errors);
    let list: Value = serde_json::from_str(&list.out).expect("JSON");
    let jvms = list["jvms"].as_array().expect("an array");
    jvms.iter().find(|jvm| jvm["pid"] == pid).unwrap_or_else(|| panic!("no {pid} in {list}")).clone()
}

/// Every command that reads JVMs, over the made-up one.
fn every_command_ends(pid: i32) {
    let pid = pid.to_string();
    let recording =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("foreign-{}.marusa", std::process::id()));
    let path = recording.to_str().expect("UTF-8");
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["map", &pid],
        &["map", &pid, "--json"],
        &["map", &pid, "--by", "page-size"],
        &["doctor", "--json"],
        &["doctor", &pid],
        &["record", "--all", "--every", "200ms", "--for", "1s", "-o", path],
    ] {
        let _ = fs::remove_file(&recording);
        run(arguments);
        if is_root() {
            let _ = fs::remove_file(&recording);
            run_by_path(arguments);
        }
    }
    let _ = fs::remove_file(&recording);
}

#[test]
fn a_fifo_called_release_holds_nothing_up() {
    let top = tempfile::tempdir().expect("a directory");
    let jdk = jdk(top.path());
    fifo(&jdk.join("release"));
    let Some(fake) = Fake::start(&[&library(&jdk)]) else { return };
    assert!(listed(&run(&["list", "--json"]), fake.pid)["version"].is_null());
    every_command_ends(fake.pid);
}

#[test]
fn a_fifo_where_the_library_was_holds_nothing_up() {
    let top = tempfile::tempdir().expect("a directory");
    let jdk = jdk(top.path());
    let Some(fake) = Fake::start(&[&library(&jdk)]) else { return };
    fs::remove_file(library(&jdk)).expect("removed");
    fifo(Path::new(&library(&jdk)));
    every_command_ends(fake.pid);
}

#[test]
fn a_device_called_release_is_not_read() {
    if !is_root() {
        return skip("only root makes device nodes");
    }
    let top = tempfile::tempdir().expect("a directory");
    let jdk = jdk(top.path());
    let name = CString::new(jdk.join("release").to_str().expect("UTF-8")).expect("no NUL");
    // SAFETY: the name is a NUL-terminated string that outlives the call; 5:1 is /dev/console, which waits for input.
    assert_eq!(unsafe { libc::mknod(name.as_ptr(), libc::S_IFCHR | 0o644, libc::makedev(5, 1)) }, 0);
    let Some(fake) = Fake::start(&[&library(&jdk)]) else { return };
    assert!(listed(&run(&["list", "--json"]), fake.pid)["version"].is_null());
    every_command_ends(fake.pid);
}

#[test]
fn a_mapped_device_called_libjvm_is_not_opened() {
    if !is_root() {
        return skip("only root makes device nodes");
    }
    let top = tempfile::tempdir().expect("a directory");
    let jdk = jdk(top.path());
    fs::remove_file(library(&jdk)).expect("removed");
    let name = CString::new(library(&jdk)).expect("no NUL");
    // SAFETY: the name is a NUL-terminated string that outlives the call; 1:5 is /dev/zero.
    assert_eq!(unsafe { libc::mknod(name.as_ptr(), libc::S_IFCHR | 0o644, libc::makedev(1, 5)) }, 0);
    let Some(fake) = Fake::start(&[&library(&jdk)]) else { return };
    every_command_ends(fake.pid);
}

#[test]
fn a_link_does_not_lead_out_of_a_chroot() {
    if !is_root() {
        return skip("only root can chroot");
    }
    let top = tempfile::tempdir().expect("a directory");
    let jail = top.path().join("jail");
    fs::create_dir(&jail).expect("a directory");
    let jdk = jdk(&jail);
    let secret = top.path().join("secret");
    fs::write(&secret, SECRET).expect("a file");
    let release = jdk.join("release");
    for target in [secret.display().to_string(), "../../secret".to_string()] {
        symlink(&target, &release).expect("a link");
        let Some(fake) = Fake::start(&["/jdk/lib/server/libjvm.so", jail.to_str().expect("UTF-8")]) else {
            return;
        };
        assert!(listed(&run(&["list", "--json"]), fake.pid)["version"].is_null(), "{target}");
        fs::remove_file(&release).expect("removed");
    }
    // A file of its own is read, also through links within its root.
    fs::write(jail.join("real"), "JAVA_VERSION=\"17.0.1\"\n").expect("a file");
    symlink("/jdk/../real", &release).expect("a link");
    let Some(fake) = Fake::start(&["/jdk/lib/server/libjvm.so", jail.to_str().expect("UTF-8")]) else {
        return;
    };
    assert_eq!(listed(&run(&["list", "--json"]), fake.pid)["version"], "17.0.1");
}

#[test]
fn a_file_that_only_root_may_read_is_not_read_for_another_user() {
    if !is_root() {
        return skip("only root can be another user");
    }
    let top = tempfile::tempdir().expect("a directory");
    let jdk = jdk(top.path());
    let release = jdk.join("release");
    fs::write(&release, SECRET).expect("a file");
    fs::set_permissions(&release, fs::Permissions::from_mode(0o600)).expect("its mode");
    let Some(fake) = Fake::start(&[&library(&jdk), "-", "65534"]) else { return };
    assert!(listed(&run(&["list", "--json"]), fake.pid)["version"].is_null());
    fs::set_permissions(&release, fs::Permissions::from_mode(0o644)).expect("its mode");
    assert_eq!(
        listed(&run(&["list", "--json"]), fake.pid)["version"],
        "99.secret",
        "what it may read is read"
    );
}
