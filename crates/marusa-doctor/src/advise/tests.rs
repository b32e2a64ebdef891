//! Advice on made-up recordings, and on figures that were worked out by hand.

use super::*;
use crate::map::Area;
use crate::record::key::{Key as Series, Measure, Subject};
use crate::record::moment::Moment;
use crate::record::reader;
use crate::record::writer::{Ending, JvmFacts, Scope, Session, Writer};

const GIB: Bytes = 1 << 30;
const DAY: u64 = 86_400;
const WANTED: Wanted = Wanted { until: Duration::from_secs(30 * DAY), gc_ratio: 0.02 };

/// One sample.
#[derive(Clone, Default)]
struct At {
    second: u64,
    areas: Vec<(Area, Bytes)>,
    process: Vec<(Measure, u64)>,
}

fn facts(pod: &str) -> JvmFacts {
    let mut facts = JvmFacts {
        main: Some("com.example.Orders".to_string()),
        version: Some("21.0.8".to_string()),
        gc: Some("serial".to_string()),
        max_heap_bytes: Some(GIB),
        jvm_id: Some(pod.to_string()),
        ..JvmFacts::default()
    };
    facts.identity.pod = Some(pod.to_string());
    facts.identity.workload = Some("orders".to_string());
    facts
}

fn history(facts: JvmFacts, samples: &[At], ending: Ending) -> History {
    let mut writer = Writer::new(&Session::default());
    let jvm = writer.jvm(facts);
    let moment = |second: u64| Moment { steady_ms: second * 1000, wall_ms: (second * 1000) as i64 };
    for sample in samples {
        let areas = sample
            .areas
            .iter()
            .map(|(area, bytes)| (Series::of(&Subject::Area(*area), Measure::Resident), Some(*bytes)));
        let process = sample.process.iter().map(|(measure, value)| (Series::process(*measure), Some(*value)));
        let read = [(Series::process(Measure::AccountAt), Some(sample.second * 1000))];
        let figures: Vec<_> = areas.chain(process).chain(read).collect();
        writer.sample(jvm, moment(sample.second), Scope::Account, &figures);
    }
    writer.ended(jvm, moment(samples.last().map_or(0, |last| last.second) + 1), ending);
    reader::read(&[&writer.take()]).expect("a recording").jvms.remove(0)
}

/// 100 MiB next to a heap of 400 MiB, of which 10 MiB are the collector's.
fn quiet(second: u64) -> At {
    let areas = vec![
        (Area::JavaHeap, 400 * MIB),
        (Area::Gc, 10 * MIB),
        (Area::ClassMetadata, 50 * MIB),
        (Area::JitCode, 20 * MIB),
        (Area::MallocFreed, 20 * MIB),
    ];
    At { second, areas, process: vec![(Measure::PageTables, MIB), (Measure::Tasks, 32)] }
}

fn set(at: &mut At, area: Area, bytes: Bytes) {
    at.areas.iter_mut().filter(|(of, _)| *of == area).for_each(|(_, now)| *now = bytes);
}

fn advice(jvms: &[&History]) -> Workload {
    let mut all = workloads(jvms, WANTED);
    assert_eq!(all.len(), 1, "{:?}", all.iter().map(|one| &one.key).collect::<Vec<_>>());
    all.remove(0)
}

#[test]
fn a_limit_is_the_sum_of_the_joint_peak_and_not_of_the_peaks() {
    let mut samples: Vec<At> = (0..60).map(|minute| quiet(minute * 60)).collect();
    set(&mut samples[20], Area::ClassMetadata, 90 * MIB);
    set(&mut samples[40], Area::MallocFreed, 50 * MIB);
    let workload = advice(&[&history(facts("a"), &samples, Ending::NotWatched)]);
    let limit = workload.limit.as_ref().expect("a limit");
    // 140 MiB of areas, 1 of page tables, 1 of the kernel for 32 threads.
    assert_eq!((limit.base_bytes, limit.heap_bytes), (142 * MIB, GIB));
    assert_eq!(limit.peak.at, "1970-01-01T00:20:00Z");
    assert!(limit.peak.kernel_is_estimated);
    // The tables grow with the heap, as far as tables do: 10 MiB for 400 is 15.6 for 624, a 32nd of which is 19.5.
    assert_eq!(limit.tables_growth_bytes / MIB, 15);
    // If freed memory had its peak at the same time, it would be 30 MiB more.
    assert_eq!(limit.reserve_bytes, 30 * MIB);
    let sum = limit.heap_bytes + limit.tables_growth_bytes + limit.base_bytes + limit.reserve_bytes;
    assert_eq!((limit.limit_bytes, limit.growth_bytes), (stepped(sum), 0));
    assert_eq!((limit.confidence_ratio, workload.observed.replica_days), (0.0, 0));
    assert!(workload.not_judged.iter().any(|why| why.starts_with("a whole day: 59 minutes")), "{workload:?}");
    assert!(
        workload.not_judged.iter().any(|why| why.starts_with("-Xmx: too few collections were")),
        "{workload:?}"
    );
}

#[test]
fn what_a_cgroup_counts_replaces_the_estimate() {
    let mut sample = quiet(0);
    sample.process.extend([
        (Measure::KernelResident, 500 * MIB),
        (Measure::GroupCurrent, 700 * MIB),
        (Measure::GroupReclaimable, 100 * MIB),
        (Measure::GroupLimit, 2 * GIB),
    ]);
    let workload =
        advice(&[&history(facts("a"), &[sample.clone(), At { second: 60, ..sample }], Ending::NotWatched)]);
    let limit = workload.limit.clone().expect("a limit");
    // 600 held, of which 500 are resident and 1 is page tables.
    assert_eq!((limit.peak.kernel_bytes.expect("known"), limit.base_bytes), (99 * MIB, 200 * MIB));
    assert_eq!(
        (workload.observed.held_bytes, workload.observed.limit_bytes),
        (Some(600 * MIB), Some(2 * GIB))
    );
    assert_eq!(workload.saved_bytes(), Some((2 * GIB) as i64 - limit.limit_bytes as i64));
}

#[test]
fn replica_days_bound_the_base_and_a_pod_that_is_restarted_is_one() {
    let days = |pod: &str, days: std::ops::Range<u64>, step: u64| {
        let samples: Vec<At> = days
            .flat_map(|day| (0..DAY).step_by(step as usize).map(move |second| quiet(day * DAY + second)))
            .collect();
        history(facts(pod), &samples, Ending::Ended)
    };
    let (one, other) = (days("a", 0..20, 600), days("b", 0..20, 600));
    // The third pod is started again in the middle of its twentieth day.
    let (begin, end) = (days("c", 0..19, 600), {
        let samples: Vec<At> = (0..DAY).step_by(600).map(|second| quiet(19 * DAY + second)).collect();
        let (early, late) = samples.split_at(72);
        [history(facts("c"), early, Ending::Ended), history(facts("c"), late, Ending::Ended)]
    });
    let workload = advice(&[&one, &other, &begin, &end[0], &end[1]]);
    let (observed, limit) = (&workload.observed, workload.limit.as_ref().expect("a limit"));
    assert_eq!((observed.replicas, observed.jvms, observed.replica_days, observed.days), (3, 5, 60, 20));
    assert!((limit.confidence_ratio - (1.0 - 0.95_f64.powi(60))).abs() < 1e-12);
    assert!((limit.confidence_by_days_ratio - (1.0 - 0.95_f64.powi(20))).abs() < 1e-12);
    assert!(limit.confidence_ratio > 0.95 && !workload.not_judged.iter().any(|why| why.contains("95 %")));
}

#[test]
fn growth_counts_where_it_is_judged_and_a_kill_is_said() {
    let samples: Vec<At> = (0..240)
        .map(|minute| {
            let mut at = quiet(minute * 60);
            set(&mut at, Area::ClassMetadata, 50 * MIB + minute * MIB);
            at
        })
        .collect();
    let workload = advice(&[&history(facts("a"), &samples, Ending::KilledForMemory)]);
    let limit = workload.limit.as_ref().expect("a limit");
    let [growing] = &limit.growing[..] else { panic!("{limit:?}") };
    assert_eq!((growing.area, growing.is_bounded), (Area::ClassMetadata, false));
    let hours = 30.0 * 24.0;
    let expected = 60.0 * MIB as f64 * hours;
    assert!((growing.bytes as f64 / expected - 1.0).abs() < 0.1, "{growing:?}");
    assert_eq!(limit.growth_bytes, growing.bytes);
    assert_eq!(workload.observed.oom_kills, 1);
    assert!(workload.not_judged.iter().any(|why| why.contains("OOM-killed")), "{workload:?}");
}

/// Only young collections, which leave up to `most`.
fn collected_young(most: Bytes) -> History {
    let samples: Vec<At> = (0..60)
        .map(|minute| {
            let mut at = quiet(minute * 60);
            at.process.extend([
                (Measure::HeapUsed, most - minute % 7 * MIB),
                (Measure::HeapCapacity, GIB),
                (Measure::Collections, minute),
                (Measure::OldCollections, 0),
                (Measure::CollectionTime, minute * 10_000),
            ]);
            at
        })
        .collect();
    history(facts("a"), &samples, Ending::NotWatched)
}

/// An old collection each minute leaves `live`, after which the heap fills up; `paused_us` a minute.
fn collected(gc: &str, live: Bytes, paused_us: u64) -> History {
    let samples: Vec<At> = (0..1200)
        .map(|step| {
            let second = step * 3;
            let (minute, within) = (second / 60, second % 60);
            let mut at = quiet(second);
            let used = live + within * (800 * MIB - live) / 60;
            at.process.extend([
                (Measure::HeapUsed, used),
                (Measure::HeapCapacity, GIB),
                (Measure::Collections, step),
                (Measure::OldCollections, minute),
                (Measure::CollectionTime, minute * paused_us),
            ]);
            at
        })
        .collect();
    history(JvmFacts { gc: Some(gc.to_string()), ..facts("a") }, &samples, Ending::NotWatched)
}

#[test]
fn a_heap_follows_from_the_live_set_and_the_time_in_collections() {
    // A 150th of the time with 824 MiB of room: 2 % with 275.
    let workload = advice(&[&collected("parallel", 200 * MIB, 400_000)]);
    let heap = workload.heap.as_ref().expect("advice");
    assert_eq!((heap.live_bytes, heap.decided_by), (200 * MIB, Decided::GcTime));
    assert!((heap.gc_ratio - 1.0 / 150.0).abs() < 2e-4, "{heap:?}");
    assert_eq!(heap.xmx_bytes, 480 * MIB);
    assert!(heap.gc_forecast_ratio < 0.02 && heap.gc_forecast_ratio > 0.018, "{heap:?}");
    assert_eq!(workload.limit.as_ref().map(|limit| limit.heap_bytes), Some(480 * MIB));
    assert_eq!(workload.limit_as_is.as_ref().map(|limit| limit.heap_bytes), Some(GIB));
    let of = |live, paused| advice(&[&collected("serial", live, paused)]).heap.expect("advice");
    let idle = of(10 * MIB, 600);
    assert_eq!(
        (idle.decided_by, idle.xmx_bytes),
        (Decided::RoomSeen, 272 * MIB),
        "not further than four times"
    );
    let large = of(500 * MIB, 600);
    assert_eq!((large.decided_by, large.xmx_bytes), (Decided::LiveSet, 752 * MIB));
    let busy = of(200 * MIB, 3_000_000);
    assert!(busy.xmx_bytes > 2 * GIB && busy.decided_by == Decided::GcTime, "{busy:?}");
    assert_eq!(of(200 * MIB, 1_200_000).decided_by, Decided::AsItIs);
    // Nothing that is alive is larger than what some collection left.
    let young = advice(&[&collected_young(220 * MIB)]).heap.expect("advice");
    assert_eq!((young.live_bytes, young.is_whole_heap_seen), (220 * MIB, false));
    let refused = advice(&[&collected("ZGC", 200 * MIB, 300_000)]);
    assert!(
        refused.heap.is_none() && refused.not_judged.iter().any(|why| why.starts_with("-Xmx: ZGC collects"))
    );
}

/// As a heap that is nearly full: several collections of the whole heap between two samples, most of which come later than one.
#[test]
fn collections_faster_than_samples_do_not_make_garbage_alive() {
    let samples: Vec<At> = (0..63)
        .map(|second| {
            let mut at = quiet(second);
            let used = if second % 4 == 1 { 40 * MIB } else { 330 * MIB };
            at.process.extend([
                (Measure::HeapUsed, used),
                (Measure::HeapCapacity, 400 * MIB),
                (Measure::Collections, second * 20),
                (Measure::OldCollections, second * 2),
                (Measure::CollectionTime, second * 10_000),
            ]);
            at
        })
        .collect();
    let workload = advice(&[&history(facts("a"), &samples, Ending::NotWatched)]);
    assert_eq!(workload.heap.map(|heap| heap.live_bytes), Some(40 * MIB));
}

#[test]
fn freed_memory_is_a_line_of_its_own_with_its_remedy() {
    let of = |arenas, version: &str| {
        let mut samples = [quiet(0), quiet(60)];
        for at in &mut samples {
            set(at, Area::MallocFreed, 200 * MIB);
            at.process.extend([(Measure::Trimmable, 150 * MIB), (Measure::Arenas, arenas)]);
        }
        let facts = JvmFacts { version: Some(version.to_string()), ..facts("a") };
        advice(&[&history(facts, &samples, Ending::NotWatched)])
    };
    let many = of(61, "21.0.8");
    let (limit, malloc) = (many.limit.expect("a limit"), many.malloc.expect("advice"));
    assert_eq!((malloc.returnable_bytes, malloc.arenas), (150 * MIB, Some(61)));
    assert_eq!(malloc.environment, [("MALLOC_ARENA_MAX".to_string(), "2".to_string())]);
    assert!(limit.returned_limit_bytes < Some(limit.limit_bytes - 100 * MIB));
    assert!(of(2, "21.0.8").malloc.expect("advice").options[0].contains("TrimNativeHeapInterval"));
    let old = of(2, "11.0.20").malloc.expect("advice");
    assert!(old.options.is_empty() && old.why.contains("marusa trim"));
}

#[test]
fn versions_and_heaps_are_not_mixed() {
    let samples = [quiet(0), quiet(60)];
    let of = |version: &str, heap| {
        let facts = JvmFacts { version: Some(version.to_string()), max_heap_bytes: Some(heap), ..facts("a") };
        history(facts, &samples, Ending::NotWatched)
    };
    let jvms = [of("21.0.8", GIB), of("21.0.9", GIB), of("21.0.9", 2 * GIB), of("21.0.9", 2 * GIB)];
    let found = workloads(&jvms.iter().collect::<Vec<_>>(), WANTED);
    assert_eq!(found.iter().map(|one| one.observed.jvms).collect::<Vec<_>>(), [1, 1, 2]);
    assert!(found.iter().all(|one| one.name == "orders: Orders"));
}

fn known(name: &str, live: f64, xmx: f64, gc_ratio: f64) -> Workload {
    let bytes = |gib: f64| (gib * GIB as f64) as Bytes;
    let mut workload = advice(&[&history(facts(name), &[quiet(0), quiet(60)], Ending::NotWatched)]);
    workload.name = name.to_string();
    workload.heap = Some(Heap {
        now_bytes: bytes(xmx),
        xmx_bytes: bytes(xmx),
        live_bytes: bytes(live),
        live_seen: 9,
        is_whole_heap_seen: true,
        capacity_bytes: bytes(xmx),
        gc_ratio,
        gc_forecast_ratio: gc_ratio,
        decided_by: Decided::AsItIs,
    });
    workload
}

/// The worked example: 20 GiB as 9.5, 7.3 and 3.2 take 2.9 % instead of 9.5 %, and 9.9 GiB would do for the old 9.5 %.
#[test]
fn a_budget_goes_with_the_square_root_of_what_collections_cost() {
    let all = [known("a", 4.0, 16.0, 0.005), known("b", 1.0, 2.0, 0.08), known("c", 0.3, 2.0, 0.01)];
    let budget = split(&all, 20 * GIB).expect("it fits");
    let gib = |bytes: Bytes| (bytes as f64 / GIB as f64 * 10.0).round() / 10.0;
    let shares: Vec<f64> = budget.heaps.iter().map(|heap| gib(heap.xmx_bytes)).collect();
    assert_eq!((shares, gib(budget.now_bytes)), (vec![9.5, 7.3, 3.2], 20.0));
    assert!((budget.gc_now - 0.095).abs() < 1e-9 && (budget.gc_then - 0.029).abs() < 1e-3, "{budget:?}");
    assert_eq!(gib(budget.same_gc_bytes), 9.9);
    assert!(
        split(&all, 7 * GIB)
            .expect_err("too small")
            .0
            .contains("one and a half times the live sets are 7.9 GiB")
    );
    // Where the square root gives less than half the live set, that is kept, and the others share the rest.
    let tight = split(&all, 8 * GIB + GIB / 2).expect("it fits");
    assert!(
        tight.heaps.iter().all(|heap| heap.xmx_bytes as f64 >= heap.live_bytes as f64 * 1.499),
        "{tight:?}"
    );
    let sum: Bytes = tight.heaps.iter().map(|heap| heap.xmx_bytes).sum();
    assert!(sum.abs_diff(8 * GIB + GIB / 2) < MIB, "{sum}");
}

#[test]
fn earlier_advice_is_compared_with_what_was_held() {
    let advised = advice(&[&history(facts("a"), &[quiet(0), quiet(60)], Ending::NotWatched)]);
    let forecast = advised.limit.as_ref().expect("a limit").held_bytes;
    let held = forecast + forecast / 20;
    let document = serde_json::json!({"schema": "marusa/advice/1", "workloads": [advised, known("gone", 1.0, 2.0, 0.1)]});
    let mut earlier: Earlier = serde_json::from_value(document).expect("it is read back");
    earlier.workloads[1].key.main = Some("Gone".to_string());
    let mut sample = quiet(0);
    sample.process.extend([(Measure::KernelResident, held - MIB)]);
    let later = workloads(&[&history(facts("b"), &[sample], Ending::KilledForMemory)], WANTED);
    let check = check(&earlier, &later);
    let [one] = &check.workloads[..] else { panic!("{check:?}") };
    assert!((one.error_ratio.expect("known") - 0.05).abs() < 1e-6, "{one:?}");
    assert_eq!((one.has_xmx, one.has_limit, one.oom_kills), (true, false, 1));
    assert_eq!(check.not_seen, ["gone"]);
    assert!((check.mean_error_ratio.expect("known") - 0.05).abs() < 1e-6);
}
