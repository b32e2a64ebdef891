use super::*;
use crate::jvm::types::{JvmThread, ThreadKind};

const MS: u64 = 1_000_000;

fn figures(count: u64, ms: u64) -> Figures {
    let mut figures = Figures { count, ns: ms * MS, worst_ns: ms * MS, ..Figures::default() };
    (0..count).for_each(|_| figures.histogram.add(ms * MS / count));
    figures
}

/// A JVM (100) with a Java and a collector's thread, a compiler (200), and the daemons.
fn interval() -> Interval {
    let stalls = [
        (101, Stall::DirectCompaction, Some(9), figures(2, 30)),
        (101, Stall::HugeFault, Some(9), figures(10, 500)),
        (102, Stall::DirectReclaim, Some(0), figures(1, 5)),
        (201, Stall::DirectCompaction, Some(3), figures(4, 80)),
        (301, Stall::GroupReclaim, Some(0), figures(1, 1)),
        (90, Stall::Khugepaged, Some(9), figures(3, 40)),
        (91, Stall::Kcompactd, None, figures(1, 70)),
    ];
    let seen = |pid: Option<i32>, name: &str| Seen { pid, name: Some(name.to_string()) };
    Interval {
        from_ns: 0,
        until_ns: 1000 * MS,
        stalls: stalls.into_iter().map(|(tid, stall, order, it)| (Key { tid, stall, order }, it)).collect(),
        counts: [(101, Counts { allocations: [(9, (10, 2))].into(), deferred: 1, spoiled: 3 })].into(),
        seen: [
            (101, seen(Some(100), "worker-1")),
            (102, seen(Some(100), "GC Thread#0")),
            (201, seen(Some(200), "cc1")),
            (301, seen(None, "sh")),
        ]
        .into(),
        ..Interval::default()
    }
}

fn processes() -> Processes {
    let thread = |tid, name: &str, kind| JvmThread {
        compiling: None,
        tid,
        name: name.to_string(),
        kind,
        stack: Err(Gap::new("stack", Why::NotRead)),
        object: None,
    };
    let kinds = Kinds::new(&[
        thread(101, "worker with a long name", ThreadKind::Java),
        thread(102, "", ThreadKind::Gc),
    ]);
    Processes::new(kinds).with(100, "org.example.Main", true).with(200, "cc1", false)
}

fn cpu() -> CpuTime {
    CpuTime {
        processes: [(100, 400.0), (200, 100.0)].into(),
        threads: [(101, 300.0), (102, 50.0), (100, 0.0)].into(),
    }
}

fn of(target: Option<i32>, by: By) -> Traced {
    traced(&interval(), &View { target, by, processes: &processes(), cpu: &cpu() })
}

#[test]
fn by_process_those_that_lost_most_first_and_daemons_apart() {
    let table = of(None, By::Process);
    let rows: Vec<(Who, u64)> = table.rows.iter().map(|row| (row.who.clone(), row.waited.ns / MS)).collect();
    let process = |pid, name: &str, is_jvm| Who::Process { pid, name: name.to_string(), is_jvm };
    let expected =
        [(process(200, "cc1", false), 80), (process(100, "org.example.Main", true), 35), (Who::Ended, 1)];
    assert_eq!(rows, expected);
    assert_eq!((table.total.waited.ns / MS, table.total.threads, table.elsewhere.clone()), (116, 4, None));
    let jvm = &table.rows[1];
    assert_eq!((jvm.threads, jvm.lines.len(), jvm.counts.spoiled), (2, 3, 3));
    assert_eq!((jvm.share_of_time(table.seconds), jvm.share_of_cpu()), (Some(3.5), Some(8.75)));
    assert_eq!(table.rows[2].cpu_ms.as_ref().map_err(|gap| gap.why), Err(Why::NotRead));
    let daemons = table.daemons.iter().map(|line| line.figures.ns / MS);
    assert_eq!(daemons.filter(|ms| *ms > 0).collect::<Vec<_>>(), [40, 70]);
}

#[test]
fn a_target_by_kind_and_by_thread_with_its_own_names() {
    let table = of(Some(100), By::Kind);
    let rows: Vec<(Who, u64, Option<f64>)> =
        table.rows.iter().map(|row| (row.who.clone(), row.waited.ns / MS, row.share_of_cpu())).collect();
    assert_eq!(rows, [(Who::Kind(Kind::Application), 30, Some(10.0)), (Who::Kind(Kind::Gc), 5, Some(10.0))]);
    assert_eq!((table.elsewhere.map(|it| it.ns / MS), table.total.share_of_cpu()), (Some(81), Some(8.75)));
    let table = of(Some(100), By::Thread);
    let Who::Thread { pid, tid, name, kind } = &table.rows[0].who else { panic!("{:?}", table.rows) };
    assert_eq!((*pid, *tid, name.as_str()), (Some(100), 101, "worker with a long name"));
    assert_eq!(*kind, Some(Kind::Application));
}

#[test]
fn kinds_of_all_jvms_and_the_rest() {
    let table = of(None, By::Kind);
    let rows: Vec<(Who, u64)> = table.rows.iter().map(|row| (row.who.clone(), row.waited.ns / MS)).collect();
    let expected =
        [(Who::Others, 80), (Who::Kind(Kind::Application), 30), (Who::Kind(Kind::Gc), 5), (Who::Ended, 1)];
    assert_eq!(rows, expected);
}

#[test]
fn all_intervals_together() {
    let mut whole = Whole::default();
    whole.add(&of(Some(100), By::Kind));
    whole.add(&of(Some(100), By::Kind));
    assert_eq!((whole.intervals, whole.seconds), (2, 2.0));
    let compaction = &whole.stalls[&Stall::DirectCompaction];
    assert_eq!((compaction.count, compaction.ns / MS, compaction.histogram.count()), (4, 60, 4));
    assert!(whole.stalls.contains_key(&Stall::Khugepaged), "of the host");
}
