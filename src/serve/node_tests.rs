use super::*;

fn facts(main: &str) -> JvmFacts {
    JvmFacts { pid: 7, main: Some(main.to_string()), ..JvmFacts::default() }
}

fn node() -> Node {
    Node::new(Duration::from_secs(30), 100)
}

fn names(node: &Node) -> Vec<String> {
    node.state().jvms.values().map(|jvm| jvm.name.clone()).collect()
}

#[test]
fn names_are_short_and_without_control_letters() {
    for (main, name) in [
        ("org.example.Main", "Main"),
        ("/srv/app/orders-1.2.jar", "orders-1.2.jar"),
        ("a\u{1b}[31mb\n", "a[31mb"),
        ("", "java"),
        ("\n", "java"),
    ] {
        assert_eq!(label(&facts(main)), name);
    }
    assert_eq!(label(&facts(&"x".repeat(10_000))).len(), NAME_LETTERS_MAX);
    assert_eq!(label(&JvmFacts::default()), "java");
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
    node.ended(1, 0, Ending::Ended);
    node.found(4, &facts("Main"), pod("a"), None, None);
    assert_eq!(names(&node), ["Main/2", "Main", "Main"]);
    node.learned(4, &facts("Other"));
    assert_eq!(names(&node), ["Main/2", "Main", "Other"]);
}

#[test]
fn what_is_not_known_any_more_is_absent() {
    let node = node();
    node.found(1, &facts("Main"), Who::default(), None, None);
    let key = Key::process(Measure::HeapUsed);
    node.looked(1, 1, &vec![(key.clone(), Some(5))]);
    assert_eq!(node.state().jvms[&1].figure(Measure::HeapUsed), Some(5));
    node.looked(1, 2, &vec![(key, None)]);
    assert_eq!(node.state().jvms[&1].figure(Measure::HeapUsed), None);
    assert_eq!(node.state().jvms[&1].history.rows().count(), 2);
}

#[test]
fn documents_take_no_more_than_their_room() {
    let node = node();
    for number in [1, 2] {
        node.found(number, &facts("Main"), Who::default(), None, None);
        node.read(number, Summary::default(), Vec::new(), Some(vec![0; 60]));
    }
    let has = |number: u64| node.state().jvms[&number].account.as_ref().expect("read").document.is_some();
    assert!(has(1) && !has(2));
    node.read(1, Summary::default(), Vec::new(), Some(vec![0; 40]));
    node.read(2, Summary::default(), Vec::new(), Some(vec![0; 60]));
    assert!(has(1) && has(2));
}

#[test]
fn the_young_are_not_shown() {
    let node = node();
    node.found(1, &facts("Main"), Who::default(), None, Some(Duration::from_secs(1)));
    node.found(2, &facts("Main"), Who::default(), None, Some(Duration::from_secs(31)));
    let state = node.state();
    assert!(!node.is_shown(&state.jvms[&1]) && node.is_shown(&state.jvms[&2]));
}
