//! A target that wants root to create, connect to or signal something for it.

use super::fake::{self, STRANGER, library, start};
use marusa::act::attach::{self, AttachError};
use marusa::act::signals::{self, Blocked};
use marusa::os::process::Process;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::time::Duration;

/// Another user, in user and mount namespaces of its own.
const NAMESPACES: &str =
    "setpriv --reuid 65534 --regid 65534 --clear-groups unshare --user --map-root-user --mount";
const OTHER_USER: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";

fn error_of(pid: i32) -> AttachError {
    let process = Process::open(pid).expect("it runs");
    attach::open(&process).map(|attached| attached.receipt).expect_err("it is refused")
}

/// A directory of root's, as /etc is one.
fn directory_of_root(mode: u32) -> tempfile::TempDir {
    let directory =
        tempfile::Builder::new().prefix("marusa-etc-").tempdir_in("/var/tmp").expect("a directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).expect("ours");
    directory
}

fn can_run_here() -> bool {
    if !crate::common::is_root() {
        crate::common::skip("other users' processes need root");
        return false;
    }
    true
}

#[test]
fn nothing_is_created_in_the_working_directory_nor_where_tmp_was_made_to_point() {
    if !can_run_here() {
        return;
    }
    let library = library("");
    let etc = directory_of_root(0o755);
    let at = etc.path().display();
    let scripts = [
        // Issue 16: a /tmp that cannot be written, and /etc as the working directory.
        format!("mount -t tmpfs -o ro none /tmp; cd {at}"),
        // A directory of root's in the place of /tmp.
        format!("mount --bind {at} /tmp"),
        // The same as a link in a tree that it makes its root's.
        format!("mount -t tmpfs none /mnt && cd {at}; mount --bind {at} /tmp"),
    ];
    for script in scripts {
        // The library's directory is in /tmp: what it covers stays open as file 9.
        let script =
            format!("exec 9<{}; {script}; export FAKE_LIBRARY=/proc/self/fd/9", library.path.display());
        let fake = start(&library.path, "", "main", Some((NAMESPACES, &script)), &[]);
        let error = error_of(fake.pid);
        assert!(
            matches!(
                error,
                AttachError::NoRights { .. } | AttachError::Unsafe { .. } | AttachError::Io { .. }
            ),
            "{script}: {error}"
        );
        assert_eq!(fs::read_dir(etc.path()).expect("ours").count(), 0, "{script}");
        assert_eq!(fake.said(), [] as [&str; 0], "no signal, so no file was ever there: {script}");
    }
}

#[test]
fn a_socket_that_is_not_the_targets_own_gets_no_word_and_the_target_no_signal() {
    if !can_run_here() {
        return;
    }
    let library = library("");
    let fake = start(&library.path, "", "main", Some((OTHER_USER, "true")), &[]);
    let socket = format!("/tmp/.java_pid{}", fake.pid);
    let elsewhere = library.directory.path().join("elsewhere");
    let listener = std::os::unix::net::UnixListener::bind(&elsewhere).expect("a socket");
    listener.set_nonblocking(true).expect("ours");

    symlink(&elsewhere, &socket).expect("a link");
    let error = error_of(fake.pid).to_string();
    assert!(error.contains("symbolic link") && error.contains(&socket), "{error}");

    fs::remove_file(&socket).expect("ours");
    fs::write(&socket, "").expect("a file");
    assert!(error_of(fake.pid).to_string().contains("not a socket"));

    fs::remove_file(&socket).expect("ours");
    fs::rename(&elsewhere, &socket).expect("ours");
    let error = error_of(fake.pid).to_string();
    assert!(error.contains("belongs to user 0"), "{error}");

    // Its owner now, but somebody else listens.
    chown(Path::new(&socket), Some(STRANGER), Some(STRANGER)).expect("root");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).expect("root");
    assert!(error_of(fake.pid).to_string().contains("others may use it"));
    assert!(listener.accept().is_err(), "nobody connected up to here");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).expect("root");
    let error = error_of(fake.pid);
    assert!(
        matches!(error, AttachError::Stranger { other, .. } if other == std::process::id() as i32),
        "{error}"
    );
    assert_eq!(fake.said(), [] as [&str; 0], "no signal");
}

#[test]
fn a_flood_of_an_answer_ends_at_its_bound() {
    if !can_run_here() {
        return;
    }
    let library = library("");
    let mut fake = start(&library.path, "flood", "main", Some((OTHER_USER, "true")), &[]);
    let error = error_of(fake.pid);
    assert!(matches!(error, AttachError::OverLimit { .. }), "{error}");
    assert!(fake.is_alive());
}

#[test]
fn a_process_that_would_die_of_the_signal_never_gets_it() {
    if !can_run_here() {
        return;
    }
    let library = library("");
    let mut fake = start(&library.path, "deaf", "main", Some((OTHER_USER, "true")), &[]);
    let error = error_of(fake.pid);
    assert!(matches!(error, AttachError::SignalNotCaught { .. }), "{error}");
    assert!(fake.is_alive());
}

#[test]
fn a_trigger_that_a_stranger_left_is_neither_used_nor_removed() {
    if !can_run_here() {
        return;
    }
    let library = library("");
    let fake = start(&library.path, "", "main", Some((OTHER_USER, "true")), &[]);
    let trigger = format!("/tmp/.attach_pid{}", fake.pid);
    fs::write(&trigger, "").expect("a file");
    chown(Path::new(&trigger), Some(1), Some(1)).expect("root");
    let error = error_of(fake.pid).to_string();
    assert!(error.contains(".attach_pid"), "{error}");
    fs::remove_file(&trigger).expect("it is still there");
    assert_eq!(fake.said(), [] as [&str; 0], "no signal: it would have printed a thread dump");
}

#[test]
fn a_jvm_of_another_user_is_attached_to_and_its_trigger_goes() {
    if !can_run_here() {
        return;
    }
    let Some(java) = crate::common::java("17") else { return };
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    let source = tempfile::Builder::new().prefix("marusa-sleeper-").tempdir_in("/tmp").expect("a directory");
    fs::set_permissions(source.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let program = source.path().join("Sleeper.java");
    let text = "public class Sleeper { public static void main(String[] a) throws Exception {\
                System.out.println(\"READY\"); System.in.read(); } }";
    fs::write(&program, text).expect("a file");
    // Its JDK may lie below /root, which nobody may enter: then this one cannot run as nobody.
    let java = if fs::metadata("/usr/lib/jvm/java-17-openjdk-amd64/bin/java").is_ok() {
        "/usr/lib/jvm/java-17-openjdk-amd64/bin/java".into()
    } else {
        java
    };
    command.arg(java).arg("-Xmx64m").arg(&program);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("setpriv runs");
    let mut line = String::new();
    let output = child.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("it prints");
    if line.trim() != "READY" {
        let _ = child.wait();
        return crate::common::skip("no JDK that nobody may run");
    }
    // An earlier JVM of this pid, killed as root, may have left its socket, and `nobody` cannot remove that.
    let _ = fs::remove_file(format!("/tmp/.java_pid{}", child.id()));
    let process = Process::open(child.id() as i32).expect("it runs");
    let attached = attach::open(&process);
    let answer = attached.as_ref().map(|attached| attached.command("VM.version"));
    let has_trigger = Path::new(&format!("/tmp/.attach_pid{}", child.id())).exists();
    let _ = child.kill();
    let _ = child.wait();
    let _ = fs::remove_file(format!("/tmp/.java_pid{}", child.id()));
    let answer = answer.expect("attached").expect("answered");
    assert!(answer.contains("17."), "{answer}");
    assert!(!has_trigger);
    let receipt = &attached.expect("attached").receipt;
    assert_eq!(
        (receipt.signal_sent, receipt.connected_as),
        (Some("SIGQUIT"), Some((fake::STRANGER, fake::STRANGER)))
    );
}

/// Before: the default action of the signal, and the file stayed.
#[test]
fn a_signal_does_not_wait_for_a_jvm_and_leaves_no_trigger_file() {
    if !can_run_here() {
        return;
    }
    let library = library("");
    let fake = start(&library.path, "", "main", None, &[]);
    let trigger = format!("/tmp/.attach_pid{}", fake.pid);
    let _blocked = Blocked::start();
    // SAFETY: asks for the number of this thread.
    let me = unsafe { libc::pthread_self() } as usize;
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !Path::new(&trigger).exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            // SAFETY: the thread waits below, and blocks the signal.
            unsafe { libc::pthread_kill(me as libc::pthread_t, libc::SIGTERM) };
        });
        error_of(fake.pid)
    });
    assert!(signals::pending());
    signals::take_pending();
    assert!(matches!(error, AttachError::Interrupted { .. }), "{error}");
    assert!(!Path::new(&trigger).exists());
}
