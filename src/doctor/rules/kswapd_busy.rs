//! kswapd frees memory in the background: where it is busy all the time, the host has too little, or one node of it has.

use super::kcompactd_busy::busy;
use crate::doctor::{Evidence, Facts, Finding, Remedy, types::Cost};

pub(super) fn of(facts: &Facts) -> Option<Finding> {
    let (level, percent, mut evidence) = busy(facts, "kswapd")?;
    let available = facts.host.meminfo.get("MemAvailable");
    evidence.extend(
        available
            .map(|bytes| Evidence::bytes("memory that is available", *bytes, "/proc/meminfo: MemAvailable")),
    );
    evidence.extend(facts.host.watched(["pgscan_kswapd", "pgsteal_kswapd", "pgscan_direct", "pswpout"]));
    let mut remedies = vec![Remedy::advice(
        "free memory on this host: `marusa doctor` names what each JVM could give back, `marusa trim` returns what malloc keeps",
    )];
    // Direct reclaim means that kswapd starts too late: a wider gap between the watermarks starts it earlier.
    if facts.host.grown("pgscan_direct").is_some_and(|grown| grown > 0) {
        remedies.push(Remedy::setting("sysctl vm.watermark_scale_factor=100"));
    }
    let title = format!("kswapd took {percent:.0} % of a CPU to find memory");
    Some(Finding::on_host(level, title, evidence, remedies).costing(Cost::cpu(percent)))
}

#[cfg(test)]
mod tests {
    use crate::doctor::Level;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::doctor::facts::{Daemon, made_up};

    #[test]
    fn busy_and_late() {
        let mut facts = made_up::healthy();
        let mut found = |watched_ms: f64| {
            facts.host.daemons = vec![Daemon { name: "kswapd0".to_string(), cpu_ms: 5_000.0, watched_ms }];
            facts.host.vmstat_first.insert("pgscan_direct".to_string(), 10);
            facts.host.vmstat.insert("pgscan_direct".to_string(), 900);
            rule_finds("kswapd-busy", &facts).pop()
        };
        let finding = found(120.0).expect("12 %");
        assert_eq!(finding.level, Level::Warn);
        assert!(finding.remedies.iter().any(|remedy| remedy.text().contains("watermark_scale_factor")));
        assert_eq!(found(500.0).map(|finding| finding.level), Some(Level::Critical));
        assert_eq!(found(90.0), None);
    }
}
