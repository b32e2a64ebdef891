use super::*;
use crate::base::Why;
use crate::measure::counters::{Interval, Slot, ThreadCounts};
use crate::measure::events::{self, EventSet};
use crate::measure::interval::Count;
use crate::measure::kinds::Kinds;
use crate::measure::tlb::{By, Context, report};
use crate::measure::walk_costs::{WalkCost, WalkCosts};
use crate::os::cpu::{Pmu, Vendor};

fn zen() -> Cpu {
    let pmus = vec![Pmu { name: "cpu".to_string(), kind: 4 }];
    let name = "AMD EPYC".to_string();
    Cpu {
        vendor: Vendor::Amd,
        family: 0x19,
        model: 1,
        name,
        has_hypervisor: Some(true),
        pmus,
        ..Cpu::default()
    }
}

fn context() -> Context {
    let cost = |page_bytes, low_cycles, high_cycles| WalkCost {
        side: Side::Data,
        page_bytes,
        low_cycles,
        high_cycles,
    };
    let costs = vec![cost(4096, 18.0, 138.0), cost(2 << 20, 7.0, 52.0)];
    Context {
        costs: Ok(WalkCosts { costs, source: "a test".to_string() }),
        mapped: Ok([(4096, 100 << 20), (2 << 20, 3 << 30)].into()),
        has_hypervisor: Some(true),
    }
}

fn value(name: &str, mode: Mode) -> u64 {
    match (name, mode) {
        ("ls_not_halted_cyc", Mode::User) => 1_000_000_000,
        ("ls_not_halted_cyc", _) => 100_000_000,
        ("ls_l1_d_tlb_miss.tlb_reload_4k_l2_miss", Mode::User) => 1_000_000,
        ("ls_l1_d_tlb_miss.tlb_reload_2m_l2_miss", Mode::User) => 50_000,
        _ => 0,
    }
}

fn of(by: By, names: &[&str]) -> Report {
    let set: EventSet = events::choose(&zen()).expect("known");
    let mut slots: Vec<Slot> = Vec::new();
    for (index, mode) in [Mode::User, Mode::Kernel].into_iter().enumerate() {
        for (group, events) in set.groups.iter().enumerate() {
            slots.extend(events.iter().map(|event| Slot { event: *event, mode, group: index * 10 + group }));
        }
    }
    let count = |slot: &Slot| {
        Some(Count { raw: value(slot.event.name, slot.mode), enabled_ns: 1_000_000, running_ns: 1_000_000 })
    };
    let thread = |(tid, name): (usize, &&str)| ThreadCounts {
        tid: tid as i32 + 1,
        name: name.to_string(),
        counts: slots.iter().map(count).collect(),
    };
    let threads = names.iter().enumerate().map(thread).collect();
    let gaps = vec![Gap::new("something", Why::Denied).hint("a right")];
    let interval = Interval { seconds: 2.0, threads, is_last: false, gaps };
    report(&interval, &set, &slots, &Kinds::default(), by, &context())
}

fn text(report: &Report) -> String {
    let mut out = Vec::new();
    table(&mut out, report, SystemTime::UNIX_EPOCH).expect("written");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn a_table_as_trapstat_has_it() {
    let text = text(&of(By::Kind, &["main"]));
    assert!(text.contains("CPU time: an interval"), "{text}");
    let row = text.lines().find(|line| line.starts_with("application")).expect("a row");
    // 500,000 a second; 7 to 138 cycles each of 1.1e9 cycles in 2 seconds.
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>().join(" "),
        "application 100 % cpu u 4k |0 0.0 | 500000 0.6-12.5 | 0.6-12.5".replace("|0", "| 0")
    );
    assert!(text.lines().any(|line| line.contains(" u    2m |") && line.contains("25000")), "{text}");
    assert!(text.contains("ttl") && text.contains("The host splinters large pages"), "{text}");
    assert!(text.contains("something: denied (a right)"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= width()), "{text}");
}

#[test]
fn a_terminal_of_80_columns_gets_shorter_columns() {
    let report = of(By::Kind, &["main"]);
    let text = crate::show::width::within(80, || text(&report));
    assert!(text.contains(" dtlb/s ") && text.contains("500000"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_terminal_of_40_columns_keeps_the_times() {
    for by in [By::Kind, By::Thread] {
        let text = crate::show::width::within(40, || text(&of(by, &["a thread with a long name"; 50])));
        let wide = text.lines().find(|line| line.chars().count() > 40);
        assert_eq!(wide, None, "{text}");
        assert!(text.contains("%TIM") && text.contains("0.6-12.5"), "{text}");
        assert!(text.contains("no room in 40 columns for"), "{text}");
    }
}

#[test]
fn a_row_for_each_thread_and_not_too_many() {
    let names = vec!["a thread with a long name"; 60];
    let text = text(&of(By::Thread, &names));
    assert!(text.contains("and 20 more") && text.contains(" 17 u"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= width()), "{text}");
}

#[test]
fn json_has_raw_and_scaled_counts_and_null_where_nothing_is_known() {
    let report = of(By::Kind, &["main"]);
    let cpu = zen();
    let subject = Subject { pid: 7, command: "java", cpu: &cpu, kernel: "6.18" };
    let context = context();
    let document = TlbDocument::of(&report, &subject, &context, SystemTime::UNIX_EPOCH);
    let value = serde_json::to_value(document).expect("JSON");
    assert_eq!(
        (&value["schema"], &value["time_is"]),
        (&"marusa/tlb/2".into(), &"interval_by_calibration".into())
    );
    assert_eq!(value["effective_page_size"]["verdict"], "host_splinters");
    let count = &value["total"]["counts"][1];
    assert_eq!(
        (&count["event"], &count["raw"]),
        (&"ls_l1_d_tlb_miss.tlb_reload_4k_l2_miss".into(), &1_000_000.into())
    );
    assert_eq!(count["running_share"], 1.0);
    let sides = &value["rows"][0]["modes"][0]["sides"];
    assert_eq!(sides[1]["side"], "data");
    assert_eq!(sides[1]["walks_per_second"], 525_000.0);
    assert_eq!(value["gaps"][0]["what"], "something");
    assert_eq!(value["mapped_by_page_size"]["2097152"], 3_u64 << 30);
}
