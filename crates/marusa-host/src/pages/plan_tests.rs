use super::*;
use crate::act::door::{allowed, content};
use crate::jvm::Gc;
use crate::os::host_memory::HostMemory;
use crate::pages::feasible::Preference;
use crate::pages::made_up::{host, request};
use crate::pages::request::Running;

fn changes(plan: &Plan) -> Vec<String> {
    let of = |step: &Step| match &step.change {
        Change::Add { file, by } => format!("{file} +{by}"),
        Change::Choose { file, word } => format!("{file} {word}"),
        Change::Set { file, value } => format!("{file} = {value}"),
        Change::Create { file, .. } => file.clone(),
        other => format!("{other:?}"),
    };
    plan.steps.iter().chain(&plan.persist).map(of).collect()
}

#[test]
fn a_pool_for_g1_and_nothing_that_is_not_needed() {
    let host = host();
    let plan = make(&request(&host, Vm::HotSpot, 17, Gc::G1, 2 << 30)).expect("a plan");
    assert_eq!(plan.pools[0].pages, 1182, "the heap is only 1,024 of them");
    assert_eq!(
        changes(&plan),
        [
            "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages +1182",
            "/etc/sysctl.d/marusa-hotspot-17-g1-2g.conf"
        ]
    );
    assert_eq!(plan.jvm_options, ["-XX:+UseLargePages", "-Xmx1g"]);
    assert!(plan.outlook.memlock.is_empty() && plan.outlook.shm.is_empty());
    let text = serde_json::to_string(&plan).expect("JSON");
    assert_eq!(serde_json::from_str::<Plan>(&text).expect("the same"), plan);
}

#[test]
fn the_file_of_sysctl_has_the_sum() {
    let mut host = host();
    host.pages.pools[0].pages = 100;
    let plan = make(&request(&host, Vm::HotSpot, 17, Gc::G1, 512 << 20)).expect("a plan");
    let Change::Create { content, .. } = &plan.persist[0].change else { panic!("a file") };
    let text = content::text(content);
    assert!(text.ends_with("vm.nr_hugepages = 484\n"), "{text}");
}

#[test]
fn one_page_less_is_said() {
    let host = host();
    let risks = |feature, gc| {
        let plan = make(&request(&host, Vm::HotSpot, feature, gc, 512 << 20)).expect("a plan");
        plan.risks.join("\n")
    };
    assert!(risks(21, Gc::G1).contains("one page of 2M less and all"), "{}", risks(21, Gc::G1));
    assert!(risks(21, Gc::Z).contains("the VM does not start"), "{}", risks(21, Gc::Z));
}

#[test]
fn auto_says_its_rule() {
    let mut host = host();
    let mode = |host: &HostMemory, heap, initial: Bytes| {
        let mut request = Request { mode: None, ..request(host, Vm::HotSpot, 21, Gc::G1, heap) };
        request.subject.heap_initial_bytes = initial;
        let plan = make(&request).expect("a plan");
        (plan.mode, plan.outlook.mode_why.expect("why"))
    };
    assert_eq!(mode(&host, 2 << 30, 2 << 30).0, Mode::HugeTlb2M);
    assert_eq!(mode(&host, 512 << 20, 512 << 20).0, Mode::Thp);
    let (chosen, why) = mode(&host, 2 << 30, 1 << 30);
    assert!(chosen == Mode::Thp && why.starts_with("the heap may grow and shrink"), "{why}");
    assert_eq!(mode(&host, 9 << 30, 9 << 30).0, Mode::Thp, "no pool for that");
    host.pages.thp = None;
    assert_eq!(mode(&host, 512 << 20, 512 << 20).0, Mode::HugeTlb2M);
}

#[test]
fn zgc_on_transparent_pages_needs_the_word_for_shared_memory() {
    let host = host();
    let wanted = Request { mode: Some(Mode::Thp), ..request(&host, Vm::HotSpot, 21, Gc::Z, 1 << 30) };
    let plan = make(&wanted).expect("a plan");
    assert_eq!(
        changes(&plan),
        [
            "/sys/kernel/mm/transparent_hugepage/shmem_enabled advise",
            "/etc/tmpfiles.d/marusa-hotspot-21-zgc-1g.conf"
        ]
    );
    assert!(plan.pools.is_empty() && plan.outlook.feasible == Feasible::Yes);
    let running = Running { thp_enabled: Some(false), ..Running::default() };
    let disabled = make(&Request { running: Some(running), ..wanted }).expect("a plan");
    assert_eq!((disabled.outlook.feasible, disabled.steps.len()), (Feasible::No, 0));
}

#[test]
fn shared_memory_needs_a_group_or_locked_memory() {
    let mut host = host();
    host.shm.max_bytes = Some(1 << 20);
    let wanted = |group| Request { group, ..request(&host, Vm::OpenJ9, 21, Gc::Parallel, 1 << 30) };
    let plan = make(&wanted(None)).expect("a plan");
    let limit = content::limit_line(&plan.outlook.memlock[0]);
    assert_eq!(limit, "@java - memlock 1310720", "512 pages of heap and 128 of code, in KiB");
    let plan = make(&wanted(Some(1001))).expect("a plan");
    assert!(plan.outlook.memlock.is_empty());
    let lines: Vec<String> = plan.outlook.shm.iter().map(content::sysctl_line).collect();
    assert_eq!(lines, ["vm.hugetlb_shm_group = 1001", "kernel.shmmax = 1342177280"]);
}

#[test]
fn what_can_not_be_is_refused() {
    let host = host();
    let why = |feature, gc, mode| {
        let request = Request { mode: Some(mode), ..request(&host, Vm::HotSpot, feature, gc, 1 << 30) };
        make(&request).expect_err("no plan").to_string()
    };
    assert!(why(21, Gc::Z, Mode::HugeTlb1G).contains("2M pages only"));
    assert!(why(11, Gc::G1, Mode::HugeTlb1G).contains("JDK 11"));
}

#[test]
fn two_instances_need_twice_as_much() {
    let host = host();
    let request = Request { instances: 2, ..request(&host, Vm::HotSpot, 17, Gc::G1, 512 << 20) };
    assert_eq!(make(&request).expect("a plan").pools[0].pages, 768);
    assert_eq!(clean_name("../A b"), "---a-b");
}

#[test]
fn the_door_makes_every_step_of_every_plan() {
    let mut host = host();
    host.shm.max_bytes = Some(1);
    host.shm.all_bytes = Some(1);
    host.pages.thp = Some(crate::os::thp::tests::host("never", "deny", "never", "never"));
    for (vm, feature, gc) in [
        (Vm::HotSpot, 17, Gc::G1),
        (Vm::HotSpot, 21, Gc::Z),
        (Vm::HotSpot, 25, Gc::ShenandoahGenerational),
        (Vm::OpenJ9, 21, Gc::Parallel),
    ] {
        for mode in [Mode::HugeTlb2M, Mode::HugeTlb1G, Mode::Thp] {
            for (preference, group) in [(Preference::Auto, Some(1001)), (Preference::Overcommit, None)] {
                let mut wanted = request(&host, vm, feature, gc, 2 << 30);
                (wanted.mode, wanted.preference, wanted.group) = (Some(mode), preference, group);
                wanted.unit = Some("tomcat.service".to_string());
                wanted.launch = vec!["-XX:ShenandoahGCMode=generational".into(), "-Xmx2g".into()];
                let Ok(plan) = make(&wanted) else { continue };
                for step in plan.steps.iter().chain(&plan.persist) {
                    let checked = crate::act::door::allowed::check(&step.change, "/var/lib/marusa");
                    assert_eq!(checked, Ok(()), "{:?}", step.change);
                }
            }
        }
    }
}

/// Every step of every plan is one that the door makes, and its files are made of values.
#[test]
fn what_is_planned_is_what_the_door_makes() {
    let mut host = host();
    host.shm.max_bytes = Some(1 << 20);
    host.shm.all_bytes = Some(1);
    for (vm, gc) in [(Vm::HotSpot, Gc::G1), (Vm::HotSpot, Gc::Z), (Vm::OpenJ9, Gc::Parallel)] {
        for mode in [Mode::HugeTlb2M, Mode::HugeTlb1G, Mode::Thp] {
            for group in [None, Some(1001)] {
                let unit = Some("tomcat.service".to_string());
                let wanted =
                    Request { mode: Some(mode), group, unit, ..request(&host, vm, 21, gc, 64 << 20) };
                let Ok(plan) = make(&wanted) else { continue };
                for step in plan.steps.iter().chain(&plan.persist) {
                    assert_eq!(allowed::check(&step.change, "/state"), Ok(()), "{step:?}");
                }
                let text = serde_json::to_string(&plan).expect("JSON");
                assert!(!text.contains("\"text\""), "{text}");
            }
        }
    }
}

#[test]
fn a_service_gets_only_options_that_a_plan_may_give() {
    let host = host();
    let with = |option: &str| Request {
        unit: Some("tomcat.service".into()),
        launch: vec!["-Xmx1g".into(), option.into()],
        ..request(&host, Vm::HotSpot, 17, Gc::G1, 1 << 30)
    };
    assert!(make(&with("-XX:ParallelGCThreads=4")).is_ok());
    let why = make(&with("-javaagent:/tmp/x.jar")).expect_err("refused").to_string();
    assert!(why.contains("-javaagent") && why.contains("--unit"), "{why}");
}
