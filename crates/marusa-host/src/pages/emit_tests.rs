use super::*;
use crate::jvm::Gc;
use crate::pages::made_up::{host, request};
use crate::pages::plan::make;
use crate::pages::request::Request;

fn plan(vm: Vm, mode: Mode) -> Plan {
    let host = host();
    let wanted = Request { mode: Some(mode), ..request(&host, vm, 17, Gc::G1, 2 << 30) };
    make(&wanted).expect("a plan")
}

#[test]
fn every_kind_says_something() {
    for mode in [Mode::HugeTlb2M, Mode::HugeTlb1G, Mode::Thp] {
        for vm in [Vm::HotSpot, Vm::OpenJ9] {
            let plan = plan(vm, mode);
            for kind in Emit::value_variants() {
                let text = kind.text(&plan);
                assert!(text.ends_with('\n') && !text.contains("  \n"), "{kind:?} {text}");
            }
        }
    }
}

#[test]
fn a_pool_in_each_language() {
    let plan = plan(Vm::HotSpot, Mode::HugeTlb2M);
    let text = |kind: Emit| kind.text(&plan);
    assert!(text(Emit::Sysctl).contains("\nvm.nr_hugepages = 1182\n"));
    assert!(text(Emit::Tmpfiles).starts_with("# nothing"));
    assert!(text(Emit::Limits).starts_with("# nothing for limits.d: MAP_HUGETLB"));
    assert!(text(Emit::Systemd).contains("Environment=\"JAVA_TOOL_OPTIONS=-XX:+UseLargePages -Xmx1g\""));
    assert!(text(Emit::Cmdline).ends_with("hugepagesz=2M hugepages=1182\n"));
    assert!(text(Emit::Docker).contains("{\"pageSize\": \"2MB\", \"limit\": 2478833664}"));
    assert!(text(Emit::Kubernetes).contains("hugepages-2Mi: 2364Mi\n"));
    assert!(text(Emit::Jvm).contains("\n-XX:+UseLargePages\n"));
}

#[test]
fn shared_memory_is_asked_for_where_it_is_used() {
    let plan = plan(Vm::OpenJ9, Mode::HugeTlb2M);
    assert!(Emit::Limits.text(&plan).contains("@java - memlock"));
    assert!(Emit::Docker.text(&plan).contains("--ulimit memlock="));
    assert!(Emit::Systemd.text(&plan).contains("LimitMEMLOCK="));
    assert!(Emit::Jvm.text(&plan).contains("\n-Xlp:objectheap:pagesize=2M\n"));
}
