//! `marusa container` on prepared cgroups: the rows sum to the kernel's figure, the remainder is small, and what fills the cgroup
//! has its name.

use crate::common::native;
use crate::common::small_group::Group;
use crate::common::*;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const MIB: i64 = 1 << 20;
const ROOM: u64 = 1 << 30;

/// A program in a cgroup, ended when dropped.
struct Filled {
    child: Child,
    group: Group,
}

impl Filled {
    /// tests/native/fill.c; `None`: it cannot be made here.
    fn with(arguments: &[&str]) -> Option<Filled> {
        let (group, program) = (Group::with_bytes(ROOM)?, native::program("fill")?);
        let mut command = group.command(&program.display().to_string());
        Some(Filled { child: ready(command.args(arguments), 1), group })
    }

    fn ledger(&self) -> Value {
        container(&["--cgroup", &self.group.directory().display().to_string()])
    }

    /// The usage that the kernel reports, version 1 or 2.
    fn used_bytes(&self) -> i64 {
        let files = ["memory.usage_in_bytes", "memory.current"].map(|name| self.group.directory().join(name));
        let text = files.iter().find_map(|file| std::fs::read_to_string(file).ok()).expect("a figure");
        text.trim().parse().expect("bytes")
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in
            std::fs::read_to_string(self.group.directory().join("cgroup.procs")).unwrap_or_default().lines()
        {
            signal(pid.parse().expect("a pid"), libc::SIGKILL);
        }
    }
}

fn ready(command: &mut Command, lines: usize) -> Child {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let said: Vec<String> =
        output.lines().map_while(Result::ok).filter(|line| line == "READY").take(lines).collect();
    assert_eq!(said.len(), lines, "{command:?} did not get ready");
    child
}

fn container(arguments: &[&str]) -> Value {
    let output = marusa(&[&["container", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn bytes(row: &Value) -> i64 {
    row["bytes"].as_i64().expect("bytes")
}

fn rows(ledger: &Value) -> &Vec<Value> {
    ledger["rows"].as_array().expect("rows")
}

fn sum(ledger: &Value, items: &[&str]) -> i64 {
    rows(ledger).iter().filter(|row| items.iter().any(|item| row["item"] == *item)).map(bytes).sum()
}

/// The row of this item and name.
fn named<'a>(ledger: &'a Value, item: &str, name: &str) -> &'a Value {
    let found = rows(ledger)
        .iter()
        .find(|row| row["item"] == item && row["name"].as_str().is_some_and(|it| it.contains(name)));
    found.unwrap_or_else(|| panic!("no {item} {name}: {ledger:#}"))
}

/// The rows sum to the figure; what no counter names is below a twentieth, or the pages that each CPU charges ahead.
fn check(ledger: &Value) {
    let used = ledger["cgroup_bytes"].as_i64().expect("bytes");
    assert_eq!(rows(ledger).iter().map(bytes).sum::<i64>(), used, "{ledger:#}");
    let last = rows(ledger).last().expect("a row");
    assert_eq!(last["item"], "remainder");
    assert!(bytes(last).abs() < (used / 20).max(MIB), "{ledger:#}");
}

fn scratch(name: &str) -> String {
    // As the kernel names it.
    let directory = std::fs::canonicalize(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    directory.join(format!("{name}-{}", std::process::id())).display().to_string()
}

fn can_make_groups() -> bool {
    let can = is_root() && Group::with_bytes(ROOM).is_some();
    if !can {
        skip("no cgroup can be made here");
    }
    can
}

#[test]
fn page_cache_of_a_file_that_is_open_and_of_one_that_nobody_has_open() {
    if !can_make_groups() {
        return;
    }
    let path = scratch("cache");
    for (mode, is_open) in [("cache", true), ("closed", false)] {
        let Some(filled) = Filled::with(&[mode, &path, "96"]) else { return };
        let ledger = filled.ledger();
        check(&ledger);
        assert!(
            (ledger["cgroup_bytes"].as_i64().expect("bytes") - filled.used_bytes()).abs()
                < MIB + filled.used_bytes() / 100
        );
        match is_open {
            true => assert!(bytes(named(&ledger, "page_cache", &path)) > 90 * MIB, "{ledger:#}"),
            false => assert!(sum(&ledger, &["page_cache_other"]) > 90 * MIB, "{ledger:#}"),
        }
        let reclaimed = ledger["reclaim"].as_array().expect("rows");
        assert!(reclaimed[0]["what"] == "inactive_file" && bytes(&reclaimed[0]) > 90 * MIB, "{ledger:#}");
        assert!(ledger["working_set_bytes"].as_i64().expect("bytes") < 16 * MIB, "{ledger:#}");
        assert_eq!(ledger["limit"]["limit_bytes"], ROOM);
    }
    std::fs::remove_file(&path).expect("removed");
}

/// A million files would be slower than 2,000 are, and shows nothing more: that the ones that are left out are one row.
#[test]
fn a_file_on_tmpfs_and_one_that_was_deleted() {
    if !can_make_groups() || !Path::new("/dev/shm").is_dir() {
        return;
    }
    let path = format!("/dev/shm/marusa-fill-{}", std::process::id());
    let Some(filled) = Filled::with(&["tmpfs", &path, "64"]) else { return };
    let ledger = filled.ledger();
    check(&ledger);
    assert!(bytes(named(&ledger, "shared_memory", &path)) > 60 * MIB, "{ledger:#}");
    std::fs::remove_file(&path).expect("removed");
    let ledger = filled.ledger();
    check(&ledger);
    assert!(bytes(named(&ledger, "shared_memory", "(deleted)")) > 60 * MIB, "{ledger:#}");
}

#[test]
fn sockets_and_dentries_are_the_kernels_memory() {
    if !can_make_groups() {
        return;
    }
    let kernel = ["kernel_other", "slab_reclaimable", "slab_unreclaimable", "sockets"];
    for arguments in [vec!["sockets", "150"], vec!["dentries", env!("CARGO_TARGET_TMPDIR"), "150000"]] {
        let Some(filled) = Filled::with(&arguments) else { return };
        let ledger = filled.ledger();
        check(&ledger);
        let used = ledger["cgroup_bytes"].as_i64().expect("bytes");
        assert!(used > 20 * MIB && sum(&ledger, &kernel) > used * 9 / 10, "{arguments:?} {ledger:#}");
    }
}

#[test]
fn two_processes_and_a_jvm_with_its_areas() {
    if !can_make_groups() {
        return;
    }
    let Some(java) = java("21") else { return };
    let Some(mut filled) = Filled::with(&["anonymous", "80"]) else { return };
    let mut command = filled.group.command(&java.display().to_string());
    command.args(["-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC", "-cp"]);
    let jvm = Jvm::of({
        command.arg(root().join("java/build-out")).args(["marusa.Grow", "direct=1m/s"]);
        command
    });
    let ledger = container(&[&jvm.pid.to_string()]);
    check(&ledger);
    assert_eq!((&ledger["processes"], &ledger["process"]["pid"]), (&2.into(), &jvm.pid.into()));
    let of_jvm = named(&ledger, "anonymous", "java");
    assert!(bytes(of_jvm) > 64 * MIB && bytes(named(&ledger, "anonymous", "fill")) > 75 * MIB, "{ledger:#}");
    let parts = of_jvm["parts"].as_array().expect("areas");
    assert!(parts[0]["name"] == "Java heap" && bytes(&parts[0]) >= 60 * MIB, "{of_jvm:#}");
    let areas: i64 = parts.iter().map(bytes).sum();
    assert!((areas - bytes(of_jvm)).abs() < 16 * MIB, "{of_jvm:#}");
    // JVM only.
    filled.child.kill().and_then(|()| filled.child.wait()).expect("ended");
    let ledger = filled.ledger();
    check(&ledger);
    assert_eq!((&ledger["processes"], &ledger["process"]), (&1.into(), &Value::Null));
    let shown = text(&marusa(&["container", &jvm.pid.to_string()]).stdout);
    assert!(
        shown.contains("working set") && shown.contains("remainder") && shown.contains("Java heap"),
        "{shown}"
    );
}

#[test]
fn many_processes_with_many_files_are_a_few_rows() {
    if !can_make_groups() {
        return;
    }
    let directory = scratch("many");
    std::fs::create_dir(&directory).expect("made");
    let (group, Some(program)) = (Group::with_bytes(ROOM).expect("a cgroup"), native::program("fill")) else {
        return;
    };
    let mut command = group.command(&program.display().to_string());
    let filled = Filled { child: ready(command.args(["processes", "20", "2000", &directory]), 21), group };
    for file in std::fs::read_dir(&directory).expect("listed").flatten().step_by(2) {
        std::fs::write(file.path(), [7; 4096]).expect("written");
    }
    let ledger = container(&["--cgroup", &filled.group.directory().display().to_string(), "--top", "7"]);
    check(&ledger);
    assert_eq!(ledger["processes"], 21);
    assert!(rows(&ledger).len() < 60, "{ledger:#}");
    assert!(named(&ledger, "page_cache", " more")["pid"].is_null());
    drop(filled);
    std::fs::remove_dir_all(&directory).expect("removed");
}

#[test]
fn the_host_and_cgroups_that_are_not_there() {
    let ledger = container(&["--host"]);
    let all = ledger["total_bytes"].as_i64().expect("bytes");
    assert_eq!(rows(&ledger).iter().map(bytes).sum::<i64>(), all);
    assert!(sum(&ledger, &["free"]) > 0 && ledger["cgroup_bytes"].is_null(), "{ledger:#}");
    for path in ["/no/such/cgroup", "/sys/fs/cgroup/../../etc", "relative"] {
        let output = marusa(&["container", "--cgroup", path]);
        assert_eq!(output.status.code(), Some(3), "{path}: {}", text(&output.stderr));
    }
}
