//! Answers from made-up samples.

use super::*;
use crate::doctor::Cost;
use crate::doctor::Subject as Of;
use crate::jvm::{Compiling, Held, HeldBy, ThreadKind, UNREACHED, VM_HOLDER};
use crate::map::model::{Heap, Jvm, Process, ThreadAccount};
use crate::map::rows::{Measure, Named, Subject};

const M: Bytes = 1 << 20;

/// Five samples in 40 s; `add` says what there is at each.
fn looks(add: impl Fn(u64, &mut Look)) -> Vec<Look> {
    let look = |at: u64| {
        let account = Account {
            process: Process { pid: 7, ..Process::default() },
            ..Account::made_up(&[(Area::JavaHeap, 100 * M)])
        };
        let mut look = Look { seconds: at as f64 * 10.0, account, ..Look::default() };
        add(at, &mut look);
        look
    };
    (0..5).map(look).collect()
}

fn resident(look: &mut Look, area: Area, bytes: Bytes) {
    look.sums.add(&Subject::Area(area), Measure::Resident, bytes);
}

fn threads(look: &mut Look, name: &str, count: u64) {
    look.sums.add(&Subject::Threads(name.to_string()), Measure::Threads, count);
    look.sums.add(&Subject::Threads(name.to_string()), Measure::Resident, count << 16);
}

/// As a reading of which the holders were read.
fn holders(look: &mut Look, held: &[Held]) {
    look.sums.has_all_holders = true;
    look.account.holders = Some(held.to_vec());
    for one in held {
        let subject = Subject::Named(Named::Holder, one.holder.clone());
        look.sums.add(&subject, Measure::InUse, one.bytes);
        look.sums.add(&subject, Measure::Blocks, one.blocks);
    }
}

fn answers_of(looks: &[Look], findings: &[Finding]) -> Vec<Answer> {
    answers(&Seen { looks, jvm: None, findings, classes: &[] })
}

#[test]
fn of_nothing_and_of_a_quiet_jvm_there_is_no_answer() {
    assert_eq!(answers_of(&[], &[]), []);
    let quiet = looks(|_, look| resident(look, Area::MallocUnknown, 500 * M));
    assert_eq!(answers_of(&quiet, &[]), []);
    assert_eq!(answers_of(&quiet[..1], &[]), []);
}

#[test]
fn what_warms_up_is_never_an_answer() {
    let warming = looks(|at, look| {
        for area in
            [Area::JavaHeap, Area::Gc, Area::JitCode, Area::ClassMetadata, Area::Code, Area::CdsArchive]
        {
            resident(look, area, at * 50 * M);
        }
        threads(look, "pool-#", [4, 40, 60, 64, 64][at as usize]);
    });
    assert_eq!(answers_of(&warming, &[]), []);
}

#[test]
fn a_holder_that_grows_with_native_memory_is_named_and_the_vm_is_not() {
    let name = "java.util.zip.Inflater$InflaterZStreamRef.address";
    let leaking = looks(|at, look| {
        resident(look, Area::NativeLibrary, 10 * M + at * 2 * M);
        resident(look, Area::JvmWork, 10 * M + at * M);
        if at == 1 || at == 4 {
            let vm = Held::made_up(VM_HOLDER, 10 * M + at * M);
            let still = Held::made_up("app.Cache.address", 300 * M);
            holders(look, &[Held::made_up(name, 10 * M + at * 2 * M), vm, still]);
        }
    });
    let found = answers_of(&leaking, &[]);
    let [answer] = &found[..] else { panic!("one answer: {found:?}") };
    assert_eq!((answer.who.as_deref(), answer.sure, answer.level), (Some(name), Sure::Certain, Level::Warn));
    assert_eq!((answer.bytes, answer.bytes_per_hour), (Some(18 * M), Some(720 * M as i64)));
    assert!(answer.what.contains("not closed: java.util.zip.Inflater"), "{answer:?}");
    assert_eq!(answer.next.as_deref(), Some("marusa map 7 --by holder"));
    assert!(answer.fix.as_ref().is_some_and(|fix| fix.contains("end()")), "{answer:?}");
}

#[test]
fn of_a_large_heap_whose_holders_are_read_once_the_largest_is_only_possible() {
    let leaking = looks(|at, look| {
        resident(look, Area::MallocUnknown, 10 * M + at * 2 * M);
        if at == 4 {
            holders(look, &[Held::made_up("app.A.address", 5 * M), Held::made_up("app.B.address", 17 * M)]);
        }
    });
    let found = answers_of(&leaking, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].who.as_deref(), found[0].sure), (Some("app.B.address"), Sure::Possible));
    assert_eq!(found[0].level, Level::Info);
}

#[test]
fn blocks_that_nothing_leads_to_are_of_unsafe_where_no_library_is_loaded() {
    let lost = |bytes| Held { how: HeldBy::Unreached, kind: None, ..Held::made_up(UNREACHED, bytes) };
    let leaking = looks(|at, look| {
        resident(look, Area::MallocUnknown, 10 * M + at * 2 * M);
        if at == 1 || at == 4 {
            holders(look, &[lost(10 * M + at * 2 * M)]);
        }
    });
    let found = answers_of(&leaking, &[]);
    assert!(found[0].what.contains("Unsafe.allocateMemory"), "{found:?}");
    assert_eq!(found[0].sure, Sure::Likely);
}

#[test]
fn what_grows_in_number_is_named_with_its_name() {
    let leaking = |collected: u64| {
        looks(|at, look| {
            look.old_collections = Some(7 + at * collected);
            threads(look, "leaked-#", 10 + at * 5);
            threads(look, "http-#", 200);
            for (class, count) in
                [("app.PluginLoader", 5 + at * 20), ("sun.reflect.DelegatingClassLoader", at * 50)]
            {
                let group = Subject::Named(Named::Loader, class.to_string());
                look.sums.add(&group, Measure::ClassLoaders, count);
                look.sums.add(&group, Measure::Committed, count << 15);
            }
            let mappings = (0..(10 + at * 10) as usize).collect();
            let group = Group { mappings, resident: at * 4 * M, ..Group::default() };
            look.files.insert("/data/x-#.dat".to_string(), group);
        })
    };
    let found = answers_of(&leaking(1), &[]);
    let who: Vec<&str> = found.iter().filter_map(|answer| answer.who.as_deref()).collect();
    assert_eq!(who, ["/data/x-#.dat", "app.PluginLoader", "leaked-#"], "by the bytes in an hour");
    assert!(found.iter().all(|answer| answer.sure == Sure::Certain), "{found:?}");
    let found = answers_of(&leaking(0), &[]);
    let loaders = found.iter().find(|answer| answer.who.as_deref() == Some("app.PluginLoader"));
    assert_eq!(loaders.map(|answer| answer.sure), Some(Sure::Likely), "they may be garbage: {found:?}");
}

#[test]
fn a_method_that_takes_much_to_compile_is_named_by_a_look_out_of_turn() {
    let compiling = |bytes| ThreadAccount {
        tid: 9,
        name: "C2 CompilerThread0".to_string(),
        kind: ThreadKind::Compiler,
        stack: None,
        compiling: Some(Compiling {
            method: "app.Parser::parse".to_string(),
            level: Some(4),
            is_osr: Some(false),
            arena_bytes: Some(bytes),
        }),
    };
    let seen = |bytes, at: &[u64]| {
        let looks = looks(|look_at, look| {
            if at.contains(&look_at) {
                look.account.threads.push(compiling(bytes));
                look.is_extra = look_at == 2;
            }
        });
        answers_of(&looks, &[]).pop().and_then(|answer| answer.who)
    };
    assert_eq!(seen(47 * M, &[2]), None, "an ordinary method");
    assert_eq!(seen(48 * M, &[2]).as_deref(), Some("app.Parser::parse"));
    assert_eq!(seen(5 * M, &[1, 2, 3]), None, "twice in turn");
    assert_eq!(seen(5 * M, &[0, 1, 3]).as_deref(), Some("app.Parser::parse"));
}

fn finding(id: &'static str, level: Level, title: &str) -> Finding {
    Finding {
        id,
        level,
        subject: Of::Jvm(7),
        title: title.to_string(),
        evidence: Vec::new(),
        cost: Cost::bytes(90 * M),
        remedies: Vec::new(),
    }
}

#[test]
fn findings_of_the_doctor_are_answers_from_their_level_on_and_freed_memory_is_one() {
    let quiet = looks(|_, _| {});
    let ids = |findings: &[Finding]| -> Vec<Option<&str>> {
        answers_of(&quiet, findings).iter().map(|answer| answer.finding).collect()
    };
    assert_eq!(
        ids(&[finding("malloc-freed-held", Level::Info, "x"), finding("nmt-on", Level::Warn, "x")]),
        []
    );
    let arenas = [finding("malloc-arenas", Level::Warn, "x"), finding("malloc-freed-held", Level::Warn, "x")];
    assert_eq!(ids(&arenas), [Some("malloc-arenas")]);
    let answer = answers_of(&quiet, &arenas).remove(0);
    assert_eq!((answer.next.as_deref(), answer.bytes_per_hour), (Some("marusa trim 7"), None));
}

#[test]
fn a_finding_about_what_grows_completes_that_answer() {
    let leaking = looks(|at, look| threads(look, "leaked-#", 490 + at * 60));
    let found = answers_of(&leaking, &[finding("thread-pool-large", Level::Info, "700 threads")]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].finding, found[0].level), (Some("thread-pool-large"), Level::Warn));
}

#[test]
fn growth_that_reaches_the_limit_within_an_hour_is_critical_and_the_cgroup_has_rows_of_its_own() {
    let group = |shmem: Bytes, file: Bytes, current: Bytes| GroupMemory {
        path: "/sys/fs/cgroup/app".to_string(),
        limit_bytes: 1000 * M,
        current_bytes: current,
        rows: [("shmem".to_string(), shmem), ("file".to_string(), shmem + file)].into(),
        ..GroupMemory::default()
    };
    let tmpfs = |current: Bytes| {
        answers_of(&looks(|at, look| look.group = Some(group(at * 5 * M, 10 * M, current))), &[])
    };
    let found = tmpfs(500 * M);
    assert_eq!(
        (found.len(), found[0].level),
        (1, Level::Critical),
        "500 MiB left, 1.8 GiB in an hour: {found:?}"
    );
    assert!(found[0].what.contains("tmpfs"), "{found:?}");
    let cache = |file: Bytes, current: Bytes| {
        answers_of(&looks(|_, look| look.group = Some(group(0, file, current))), &[])
    };
    assert_eq!(cache(300 * M, 900 * M).iter().map(|it| it.level).collect::<Vec<_>>(), [Level::Info]);
    assert_eq!((cache(200 * M, 900 * M), cache(300 * M, 700 * M)), (vec![], vec![]), "little, or room left");
}

#[test]
fn details_are_read_where_native_memory_grows_or_is_large() {
    let none = Details::default();
    let still = looks(|_, look| resident(look, Area::MallocUnknown, 20 * M));
    assert_eq!((details(&still, false), details(&still, true), details(&[], true)), (none, none, none));
    let large = looks(|_, look| resident(look, Area::MallocUnknown, 40 * M));
    assert_eq!((details(&large, false), details(&large, true).holders), (none, true));
    let growing = looks(|at, look| resident(look, Area::MallocUnknown, at * M));
    assert_eq!((details(&growing[..2], false).holders, details(&growing, true).holders), (true, true));
    let heap = looks(|at, look| resident(look, Area::JavaHeap, at * 100 * M));
    assert_eq!((details(&heap[..2], false), details(&heap, true)), (none, none));
}

#[test]
fn a_heap_that_collections_leave_full_is_named_with_its_largest_class() {
    let heap = |used: Bytes, collections: u64| {
        looks(|at, look| {
            let heap = Heap {
                reserved: Vec::new(),
                max_bytes: Some(100 * M),
                committed_bytes: None,
                used_bytes: Some(used),
                region_bytes: None,
            };
            look.account.jvm = Some(Jvm { heap: Some(heap), ..jvm() });
            look.old_collections = Some(7 + if at == 4 { collections } else { 0 });
        })
    };
    let classes = [ClassObjects { class: "[B".to_string(), bytes: 70 * M, ..ClassObjects::default() }];
    let found = |looks: &[Look]| answers(&Seen { looks, jvm: None, findings: &[], classes: &classes });
    let full = found(&heap(90 * M, 2));
    assert_eq!((full[0].who.as_deref(), full[0].bytes), (Some("[B"), Some(70 * M)));
    assert_eq!((found(&heap(89 * M, 2)), found(&heap(95 * M, 1))), (vec![], vec![]));
}

fn jvm() -> Jvm {
    Jvm {
        vm: "hotspot".to_string(),
        version: None,
        major: None,
        gc: None,
        nmt: None,
        java_threads: None,
        library: String::new(),
        build_id: None,
        flags: BTreeMap::new(),
        heap: None,
        code_heaps: None,
        classes: None,
    }
}
