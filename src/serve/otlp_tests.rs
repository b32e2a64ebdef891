use super::*;
use crate::map::Area;
use crate::map::rows::Measure;
use crate::os::identity::Identity;
use crate::record::Key;
use crate::record::writer::JvmFacts;
use crate::serve::Who;
use crate::serve::node::Limits;
use crate::serve::summary::{AreaNow, Summary};
use std::time::Duration;

/// The value of a field as it was written.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Value::Bytes(bytes) => String::from_utf8(bytes.clone()).expect("text"),
            Value::Number(number) => number.to_string(),
        }
    }
}

fn fields(bytes: &[u8]) -> Vec<(u64, Value)> {
    let mut fields = Fields(bytes);
    let found = fields.by_ref().map(|(number, value)| match value {
        super::Value::Number(value) => (number, Value::Number(value)),
        super::Value::Bytes(bytes) => (number, Value::Bytes(bytes.to_vec())),
    });
    let found = found.collect();
    assert!(fields.0.is_empty(), "what follows is no field");
    found
}

fn all(bytes: &[u8], field: u64) -> Vec<Vec<u8>> {
    let of = fields(bytes).into_iter().filter(|(number, _)| *number == field);
    of.map(|(_, value)| match value {
        Value::Bytes(bytes) => bytes,
        Value::Number(number) => panic!("field {field} is {number}"),
    })
    .collect()
}

fn value(bytes: &[u8], field: u64) -> Option<Value> {
    fields(bytes).into_iter().find(|(number, _)| *number == field).map(|(_, value)| value)
}

/// Key and value of attributes in `field`.
fn attributes(bytes: &[u8], field: u64) -> Vec<(String, String)> {
    let pair = |bytes: Vec<u8>| {
        let any = all(&bytes, 2).remove(0);
        (value(&bytes, 1).expect("a key").text(), fields(&any)[0].1.text())
    };
    all(bytes, field).into_iter().map(pair).collect()
}

fn metric(resource: &[u8], name: &str) -> Option<Vec<u8>> {
    let scope = all(resource, 2).remove(0);
    all(&scope, 2).into_iter().find(|metric| value(metric, 1).is_some_and(|found| found.text() == name))
}

fn of(list: &[(String, String)], key: &str) -> Option<String> {
    list.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
}

fn some(text: &str) -> Option<String> {
    Some(text.to_string())
}

fn node() -> Node {
    let node = Node::new(Limits { min_age: Duration::from_secs(30), every: Duration::ZERO, memory_bytes: 0 });
    let facts = JvmFacts { pid: 7, main: some("a\"b.jar"), version: some("21.0.4"), ..JvmFacts::default() };
    let pod = Identity {
        namespace: some("shop"),
        pod: some("orders-0"),
        container: some("app"),
        workload: some("orders"),
        ..Identity::default()
    };
    node.found(1, &facts, Who { id: some("abc"), of: pod }, Some(1.5), None);
    let unit = Identity { unit: some("tomcat.service"), ..Identity::default() };
    node.found(2, &facts, Who { id: some("def"), of: unit }, None, None);
    node.found(3, &facts, Who::default(), None, Some(Duration::ZERO));
    let key = Key::process;
    let figures =
        [(Measure::KernelResident, 7), (Measure::CollectionTime, 1_500_000), (Measure::GroupOomKills, 3)];
    node.looked(1, &figures.map(|(measure, value)| (key(measure), Some(value))).to_vec());
    let areas = [Area::JavaHeap, Area::Gc];
    let areas = areas.map(|area| AreaNow { area, resident_bytes: 1 << 40, committed_bytes: None });
    node.read(1, Summary { areas: areas.to_vec(), ..Summary::default() }, Vec::new(), None);
    node
}

fn written() -> Vec<Vec<u8>> {
    let context = Context { host_name: some("n1"), boot_nanos: Some(9), now_nanos: 2_000_000_000 };
    let node = node();
    let bytes = request(&node, &node.state(), &context);
    all(&bytes, 1)
}

#[test]
fn each_shown_jvm_is_a_resource_by_the_conventions() {
    let resources = written();
    assert_eq!(resources.len(), 3, "two JVMs and the node; the young one is not shown");
    let named: Vec<_> = resources.iter().map(|it| attributes(&all(it, 1)[0], 1)).collect();
    let names = |key: &str| named.iter().map(|list| of(list, key)).collect::<Vec<_>>();
    assert_eq!(names("service.name"), [some("orders"), some("tomcat.service"), some("marusa")]);
    assert_eq!(names("service.instance.id"), [some("shop.orders-0.app"), some("def"), some("n1")]);
    assert_eq!(names("k8s.pod.name"), [some("orders-0"), None, None]);
    assert_eq!(names("process.pid"), [some("7"), some("7"), None]);
    assert_eq!(names("marusa.jvm.id"), [some("abc"), some("def"), None]);
    assert_eq!(names("host.name"), vec![some("n1"); 3]);
}

#[test]
fn gauges_sums_and_infos() {
    let resources = written();
    let resident = metric(&resources[0], "marusa.jvm.memory.resident").expect("areas");
    assert_eq!(value(&resident, 3).expect("a unit").text(), "By");
    let points = all(&all(&resident, 5)[0], 1);
    let areas: Vec<_> = points.iter().map(|point| of(&attributes(point, 7), "marusa.area")).collect();
    assert_eq!(areas, [some("java_heap"), some("gc")]);
    assert_eq!(of(&attributes(&points[0], 7), "marusa.jvm"), some("a\"b.jar"));
    assert_eq!(value(&points[0], 4), Some(Value::Number(((1_u64 << 40) as f64).to_bits())));
    assert_eq!((value(&points[0], 2), value(&points[0], 3)), (None, Some(Value::Number(2_000_000_000))));

    let time = all(&metric(&resources[0], "marusa.jvm.gc.duration").expect("a sum"), 7).remove(0);
    assert_eq!((value(&time, 2), value(&time, 3)), (Some(Value::Number(2)), Some(Value::Number(1))));
    let point = all(&time, 1).remove(0);
    assert_eq!(value(&point, 2), Some(Value::Number(1_500_000_000)), "since the JVM started");
    assert_eq!(value(&point, 4), Some(Value::Number(1.5_f64.to_bits())));

    let kills = all(&metric(&resources[0], "marusa.jvm.group.oom_kills").expect("a sum"), 7).remove(0);
    assert_eq!(value(&all(&kills, 1)[0], 2), None, "the cgroup's start is not known");
    let info = metric(&resources[0], "marusa.jvm.info").expect("facts");
    assert_eq!(value(&info, 3), None, "no unit");
    let facts = attributes(&all(&all(&info, 5)[0], 1)[0], 7);
    assert_eq!(of(&facts, "marusa.java_version"), some("21.0.4"));
    assert_eq!(metric(&resources[0], "marusa.jvm.kernel.swapped"), None, "what is not known is absent");
    assert!(metric(&resources[2], "marusa.build.info").is_some());
}

#[test]
fn numbers_of_any_length() {
    for number in [0, 1, 127, 128, 300, u64::MAX] {
        let mut out = Proto::default();
        out.varint(16, number);
        assert_eq!(fields(&out.0), [(16, Value::Number(number))]);
    }
}

#[test]
fn what_a_back_end_rejects() {
    let rejected = |points, why: &str| Rejected { points, why: why.to_string() };
    let answer = |points: u64, why: &str| {
        let mut out = Proto::default();
        out.message(1, |out| {
            out.varint(1, points);
            out.text(2, why);
        });
        out.0
    };
    assert_eq!(Rejected::of(b""), rejected(0, ""), "all was taken");
    assert_eq!(Rejected::of(&answer(3, "too old")), rejected(3, "too old"));
    assert_eq!(Rejected::of(&answer(0, "a hint")), rejected(0, "a hint"));
    assert_eq!(Rejected::of(&answer(u64::MAX, "")), rejected(0, ""), "-1");
    assert_eq!(Rejected::of(&answer(1, &"x".repeat(1000))).why.len(), 200);
    // Not of protobuf, or cut off anywhere.
    assert_eq!(Rejected::of(b"{\"partialSuccess\":{}}"), rejected(0, ""));
    assert_eq!(Rejected::of(&[0xff; 100]), rejected(0, ""));
    let whole = answer(300, "too old");
    (0..whole.len()).for_each(|end| assert_eq!(Rejected::of(&whole[..end]), rejected(0, "")));
}

#[test]
fn a_start_that_a_clock_set_back_has_in_the_future_is_not_known() {
    let node = node();
    let at = |now_nanos| {
        let bytes = request(&node, &node.state(), &Context { now_nanos, ..Context::default() });
        let time = metric(&all(&bytes, 1)[0], "marusa.jvm.gc.duration").expect("a sum");
        value(&all(&all(&time, 7)[0], 1)[0], 2)
    };
    assert_eq!((at(1_500_000_000), at(1_499_999_999)), (Some(Value::Number(1_500_000_000)), None));
}
