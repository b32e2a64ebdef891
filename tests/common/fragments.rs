//! Free memory in small pieces, as after weeks of a build server's work: whoever wants a huge page makes the kernel push the
//! pages of others together, and waits for it.

use super::host::{Host, THP};
use super::skip;
use std::fs::read_to_string;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// What stays free, in small pieces, and what is needed to hold.
const LEFT_MIB: u64 = 2560;
const HELD_MIB: u64 = 2560;

/// Puts settings back when this process is gone, however it went; `Host` only does so while it lives. A shell that waits for the
/// end of its input, in a session of its own so that Ctrl-C does not reach it. It is dropped before `Host` gives up its lock.
struct Guardian(Child);

impl Guardian {
    fn start(files: &[String]) -> Guardian {
        // A kernel may lack one.
        let line = |file: &String| {
            let text = read_to_string(file).ok()?;
            let chosen = text.split(['[', ']']).nth(1).unwrap_or(text.trim());
            Some(format!("; echo {chosen} >{file}"))
        };
        let script = format!("cat >/dev/null{}", files.iter().filter_map(line).collect::<String>());
        let shell = Command::new("setsid").args(["sh", "-c", &script]).stdin(Stdio::piped()).spawn();
        Guardian(shell.expect("setsid and sh"))
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Memory in small pieces, until dropped: then the policy for huge pages is as it was. `marusa bench thp` makes them.
pub struct Fragments {
    child: Child,
    pub report: String,
    _guardian: Guardian,
}

impl Fragments {
    /// `None`: not on this machine, and the reason was printed. Whoever has the lock of the host may take its memory.
    pub fn make(host: &mut Host) -> Option<Fragments> {
        let (available, needed) = (available_mib(), LEFT_MIB + HELD_MIB);
        if available < needed {
            skip(&format!("{available} MiB of memory are available, {needed} are needed"));
            return None;
        }
        // kcompactd would put the pieces together of its own accord while they are made.
        host.set("/proc/sys/vm/compaction_proactiveness".to_string(), "0").expect("root");
        let guardian = Guardian::start(&[
            format!("{THP}/enabled"),
            format!("{THP}/defrag"),
            "/proc/sys/vm/compaction_proactiveness".to_string(),
            "/proc/sys/vm/watermark_scale_factor".to_string(),
        ]);
        let mut child = Command::new(env!("CARGO_BIN_EXE_marusa"))
            .args(["bench", "thp", "--hold-fragments", &(LEFT_MIB << 20).to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("marusa starts");
        let mut report = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut report).expect("a line");
        assert!(report.starts_with('{'), "{report:?}");
        Some(Fragments { child, report: report.trim().to_string(), _guardian: guardian })
    }

    /// It ends by itself where memory becomes short; then there was nothing to measure.
    pub fn are_there(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }
}

impl Drop for Fragments {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn available_mib() -> u64 {
    let text = read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) >> 10
}
