use super::*;
use crate::base::Why;
use crate::measure::counters::{Interval, Slot, ThreadCounts};
use crate::measure::events::{self, EventSet};
use crate::measure::interval::Count;
use crate::measure::kinds::Kinds;
use crate::measure::tlb::{By, Context, report};
use crate::os::cpu::{Pmu, Vendor};

/// Zen 1 counts walks only, Sapphire Rapids their time too.
fn cpu(vendor: Vendor, family: u32, model: u32, name: &str) -> Cpu {
    let pmus = vec![Pmu { name: "cpu".to_string(), kind: 4 }];
    let (name, has_hypervisor) = (name.to_string(), Some(true));
    Cpu { vendor, family, model, name, has_hypervisor, pmus }
}

fn zen() -> Cpu {
    cpu(Vendor::Amd, 0x19, 1, "AMD EPYC")
}

fn xeon() -> Cpu {
    cpu(Vendor::Intel, 6, 0x8f, "Intel Xeon")
}

fn context() -> Context {
    Context { mapped: Ok([(4096, 100 << 20), (2 << 20, 3 << 30)].into()), has_hypervisor: Some(true) }
}

fn value(name: &str, mode: Mode) -> u64 {
    match (name, mode) {
        ("cpu-cycles" | "ls_not_halted_cyc", Mode::User) => 1_000_000_000,
        ("cpu-cycles" | "ls_not_halted_cyc", _) => 100_000_000,
        ("dtlb_load_misses.walk_active", Mode::User) => 115_500_000,
        ("ls_l1_d_tlb_miss.tlb_reload_4k_l2_miss" | "dtlb_load_misses.walk_completed_4k", Mode::User) => {
            1_000_000
        }
        ("ls_l1_d_tlb_miss.tlb_reload_2m_l2_miss" | "dtlb_load_misses.walk_completed_2m_4m", Mode::User) => {
            50_000
        }
        _ => 0,
    }
}

fn of(cpu: &Cpu, by: By, names: &[&str]) -> Report {
    let set: EventSet = events::choose(cpu).expect("known");
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
    let text = text(&of(&xeon(), By::Kind, &["main"]));
    assert!(text.contains("An upper bound of the time lost"), "{text}");
    let row = text.lines().find(|line| line.starts_with("application")).expect("a row");
    // 500,000 a second; 10.5 % of 1.1e9 cycles, by the sizes' walks.
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>().join(" "),
        "application 100 % cpu u 4k | 0 0.0 | 500000 10.0 | 10.0"
    );
    assert!(text.lines().any(|line| line.contains(" u    2m |") && line.contains("25000")), "{text}");
    assert!(text.contains("ttl") && text.contains("The host splinters large pages"), "{text}");
    assert!(text.contains("something: denied (a right)"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= width()), "{text}");
}

#[test]
fn a_terminal_of_80_columns_gets_shorter_columns() {
    let report = of(&xeon(), By::Kind, &["main"]);
    let text = crate::show::width::within(80, || text(&report));
    assert!(text.contains(" dtlb/s ") && text.contains("500000"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_terminal_of_40_columns_keeps_the_times() {
    for by in [By::Kind, By::Thread] {
        let text =
            crate::show::width::within(40, || text(&of(&xeon(), by, &["a thread with a long name"; 50])));
        let wide = text.lines().find(|line| line.chars().count() > 40);
        assert_eq!(wide, None, "{text}");
        assert!(text.contains("%TIM") && text.contains("10.5"), "{text}");
        assert!(text.contains("no room in 40 columns for"), "{text}");
    }
}

#[test]
fn a_row_for_each_thread_and_not_too_many() {
    let names = vec!["a thread with a long name"; 60];
    let text = text(&of(&xeon(), By::Thread, &names));
    assert!(text.contains("and 20 more") && text.contains(" 17 u"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= width()), "{text}");
}

#[test]
fn json_has_raw_and_scaled_counts_and_null_where_nothing_is_known() {
    let cpu = zen();
    let report = of(&cpu, By::Kind, &["main"]);
    let subject = Subject { pid: 7, command: "java", cpu: &cpu, kernel: "6.18" };
    let context = context();
    let document = TlbDocument::of(&report, &subject, &context, SystemTime::UNIX_EPOCH);
    let value = serde_json::to_value(document).expect("JSON");
    assert_eq!(value["schema"], "marusa/tlb/2");
    assert!(value["time_is"].is_null() && value["total"]["time_share"].is_null(), "{value}");
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

#[test]
fn walks_without_their_time_have_no_percentage() {
    let text = text(&of(&zen(), By::Kind, &["main"]));
    let row = text.lines().find(|line| line.starts_with("application")).expect("a row");
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>().join(" "),
        "application 100 % cpu u 4k | 0 0.0 | 500000 ? | ?"
    );
    assert!(text.contains("time in walks") && text.contains("marusa pages prove"), "{text}");
}

#[test]
fn what_cannot_be_counted_leaves_the_page_sizes() {
    let mapped = context().mapped.expect("known");
    let mut out = Vec::new();
    uncounted(&mut out, &mapped, &Gap::new("counters", Why::NotInThisKernel), 7).expect("written");
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(text.contains("not known. counters"), "{text}");
    let large = text.lines().find(|line| line.starts_with("2 MiB ")).expect("a row");
    assert!(large.ends_with(" 3.0 GiB") && text.contains("marusa pages prove 7 "), "{text}");
}
