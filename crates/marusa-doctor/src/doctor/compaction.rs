//! How often processes had to wait while the kernel made room for a larger page, from the counters of /proc/vmstat, and which
//! setting makes them wait. `marusa stalls` measures for how long, and who.
//!
//! `compact_stall` counts direct compactions that ran (mm/page_alloc.c, `__alloc_pages_direct_compact`: not the ones that were
//! skipped or deferred), `allocstall_*` direct reclaims; both of any allocation, not of huge pages alone. Which faults may do
//! either is in mm/huge_memory.c, `vma_thp_gfp_mask`: with `defrag` at always every fault that gets a huge page, with madvise and
//! defer+madvise those of advised memory, with defer and never none.

use super::facts::HostFacts;
use super::types::Evidence;
use crate::base::counted;

/// Direct compactions in a second, and in the time that was watched, from which they are harm. One moves up to 512 pages and
/// more, while its thread waits: a millisecond, and up to a hundred where memory is full. Ten a second are so 1 % of a thread at
/// least, and pauses that no GC log shows.
const STALLS_PER_SECOND_MIN: f64 = 10.0;
const STALLS_MIN: u64 = 20;
/// Since the host was started: the stalls, and the huge pages that faults asked for.
const SINCE_START_MIN: u64 = 1000;
const SINCE_START_PERCENT_MIN: u64 = 1;

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stalls {
    /// Stalls in the watched time.
    Now(u64),
    /// At some time since the host was started: stalls, and huge pages that faults asked for.
    SinceStart(u64, u64),
}

pub fn stalls(host: &HostFacts) -> Option<Stalls> {
    let now = host.grown("compact_stall").unwrap_or(0);
    if now >= STALLS_MIN && host.rate("compact_stall").is_some_and(|rate| rate >= STALLS_PER_SECOND_MIN) {
        return Some(Stalls::Now(now));
    }
    let counter = |name: &str| host.vmstat.get(name).copied();
    let all = counter("compact_stall")?;
    let asked = counter("thp_fault_alloc")?.saturating_add(counter("thp_fault_fallback")?);
    let is_much = u128::from(all) * 100 >= u128::from(asked) * u128::from(SINCE_START_PERCENT_MIN);
    (all >= SINCE_START_MIN && is_much && asked > 0).then_some(Stalls::SinceStart(all, asked))
}

impl Stalls {
    /// "120 times in 2.0 s".
    pub fn text(&self, host: &HostFacts) -> String {
        match self {
            Stalls::Now(stalls) => format!("{} in {:.1} s", counted(*stalls, "time"), host.seconds),
            Stalls::SinceStart(stalls, asked) => {
                let (stalls, asked) = (counted(*stalls, "time"), counted(*asked, "huge page"));
                format!("{stalls} since the host was started, for {asked} asked for by faults")
            }
        }
    }
}

/// The counters and settings that both findings rest on.
pub fn evidence(host: &HostFacts) -> Vec<Evidence> {
    const SOURCE: &str = "/proc/vmstat";
    let mut evidence = Vec::new();
    let reclaims: u64 = host
        .vmstat
        .keys()
        .filter(|name| name.starts_with("allocstall"))
        .filter_map(|name| host.grown(name))
        .sum();
    for name in ["compact_stall", "compact_fail", "thp_fault_alloc", "thp_fault_fallback"] {
        evidence
            .extend(host.grown(name).map(|grown| Evidence::count(format!("{name}, watched"), grown, SOURCE)));
    }
    evidence.push(Evidence::count("direct reclaims, watched", reclaims, "/proc/vmstat: allocstall_*"));
    let all = host.vmstat.get("compact_stall");
    evidence.extend(all.map(|all| Evidence::count("compact_stall since the start", *all, SOURCE)));
    evidence.push(Evidence::ms("watched for", host.seconds * 1000.0, "clock"));
    let waited = |ms| Evidence::ms("of it, some task waited for memory", ms, "/proc/pressure/memory: some");
    evidence.extend(host.waited_ms.map(waited));
    let thp = host.pages.thp.iter();
    let directory = "/sys/kernel/mm/transparent_hugepage";
    for thp in thp {
        evidence.push(Evidence::state("THP enabled", &thp.enabled, format!("{directory}/enabled")));
        let defrag = thp.defrag.as_ref();
        evidence
            .extend(defrag.map(|word| Evidence::state("THP defrag", word, format!("{directory}/defrag"))));
    }
    evidence
}

/// What decides for 2 MiB pages of private memory: "always", "madvise", "never"; and `defrag`.
pub fn modes(host: &HostFacts) -> Option<(String, String)> {
    let thp = host.pages.thp.as_ref()?;
    Some((thp.private(thp.pmd_bytes).mode, thp.defrag.clone()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rules::page_cases::counted;

    #[test]
    fn ten_a_second_are_harm_and_a_burst_of_a_moment_is_not() {
        let of =
            |stalls: u64, seconds: f64| super::stalls(&counted(&[("compact_stall", 0, stalls)], seconds));
        assert_eq!(of(20, 2.0), Some(Stalls::Now(20)));
        assert_eq!((of(19, 1.0), of(20, 2.1), of(100, 0.1)), (None, None, None));
        let of = |stalls, asked| {
            stalls_of(&[("compact_stall", stalls, stalls), ("thp_fault_alloc", asked, asked)])
        };
        assert_eq!(of(1000, 100_000), Some(Stalls::SinceStart(1000, 100_000)));
        assert_eq!((of(999, 1000), of(1000, 100_001)), (None, None));
    }

    fn stalls_of(counters: &[(&str, u64, u64)]) -> Option<Stalls> {
        super::stalls(&counted(counters, 1.0))
    }
}
