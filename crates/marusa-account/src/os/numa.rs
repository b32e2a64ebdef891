//! `/sys/devices/system/node`: the memory of each node. Huge pages belong to a node, and a JVM that is bound to one cannot
//! use those of another (Documentation/admin-guide/mm/hugetlbpage.rst, "Interaction of Task Memory Policy").

use super::hugetlb::{self, Pool};
use super::{host, meminfo};
use crate::base::Bytes;
use crate::base::limits::MEMORY_NODES_MAX;

const DIRECTORY: &str = "/sys/devices/system/node";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub number: u32,
    pub total_bytes: Bytes,
    pub free_bytes: Bytes,
    /// The pools of this node: `pages`, `free` and `surplus` only.
    pub pools: Vec<Pool>,
}

/// Nodes with memory, by number; empty where the kernel was built without NUMA.
pub fn read() -> Vec<Node> {
    let online = host::text(format!("{DIRECTORY}/has_memory")).unwrap_or_default();
    list(&online).into_iter().filter_map(node).collect()
}

fn node(number: u32) -> Option<Node> {
    let directory = format!("{DIRECTORY}/node{number}");
    let text = host::text(format!("{directory}/meminfo")).ok()?;
    let fields = meminfo::fields(&text);
    let field = |name| fields.get(&format!("Node {number} {name}")).copied();
    let pools = hugetlb::pools(&format!("{directory}/hugepages"));
    Some(Node { number, total_bytes: field("MemTotal")?, free_bytes: field("MemFree")?, pools })
}

/// "0-1,4": the numbers, at most `MEMORY_NODES_MAX`.
pub fn list(text: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { continue };
        let room = MEMORY_NODES_MAX.saturating_sub(numbers.len());
        numbers.extend((first..=last).take(room));
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_fields() {
        assert_eq!(list("0-2,7\n"), [0, 1, 2, 7]);
        assert_eq!(list("\n"), [] as [u32; 0]);
        assert_eq!(list("0-4294967295").len(), MEMORY_NODES_MAX);
        let fields = meminfo::fields("Node 10 MemTotal:       24684084 kB\nNode 10 MemFree:        1 kB\n");
        assert_eq!((fields.get("Node 10 MemFree"), fields.get("Node 1 MemFree")), (Some(&1024), None));
    }
}
