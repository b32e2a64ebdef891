//! `vm.zone_reclaim_mode`: a node that is full drops its caches, or writes and swaps, before it takes memory of another node.

use crate::base::counted;
use crate::doctor::{Evidence, Facts, Finding, Level, Remedy};

pub(super) fn of(facts: &Facts) -> Option<Finding> {
    let mode: u32 = facts.host.sysctl.get("vm/zone_reclaim_mode")?.parse().ok()?;
    let nodes = facts.host.nodes.iter().filter(|node| node.total_bytes > 0).count();
    if mode == 0 || nodes < 2 {
        return None;
    }
    // Each failure is a scan of the node that brought nothing (mm/vmscan.c, `node_reclaim`).
    let tried = ["zone_reclaim_success", "zone_reclaim_failed"]
        .map(|name| (name, facts.host.grown(name).unwrap_or(0)));
    let scans: u64 = tried.iter().map(|(_, grown)| grown).sum();
    let mut evidence = vec![
        Evidence::state("vm.zone_reclaim_mode", mode.to_string(), "/proc/sys/vm/zone_reclaim_mode"),
        Evidence::count("nodes with memory", nodes as u64, "/sys/devices/system/node"),
    ];
    for (name, grown) in tried {
        evidence.push(Evidence::count(format!("{name} while watched"), grown, "/proc/vmstat"));
    }
    let level = if scans > 0 { Level::Warn } else { Level::Info };
    let title = match scans {
        0 => format!(
            "vm.zone_reclaim_mode is {mode}: a node that fills up reclaims before it takes another node's memory"
        ),
        _ => format!(
            "vm.zone_reclaim_mode is {mode}, and nodes reclaimed {} while watched",
            counted(scans, "time")
        ),
    };
    let remedies = [Remedy::setting("sysctl vm.zone_reclaim_mode=0")];
    Some(Finding::on_host(level, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::rule_finds;
    use crate::doctor::facts::made_up::{self, G};
    use crate::os::numa::Node;

    #[test]
    fn it_is_harm_only_where_it_happens() {
        let mut facts = made_up::healthy();
        facts.host.sysctl.insert("vm/zone_reclaim_mode".to_string(), "1".to_string());
        assert_eq!(rule_finds("zone-reclaim", &facts), [], "one node has nothing to choose");
        let node = |number| Node { number, total_bytes: 8 * G, free_bytes: G, pools: Vec::new() };
        facts.host.nodes = vec![node(0), node(1)];
        assert_eq!(rule_finds("zone-reclaim", &facts).pop().map(|finding| finding.level), Some(Level::Info));
        facts.host.vmstat_first.insert("zone_reclaim_failed".to_string(), 10);
        facts.host.vmstat.insert("zone_reclaim_failed".to_string(), 11);
        assert_eq!(rule_finds("zone-reclaim", &facts).pop().map(|finding| finding.level), Some(Level::Warn));
        facts.host.sysctl.insert("vm/zone_reclaim_mode".to_string(), "0".to_string());
        assert_eq!(rule_finds("zone-reclaim", &facts), []);
    }
}
