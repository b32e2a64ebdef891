//! The counters that a JVM keeps of its collections, from the file that jstat reads: how many, and how long in all.

use marusa::jvm::hotspot::perf_memory;

/// For each collector: invocations and seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Counters(Vec<Option<(u64, f64)>>);

const COLLECTORS_MAX: usize = 4;

impl Counters {
    pub fn of(pid: i32) -> Counters {
        // In a pid namespace of its own the JVM has another number, and its /tmp is another one too.
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let inner = status
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().last())
            .expect("NSpid");
        let path = format!("/proc/{pid}/root/tmp/hsperfdata_root/{inner}");
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let memory = perf_memory::parse(&bytes).expect("counters");
        let collector = |index: usize| {
            let number = |name: &str| memory.number(&format!("sun.gc.collector.{index}.{name}"));
            let ticks_a_second = memory.number("sun.os.hrt.frequency")? as f64;
            Some((number("invocations")? as u64, number("time")? as f64 / ticks_a_second))
        };
        Counters((0..COLLECTORS_MAX).map(collector).collect())
    }

    /// Invocations and seconds.
    pub fn collector(&self, index: usize) -> Option<(u64, f64)> {
        self.0[index]
    }

    pub fn all(&self) -> (u64, f64) {
        self.0.iter().flatten().fold((0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}
