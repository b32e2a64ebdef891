//! JVMs whose output goes to a file, and plans as `marusa pages plan` writes them.

use crate::common::{java, root};
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const READY_MAX: Duration = Duration::from_secs(60);
const NOBODY: u32 = 65_534;

/// A running JVM, ended when dropped.
pub struct Logging {
    child: Child,
    log: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Plain,
    /// With PR_SET_THP_DISABLE.
    ThpDisabled,
}

impl Logging {
    pub fn start(jdk: &str, options: &[&str]) -> Option<Logging> {
        Logging::start_with(jdk, options, Start::Plain)
    }

    pub fn start_with(jdk: &str, options: &[&str], start: Start) -> Option<Logging> {
        let mut command = Command::new(java(jdk)?);
        if start == Start::ThpDisabled {
            let disable = || {
                // SAFETY: prctl with these arguments only sets a flag of the new process.
                unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
                Ok(())
            };
            // SAFETY: the closure allocates nothing and calls only prctl.
            unsafe { command.pre_exec(disable) };
        }
        Some(Logging::of(command, options))
    }

    /// Any `java` command.
    pub fn of(mut command: Command, options: &[&str]) -> Logging {
        let log = unique("verify-output");
        let output = File::create(&log).expect("a log file");
        command.args(options).arg("-cp").arg(root().join("java/build-out"));
        command.args(["marusa.Load", "quiet=1"]).arg(format!("dir={}", env!("CARGO_TARGET_TMPDIR")));
        let errors = output.try_clone().expect("a second descriptor");
        command.stdin(Stdio::piped()).stdout(output).stderr(errors);
        let jvm = Logging { child: command.spawn().expect("java starts"), log };
        let started = Instant::now();
        while !jvm.output().contains("READY") {
            assert!(started.elapsed() < READY_MAX, "not ready: {}", jvm.output());
            std::thread::sleep(Duration::from_millis(20));
        }
        jvm
    }

    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

fn unique(name: &str) -> PathBuf {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{number}", std::process::id()))
}

/// The option that chooses a collector.
pub fn collector(gc: &str) -> &'static str {
    match gc {
        "serial" => "-XX:+UseSerialGC",
        "parallel" => "-XX:+UseParallelGC",
        "g1" => "-XX:+UseG1GC",
        _ => "-XX:+UseZGC",
    }
}

pub fn need(area: &str, part: &str, bytes: u64) -> Value {
    let pages = bytes.div_ceil(2 << 20);
    json!({"area": area, "part": part, "bytes": bytes, "page_bytes": 2 << 20, "pages": pages, "pages_at_least": pages,
           "without": "small_pages", "rule": "by hand"})
}

/// A plan that was made by hand.
pub struct Plan {
    pub needs: Vec<Value>,
    mode: &'static str,
    subject: Value,
}

impl Plan {
    /// For a code cache of 48 MiB.
    pub fn new(jdk: &str, gc: &str, heap: u64) -> Plan {
        let feature: u32 = jdk.parse().expect("a release");
        let subject = json!({"vm": "hot_spot", "feature": feature, "version": null, "java_home": null, "gc": gc,
                             "heap_initial_bytes": heap, "heap_max_bytes": heap, "cpus": 2, "flags": {}});
        let needs = vec![need("jit_code", "CodeCache", 48 << 20), need("java_heap", "Java heap", heap)];
        Plan { needs, mode: "hugetlb-2m", subject }
    }

    pub fn thp(mut self) -> Plan {
        self.mode = "thp";
        self
    }

    /// The file that holds it; removed with the directory of the tests.
    pub fn write(&self, name: &str) -> String {
        let option = if self.mode == "thp" { "-XX:+UseTransparentHugePages" } else { "-XX:+UseLargePages" };
        let plan = json!({
            "schema": "marusa/pages-plan/2", "made_at": "2026-01-01T00:00:00Z", "made_by": "a test",
            "host": {"machine": "", "kernel": "", "memory_bytes": 0},
            "subject": self.subject, "mode": self.mode, "needs": self.needs, "pools": [], "steps": [], "persist": [],
            "boot": [], "jvm_options": [option], "gc_threads": null, "costs": [], "risks": [], "gaps": [],
        });
        let file = unique(&format!("plan-{name}")).with_extension("json");
        std::fs::write(&file, plan.to_string()).expect("a plan");
        file.to_string_lossy().into_owned()
    }
}

/// The binary where nobody can start it.
pub fn readable_copy() -> PathBuf {
    let copy = std::env::temp_dir().join(format!("marusa-nobody-{}", std::process::id()));
    std::fs::copy(env!("CARGO_BIN_EXE_marusa"), &copy).expect("a copy");
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    copy
}

pub fn as_nobody(command: &mut Command) -> &mut Command {
    command.uid(NOBODY).gid(NOBODY).current_dir("/")
}
