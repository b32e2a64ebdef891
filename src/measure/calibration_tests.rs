use super::*;

/// The table of an EPYC in a virtual machine, in nanoseconds at 2.5 GHz.
pub fn calibration() -> Calibration {
    let timing = |nodes, page_bytes, footprint_mib: u64, chains, step_ns: &[f64]| Timing {
        step_ns: step_ns.to_vec(),
        ..Timing::of(Side::Data, nodes, page_bytes, footprint_mib << 20, chains)
    };
    let (small, huge) = (4096, 2 << 20);
    Calibration {
        schema: SCHEMA.to_string(),
        at: "2026-01-01T00:00:00Z".to_string(),
        took_ms: 1.0,
        machine: Machine { model: "AMD EPYC".into(), kernel: "6.18.44".into(), ..Machine::default() },
        reference_cycles_per_ns: Some(2.5),
        waited_share: Some(0.01),
        timings: vec![
            timing(Nodes::Dense, huge, 16, 1, &[5.0, 6.0, 9.0]),
            timing(Nodes::Dense, huge, 16, 8, &[1.0, 1.0, 1.0]),
            timing(Nodes::Spread, small, 16, 1, &[61.0, 60.0, 70.0]),
            timing(Nodes::Spread, small, 16, 8, &[8.0, 8.0, 9.0]),
            timing(Nodes::Spread, huge, 16, 1, &[25.0, 26.0, 27.0]),
            timing(Nodes::Spread, huge, 16, 8, &[0.5, 0.5, 4.0]),
            timing(Nodes::Dense, huge, 256, 1, &[40.0]),
            timing(Nodes::Dense, huge, 256, 8, &[6.0]),
            timing(Nodes::Spread, small, 256, 1, &[240.0]),
            timing(Nodes::Spread, small, 256, 8, &[26.0]),
        ],
        gaps: Vec::new(),
    }
}

#[test]
fn a_walk_is_what_a_step_takes_more_than_a_packed_one() {
    let costs = calibration().costs();
    assert_eq!(costs.len(), 3);
    assert_eq!((costs[0].page_bytes, costs[0].footprint_bytes), (4096, 16 << 20));
    assert_eq!(costs[0].high_ns, Figure { middle: 56.0, from: 54.0, to: 61.0 });
    assert_eq!((costs[0].low_ns.middle, costs[0].low_ns.to), (7.0, 8.0));
    assert_eq!((costs[1].page_bytes, costs[1].high_ns.middle), (2 << 20, 20.0));
    assert_eq!(costs[1].low_ns.middle, 0.0, "a walk does not give time back");
    assert_eq!((costs[2].low_ns.middle, costs[2].high_ns.middle), (20.0, 200.0));
}

#[test]
fn walks_that_were_counted_divide_the_cost_and_next_to_none_do_not() {
    let mut counted = calibration();
    assert!(!counted.is_counted());
    for (timing, walks) in counted.timings.iter_mut().zip([0.1, 0.1, 2.1, 1.1, 0.15, 0.1]) {
        timing.walks_per_step = vec![walks];
    }
    assert!(counted.is_counted());
    let costs = counted.costs();
    assert_eq!((costs[0].low_ns.middle, costs[0].high_ns.middle), (7.0, 28.0));
    assert_eq!(costs[1].high_ns.middle, 20.0, "0.05 walks a step");
}

#[test]
fn costs_in_cycles_hold_all_footprints_or_those_around_one() {
    let bracket = |footprint| calibration().walk_costs(footprint).bracket(Side::Data, &[4096]);
    assert_eq!(bracket(None), Some((17.5, 500.0)));
    assert_eq!(bracket(Some(1 << 20)), Some((17.5, 140.0)), "smaller than all: the smallest");
    assert_eq!(bracket(Some(64 << 20)), Some((17.5, 500.0)), "between two: both");
    assert_eq!(bracket(Some(256 << 20)), Some((50.0, 500.0)));
    assert_eq!(bracket(Some(1 << 40)), Some((50.0, 500.0)), "larger than all: the largest");
    let costs = calibration().walk_costs(None);
    assert_eq!(
        costs.bracket(Side::Instruction, &[4096]),
        Some((17.5, 500.0)),
        "the data side's stands for it"
    );
    assert!(costs.source.contains("AMD EPYC, Linux 6.18.44; for instructions"), "{}", costs.source);
}

#[test]
fn large_pages_that_still_need_walks_are_splintered() {
    assert_eq!(calibration().is_splintered(), Some(true), "20 of 56 ns");
    let mut whole = calibration();
    whole.timings[4].step_ns = vec![6.0, 7.0, 10.0];
    assert_eq!(whole.is_splintered(), Some(false));
    whole.timings.truncate(4);
    assert_eq!(whole.is_splintered(), None, "no large pages were available");
}

#[test]
fn without_a_rate_there_are_no_cycles_and_without_packed_lines_no_costs() {
    let mut without = calibration();
    without.reference_cycles_per_ns = None;
    assert!(without.walk_costs(None).costs.is_empty());
    without.timings.retain(|timing| timing.nodes == Nodes::Spread);
    assert!(without.costs().is_empty());
}

#[test]
fn a_calibration_of_a_busy_machine_is_worse() {
    let quiet = calibration();
    assert!(quiet.spread().is_some_and(|spread| spread < 0.2), "{:?}", quiet.spread());
    assert!(!quiet.is_worse_than(&quiet));
    let busy = Calibration { waited_share: Some(0.4), ..calibration() };
    assert!(busy.is_worse_than(&quiet) && !quiet.is_worse_than(&busy) && !busy.is_worse_than(&busy));
    let mut noisy = calibration();
    noisy.timings[2].step_ns = vec![20.0, 60.0, 300.0];
    noisy.timings[4].step_ns = vec![10.0, 26.0, 100.0];
    assert!(noisy.is_worse_than(&quiet) && !quiet.is_worse_than(&noisy), "{:?}", noisy.spread());
    noisy.timings.clear();
    assert_eq!(noisy.spread(), None);
}

#[test]
fn what_a_file_may_not_say() {
    assert!(calibration().is_sane());
    let mut bad = calibration();
    bad.timings[0].step_ns.push(f64::INFINITY);
    assert!(!bad.is_sane());
    let bad = Calibration { schema: "other/1".into(), ..calibration() };
    assert!(!bad.is_sane());
    assert_eq!(figure(&[f64::NAN]), None);
    let kept = serde_json::to_string(&calibration()).expect("JSON");
    assert_eq!(serde_json::from_str::<Calibration>(&kept).expect("JSON"), calibration());
}
