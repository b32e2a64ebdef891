use super::*;
use crate::measure::events::{self, SIZE_1G, SIZE_2M, SIZE_4K};
use crate::os::cpu::{Cpu, Pmu, Vendor};
use crate::os::perf::Mode::{Kernel, User};

fn set_of(vendor: Vendor, family: u32, model: u32) -> EventSet {
    let pmus = vec![Pmu { name: "cpu".to_string(), kind: 4 }];
    let cpu = Cpu { vendor, family, model, has_hypervisor: Some(false), pmus, ..Cpu::default() };
    events::choose(&cpu).expect("a known processor")
}

fn slots_of(set: &EventSet, modes: &[Mode]) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (high, mode) in modes.iter().enumerate() {
        for (low, group) in set.groups.iter().enumerate() {
            slots.extend(group.iter().map(|event| Slot {
                event: *event,
                mode: *mode,
                group: high * 100 + low,
            }));
        }
    }
    slots
}

/// A thread of which every event was counted for the whole second, as `value` says.
fn thread(slots: &[Slot], tid: i32, name: &str, value: impl Fn(&str, Mode) -> u64) -> ThreadCounts {
    let count = |slot: &Slot| Count {
        raw: value(slot.event.name, slot.mode),
        enabled_ns: 1_000_000_000,
        running_ns: 1_000_000_000,
    };
    ThreadCounts { tid, name: name.to_string(), counts: slots.iter().map(|slot| Some(count(slot))).collect() }
}

fn interval(threads: Vec<ThreadCounts>) -> Interval {
    Interval { seconds: 2.0, threads, ..Interval::default() }
}

fn context() -> Context {
    Context { mapped: Err(Gap::new("mapped", Why::NotRead)), has_hypervisor: Some(false) }
}

fn side(row: &Row, mode: Mode, side: Side) -> &SideFigures {
    row.modes.iter().find(|it| it.mode == mode).and_then(|it| it.side(side)).expect("this mode and side")
}

fn page(figures: &SideFigures, size: u64) -> &PageFigures {
    figures.pages.iter().find(|page| page.page_bytes == Some(size)).expect("this size")
}

fn near(time: &Known<f64>, share: f64) {
    let time = time.as_ref().expect("known");
    assert!((time - share).abs() < 1e-9, "{time} is not {share}");
}

fn intel(name: &str, mode: Mode) -> u64 {
    match (name, mode) {
        ("cpu-cycles", User) => 8_000_000_000,
        ("cpu-cycles", _) => 2_000_000_000,
        (_, Kernel) => 0,
        ("dtlb_load_misses.walk_active", _) => 800_000_000,
        ("dtlb_store_misses.walk_active", _) => 200_000_000,
        ("itlb_misses.walk_active", _) => 100_000_000,
        ("dtlb_load_misses.walk_completed_4k", _) => 15_000_000,
        ("dtlb_load_misses.walk_completed_2m_4m", _) => 4_000_000,
        ("dtlb_store_misses.walk_completed_4k", _) => 1_000_000,
        ("itlb_misses.walk_completed_4k", _) => 2_000_000,
        ("dtlb_load_misses.walk_pending", _) => 1_000_000_000,
        _ => 0,
    }
}

#[test]
fn intel_walk_active_cycles_are_given_to_sizes_by_their_walks() {
    let set = set_of(Vendor::Intel, 6, 0x8f);
    let slots = slots_of(&set, &[User, Kernel]);
    let interval = interval(vec![thread(&slots, 1, "main", intel)]);
    let report = report(&interval, &set, &slots, &Kinds::default(), By::Kind, &context());
    let data = side(&report.total, User, Side::Data);
    // 1e9 of 1e10 cycles: user and kernel together are the whole.
    near(&data.walks.time, 0.1);
    assert_eq!(data.walks.count, Ok(20_000_000.0));
    near(&page(data, SIZE_4K).walks.time, 0.08);
    near(&page(data, SIZE_2M).walks.time, 0.02);
    near(&page(data, SIZE_1G).walks.time, 0.0);
    assert_eq!(data.cycles_each, Some(50.0));
    near(&side(&report.total, User, Side::Instruction).walks.time, 0.01);
    near(&side(&report.total, Kernel, Side::Data).walks.time, 0.0);
    near(&report.total.time, 0.11);
    assert_eq!((report.rows.len(), &report.rows[0].who), (1, &Who::Kind(Kind::Application)));
    assert_eq!(report.model, Model::WalkActive);
}

#[test]
fn groups_that_took_turns_are_scaled_each_by_its_own_time() {
    let set = set_of(Vendor::Intel, 6, 0x55);
    let slots = slots_of(&set, &[User]);
    let mut one = thread(&slots, 1, "main", intel);
    // The first group ran a quarter of the time and counted a quarter, the others all of it.
    for (slot, count) in slots.iter().zip(&mut one.counts).filter(|(slot, _)| slot.group == 0) {
        let count = count.as_mut().expect("counted");
        (count.raw, count.running_ns) = (intel(slot.event.name, User) / 4, 250_000_000);
    }
    let report = report(&interval(vec![one]), &set, &slots, &Kinds::default(), By::Kind, &context());
    assert_eq!(report.total.cycles, Ok(8e9));
    near(&side(&report.total, User, Side::Data).walks.time, 0.125);
    assert_eq!(report.total.running_share, Some(0.25));
}

#[test]
fn arm_stalls_are_taken_as_they_are() {
    let set = set_of(Vendor::Arm { implementer: 0x41 }, 0, 0xd84);
    let slots = slots_of(&set, &[User]);
    let counts = |name: &str, _| match name {
        "cpu_cycles" => 1_000_000_000,
        "stall_backend_tlb" => 60_000_000,
        "stall_frontend_tlb" => 10_000_000,
        "dtlb_walk_small" => 3_000_000,
        "dtlb_walk_large" => 1_000_000,
        _ => 0,
    };
    let report = report(
        &interval(vec![thread(&slots, 1, "main", counts)]),
        &set,
        &slots,
        &Kinds::default(),
        By::Kind,
        &context(),
    );
    let data = side(&report.total, User, Side::Data);
    near(&data.walks.time, 0.06);
    near(&page(data, SIZE_2M).walks.time, 0.015);
    // Stalls without a walk that ended: a share that belongs to no size.
    let code = side(&report.total, User, Side::Instruction);
    near(&code.walks.time, 0.01);
    assert_eq!(code.walks.count, Ok(0.0));
    near(&report.total.time, 0.07);
}

fn amd(name: &str, mode: Mode) -> u64 {
    match (name, mode) {
        ("ls_not_halted_cyc", User) => 1_000_000_000,
        ("ls_not_halted_cyc", _) => 100_000_000,
        ("ls_l1_d_tlb_miss.tlb_reload_4k_l2_miss", User) => 1_000_000,
        ("ls_l1_d_tlb_miss.tlb_reload_2m_l2_miss", User) => 100_000,
        ("bp_l1_tlb_miss_l2_tlb_miss.if4k", User) => 10_000,
        _ => 0,
    }
}

#[test]
fn a_processor_that_counts_walks_only_has_misses_but_no_time() {
    let set = set_of(Vendor::Amd, 0x19, 0x11);
    let slots = slots_of(&set, &[User]);
    let table = report(
        &interval(vec![thread(&slots, 1, "main", amd)]),
        &set,
        &slots,
        &Kinds::default(),
        By::Kind,
        &context(),
    );
    let data = side(&table.total, User, Side::Data);
    assert_eq!(data.walks.count, Ok(1_100_000.0));
    assert!(data.walks.time.is_err() && table.total.time.is_err());
    assert!(table.gaps.iter().any(|gap| gap.what == "time in walks"), "{:?}", table.gaps);
    near(&page(data, SIZE_1G).walks.time, 0.0);
}

#[test]
fn an_event_that_is_not_there_is_a_gap_and_not_zero() {
    let set = set_of(Vendor::Intel, 6, 0x8f);
    let slots: Vec<Slot> = slots_of(&set, &[User])
        .into_iter()
        .filter(|slot| {
            !matches!(
                slot.event.name,
                "dtlb_store_misses.walk_active" | "dtlb_load_misses.walk_completed_2m_4m"
            )
        })
        .collect();
    let table = report(
        &interval(vec![thread(&slots, 1, "main", intel)]),
        &set,
        &slots,
        &Kinds::default(),
        By::Kind,
        &context(),
    );
    let data = side(&table.total, User, Side::Data);
    assert!(data.walks.time.is_err(), "loads alone are not the data side");
    assert!(data.walks.count.is_err() && page(data, SIZE_2M).walks.count.is_err());
    assert_eq!(page(data, SIZE_4K).walks.count, Ok(16_000_000.0));
    assert!(side(&table.total, User, Side::Instruction).walks.time.is_ok());
    assert!(table.total.time.is_err());
}

#[test]
fn threads_of_which_nothing_is_known_leave_the_others_right() {
    let set = set_of(Vendor::Amd, 0x19, 0x01);
    let slots = slots_of(&set, &[User, Kernel]);
    let gone = ThreadCounts { tid: 2, name: "GC Thread#0".to_string(), counts: vec![None; slots.len()] };
    let idle = ThreadCounts {
        tid: 3,
        name: "C2 CompilerThre".to_string(),
        counts: vec![Some(Count::default()); slots.len()],
    };
    let interval = interval(vec![thread(&slots, 1, "main", amd), gone, idle]);
    let table = report(&interval, &set, &slots, &Kinds::default(), By::Thread, &context());
    assert_eq!(table.total.cycles, Ok(1.1e9));
    assert_eq!(side(&table.total, User, Side::Data).walks.count, Ok(1_100_000.0));
    let row = |tid| {
        table
            .rows
            .iter()
            .find(|row| matches!(row.who, Who::Thread { tid: it, .. } if it == tid))
            .expect("a row")
    };
    assert!(row(2).cycles.is_err() && row(2).time.is_err(), "unknown is not zero");
    assert_eq!(row(3).cycles, Ok(0.0));
    near(&row(3).time, 0.0);
    assert!(matches!(table.rows[0].who, Who::Thread { tid: 1, .. }), "biggest first");
}

#[test]
fn a_filtered_counter_is_distinguished_from_a_program_without_misses() {
    let set = set_of(Vendor::Amd, 0x19, 0x01);
    let slots = slots_of(&set, &[User]);
    let of = |cycles| {
        let counts = move |name: &str, _| if name == "ls_not_halted_cyc" { cycles } else { 0 };
        let interval = interval(vec![thread(&slots, 1, "main", counts)]);
        report(&interval, &set, &slots, &Kinds::default(), By::Kind, &context())
    };
    let (short, long) = (of(1_000_000), of(20_000_000_000));
    assert_eq!(side(&short.total, User, Side::Data).walks.count, Ok(0.0));
    assert!(side(&long.total, User, Side::Data).walks.count.is_err());
    assert!(long.gaps.iter().any(|gap| gap.to_string().contains("hypervisor filters")), "{:?}", long.gaps);
}
