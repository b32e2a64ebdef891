use super::*;
use crate::base::Why;
use crate::measure::kinds::Kind;
use crate::measure::stalls::Delayed;
use crate::measure::stalls::host::{Free, HostFigures};
use crate::measure::stalls::interval::Counts;
use crate::measure::stalls::table::{Line, Whole};
use crate::os::cpu_time::Daemon;
use crate::os::pressure::Pressure;
use crate::os::taskstats::Delays;
use crate::os::thp_stats::SizeStats;
use crate::show::width::within;

const MS: u64 = 1_000_000;

fn figures(count: u64, each_us: u64) -> Figures {
    let mut figures =
        Figures { count, ns: count * each_us * 1000, worst_ns: each_us * 1000, ..Figures::default() };
    (0..count).for_each(|_| figures.histogram.add(each_us * 1000));
    figures
}

fn row_of(who: Who, lines: &[(Stall, Option<u32>, Figures)], cpu_ms: f64) -> Row {
    let mut waited = Figures::default();
    lines.iter().filter(|(stall, ..)| stall.is_wait()).for_each(|(_, _, it)| waited.merge(it));
    let line = |(stall, order, figures): &(Stall, Option<u32>, Figures)| Line {
        stall: *stall,
        order: *order,
        figures: figures.clone(),
    };
    let lines = lines.iter().map(line).collect();
    Row { who, threads: 2, lines, waited, cpu_ms: Ok(cpu_ms), counts: Counts::default() }
}

fn host_figures() -> HostFigures {
    let vmstat = [
        ("thp_fault_alloc", 120),
        ("thp_fault_fallback", 7),
        ("compact_stall", 17),
        ("allocstall_normal", 2),
    ];
    let counters = [("anon_fault_alloc", 120), ("anon_fault_fallback", 7), ("split", 3), ("nr_anon", 900)];
    HostFigures {
        seconds: 5.0,
        vmstat: Ok(vmstat.into()),
        sizes: Ok(vec![
            SizeStats { bytes: 65536, counters: [("split".to_string(), 0)].into() },
            SizeStats {
                bytes: 2 << 20,
                counters: counters.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
            },
        ]),
        daemons: Ok([(Daemon::Khugepaged, 250.0), (Daemon::Kcompactd, 0.0)].into()),
        pressure: Ok(Pressure { some_us: 500_000, full_us: 25_000 }),
        group: Some(Err(Gap::new("pressure of memory in the target's cgroup", Why::NotInThisKernel))),
        free: Ok(Free {
            bytes: 8 << 30,
            huge_bytes: 2 << 30,
            by_order: vec![1; 11],
            index: Err(Gap::new("fragmentation index", Why::NotRead)),
        }),
    }
}

fn report() -> Report {
    let compaction = (Stall::DirectCompaction, Some(9), figures(30, 12_345));
    let reclaim = (Stall::DirectReclaim, Some(0), figures(2, 800));
    let zeroed = (Stall::HugeFault, Some(9), figures(120, 300));
    let lines = [compaction.clone(), reclaim.clone(), zeroed];
    let mut total = row_of(Who::Total, &lines, 1000.0);
    total.counts = Counts { allocations: [(9, (120, 7))].into(), deferred: 4, spoiled: 11 };
    let traced = Traced {
        seconds: 5.0,
        rows: vec![
            row_of(Who::Kind(Kind::Application), &lines, 800.0),
            row_of(Who::Kind(Kind::Gc), std::slice::from_ref(&reclaim), 0.0),
        ],
        total,
        elsewhere: Some(figures(3, 1000)),
        daemons: vec![Line { stall: Stall::Kcompactd, order: Some(9), figures: figures(1, 70_000) }],
        scans: [("succeeded", 3), ("exceed_none_pte", 40)].into(),
        missing: Missing { lost: 12, holes: [(1, 2)].into(), begins: 1, ends: 0, undecoded: 0 },
        events: 4321,
    };
    let gap = Gap::new("the rest of the interval", Why::Gone);
    Report {
        seconds: 5.0,
        traced: Ok(traced),
        delayed: None,
        host: host_figures(),
        is_last: true,
        gaps: vec![gap],
    }
}

fn subject() -> Subject<'static> {
    Subject {
        target: Some((4711, "java -jar /opt/app.jar")),
        kernel: "6.18.0",
        thp: None,
        by: By::Kind,
        is_host: true,
        trace_bytes: Some(8 << 20),
    }
}

fn text_of(report: &Report, columns: usize) -> String {
    within(columns, || {
        let mut out = Vec::new();
        head(&mut out, &subject()).expect("written");
        table(&mut out, report, &subject(), SystemTime::UNIX_EPOCH).expect("written");
        let mut whole = Whole::default();
        if let Ok(traced) = &report.traced {
            whole.add(traced);
        }
        histogram(&mut out, &whole).expect("written");
        String::from_utf8(out).expect("text")
    })
}

fn json(report: &Report, subject: &Subject) -> serde_json::Value {
    serde_json::to_value(StallsDocument::of(report, subject, SystemTime::UNIX_EPOCH)).expect("JSON")
}

#[test]
fn the_table_fits_every_width_and_says_what_is_missing() {
    for columns in [100, 80, 60] {
        let text = text_of(&report(), columns);
        for line in text.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for wanted in [
            "application",
            "lost events: 12 (CPU 1); all times are lower bounds",
            "7 of 127 pages of 2m were unavailable",
            "other processes of the host waited 3.00 ms",
            "khugepaged 250.0 ms (5.0 %)",
            "scanned 43 ranges of 2 MiB, made 3 huge; else exceed_none_pte 40",
            "2.0 MiB: private 120 got, 7 fell back; 3 split",
            "10.00 % of the time, all of them 0.50 %",
            "allocations that reclaimed 2",
            "the rest of the interval: gone",
        ] {
            assert!(words.contains(wanted), "{columns}: {wanted} is not in\n{text}");
        }
    }
}

#[test]
fn the_columns_of_a_wide_table() {
    let text = text_of(&report(), 100);
    let line = text.lines().find(|line| line.contains("direct compaction")).expect("a row");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[..3], ["application", "direct", "compaction"]);
    // Size, count, total, worst, p99, % of time, % of CPU: 370 ms of 5 s and of 800 ms.
    assert_eq!(words[3..], ["2m", "30", "370", "12.3", "12.3", "7.4", "46.3"]);
    let waited = text.lines().find(|line| line.trim_start().starts_with("waited ")).expect("the sum");
    assert_eq!(waited.split_whitespace().nth(1), Some("32"));
    assert!(text.contains("8.39 ms to  16.8 ms       30  ####"), "{text}");
}

#[test]
fn without_a_trace_it_says_so_and_has_the_counters() {
    let delays = Delays { reclaim_count: 1, reclaim_ns: 5 * MS, compact_count: 2, compact_ns: 7 * MS };
    let delayed = Delayed { pid: 7, name: "org.example.Main".into(), is_jvm: true, delays };
    let denied = Gap::new("tracepoints", Why::Denied).hint("run as root");
    let report = Report { traced: Err(denied), delayed: Some(Ok(vec![delayed])), ..report() };
    let text = text_of(&report, 100);
    for wanted in [
        "5.00 s, not traced",
        "which processes stalled, and for how long, is unknown: tracepoints: denied (run as root)",
        "7 jvm Main: compaction 7.00 ms in 2, reclaim 5.00 ms in 1",
        "allocations that compacted 17",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    let json = json(&report, &subject());
    assert_eq!((&json["rows"], &json["total"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    assert_eq!(json["taken"]["source"], "counters");
    assert_eq!(json["delays"][0]["compaction_ms"], 7.0);
    assert_eq!(json["host"]["vmstat"]["compact_stall"], 17);
    let gaps: Vec<&str> =
        json["gaps"].as_array().expect("gaps").iter().filter_map(|gap| gap["what"].as_str()).collect();
    assert!(gaps.contains(&"tracepoints") && gaps.contains(&"fragmentation index"), "{gaps:?}");
}

#[test]
fn the_json_has_the_same_figures() {
    let json = json(&report(), &subject());
    assert_eq!((&json["schema"], &json["process"]["pid"]), (&"marusa/stalls/2".into(), &4711.into()));
    let row = &json["rows"][0];
    assert_eq!((&row["who"], &row["kind"]), (&"kind".into(), &"application".into()));
    let stall = &row["stalls"][0];
    assert_eq!((&stall["stall"], &stall["page_bytes"]), (&"direct_compaction".into(), &(2 << 20).into()));
    assert_eq!((&stall["count"], &stall["worst_ms"]), (&30.into(), &12.345.into()));
    assert_eq!(stall["histogram"][0]["count"], 30);
    assert_eq!(
        (&json["missing"]["times_are_at_least"], &json["missing"]["lost_events"]),
        (&true.into(), &12.into())
    );
    assert_eq!(json["daemons"][0]["stall"], "kcompactd");
    assert_eq!(json["host"]["by_page_size"][1]["counters"]["anon_fault_fallback"], 7);
    assert_eq!(json["host"]["daemon_cpu_ms"]["khugepaged"], 250.0);
}

#[test]
fn from_a_container_the_head_says_whose_figures_they_are() {
    let subject = Subject { is_host: false, target: None, ..subject() };
    let mut out = Vec::new();
    head(&mut out, &subject).expect("written");
    let text = String::from_utf8(out).expect("text");
    assert!(text.starts_with("all processes of this host\n") && text.contains("in a container"), "{text}");
    assert_eq!(json(&report(), &subject)["host"]["is_seen_from_container"], true);
}
