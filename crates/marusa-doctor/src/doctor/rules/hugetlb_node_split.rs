//! Pages of hugetlb belong to a node of memory, and a process that is bound to some nodes cannot use those of the others: the
//! sum of the host may be enough where the JVM's own nodes have none.

use crate::base::{Bytes, human, size};
use crate::doctor::promise::{self, Kind};
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::os::hugetlb::Pool;
use crate::os::numa::Node;

/// Below this a pool is too small to be uneven.
const UNEVEN_BYTES_MIN: Bytes = 64 << 20;

pub(super) fn find(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = facts.jvms.iter().filter_map(|jvm| of_jvm(facts, jvm)).collect();
    let sizes: Vec<Bytes> = facts.host.pages.pools.iter().map(|pool| pool.page_bytes).collect();
    found.extend(sizes.into_iter().filter_map(|page_bytes| of_host(&facts.host.nodes, page_bytes)));
    found
}

fn pool(node: &Node, page_bytes: Bytes) -> Option<&Pool> {
    node.pools.iter().find(|pool| pool.page_bytes == page_bytes)
}

fn file(node: &Node, page_bytes: Bytes) -> String {
    let (number, kilobytes) = (node.number, page_bytes >> 10);
    format!("/sys/devices/system/node/node{number}/hugepages/hugepages-{kilobytes}kB/nr_hugepages")
}

/// Missing in a JVM, and free only where it may not go.
pub fn of_jvm(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let allowed = jvm.allowed_nodes.as_ref().ok()?;
    let nodes = &facts.host.nodes;
    let (own, others): (Vec<&Node>, Vec<&Node>) =
        nodes.iter().partition(|node| allowed.contains(&node.number));
    if own.is_empty() || others.is_empty() {
        return None;
    }
    let broken =
        promise::broken(jvm).filter(|broken| [Kind::Pool, Kind::SwitchedOff].contains(&broken.kind))?;
    let page_bytes = broken.promise.needs.iter().map(|need| need.page_bytes).max()?;
    let free = |nodes: &[&Node]| -> Bytes {
        let pages = nodes.iter().filter_map(|node| pool(node, page_bytes)).map(|pool| pool.free);
        pages.fold(0, u64::saturating_add).saturating_mul(page_bytes)
    };
    let (own_bytes, others_bytes) = (free(&own), free(&others));
    if own_bytes >= broken.missing_bytes || others_bytes < broken.missing_bytes || !broken.is_worth_it() {
        return None;
    }
    let title = format!(
        "the JVM lacks {} of {} pages; its nodes have {} of them free, the others {}",
        human(broken.missing_bytes),
        size(page_bytes),
        human(own_bytes),
        human(others_bytes)
    );
    let mut evidence = vec![Evidence::state("nodes it may use", format!("{allowed:?}"), "/proc/PID/status")];
    evidence.extend(nodes.iter().filter_map(|node| {
        let free = pool(node, page_bytes)?.free;
        Some(Evidence::count(format!("free pages of node {}", node.number), free, file(node, page_bytes)))
    }));
    evidence.extend(broken.evidence());
    let lacking = broken.missing_bytes.saturating_sub(own_bytes).div_ceil(page_bytes.max(1));
    let now = pool(own[0], page_bytes).map_or(0, |pool| pool.pages);
    let more = format!("echo {} > {}", now.saturating_add(lacking), file(own[0], page_bytes));
    let remedies = vec![
        Remedy::Setting(more),
        Remedy::advice("let the JVM use the other nodes too (numactl, cpuset.mems); then restart it"),
    ];
    Some(Finding::on_jvm(jvm.pid, Level::Warn, title, evidence, remedies))
}

/// One node has none, though the pool is large.
fn of_host(nodes: &[Node], page_bytes: Bytes) -> Option<Finding> {
    let pages = |node: &Node| pool(node, page_bytes).map_or(0, |pool| pool.pages);
    let all: Bytes = nodes.iter().map(pages).fold(0, u64::saturating_add).saturating_mul(page_bytes);
    let without = nodes.iter().find(|node| pages(node) == 0)?;
    if nodes.len() < 2 || all < UNEVEN_BYTES_MIN {
        return None;
    }
    let title =
        format!("node {} has none of the {} of {} pages", without.number, human(all), size(page_bytes));
    let count = |node: &Node| {
        Evidence::count(format!("pages of node {}", node.number), pages(node), file(node, page_bytes))
    };
    let evidence = nodes.iter().map(count);
    let share = (all / page_bytes.max(1)).div_ceil(nodes.len() as u64);
    let remedies = vec![Remedy::Setting(format!("echo {share} > {}", file(without, page_bytes)))];
    Some(Finding::on_host(Level::Info, title, evidence, remedies))
}

#[cfg(test)]
#[path = "hugetlb_node_split_tests.rs"]
mod tests;
