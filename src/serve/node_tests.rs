use super::*;
use crate::os::identity::Identity;

fn facts(main: &str) -> JvmFacts {
    JvmFacts { pid: 7, main: Some(main.to_string()), ..JvmFacts::default() }
}

fn node() -> Node {
    let min_age = Duration::from_secs(30);
    Node::new(Limits { min_age, every: Duration::from_secs(10), memory_bytes: 100 * MEMORY_PART })
}

fn names(node: &Node) -> Vec<String> {
    node.state().jvms.values().map(|jvm| jvm.name.clone()).collect()
}

#[test]
fn two_of_one_name_in_one_place_are_distinguished() {
    let node = node();
    let pod = |name: &str| Who {
        of: Identity { pod: Some(name.to_string()), ..Identity::default() },
        ..Who::default()
    };
    for (number, pod) in [(1, pod("a")), (2, pod("a")), (3, pod("b"))] {
        node.found(number, &facts("Main"), pod, None, None);
    }
    assert_eq!(names(&node), ["Main", "Main/2", "Main"]);
    node.ended(1, Ending::Ended);
    node.found(4, &facts("Main"), pod("a"), None, None);
    assert_eq!(names(&node), ["Main/2", "Main", "Main"]);
    node.learned(4, &facts("Other"));
    assert_eq!(names(&node), ["Main/2", "Main", "Other"]);
}

#[test]
fn documents_take_no_more_than_their_room() {
    let node = node();
    for number in [1, 2] {
        node.found(number, &facts("Main"), Who::default(), None, None);
        node.read(number, Summary::default(), Vec::new(), Some(vec![0; 60]));
    }
    let has = |number: u64| node.state().jvms[&number].account().expect("read").document.is_some();
    assert!(has(1) && !has(2));
    node.read(1, Summary::default(), Vec::new(), Some(vec![0; 40]));
    node.read(2, Summary::default(), Vec::new(), Some(vec![0; 60]));
    assert!(has(1) && has(2));
    node.ended(2, Ending::Ended);
    assert_eq!(node.state().document_bytes, 40);
    node.read(1, Summary::default(), Vec::new(), Some(vec![0; 100]));
    assert!(has(1), "what has ended needs no room");
}

#[test]
fn the_young_are_not_shown() {
    let node = node();
    node.found(1, &facts("Main"), Who::default(), None, Some(Duration::from_secs(1)));
    node.found(2, &facts("Main"), Who::default(), None, Some(Duration::from_secs(31)));
    let state = node.state();
    assert!(!node.is_shown(&state.jvms[&1]) && node.is_shown(&state.jvms[&2]));
}

#[test]
fn what_ends_is_forgotten() {
    let node = node();
    for number in 0..10_000 {
        node.found(number, &facts("Main"), Who::default(), None, None);
        node.looked(number, &Figures::new());
        node.ended(number, Ending::Ended);
    }
    let state = node.state();
    assert_eq!((state.jvms.len(), state.ended.len()), (0, ENDED_MAX));
    assert!(state.ended.capacity() <= 2 * ENDED_MAX);
}
