//! Plans, and the real binary that applies and undoes them with a state directory of its own.

use super::host::{OVERCOMMIT, POOL, SCAN, SHMEM, SIXTY_FOUR, SIZE_POOL};
use crate::common::text;
use marusa::act::door::identity;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub const SYSCTL: &str = "/etc/sysctl.d/60-marusa-pages-door.conf";
pub const UNIT: &str = "/etc/systemd/system/marusa-pages-door.service.d";

/// A directory with a plan and a state directory; gone with the test.
pub struct Bench {
    pub directory: PathBuf,
    pub state: PathBuf,
    pub plan: PathBuf,
}

impl Bench {
    pub fn new(name: &str) -> Bench {
        let directory = std::env::temp_dir().join(format!("marusa-door-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(directory.join("from/inner")).expect("a directory");
        std::fs::write(directory.join("from/inner/file"), vec![7; 300_000]).expect("a file");
        Bench { state: directory.join("state"), plan: directory.join("plan.json"), directory }
    }

    pub fn write(&self, plan: &Value) {
        std::fs::write(&self.plan, format!("{plan:#}")).expect("written");
    }

    pub fn plan(&self) -> &str {
        self.plan.to_str().expect("UTF-8")
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
        command.arg("pages").args(arguments).arg("--state").arg(&self.state).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("marusa runs")
    }

    pub fn apply(&self) -> Output {
        self.run(&["apply", self.plan(), "--yes", "--persist", "--json"])
    }

    /// The receipt, where the command ended well.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    pub fn journals(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.state.join("pages")).into_iter().flatten().flatten();
        let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        all.retain(|path| path.extension().is_some_and(|end| end == "journal"));
        all.sort();
        all
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

pub fn step(change: Value) -> Value {
    json!({"what": "a change", "why": "a test", "risk": null, "change": change})
}

pub fn add(file: &str, by: u64) -> Value {
    step(json!({"kind": "add", "file": file, "by": by}))
}

pub fn choose(file: &str, word: &str) -> Value {
    step(json!({"kind": "choose", "file": file, "word": word}))
}

pub fn create(file: &str, content: Value) -> Value {
    step(json!({"kind": "create", "file": file, "content": content}))
}

/// The pool at the start of the host.
pub fn pool_at_boot(pages: u64) -> Value {
    json!({"of": "sysctl", "settings": [{"file": POOL, "value": pages}]})
}

/// The text of that file.
pub fn pool_text(pages: u64) -> String {
    format!("# Made by marusa; `marusa pages undo` removes this file.\nvm.nr_hugepages = {pages}\n")
}

/// For this very host.
pub fn plan(steps: Vec<Value>, persist: Vec<Value>) -> Value {
    let here = identity::here();
    json!({
        "schema": "marusa/pages-plan/2", "made_at": "2026-01-01T00:00:00Z", "made_by": "a test",
        "host": {"machine": here.machine, "kernel": here.kernel, "memory_bytes": here.memory_bytes},
        "subject": {"vm": "hot_spot", "feature": 17, "version": null, "java_home": null, "gc": "g1",
            "heap_initial_bytes": 1, "heap_max_bytes": 1, "cpus": 2, "flags": {}},
        "mode": "hugetlb-2m", "needs": [], "pools": [], "steps": steps, "persist": persist, "boot": [],
        "jvm_options": [], "gc_threads": null, "costs": [], "risks": [], "gaps": [],
    })
}

/// One step of each kind, with numbers that `random` chooses.
pub fn everything(bench: &Bench, random: &mut impl FnMut(u64) -> u64) -> Value {
    let directory = if random(2) == 0 { &bench.state } else { Path::new("/run/marusa") };
    let mount = directory.join("pages-door").display().to_string();
    let pool = if random(2) == 0 { POOL } else { SIZE_POOL };
    let word = if random(2) == 0 { choose(SHMEM, "advise") } else { choose(SIXTY_FOUR, "madvise") };
    let mut steps = vec![
        add(pool, 3 + random(6)),
        add(OVERCOMMIT, 1 + random(20)),
        word,
        step(json!({"kind": "set", "file": SCAN, "value": 1000 + random(1000)})),
        step(json!({"kind": "directory", "path": mount})),
        step(json!({"kind": "mount_tmpfs", "at": mount, "options": "huge=never,size=4m"})),
        step(json!({"kind": "copy_tree", "from": bench.directory.join("from"), "to": mount})),
    ];
    steps[..4].rotate_left(random(4) as usize);
    let persist = vec![
        create(SYSCTL, pool_at_boot(5)),
        step(json!({"kind": "directory", "path": UNIT})),
        create(
            &format!("{UNIT}/marusa.conf"),
            json!({"of": "unit", "memlock_bytes": 1 << 26, "java_options": ["-XX:+UseLargePages", "-Xmx64m"]}),
        ),
    ];
    plan(steps, persist)
}

pub fn expect(output: &Output, status: i32, words: &[&str]) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{error}\n{}", text(&output.stdout));
    words.iter().for_each(|word| assert!(error.contains(word), "no {word:?} in: {error}"));
    assert!(!error.contains("panicked"), "{error}");
}

pub fn exists(path: &str) -> bool {
    Path::new(path).symlink_metadata().is_ok()
}
