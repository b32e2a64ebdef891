//! A large heap on a host with several nodes of memory, and a collector that does not use them.

use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::jvm::Gc;

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

pub(super) fn of(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
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

#[cfg(test)]
mod tests {
    use super::*;
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
