//! Nodes of memory: one that is full while another has plenty, a heap that spans them, and a node that reclaims before it takes
//! another's memory.

use crate::base::counted;
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::jvm::Gc;
use crate::os::numa::Node;

/// kswapd of a node wakes at about 1 % with default watermarks; 3 % is on the way there.
const FULL_PERCENT: f64 = 3.0;
const PLENTY_PERCENT: f64 = 25.0;

fn free_percent(node: &Node) -> f64 {
    if node.total_bytes == 0 { 100.0 } else { node.free_bytes as f64 * 100.0 / node.total_bytes as f64 }
}

/// One node of memory is nearly full while others have plenty: who allocates there waits for reclaim or gets memory that is far.
pub(super) fn imbalance(facts: &Facts) -> Option<Finding> {
    let nodes = &facts.host.nodes;
    let full = nodes.iter().min_by(|a, b| free_percent(a).total_cmp(&free_percent(b)))?;
    let plenty = nodes.iter().max_by(|a, b| free_percent(a).total_cmp(&free_percent(b)))?;
    if free_percent(full) >= FULL_PERCENT || free_percent(plenty) < PLENTY_PERCENT {
        return None;
    }
    let source = |node: &Node| format!("/sys/devices/system/node/node{}/meminfo: MemFree", node.number);
    let mut evidence: Vec<Evidence> = nodes
        .iter()
        .map(|node| Evidence::bytes(format!("free on node {}", node.number), node.free_bytes, source(node)))
        .collect();
    evidence.extend(facts.host.watched(["numa_miss", "numa_foreign"]));
    let (full_percent, plenty_percent) = (free_percent(full), free_percent(plenty));
    let (full, plenty) = (full.number, plenty.number);
    let title = format!(
        "node {full} has {full_percent:.1} % of its memory free, node {plenty} {plenty_percent:.0} %: programs bound to \
         node {full} reclaim or get far memory"
    );
    let remedies = [
        Remedy::Advice(format!(
            "start the next JVM on node {plenty} (numactl --cpunodebind --membind), or spread it"
        )),
        Remedy::jvm_option("-XX:+UseNUMA for a JVM that spans nodes"),
    ];
    Some(Finding::on_host(Level::Warn, title, evidence, remedies))
}

/// A heap that takes a quarter of a node is likely to lie on two.
const SHARE_OF_NODE: u64 = 4;

/// ZGC spreads its heap by itself (UseNUMA is on there); Serial and Epsilon do nothing with it; G1 since JDK 14 (JEP 345).
fn knows_nodes(jvm: &JvmFacts) -> bool {
    match jvm.gc() {
        Some(Gc::Parallel) => true,
        Some(Gc::G1) => jvm.major().is_some_and(|major| major >= 14),
        _ => false,
    }
}

/// A large heap on a host with several nodes of memory, and a collector that does not use them.
pub(super) fn numa_off(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let nodes = facts.host.nodes.iter().filter(|node| node.total_bytes > 0);
    let smallest = nodes.clone().map(|node| node.total_bytes).min()?;
    let heap = jvm.number("MaxHeapSize")?;
    let is_off = jvm.flag("UseNUMA") == Some("false");
    // A JVM whose CPUs are fewer than the host's may be bound to one node on purpose.
    let is_bound = jvm.cpus.as_ref().map_or(true, |cpus| cpus.allowed < facts.host.cpus);
    if nodes.clone().count() < 2
        || !is_off
        || is_bound
        || heap < smallest / SHARE_OF_NODE
        || !knows_nodes(jvm)
    {
        return None;
    }
    let title = format!("the heap may span {} nodes of memory, and UseNUMA is off", nodes.clone().count());
    let evidence = [
        Evidence::bytes("largest heap", heap, "flag MaxHeapSize"),
        Evidence::bytes("memory of the smallest node", smallest, "/sys/devices/system/node"),
        Evidence::state("UseNUMA", "false", "flag of the VM"),
    ];
    let remedies = [
        Remedy::jvm_option("-XX:+UseNUMA"),
        Remedy::advice("bind the JVM to one node with numactl, where its memory fits there"),
    ];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

/// `vm.zone_reclaim_mode`: a node that is full drops its caches, or writes and swaps, before it takes memory of another node.
pub(super) fn zone_reclaim(facts: &Facts) -> Option<Finding> {
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
    mod imbalance {
        use super::super::*;
        use crate::doctor::Subject;
        use crate::doctor::facts::made_up::rule_finds;
        use crate::doctor::facts::made_up::{self, G, M};

        fn found(free: &[u64]) -> Option<Finding> {
            let mut facts = made_up::healthy();
            let node = |(number, free_bytes): (usize, &u64)| Node {
                number: number as u32,
                total_bytes: 10 * G,
                free_bytes: *free_bytes,
                pools: Vec::new(),
            };
            facts.host.nodes = free.iter().enumerate().map(node).collect();
            rule_finds("numa-imbalance", &facts).pop()
        }

        #[test]
        fn one_full_and_one_empty() {
            let finding = found(&[200 * M, 5 * G]).expect("node 0 is full");
            assert_eq!((finding.level, finding.subject), (Level::Warn, Subject::Host));
            assert!(finding.title.starts_with("node 0 has 2.0 %"), "{}", finding.title);
        }

        #[test]
        fn the_edges() {
            assert_eq!(found(&[100 * M]), None, "one node alone is not an imbalance");
            assert_eq!(found(&[100 * M, 2 * G]), None, "20 % is not plenty");
            assert_eq!(found(&[308 * M, 5 * G]), None, "a little over 3 %");
            assert!(found(&[300 * M, 3 * G]).is_some());
            assert_eq!(found(&[]), None);
        }
    }

    mod off {
        use super::super::*;
        use crate::doctor::facts::made_up::rule_finds;
        use crate::doctor::facts::made_up::{self, G};
        use crate::os::cpus::Cpus;
        use crate::os::numa::Node;

        #[test]
        fn a_heap_of_a_quarter_of_a_node_on_two_of_them() {
            let mut facts = made_up::healthy();
            let node = |number| Node { number, total_bytes: 8 * G, free_bytes: 4 * G, pools: Vec::new() };
            assert_eq!(rule_finds("numa-off", &facts), [], "one node");
            facts.host.nodes = vec![node(0), node(1)];
            assert_eq!(rule_finds("numa-off", &facts).pop().map(|finding| finding.level), Some(Level::Info));
            made_up::set_flags(&mut facts.jvms[0], &[("MaxHeapSize", "2147483647")]);
            assert_eq!(rule_finds("numa-off", &facts), [], "below a quarter");
            made_up::set_flags(&mut facts.jvms[0], &[("MaxHeapSize", "2147483648")]);
            facts.jvms[0].cpus = Ok(Cpus { allowed: 2, quota: None });
            assert_eq!(rule_finds("numa-off", &facts), [], "bound to half of the CPUs");
            facts.jvms[0].cpus = Ok(Cpus { allowed: 4, quota: None });
            made_up::view(&mut facts.jvms[0]).gc = Ok(Gc::Serial);
            assert_eq!(rule_finds("numa-off", &facts), [], "which could not use it");
            made_up::view(&mut facts.jvms[0]).gc = Ok(Gc::G1);
            made_up::set_flags(&mut facts.jvms[0], &[("UseNUMA", "true")]);
            assert_eq!(rule_finds("numa-off", &facts), []);
        }
    }

    mod reclaim {
        use super::super::*;
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
            assert_eq!(
                rule_finds("zone-reclaim", &facts).pop().map(|finding| finding.level),
                Some(Level::Info)
            );
            facts.host.vmstat_first.insert("zone_reclaim_failed".to_string(), 10);
            facts.host.vmstat.insert("zone_reclaim_failed".to_string(), 11);
            assert_eq!(
                rule_finds("zone-reclaim", &facts).pop().map(|finding| finding.level),
                Some(Level::Warn)
            );
            facts.host.sysctl.insert("vm/zone_reclaim_mode".to_string(), "0".to_string());
            assert_eq!(rule_finds("zone-reclaim", &facts), []);
        }
    }
}
