//! Somebody else changes the host too: between apply and undo, at the same time, or by using what was applied.

use super::host::{self, OVERCOMMIT, POOL, SHMEM, differences, look, mounts};
use super::plans::{
    Bench, SYSCTL, add, choose, create, everything, exists, expect, plan, pool_at_boot, step,
};
use crate::common::text;
use serde_json::{Value, json};
use std::os::fd::AsRawFd;
use std::process::Command;

fn how(receipt: &Value, place: &str) -> Value {
    let steps = receipt["runs"][0]["steps"].as_array().expect("steps");
    steps.iter().find(|step| step["place"] == place).expect("the step")["how"].clone()
}

#[test]
fn what_others_changed_between_apply_and_undo_stays_and_is_said() {
    let Some(_host) = super::host() else { return };
    let bench = Bench::new("between");
    let before = look();
    let steps = vec![add(POOL, 4), add(OVERCOMMIT, 3), choose(SHMEM, "advise")];
    bench.write(&plan(steps, vec![create(SYSCTL, pool_at_boot(6))]));
    expect(&bench.apply(), 0, &[]);
    assert_eq!((host::number(POOL), host::number(OVERCOMMIT)), (6, 4));
    host::set(POOL, "9");
    host::set(SHMEM, "within_size");
    std::fs::write(SYSCTL, "vm.nr_hugepages = 7\n").expect("written");
    let output = bench.run(&["undo", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let receipt: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (receipt["schema"].as_str(), receipt["complete"].as_bool()),
        (Some("marusa/pages-undo/2"), Some(false))
    );
    assert_eq!((how(&receipt, SHMEM), how(&receipt, SYSCTL)), (json!("left"), json!("left")));
    assert_eq!((how(&receipt, POOL), how(&receipt, OVERCOMMIT)), (json!("restored"), json!("restored")));
    assert_eq!(host::number(POOL), 5, "2 that were there and 3 of the others");
    assert!(std::fs::read_to_string(SHMEM).expect("it").contains("[within_size]"));
    assert_eq!(std::fs::read_to_string(SYSCTL).expect("it"), "vm.nr_hugepages = 7\n");
    // They take theirs back: then nothing is left.
    host::set(POOL, "2");
    host::set(SHMEM, "never");
    std::fs::remove_file(SYSCTL).expect("removed");
    assert_eq!(bench.json(&["undo", "--json"])["complete"], true);
    assert_eq!(differences(&before, &look()), [""; 0]);
}

#[test]
fn of_many_applies_at_once_one_changes_the_host() {
    let Some(_host) = super::host() else { return };
    let bench = Bench::new("at-once");
    let before = look();
    bench.write(&everything(&bench, &mut |_| 1));
    let apply = ["apply", bench.plan(), "--yes", "--persist", "--json"];
    let children: Vec<_> = (0..6).map(|_| bench.command(&apply).spawn().expect("marusa runs")).collect();
    let outputs: Vec<_> =
        children.into_iter().map(|child| child.wait_with_output().expect("ended")).collect();
    let state = |output: &std::process::Output| {
        serde_json::from_slice::<Value>(&output.stdout).ok().map(|value| value["state"].clone())
    };
    let applied = outputs.iter().filter(|output| state(output) == Some(json!("applied"))).count();
    assert_eq!(applied, 1, "{outputs:#?}");
    for output in outputs.iter().filter(|output| state(output).is_none()) {
        // Locked out, or too late: what it wants to create is there already.
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    }
    assert_eq!(bench.journals().len(), 1);
    bench.json(&["undo", "--all", "--json"]);
    assert_eq!(differences(&before, &look()), [""; 0]);
}

#[test]
fn a_second_run_says_who_has_the_lock() {
    let Some(_host) = super::host() else { return };
    let bench = Bench::new("locked");
    bench.write(&plan(vec![add(OVERCOMMIT, 1)], Vec::new()));
    let before = look();
    expect(&bench.apply(), 0, &[]);
    let path = bench.state.join("pages/lock");
    std::fs::write(&path, "4711").expect("written");
    let lock = std::fs::File::open(&path).expect("a lock");
    // SAFETY: the file is open; the lock ends with it.
    assert_eq!(unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) }, 0);
    expect(&bench.run(&["undo", "--all"]), 1, &["pid 4711", "is locked"]);
    expect(&bench.run(&["apply", bench.plan(), "--yes", "--again"]), 1, &["pid 4711"]);
    drop(lock);
    expect(&bench.run(&["undo", "--all"]), 0, &[]);
    assert_eq!(differences(&before, &look()), [""; 0]);
}

/// Some huge pages of the pool, in use by this process.
struct InUse(*mut libc::c_void, usize);

impl InUse {
    fn pages(count: usize) -> InUse {
        let bytes = count << 21;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_POPULATE;
        // SAFETY: a new mapping, touched by the kernel.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_WRITE, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        InUse(at, bytes)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours.
        unsafe { libc::munmap(self.0, self.1) };
    }
}

#[test]
fn pages_in_use_go_back_when_the_program_that_holds_them_ends() {
    let Some(_host) = super::host() else { return };
    for pool in [POOL, host::SIZE_POOL] {
        let bench = Bench::new("in-use");
        let before = look();
        bench.write(&plan(vec![add(pool, 4)], Vec::new()));
        expect(&bench.apply(), 0, &[]);
        let in_use = InUse::pages(5);
        let receipt = bench.json(&["undo", "--json"]);
        let notes = receipt["runs"][0]["steps"][0]["notes"].to_string();
        assert!(notes.contains("3 of the pages are in use"), "{receipt:#}");
        assert_eq!(host::number(host::SIZE_POOL), 5, "two of the pool and three that are lent");
        // A pool in use is counted rightly by another run, too.
        bench.write(&plan(vec![add(pool, 2)], Vec::new()));
        expect(&bench.apply(), 0, &[]);
        drop(in_use);
        assert_eq!(host::number(POOL), 4);
        assert_eq!(bench.json(&["undo", "--json"])["complete"], true);
        assert_eq!(differences(&before, &look()), [""; 0]);
    }
}

#[test]
fn a_mount_in_use_stays_and_its_users_are_named() {
    let Some(_host) = super::host() else { return };
    let bench = Bench::new("busy");
    let mount = bench.state.join("copy").display().to_string();
    bench.write(&plan(
        vec![
            step(json!({"kind": "directory", "path": mount})),
            step(json!({"kind": "mount_tmpfs", "at": mount, "options": "huge=always,size=8m"})),
            step(json!({"kind": "copy_tree", "from": bench.directory.join("from"), "to": mount})),
        ],
        Vec::new(),
    ));
    expect(&bench.apply(), 0, &[]);
    assert_eq!(std::fs::read(format!("{mount}/inner/file")).expect("copied"), vec![7; 300_000]);
    let mut user = Command::new("sleep").arg("60").current_dir(&mount).spawn().expect("sleep");
    let output = bench.run(&["undo"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains(&format!("in use by pid {}", user.id())),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(mounts(), [mount.as_str()]);
    user.kill().and_then(|()| user.wait()).expect("ended");
    expect(&bench.run(&["undo"]), 0, &[]);
    assert!(mounts().is_empty() && !exists(&mount));
}

#[test]
fn a_copy_that_does_not_fit_takes_all_back() {
    let Some(_host) = super::host() else { return };
    let bench = Bench::new("too-small");
    let before = look();
    let mount = bench.state.join("copy").display().to_string();
    bench.write(&plan(
        vec![
            add(POOL, 3),
            step(json!({"kind": "directory", "path": mount})),
            step(json!({"kind": "mount_tmpfs", "at": mount, "options": "size=64k"})),
            step(json!({"kind": "copy_tree", "from": bench.directory.join("from"), "to": mount})),
        ],
        Vec::new(),
    ));
    let output = bench.run(&["apply", bench.plan(), "--yes", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let receipt: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(receipt["state"], "taken_back");
    assert!(receipt["why"].as_str().is_some_and(|why| why.contains("No space left")), "{receipt:#}");
    assert!(mounts().is_empty() && !exists(&mount));
    assert_eq!(differences(&before, &look()), [""; 0]);
}
