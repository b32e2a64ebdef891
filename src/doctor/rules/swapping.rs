//! Pages come back from swap while we watch: the threads that need them wait for the disk, and a GC needs all of the heap.

use crate::doctor::{Evidence, Facts, Finding, Level, Remedy};
use crate::os::machine::base_page;

/// Bytes a second: 256 pages, each of which a thread waits for.
const WARN_RATE: f64 = (1 << 20) as f64;
const CRITICAL_RATE: f64 = (16 << 20) as f64;
const SECONDS_MIN: f64 = 0.5;

pub(super) fn of(facts: &Facts) -> Option<Finding> {
    let seconds = Some(facts.host.seconds).filter(|seconds| *seconds >= SECONDS_MIN)?;
    let bytes = |counter: &str| Some(facts.host.grown(counter)?.saturating_mul(base_page()));
    let (come, gone) = (bytes("pswpin")?, bytes("pswpout").unwrap_or(0));
    let rate = come as f64 / seconds;
    let level = Level::reached(rate, [(CRITICAL_RATE, Level::Critical), (WARN_RATE, Level::Warn)])?;
    let mut evidence = vec![
        Evidence::bytes("came back from swap while watched", come, "/proc/vmstat: pswpin"),
        Evidence::bytes("went to swap while watched", gone, "/proc/vmstat: pswpout"),
        Evidence::ms("time that was watched", seconds * 1000.0, "our clock"),
    ];
    for jvm in &facts.jvms {
        if let Some(swapped @ 1..) = jvm.account.totals.swapped_bytes {
            evidence.push(Evidence::bytes(
                format!("of JVM {} in swap", jvm.pid),
                swapped,
                "account: swapped",
            ));
        }
    }
    let title = format!("{:.1} MiB a second come back from swap", rate / (1 << 20) as f64);
    let remedies = [
        Remedy::setting("sysctl vm.swappiness=1"),
        Remedy::advice(
            "give the host's programs less memory to begin with: a smaller -Xmx beats a heap in swap",
        ),
    ];
    Some(Finding::on_host(level, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up;
    use crate::doctor::facts::made_up::rule_finds;

    #[test]
    fn a_mebibyte_a_second_and_sixteen() {
        let level = |pages: u64, seconds: f64| {
            let mut facts = made_up::healthy();
            facts.host.seconds = seconds;
            facts.host.vmstat.insert("pswpin".to_string(), pages);
            rule_finds("swapping", &facts).pop().map(|finding| finding.level)
        };
        assert_eq!((level(0, 1.0), level(255, 1.0)), (None, None));
        assert_eq!((level(256, 1.0), level(256, 2.0)), (Some(Level::Warn), None));
        assert_eq!((level(4096, 1.0), level(4096, 0.1)), (Some(Level::Critical), None));
    }
}
