//! `marusa` in a container of runc as the DaemonSet runs it: user 0 with SYS_PTRACE and DAC_READ_SEARCH and no other right, no new
//! privileges, a root that is read-only, the host's pids, a cgroup namespace of its own, and the calls that containerd's and
//! Docker's default filters refuse to it. It reads a JVM of another container and one of another user on the host. With the rights
//! of the deep overlay it also reads what only SYS_ADMIN shows, and traces.

use crate::common::*;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const USER: u32 = 54_321;
/// What moby's `profiles/seccomp/default.json` gives only to rights that this container lacks, or to none.
const REFUSED: &[&str] = &[
    "acct",
    "add_key",
    "bpf",
    "chroot",
    "clock_settime",
    "delete_module",
    "fanotify_init",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "get_mempolicy",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "mbind",
    "migrate_pages",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "open_tree",
    "perf_event_open",
    "pivot_root",
    "quotactl",
    "reboot",
    "request_key",
    "set_mempolicy",
    "setns",
    "syslog",
    "umount2",
    "unshare",
    "userfaultfd",
    "vhangup",
];

/// What the filter gives to SYS_ADMIN, and of it what Marusa may come to need.
const ADMINS: &[&str] = &["bpf", "mount", "perf_event_open", "setns", "syslog", "umount2", "unshare"];

/// Bundles and the state of runc, for one test.
struct Runc {
    top: tempfile::TempDir,
}

impl Runc {
    /// `None`: nothing can be run here.
    fn new() -> Option<Runc> {
        let works =
            Command::new("runc").arg("--version").output().is_ok_and(|output| output.status.success());
        if !works || !is_root() {
            skip("no runc, or not root; scripts/setup test installs it");
            return None;
        }
        let top = tempfile::tempdir().expect("a directory");
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).expect("its mode");
        Some(Runc { top })
    }

    fn id(&self, name: &str) -> String {
        format!("marusa-{name}-{}", std::process::id())
    }

    /// A bundle; `change` makes of the common configuration that of this container.
    fn bundle(
        &self,
        name: &str,
        arguments: &[&str],
        shown: &[&Path],
        change: impl FnOnce(&mut Value),
    ) -> PathBuf {
        let bundle = self.top.path().join(name);
        fs::create_dir_all(bundle.join("rootfs")).expect("directories");
        let bind = |path: &Path| json!({"destination": path, "source": path, "type": "bind", "options": ["rbind", "ro"]});
        let system = ["/usr", "/lib", "/lib64", "/bin"].map(Path::new);
        let binds = system.iter().chain(shown).filter(|path| path.exists()).map(|path| bind(path));
        let mut mounts = vec![
            json!({"destination": "/proc", "type": "proc", "source": "proc"}),
            json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]}),
            json!({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]}),
            json!({"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]}),
            json!({"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": ["nosuid", "noexec", "ro"]}),
        ];
        mounts.extend(binds);
        let spaces = ["mount", "uts", "ipc", "network", "cgroup"].map(|kind| json!({"type": kind}));
        let mut config = json!({
            "ociVersion": "1.0.2",
            "process": {"user": {"uid": 0, "gid": 0}, "args": arguments, "env": ["PATH=/usr/bin:/bin"], "cwd": "/",
                "noNewPrivileges": true, "capabilities": {"bounding": [], "effective": [], "permitted": []}},
            "root": {"path": "rootfs", "readonly": true},
            "hostname": name,
            "mounts": mounts,
            "linux": {"namespaces": spaces, "cgroupsPath": format!("/{}", self.id(name)),
                "maskedPaths": ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
                "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]},
        });
        change(&mut config);
        fs::write(bundle.join("config.json"), config.to_string()).expect("written");
        bundle
    }

    fn command(&self, name: &str, bundle: &Path) -> Command {
        let mut command = Command::new("runc");
        command.arg("--root").arg(self.top.path().join("state")).arg("run").arg("--bundle").arg(bundle);
        command.arg(self.id(name));
        command
    }

    /// A JVM of another user in a container of its own, with pids of its own.
    fn jvm(&self, java: &Path) -> Jvm {
        let classes = root().join("java/build-out");
        let home = java.parent().and_then(Path::parent).expect("a JDK");
        let (java, path) = (java.display().to_string(), classes.display().to_string());
        let arguments =
            [java.as_str(), "-Xmx64m", "-cp", &path, "marusa.Load", "heap=20m", "quiet=1", "dir=/tmp"];
        let bundle = self.bundle("jvm", &arguments, &[&classes, home], |config| {
            config["process"]["user"] = json!({"uid": USER, "gid": USER});
            config["linux"]["namespaces"].as_array_mut().expect("an array").push(json!({"type": "pid"}));
        });
        Jvm::of(self.command("jvm", &bundle))
    }

    /// Marusa with these capabilities.
    fn marusa(&self, capabilities: &[&str], arguments: &[&str]) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_marusa"));
        let mut words = vec![program.to_str().expect("UTF-8")];
        words.extend(arguments);
        let bundle = self.bundle("marusa", &words, &[program.parent().expect("a directory")], |config| {
            for set in ["bounding", "effective", "permitted"] {
                config["process"]["capabilities"][set] = json!(capabilities);
            }
            // As a hostPath: process 1 of the host, whose root has it too, may be out of reach.
            let groups = json!({"destination": "/host/sys/fs/cgroup", "source": "/sys/fs/cgroup", "type": "bind",
                "options": ["rbind", "ro"]});
            let mounts = config["mounts"].as_array_mut().expect("an array");
            mounts.push(groups);
            let is_deep = capabilities.contains(&"CAP_SYS_ADMIN");
            if is_deep {
                mounts.push(json!({"destination": TRACING, "source": TRACING, "type": "bind", "options": ["rbind", "rw"]}));
            }
            let refused: Vec<&str> =
                REFUSED.iter().copied().filter(|call| !is_deep || !ADMINS.contains(call)).collect();
            // clone3 is refused as if the kernel had no such call, so that libc takes clone.
            config["linux"]["seccomp"] = json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
                {"names": refused, "action": "SCMP_ACT_ERRNO", "errnoRet": libc::EPERM},
                {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": libc::ENOSYS}]});
        });
        self.command("marusa", &bundle).stdin(Stdio::null()).output().expect("runc runs")
    }

    fn json(&self, capabilities: &[&str], arguments: &[&str]) -> Value {
        let output = self.marusa(capabilities, arguments);
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

impl Drop for Runc {
    fn drop(&mut self) {
        for name in ["jvm", "marusa"] {
            let mut command = Command::new("runc");
            command.arg("--root").arg(self.top.path().join("state")).args([
                "delete",
                "--force",
                &self.id(name),
            ]);
            let _ = command.stderr(Stdio::null()).status();
        }
    }
}

/// A JVM of another user on the host, with a JDK and classes that every user can read.
fn of_another_user(top: &Path) -> Option<Jvm> {
    let java = Path::new("/usr/bin/java");
    if !java.exists() {
        skip("no java that every user can run");
        return None;
    }
    let classes = top.join("classes/marusa");
    fs::create_dir_all(&classes).expect("directories");
    for entry in fs::read_dir(root().join("java/build-out/marusa")).expect("built").flatten() {
        fs::copy(entry.path(), classes.join(entry.file_name())).expect("copied");
    }
    let user = USER.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(java);
    command.args(["-Xmx64m", "-cp"]).arg(top.join("classes")).args([
        "marusa.Load",
        "heap=20m",
        "quiet=1",
        "dir=/tmp",
    ]);
    Some(Jvm::of(command))
}

const LEAST: [&str; 2] = ["CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"];
const DEEP: [&str; 4] = ["CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH", "CAP_SYS_ADMIN", "CAP_PERFMON"];
const TRACING: &str = "/sys/kernel/tracing";

#[test]
fn the_least_rights_read_jvms_of_other_containers_and_users() {
    let (Some(runc), Some(java)) = (Runc::new(), java("21")) else { return };
    let in_container = runc.jvm(&java);
    let Some(on_host) = of_another_user(runc.top.path()) else { return };
    let list = runc.json(&LEAST, &["list", "--json"]);
    for (jvm, namespace_pid) in [(&in_container, 1), (&on_host, on_host.pid)] {
        let rows = list["jvms"].as_array().expect("an array");
        let row = rows.iter().find(|row| row["pid"] == jvm.pid).unwrap_or_else(|| panic!("{list}"));
        let shown = [&row["main"], &row["user"], &row["namespace_pid"]];
        assert_eq!(shown, [&json!("marusa.Load"), &json!(USER.to_string()), &json!(namespace_pid)]);
        // Proportional bytes and reference counts of pages are SYS_ADMIN's.
        assert_eq!(denied(&read(&runc, &LEAST, jvm.pid)), ["/proc/kpagecount", "totals.proportional_bytes"]);
    }
    // Its own cgroup namespace hides where the JVM is, and the host's hierarchy shows it.
    let pid = in_container.pid.to_string();
    let row = |row: &&Value| row["pid"] == in_container.pid;
    let row = list["jvms"].as_array().and_then(|rows| rows.iter().find(row)).expect("listed");
    assert_eq!(row["container"], format!("/{}", runc.id("jvm")), "{row}");
    let ledger = runc.json(&LEAST, &["container", &pid, "--json"]);
    assert!(ledger["cgroup"].as_str().is_some_and(|path| path.ends_with(&runc.id("jvm"))), "{ledger:#}");
    // Without SYS_PTRACE nothing is read, and the message names the right.
    let refused = runc.marusa(&["CAP_DAC_READ_SEARCH"], &["map", &pid]);
    assert_eq!(refused.status.code(), Some(4), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("SYS_PTRACE"), "{}", text(&refused.stderr));
}

#[test]
fn the_rights_of_the_deep_overlay_read_all_and_trace() {
    let (Some(runc), Some(java)) = (Runc::new(), java("21")) else { return };
    if !Path::new(TRACING).join("instances").exists() {
        return skip("tracefs is not mounted: scripts/tracefs");
    }
    let jvm = runc.jvm(&java);
    let map = read(&runc, &DEEP, jvm.pid);
    assert_eq!(denied(&map), [] as [&Value; 0], "{map:#}");
    let totals = &map["totals"];
    assert!(number(&totals["proportional_bytes"]) <= number(&totals["resident_bytes"]), "{totals:#}");

    let pid = jvm.pid.to_string();
    let stalls = runc.json(&DEEP, &["stalls", &pid, "1s", "1", "--json"]);
    assert_eq!(denied(&stalls), [] as [&Value; 0], "{stalls:#}");
    assert!(stalls["rows"].is_array() && stalls["events"].is_u64(), "it traced: {stalls:#}");
    let instances = fs::read_dir(Path::new(TRACING).join("instances")).expect("read").flatten();
    let ours = instances.filter(|entry| entry.file_name().to_string_lossy().contains("marusa"));
    assert_eq!(ours.count(), 0, "its instance of the trace is gone");
    let tlb = runc.marusa(&DEEP, &["tlb", &pid, "1s", "1", "--json"]);
    assert_ne!(tlb.status.code(), Some(4), "no right is missing: {}", text(&tlb.stderr));
}

/// The account of a JVM, which is whole.
fn read(runc: &Runc, capabilities: &[&str], pid: i32) -> Value {
    let map = runc.json(capabilities, &["map", &pid.to_string(), "--json"]);
    check_laws(&map);
    assert!(number(&area(&map, "java_heap")["resident_bytes"]) > 20 << 20, "{map:#}");
    let totals = &map["totals"];
    assert!(number(&totals["unattributed_bytes"]) < number(&totals["resident_bytes"]) / 50, "{map:#}");
    map
}

/// What could not be read because a right is missing.
fn denied(map: &Value) -> Vec<&Value> {
    let gaps = map["gaps"].as_array().expect("gaps").iter();
    gaps.filter(|gap| gap["why"] == "denied").map(|gap| &gap["what"]).collect()
}
