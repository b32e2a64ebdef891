//! `marusa stalls` over the whole host while the builds run, and its answer.
#![allow(dead_code, reason = "the test and the bench use parts of it")]

use crate::common::{signal, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read_dir, read_to_string};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const INSTANCES: &str = "/sys/kernel/tracing/instances";
const READY_MAX: Duration = Duration::from_secs(30);

/// Also when this process is killed.
pub fn ends_with_us(command: &mut Command) -> &mut Command {
    // SAFETY: prctl is one system call and touches no memory.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            Ok(())
        })
    }
}

/// Watches until it is asked to end.
pub struct Stalls(Option<Child>);

impl Stalls {
    /// Returns when its tracepoints are on.
    pub fn start() -> Stalls {
        let before = tracing();
        let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
        command.args(["stalls", "1h", "1", "--by", "process", "--json"]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = ends_with_us(command).spawn().expect("marusa runs");
        let mut stalls = Stalls(Some(child));
        let started = Instant::now();
        while tracing().is_subset(&before) {
            let ended = stalls.0.as_mut().and_then(|child| child.try_wait().ok().flatten());
            assert!(ended.is_none(), "marusa stalls ended at once, {ended:?}");
            assert!(started.elapsed() < READY_MAX, "marusa stalls does not trace");
            std::thread::sleep(Duration::from_millis(5));
        }
        stalls
    }

    /// What it says after Ctrl-C.
    pub fn finish(mut self) -> Answer {
        let child = self.0.take().expect("a child");
        signal(child.id() as i32, libc::SIGINT);
        let output = child.wait_with_output().expect("marusa ends");
        assert!(output.status.success(), "{:?}: {}", output.status, text(&output.stderr));
        Answer(serde_json::from_slice(&output.stdout).expect("JSON"))
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Instances in which the last of the events that are needed is on.
fn tracing() -> BTreeSet<String> {
    let names = read_dir(INSTANCES).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_on = |name: &String, event: &str| {
        read_to_string(format!("{INSTANCES}/{name}/events/{event}/enable"))
            .is_ok_and(|word| word.starts_with('1'))
            && read_to_string(format!("{INSTANCES}/{name}/tracing_on"))
                .is_ok_and(|word| word.starts_with('1'))
    };
    let events = ["compaction/mm_compaction_begin", "compaction/mm_compaction_end"];
    names.filter(|name| events.iter().all(|event| is_on(name, event))).collect()
}

/// `marusa/stalls/1`.
pub struct Answer(pub Value);

impl Answer {
    /// Milliseconds of direct compaction: of these processes, by pid.
    pub fn direct_ms(&self, pids: &BTreeSet<i32>) -> BTreeMap<i32, f64> {
        let rows = self.rows().filter_map(|row| Some((row["pid"].as_i64()? as i32, direct_ms(row))));
        rows.filter(|(pid, ms)| pids.contains(pid) && *ms > 0.0).collect()
    }

    /// Stalls of processes that had ended before they could be given a name.
    pub fn ended_ms(&self) -> f64 {
        self.rows().filter(|row| row["who"] == "ended").map(direct_ms).fold(0.0, |sum, ms| sum + ms)
    }

    pub fn all_ms(&self) -> f64 {
        direct_ms(&self.0["total"])
    }

    pub fn is_jvm(&self, pid: i32) -> bool {
        self.rows().any(|row| row["pid"] == pid && row["is_jvm"] == true)
    }

    pub fn lost(&self) -> u64 {
        self.0["missing"]["lost_events"].as_u64().unwrap_or(u64::MAX)
    }

    fn rows(&self) -> impl Iterator<Item = &Value> {
        self.0["rows"].as_array().into_iter().flatten()
    }
}

fn direct_ms(row: &Value) -> f64 {
    let lines = row["stalls"].as_array().into_iter().flatten();
    lines
        .filter(|line| line["stall"] == "direct_compaction")
        .filter_map(|line| line["total_ms"].as_f64())
        .sum()
}
