use super::*;

fn log(text: &str) -> GcLog {
    parse(text.as_bytes()).unwrap_or_else(|gap| panic!("{gap}"))
}

fn kinds(log: &GcLog) -> Vec<(Kind, Option<&str>)> {
    log.pauses.iter().map(|pause| (pause.kind, pause.cause.as_deref())).collect()
}

const G1: &str = "\
[0.008s][info][gc,init] CardTable entry size: 512
[0.008s][info][gc     ] Using G1
[0.120s][info][gc,start    ] GC(0) Pause Young (Normal) (G1 Evacuation Pause)
[0.121s][info][gc,phases   ] GC(0)   Evacuate Collection Set: 0.9ms
[0.123s][info][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.000ms
[0.123s][info][gc,cpu      ] GC(0) User=0.01s Sys=0.02s Real=0.00s
[0.200s][info][gc,start    ] GC(1) Pause Young (Concurrent Start) (Metadata GC Threshold)
[0.202s][info][gc          ] GC(1) Pause Young (Concurrent Start) (Metadata GC Threshold) 14M->5M(256M) 2.000ms
[0.202s][info][gc          ] GC(2) Concurrent Mark Cycle
[0.203s][info][gc,marking  ] GC(2) Concurrent Mark
[0.213s][info][gc,marking  ] GC(2) Concurrent Mark 10.000ms
[0.214s][info][gc,start    ] GC(2) Pause Remark
[0.215s][info][gc          ] GC(2) Pause Remark 8M->7M(256M) 1.000ms
[0.222s][info][gc          ] GC(2) Concurrent Mark Cycle 20.000ms
[0.300s][info][gc          ] GC(3) Pause Young (Mixed) (G1 Evacuation Pause) 30M->6M(256M) 5.500ms
[0.400s][info][gc          ] GC(4) Pause Full (System.gc()) 10M->3M(20M) 40.000ms
";

#[test]
fn unified_lines_of_g1() {
    let log = log(G1);
    assert_eq!((log.gc, log.clock, log.torn), (Some(Gc::G1), Clock::Uptime, 0));
    assert_eq!(
        kinds(&log),
        [
            (Kind::Young, Some("G1 Evacuation Pause")),
            (Kind::Young, Some("Metadata GC Threshold")),
            (Kind::OfCycle, None),
            (Kind::Mixed, Some("G1 Evacuation Pause")),
            (Kind::Full, Some("System.gc()")),
        ]
    );
    let first = &log.pauses[0];
    assert!((first.start_seconds.expect("a stamp") - 0.12).abs() < 1e-9);
    assert_eq!(first.heap, Some(Heap { before: 24 << 20, after: 4 << 20, committed: Some(256 << 20) }));
    assert!((log.pause_cpu_seconds.expect("User and Sys") - 0.03).abs() < 1e-9);
    let sum = log.summary();
    assert_eq!((sum.pauses, sum.by_kind[&Kind::Young], sum.pause_ms), (5, 2, 51.5));
    assert_eq!(sum.quantiles, Some(Quantiles { p50_ms: 3.0, p99_ms: 40.0, max_ms: 40.0 }));
    // 14 - 4, 8 - 5, 30 - 7, 10 - 6.
    assert_eq!(sum.allocated_bytes, Ok(40 << 20));
    // The cycle has 20 ms; the mark is within it, and so is the remark of 1 ms, in which the program stood.
    assert!((sum.concurrent_ms.expect("stamps") - 19.0).abs() < 1e-6);
}

#[test]
fn a_window_takes_what_began_in_it() {
    let log = log(G1);
    let sum = log.within(0.15, 0.38).expect("stamps");
    assert_eq!((sum.pauses, sum.pause_ms), (4, 48.5));
    assert_eq!(sum.allocated_bytes, Ok((3 + 23 + 4) << 20));
    assert_eq!(log.within(5.0, 6.0).map(|sum| (sum.pauses, sum.quantiles)), Ok((0, None)));
    let none = log.within(5.0, 6.0).expect("stamps").pause_ms;
    assert!(none == 0.0 && none.is_sign_positive(), "no stop is shown as 0, not as -0: {none}");
}

#[test]
fn decorations_as_users_set_them() {
    let event = "GC(7) Pause Full (Ergonomics) 24M->4M(256M) 3.000ms";
    let of = |decorations: &str| {
        let log = log(&format!("{decorations} {event}\n"));
        assert_eq!(log.pauses.len(), 1, "{decorations}");
        (log.clock, log.pauses[0].start_seconds.map(|seconds| (seconds * 1000.0).round() as u64))
    };
    assert_eq!(of(""), (Clock::None, None));
    assert_eq!(of("[gc]"), (Clock::None, None));
    assert_eq!(of("[1.503s]"), (Clock::Uptime, Some(1500)));
    assert_eq!(of("[1503ms][gc]"), (Clock::Uptime, Some(1500)));
    assert_eq!(of("[1503000000ns]"), (Clock::Uptime, Some(1500)));
    assert_eq!(
        of("[2024-02-29T23:59:59.253+0000][1,503s][host][4711][4712][info ][gc   ]"),
        (Clock::Uptime, Some(1500))
    );
    assert_eq!(of("[2024-02-29T23:59:59.253+0000]"), (Clock::Wall, Some(1_709_251_199_250)));
    assert_eq!(of("[1709251199253ms]"), (Clock::Wall, Some(1_709_251_199_250)));
    assert!(log(event).summary().concurrent_ms.is_ok_and(|ms| ms == 0.0), "nothing next to the program");
}

#[test]
fn z_has_its_heap_in_the_line_of_the_cycle() {
    let text = "\
[0.01s][info][gc,init] Initializing The Z Garbage Collector
[0.20s][info][gc,start    ] GC(0) Garbage Collection (Warmup)
[0.21s][info][gc,phases   ] GC(0) Pause Mark Start 0.010ms
[0.22s][info][gc,phases   ] GC(0) Concurrent Mark 8.000ms
[0.23s][info][gc,phases   ] GC(0) Pause Mark End 0.020ms
[0.24s][info][gc          ] GC(0) Garbage Collection (Warmup) 52M(20%)->10M(4%)
";
    let one = log(text);
    assert_eq!((one.gc, one.pauses.len(), one.phases.len()), (Some(Gc::Z), 2, 1));
    assert_eq!(one.heap, [Heap { before: 52 << 20, after: 10 << 20, committed: None }]);
    assert!(one.summary().allocated_bytes.is_err(), "the program allocates while memory is freed");
    let few = log("[0.24s][info][gc] GC(0) Garbage Collection (Warmup) 52M(20%)->10M(4%)\n");
    assert_eq!(
        (few.pauses.len(), few.gaps.len()),
        (0, 1),
        "-Xlog:gc has no stops of ZGC, and that is not zero"
    );
    let generational = log("\
[0.21s][gc,phases] GC(0) y: Pause Mark Start 0.010ms
[0.24s][gc,phases] GC(1) O: Concurrent Mark 7.000ms
[0.25s][gc       ] GC(0) Minor Collection (Allocation Rate) 52M(20%)->10M(4%) 0.012s
");
    assert_eq!((generational.gc, generational.pauses.len()), (Some(Gc::ZGenerational), 1));
    assert_eq!((generational.phases.len(), generational.heap.len()), (1, 1));
}

#[test]
fn a_mark_that_a_full_collection_ends_is_not_torn() {
    let log = log("\
[0.396s][info][gc         ] GC(20) Concurrent Cycle
[0.396s][info][gc,marking ] GC(20) Concurrent Mark (0.396s)
[0.399s][info][gc         ] GC(21) Pause Full (System.gc()) 59M->0M(96M) 2.169ms
[0.399s][info][gc,marking ] GC(20) Concurrent Mark Abort
[0.399s][info][gc         ] GC(20) Concurrent Cycle 2.694ms
");
    assert_eq!((log.torn, log.phases.len(), log.pauses.len()), (0, 1, 1));
}

#[test]
fn a_full_collection_within_a_young_one_is_one_stop() {
    let log = log("\
[1.000s][gc,start] GC(3) Pause Young (Allocation Failure)
[1.001s][gc,start] GC(4) Pause Full (Allocation Failure)
[1.021s][gc      ] GC(4) Pause Full (Allocation Failure) 60M->30M(64M) 20.000ms
[1.022s][gc      ] GC(3) Pause Young (Allocation Failure) 60M->30M(64M) 22.000ms
");
    let sum = log.summary();
    assert_eq!((sum.pauses, sum.pause_ms, sum.by_kind[&Kind::Full]), (1, 22.0, 1));
    assert_eq!(log.heap.len(), 1, "the heap is logged twice, and counted once");
}

#[test]
fn jdk_8_parallel_and_serial() {
    let text = "\
OpenJDK 64-Bit Server VM (25.402-b06) for linux-amd64 JRE (1.8.0_402-b06), built on Jan 17 2024
CommandLine flags: -XX:InitialHeapSize=268435456 -XX:+PrintGC -XX:+UseCompressedOops -XX:+UseParallelGC 
2024-02-29T23:59:59.250+0000: 0.120: [GC (Allocation Failure) [PSYoungGen: 65536K->1056K(76288K)] 65536K->1064K(251392K), 0.0015000 secs] [Times: user=0.01 sys=0.00, real=0.00 secs] 
2024-02-29T23:59:59.350+0000: 0.220: [Full GC (System.gc()) [PSYoungGen: 1056K->0K(76288K)] [ParOldGen: 8K->851K(175104K)] 1064K->851K(251392K), [Metaspace: 2663K->2663K(1056768K)], 0.0040000 secs] [Times: user=0.02 sys=0.00, real=0.01 secs] 
";
    let parallel = log(text);
    assert_eq!(parallel.gc, Some(Gc::Parallel));
    assert_eq!(
        kinds(&parallel),
        [(Kind::Young, Some("Allocation Failure")), (Kind::Full, Some("System.gc()"))]
    );
    assert_eq!(parallel.pauses[0].start_seconds, Some(0.12));
    assert!((parallel.summary().pause_ms - 5.5).abs() < 1e-9);
    assert_eq!(parallel.pauses[1].heap.map(|heap| heap.after), Some(851 << 10));
    assert!((parallel.pause_cpu_seconds.expect("times") - 0.03).abs() < 1e-9);
    let serial = log(
        "0,123: [GC (Allocation Failure) 0,123: [DefNew: 78655K->78655K(78656K), 0,0000200 secs]0,123: \
         [Tenured: 174K->851K(1000K), 0,1000000 secs] 253K->851K(253440K), [Metaspace: 1K->1K(2K)], 0,1100000 secs]\n",
    );
    assert_eq!((serial.gc, serial.pauses.len(), serial.summary().pauses), (Some(Gc::Serial), 2, 1));
    assert!((serial.pauses[1].ms - 110.0).abs() < 1e-9, "the own time, of a locale with commas");
    assert!(serial.pauses[0].is_nested && serial.pauses[0].kind == Kind::Full, "{serial:?}");
}

#[test]
fn jdk_8_threads_print_into_each_others_lines() {
    let cms = log("\
1.000: [GC (CMS Initial Mark) [1 CMS-initial-mark: 32768K(43712K)] 34816K(63360K), 0.0002000 secs] [Times: user=0.00 sys=0.00, real=0.00 secs] 
1.001: [CMS-concurrent-mark-start]
1.100: [GC (Allocation Failure) 1.100: [ParNew1.110: [CMS-concurrent-mark: 0.018/0.045 secs] [Times: user=0.04 sys=0.00, real=0.04 secs] 
: 17472K->1088K(19648K), 0.0100000 secs] 50240K->40000K(63360K), 0.0110000 secs] [Times: user=0.01 sys=0.00, real=0.01 secs] 
1.200: [GC (CMS Final Remark) [YG occupancy: 694 K (39424 K)]1.201: [GC (CMS Final Remark) 1.201: [ParNew: 694K->9K(39424K), 0.001 secs] 40694K->40009K(63360K), 0.0012 secs]1.203: [Rescan (parallel) , 0.0064208 secs][1 CMS-remark: 32768K(43712K)] 40009K(63360K), 0.0120000 secs]
1.300: [Full GC (Allocation Failure) 1.300: [CMS1.310: [CMS-concurrent-sweep: 0.010/0.010 secs] [Times: user=0.01 sys=0.00, real=0.01 secs] 
 (concurrent mode failure): 40000K->9000K(43712K), 0.0400000 secs] 41000K->9000K(63360K), [Metaspace: 2663K->2663K(1056768K)], 0.0410000 secs]
");
    assert_eq!(cms.gc, Some(Gc::Cms));
    let stops = cms.pauses.iter().filter(|pause| !pause.is_nested);
    let all: Vec<(Kind, f64)> = stops.map(|pause| (pause.kind, (pause.ms * 10.0).round() / 10.0)).collect();
    assert_eq!(all, [(Kind::OfCycle, 0.2), (Kind::Young, 11.0), (Kind::OfCycle, 12.0), (Kind::Full, 41.0)]);
    assert_eq!(cms.pauses.len(), 5, "the scavenge before the remark is within it");
    assert_eq!(cms.pauses[1].heap.map(|heap| heap.before), Some(50240 << 10));
    let phases: Vec<(&str, f64)> =
        cms.phases.iter().map(|phase| (phase.name.as_str(), phase.ms.round())).collect();
    assert_eq!(phases, [("CMS-concurrent-mark", 45.0), ("CMS-concurrent-sweep", 10.0)]);
    assert_eq!(cms.torn, 0);
    let g1 = log("\
0.500: [GC pause (G1 Evacuation Pause) (young)0.501: [GC concurrent-root-region-scan-end, 0.0010000 secs]
0.501: [GC concurrent-mark-start]
, 0.0030000 secs]
   [Parallel Time: 2.2 ms, GC Workers: 2]
      [GC Worker Start (ms): Min: 1.0, Avg: 1.0, Max: 1.0, Diff: 0.0]
   [Eden: 24.0M(24.0M)->0.0B(13.0M) Survivors: 0.0B->3072.0K Heap: 24.0M(256.0M)->4096.0K(256.0M)]
 [Times: user=0.00 sys=0.00, real=0.00 secs] 
0.600: [GC remark 0.600: [Finalize Marking, 0.0001 secs] 0.600: [GC ref-proc, 0.0001 secs] 0.600: [Unloading, 0.001 secs], 0.0020000 secs]
0.610: [GC cleanup 10M->9M(256M), 0.0005000 secs]
0.620: [GC concurrent-mark-abort]
0.700: [Full GC (System.gc())  24M->4M(256M), 0.0110000 secs]
");
    assert_eq!((g1.gc, g1.torn), (Some(Gc::G1), 0));
    let all: Vec<Kind> = g1.pauses.iter().map(|pause| pause.kind).collect();
    assert_eq!(all, [Kind::Young, Kind::OfCycle, Kind::OfCycle, Kind::Full]);
    assert_eq!(g1.pauses[0].heap.map(|heap| (heap.before, heap.after)), Some((24 << 20, 4 << 20)));
    assert_eq!(g1.phases.len(), 1);
}

#[test]
fn a_log_that_is_cut_has_what_was_complete() {
    for text in [
        G1,
        "0.120: [GC (Allocation Failure) [PSYoungGen: 65536K->1056K(76288K)] 65536K->1064K(251392K), 0.0015000 secs]\n",
    ] {
        let whole = log(text);
        for end in 0..text.len() {
            let Ok(part) = parse(&text.as_bytes()[..end]) else { continue };
            assert!(part.pauses.len() <= whole.pauses.len(), "{end}");
            for (one, other) in part.pauses.iter().zip(&whole.pauses) {
                assert_eq!(one, other, "cut at {end}");
            }
        }
    }
    assert_eq!(log(&G1[..G1.find(" 24M->4M(256M) 3.0").expect("the end of a line")]).torn, 1);
    let twice = log(
        "0.1: [GC (Allocation Failure) [PSYoungGen: 6\n0.2: [GC (Allocation Failure)  9K->1K(9K), 0.001 secs]\n",
    );
    assert_eq!((twice.pauses.len(), twice.torn), (1, 1));
}

#[test]
fn what_is_no_log_is_a_gap_and_nothing_is_believed() {
    for text in [
        "",
        "hello\nworld",
        "[[[[[[",
        "]]]]",
        "GC",
        "[GC",
        "GC(99999999999999999999999) Pause Young 1.0ms",
        "\u{0}\u{ff}",
    ] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
    let deep = "[".repeat(100_000) + "GC (x), 0.1 secs" + &"]".repeat(100_000);
    assert!(parse(deep.as_bytes()).is_err());
    let odd = "[0.1s] GC(0) Pause Young (((( 1M->2M(3M) 1.0ms\n[0.1s] GC(1) Pause Full -5.0ms\n[0.1s] GC(2) Pause Full NaNms\n\
               [0.1s] GC(3) Pause Full infms\n[0.1s] GC(4) Pause Full 1e300ms\n";
    assert_eq!(log(odd).pauses.len(), 1, "no length below 0 and none that is not a number");
    assert!(parse(&[0xff; 1000]).is_err());
}
