//! What a JVM's own log says of its collections: each stop with its cause, each concurrent phase, the heap before and
//! after. Two formats: unified logging (JDK 9 on, whatever the decorations) and what JDK 8 prints with -XX:+PrintGC or
//! -XX:+PrintGCDetails. Pure: it takes the bytes of a log, which may be cut anywhere and may hold the program's own output
//! too.
//!
//! Java has parsers of such logs (microsoft/gctoolkit); there is none for Rust that knows both formats and all collectors.

mod jdk8;
mod stamps;
mod summary;
mod unified;

pub use summary::{Quantiles, Summary};

use crate::base::{Bytes, Gap, Known, Why};
use crate::jvm::Gc;
use stamps::Stamp;

/// The options that make a JVM write all that is read here.
pub fn options(feature: u32, path: &str) -> Vec<String> {
    match feature {
        ..=8 => [
            "-XX:+PrintGCDetails".to_string(),
            "-XX:+PrintGCDateStamps".to_string(),
            "-XX:+PrintGCTimeStamps".to_string(),
            format!("-Xloggc:{path}"),
        ]
        .to_vec(),
        // Without a limit on the size the first rotation (20 MB) would take the start away.
        _ => vec![format!("-Xlog:gc*:file={path}:time,uptime,level,tags:filecount=0")],
    }
}

/// What a stop was for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
    Young,
    /// Young, and some of the old generation (G1).
    Mixed,
    /// A step of a cycle that else runs next to the program: initial mark, remark, relocate start.
    OfCycle,
    /// A cycle that was next to the program was completed in a stop (Shenandoah).
    Degenerated,
    Full,
}

/// The heap around a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heap {
    pub before: Bytes,
    pub after: Bytes,
    /// What is committed of the heap after it; logs of ZGC do not say.
    pub committed: Option<Bytes>,
}

/// One stop of the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pause {
    /// On the log's clock, in seconds, when it began; `None`: the log has no stamps.
    pub start_seconds: Option<f64>,
    pub kind: Kind,
    /// "Pause Young", "Pause Remark"; of JDK 8 "GC", "Full GC", "GC remark".
    pub name: String,
    pub cause: Option<String>,
    pub ms: f64,
    pub heap: Option<Heap>,
    /// The number that unified logging gives to a collection.
    pub collection: Option<u64>,
    /// It is a part of a longer stop, which is among the pauses too: a full collection that a young one led to.
    pub is_nested: bool,
}

/// Work of the collector next to the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    pub start_seconds: Option<f64>,
    /// "Concurrent Mark", "CMS-concurrent-sweep".
    pub name: String,
    pub ms: f64,
    pub collection: Option<u64>,
}

/// From which clock the times are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Since the JVM's start.
    Uptime,
    /// Since 1970.
    Wall,
    #[default]
    None,
}

/// All that a log says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GcLog {
    pub gc: Option<Gc>,
    pub clock: Clock,
    pub pauses: Vec<Pause>,
    pub phases: Vec<Phase>,
    /// The heap around each collection, in the order of the log; more than the pauses have with ZGC and Shenandoah.
    pub heap: Vec<Heap>,
    /// CPU time, user and system, of stops (not of concurrent phases), where the log has it; to 10 ms each.
    pub pause_cpu_seconds: Option<f64>,
    /// Stops and phases that were begun in the log and are not complete: the log was cut, or two wrote into it.
    pub torn: usize,
    pub gaps: Vec<Gap>,
}

impl GcLog {
    /// The time of a line by the clock of the first line that has one.
    fn at(&mut self, stamp: Stamp) -> Option<f64> {
        if self.clock == Clock::None {
            self.clock = match stamp {
                Stamp { uptime: Some(_), .. } => Clock::Uptime,
                Stamp { wall: Some(_), .. } => Clock::Wall,
                _ => Clock::None,
            };
        }
        match self.clock {
            Clock::Uptime => stamp.uptime,
            Clock::Wall => stamp.wall,
            Clock::None => None,
        }
    }

    /// Of one stop, in seconds.
    fn add_cpu(&mut self, user: Option<f64>, system: Option<f64>) {
        if let (Some(user), Some(system)) = (user, system) {
            *self.pause_cpu_seconds.get_or_insert(0.0) += user + system;
        }
    }
}

/// A log without one collection is a log (`Ok`) when it says which collector there is.
pub fn parse(bytes: &[u8]) -> Known<GcLog> {
    let text = String::from_utf8_lossy(bytes);
    let log = match unified::is_one(&text) {
        true => unified::parse(&text),
        false => jdk8::parse(&text),
    };
    if log.pauses.is_empty() && log.phases.is_empty() && log.gc.is_none() && log.heap.is_empty() {
        return Err(Gap::new("log of collections", Why::NotRecorded).hint(
            "it holds no line of a collector; it is written by -Xlog:gc*:file=NAME, on JDK 8 by -XX:+PrintGCDetails -Xloggc:NAME",
        ));
    }
    Ok(log)
}

#[cfg(test)]
mod tests;
