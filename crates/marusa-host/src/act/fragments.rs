//! Free memory of the host in small pieces, as after weeks of a build server's work: there is plenty of it, but hardly a block of
//! the size of a huge page. Whoever wants one then makes the kernel push other pages together (compaction).
//!
//! A process of ours holds the rest (`holder`). It is the first that the kernel would kill for memory, ends by itself where
//! memory becomes short, and ends with us, whatever happens to us: then all is as it was.

mod holder;
mod pins;
mod slots;

pub use holder::hold;

use crate::base::{Bytes, Gap, Known, Why};
use crate::os::buddyinfo;
use crate::os::host::text;
use crate::os::machine::huge_page;
use crate::os::meminfo::{self, Meminfo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What the holder holds at the least: less cannot be made small pieces of in a way that matters. Of a block of 512 pages that it
/// broke up it keeps some 200 in the mean, so it must hold as much as it leaves.
const HELD_BYTES_MIN: Bytes = 1536 << 20;
/// What stays available for all other programs while it is made.
const LEFT_BYTES_MIN: Bytes = 1 << 30;
/// The hidden options of `marusa bench thp` by which the holder is started.
const OPTION: &str = "--hold-fragments";
const PINNED_OPTION: &str = "--pinned-fragments";
const LINE_BYTES_MAX: u64 = 4096;
/// Whole blocks that are few, and how long it may take until there are no more.
const SETTLED_BLOCKS: u64 = 64;
const SETTLE_MAX: Duration = Duration::from_secs(10);
const SETTLE_LOOK: Duration = Duration::from_millis(100);
const WHAT: &str = "free memory in small pieces";

/// What the holder found, and what it made of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Made {
    pub held_bytes: Bytes,
    pub free: Option<FreeMemory>,
    pub free_before: Option<FreeMemory>,
}

/// Free memory, and how much of it lies in blocks of the size of a huge page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct FreeMemory {
    pub bytes: Bytes,
    pub huge_blocks: u64,
}

impl FreeMemory {
    /// `None`: /proc does not tell.
    pub fn now() -> Option<FreeMemory> {
        let zones = buddyinfo::parse(&text("/proc/buddyinfo").ok()?);
        let counted = zones.iter().filter(|zone| !buddyinfo::is_for_devices(&zone.zone));
        let huge_blocks = counted.map(|zone| zone.pages_of(huge_page())).sum();
        Some(FreeMemory { bytes: meminfo()?.free_bytes, huge_blocks })
    }
}

fn meminfo() -> Option<Meminfo> {
    meminfo::parse(&text("/proc/meminfo").ok()?)
}

fn available_bytes() -> Option<Bytes> {
    meminfo()?.available_bytes
}

/// Memory in small pieces, until this is dropped.
#[derive(Debug)]
pub struct Fragments {
    child: Child,
    pub made: Made,
}

impl Fragments {
    /// `leave`: what stays free. `pinned`: in each block lies a page that the kernel cannot move.
    pub fn make(leave: Bytes, pinned: bool) -> Known<Fragments> {
        let gap = |why, hint: String| Gap::new(WHAT, why).hint(hint);
        let available = available_bytes().ok_or_else(|| gap(Why::Failed, "/proc/meminfo".to_string()))?;
        let needed = leave.saturating_add(HELD_BYTES_MIN).saturating_add(LEFT_BYTES_MIN);
        if available < needed {
            let (available, needed) = (available >> 20, needed >> 20);
            let hint = format!("{available} MiB of memory are available, and {needed} MiB are needed");
            return Err(gap(Why::NotMeasured, hint));
        }
        let failed = |error: std::io::Error| gap(Why::Failed, error.to_string());
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(["bench", "thp", OPTION, &leave.to_string()]).args(pinned.then_some(PINNED_OPTION));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let output = child.stdout.take().map(|output| BufReader::new(output.take(LINE_BYTES_MAX)));
        let mut fragments = Fragments { child, made: Made::default() };
        let mut line = String::new();
        output.map(|mut output| output.read_line(&mut line)).transpose().map_err(failed)?;
        fragments.made = serde_json::from_str(&line)
            .map_err(|_| gap(Why::Failed, "memory became short while it was made".to_string()))?;
        Ok(fragments)
    }

    /// The holder ends by itself where memory becomes short; then there was nothing to measure.
    pub fn are_there(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Waits until blocks that came free are broken up again. Where the kernel's policy gives the holder no huge pages, it cannot.
    pub fn settle(&self) {
        let until = Instant::now() + SETTLE_MAX;
        let is_whole = || FreeMemory::now().is_some_and(|free| free.huge_blocks > SETTLED_BLOCKS);
        while is_whole() && Instant::now() < until {
            std::thread::sleep(SETTLE_LOOK);
        }
    }
}

impl Drop for Fragments {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
