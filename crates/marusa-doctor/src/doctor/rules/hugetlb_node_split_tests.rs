//! This machine has one node of memory: the cases are made up.

use super::*;
use crate::doctor::Subject;
use crate::doctor::facts::made_up::{G, M};
use crate::doctor::rules::page_cases;

fn node(number: u32, pages: u64, free: u64) -> Node {
    let pools = vec![Pool { page_bytes: 2 * M, pages, free, ..Pool::default() }];
    Node { number, total_bytes: 32 * G, free_bytes: 16 * G, pools }
}

/// A JVM that asked for some 2.3 GiB, bound to node 0.
fn bound(nodes: Vec<Node>) -> Facts {
    let mut jvm = page_cases::asks_hugetlb();
    jvm.allowed_nodes = Ok(vec![0]);
    let (pages, free) = nodes
        .iter()
        .fold((0, 0), |(pages, free), node| (pages + node.pools[0].pages, free + node.pools[0].free));
    page_cases::pools(&mut jvm)[0] = Pool { page_bytes: 2 * M, pages, free, ..Pool::default() };
    let mut facts = page_cases::alone(jvm);
    facts.host.nodes = nodes;
    facts
}

#[test]
fn pages_that_are_free_where_the_jvm_may_not_go() {
    let found = find(&bound(vec![node(0, 100, 100), node(1, 2000, 2000)]));
    assert_eq!((found.len(), found[0].level), (1, Level::Warn), "{found:#?}");
    assert!(found[0].title.contains("its nodes have 200.0 MiB of them free"), "{found:#?}");
    assert!(found[0].remedies[0].text().contains("node0/hugepages/hugepages-2048kB/nr_hugepages"));
}

#[test]
fn pages_that_are_nowhere_or_that_it_may_have() {
    assert_eq!(find(&bound(vec![node(0, 100, 100), node(1, 100, 100)])), [], "too few on both");
    assert_eq!(find(&bound(vec![node(0, 2000, 2000), node(1, 2000, 2000)])), [], "its own has them");
    let mut free = bound(vec![node(0, 100, 100), node(1, 2000, 2000)]);
    free.jvms[0].allowed_nodes = Ok(vec![0, 1]);
    assert_eq!(find(&free), [], "it may use both");
}

#[test]
fn a_node_without_any() {
    let host = |pages: u64| Facts { jvms: Vec::new(), ..bound(vec![node(0, pages, 0), node(1, 0, 0)]) };
    assert_eq!(find(&host(31)), [], "62 MiB");
    let found = find(&host(32));
    assert_eq!((found[0].level, found[0].subject), (Level::Info, Subject::Host));
    assert!(found[0].title.contains("node 1 has none of the 64.0 MiB"), "{found:#?}");
    let one = Facts { jvms: Vec::new(), ..bound(vec![node(0, 0, 0)]) };
    assert_eq!(find(&one), [], "no other node");
}
