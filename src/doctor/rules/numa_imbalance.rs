//! One node of memory is nearly full while others have plenty: who allocates there waits for reclaim or gets memory that is far.

use crate::doctor::{Evidence, Facts, Finding, Level, Remedy};
use crate::os::numa::Node;

/// kswapd of a node wakes at about 1 % with default watermarks; 3 % is on the way there.
const FULL_PERCENT: f64 = 3.0;
const PLENTY_PERCENT: f64 = 25.0;

fn free_percent(node: &Node) -> f64 {
    if node.total_bytes == 0 { 100.0 } else { node.free_bytes as f64 * 100.0 / node.total_bytes as f64 }
}

pub(super) fn of(facts: &Facts) -> Option<Finding> {
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

#[cfg(test)]
mod tests {
    use super::*;
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
