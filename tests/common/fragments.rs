//! Free memory in small pieces, as after weeks of a build server's work: whoever wants a huge page makes the kernel push the
//! pages of others together, and waits for it. It is made in seconds, and of a few GiB only: what else is free becomes a pool of
//! hugetlb in the meantime, which nobody touches.

use super::host::{HUGETLB, Host, THP};
use super::{native, skip};
use std::fs::read_to_string;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// What is left available, for JVMs and everybody else; of more than five times that, a fifth. Of it, what is free in small
/// pieces at least.
const LEFT_MIB_LEAST: u64 = 2560;
const FREE_MIB_LEAST: u64 = 1024;
/// What is left while that is prepared.
const LEAST_MIB: u64 = 1536;
/// What the fragmenter holds at the least: less cannot be made small pieces of in a way that matters. Where there is more, it holds
/// as much as it leaves: of a block of 512 pages that it broke up, it keeps some 200 in the mean, so with less it runs out of
/// pages before the last block is in pieces.
const HELD_MIB: u64 = 1536;

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

/// Memory in small pieces, until dropped: then the pool and the policy for huge pages are as they were.
pub struct Fragments {
    child: Child,
    pub report: String,
    _guardian: Guardian,
}

impl Fragments {
    /// `None`: not on this machine, and the reason was printed.
    pub fn make(host: &mut Host) -> Option<Fragments> {
        let program = native::program("fragment")?;
        let available = available_mib();
        let leave = LEFT_MIB_LEAST.max(available / 5);
        if available < leave + HELD_MIB {
            let needed = LEFT_MIB_LEAST + HELD_MIB;
            skip(&format!("{available} MiB of memory are available, {needed} are needed"));
            return None;
        }
        let held = leave.min(available - leave).max(HELD_MIB);
        let pool = format!("{HUGETLB}/hugepages-2048kB/nr_hugepages");
        let pages = |file: &str| read_to_string(file).ok().and_then(|text| text.trim().parse::<u64>().ok());
        let Some(before) = pages(&pool) else {
            skip("this kernel has no pool of huge pages");
            return None;
        };
        let guardian = Guardian::start(&[
            format!("{THP}/enabled"),
            format!("{THP}/defrag"),
            "/proc/sys/vm/compaction_proactiveness".to_string(),
            "/proc/sys/vm/watermark_scale_factor".to_string(),
            pool.clone(),
        ]);
        // The kernel gives as many as it has; what it does not give must be taken page by page.
        let _ = host.set(pool.clone(), &(before + (available - leave - held) / 2).to_string());
        let taken = pages(&pool).unwrap_or(before).saturating_sub(before);
        // Pages of files are available, and not free: what is left in pieces is the rest.
        let of_files = available_mib().saturating_sub(mib("MemFree:"));
        let free = leave.saturating_sub(of_files).max(FREE_MIB_LEAST);
        let words = [free, LEAST_MIB, taken].map(|number| number.to_string());
        let mut child = Command::new(program)
            .args(words)
            .args([&pool, &before.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the fragmenter starts");
        let mut report = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut report).expect("a line");
        let report = format!("{} pool_mib={}", report.trim(), 2 * taken);
        let fragments = Fragments { child, report, _guardian: guardian };
        assert!(fragments.report.starts_with("READY"), "{:?}", fragments.report);
        Some(fragments)
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
    mib("MemAvailable:")
}

fn mib(key: &str) -> u64 {
    let text = read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) >> 10
}
