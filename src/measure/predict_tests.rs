use super::*;
use crate::measure::calibration::tests::calibration;
use crate::measure::price::Reserved;
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;

fn price(now_mib: u64, on_small_mib: u64, most_mib: u64) -> AreaPrice {
    let now = now_mib * MIB;
    let on_small = on_small_mib * MIB;
    AreaPrice { now, on_small, movable: on_small, after: (now, most_mib * MIB) }
}

/// 12 MiB of a heap of 64 MiB on small pages, and 4 MiB of stacks, which stay there.
fn small_heap() -> Layout {
    Layout {
        areas: BTreeMap::from([
            (Area::JavaHeap, price(12, 12, 20)),
            (Area::Stack, price(4, 4, 4)),
            (Area::JitCode, price(3, 3, 4)),
        ]),
        pages: Ok(()),
        reserved: Ok(Reserved { heap: 64 * MIB, code: vec![240 * MIB], tables: vec![4096, 2 * MIB] }),
        takes_gigantic: true,
    }
}

/// A second of CPU time, a million walks for data.
fn counted() -> Vec<Counted> {
    let one = |kind: &str, cpu_ns, walks| Counted {
        kind: kind.to_string(),
        cpu_ns,
        instruction_walks: None,
        data_walks: Some(walks),
        translation: None,
    };
    vec![one("application", 0.9e9, 1e6), one("gc", 0.1e9, 0.0)]
}

fn near(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() < 1e-9
}

#[test]
fn the_gain_is_walks_times_what_each_would_take_less() {
    let all = predict(&small_heap(), &Ok(counted()), &Ok(calibration()));
    let gain = all[0].gain.as_ref().expect("all is known");
    // At 16 MiB: independent 7 - 0 ns, dependent 56 - 20 ns. 12 of the 16 MiB would become large.
    assert!(near(gain.percent.0, 1e6 * 0.75 * 7.0 / 1e9 * 100.0), "{gain:?}");
    assert!(near(gain.percent.1, 1e6 * 36.0 / 1e9 * 100.0), "{gain:?}");
    assert_eq!(gain.by_kind[1], ("gc".to_string(), (0.0, 0.0)));
    assert_eq!(all[1].gain.as_ref(), Ok(gain), "the same pages from another pool");
    let gigantic = all[2].gain.as_ref().expect("known").percent;
    assert!(
        near(gigantic.0, gain.percent.0) && near(gigantic.1, 5.6),
        "at most no walk at all: {gigantic:?}"
    );
    assert!(all[0].notes.iter().any(|note| note.contains("shorter, not fewer")), "{:?}", all[0].notes);
}

#[test]
fn the_price_is_holes_or_the_whole_reserve() {
    let all = predict(&small_heap(), &Err(Gap::new("counters", Why::Denied)), &Ok(calibration()));
    assert_eq!(all[0].lost(), (0, 9 * MIB));
    assert_eq!((all[0].areas.len(), all[0].pool), (3, None));
    let heap_and_code = 52 * MIB + 237 * MIB;
    assert_eq!(all[1].lost(), (heap_and_code, heap_and_code + 2 * MIB), "and a table of 2 MiB, or not");
    assert_eq!(all[1].pool, Some([(32 + 120, 32 + 120 + 1), (0, 0)]));
    assert_eq!(all[2].pool, Some([(120, 121), (1, 1)]));
    assert_eq!(all[2].areas[0].1.lost().0, 1012 * MIB);
    assert!(all.iter().all(|one| one.gain.is_err()), "no counters, no figure");
    let note = "7.0 to 36.0 ns less on 2 MiB pages, by calibration, for the 12 MiB of the heap and the collector's tables \
                that are on small pages: if there are a million a second, 0.7 to 3.6 % of a CPU";
    assert!(all[0].notes[0].ends_with(note), "{:?}", all[0].notes);
}

#[test]
fn what_was_measured_in_translation_is_the_most() {
    let mut counted = counted();
    counted[0].translation = Some((0.01, 0.02));
    let percent = |counted: Vec<Counted>, calibration| {
        predict(&small_heap(), &Ok(counted), &calibration)[0].gain.clone().map(|gain| gain.percent)
    };
    let (low, high) = percent(counted.clone(), Ok(calibration())).expect("known");
    assert!(near(low, 0.525) && near(high, 1.8), "{low} {high}");
    counted[1].translation = Some((0.0, 0.5));
    let missing = || Err(Gap::new("cost of a walk", Why::NotRead));
    assert_eq!(percent(counted.clone(), missing()).map(|(low, _)| low), Ok(0.0));
    counted[1].translation = None;
    assert_eq!(percent(counted, missing()).map_err(|gap| gap.what), Err("cost of a walk".to_string()));
}

#[test]
fn large_pages_that_are_there_give_nothing_more() {
    let mut layout = small_heap();
    layout.areas.values_mut().for_each(|area| (area.on_small, area.movable) = (0, 0));
    let all = predict(&layout, &Ok(counted()), &Ok(calibration()));
    assert_eq!(all[0].gain.as_ref().map(|gain| gain.percent), Ok((0.0, 0.0)));
    assert!(all[0].notes[0].ends_with("already"));

    let uncounted = Err(Gap::new("counters", Why::Denied));
    let said = |heap: u64| {
        let mut layout = layout.clone();
        layout.areas.insert(Area::JavaHeap, AreaPrice { movable: heap, ..price(1000, 1, 1000) });
        predict(&layout, &uncounted, &Ok(calibration()))[0].notes.join("; ")
    };
    assert!(
        said(10 * MIB).contains("nothing is left to gain") && !said(10 * MIB).contains("a walk for data")
    );
    assert!(said(11 * MIB).contains("for the 11 MiB") && !said(11 * MIB).contains("already"));
}

#[test]
fn what_is_not_known_is_a_gap() {
    let layout = Layout { takes_gigantic: false, ..small_heap() };
    let all = predict(&layout, &Ok(counted()), &Ok(calibration()));
    assert!(
        all[2].gain.as_ref().is_err_and(|gap| gap.hint.as_ref().is_some_and(|hint| hint.contains("ZGC")))
    );
    assert!(all[2].areas.is_empty() && all[2].pool.is_none() && all[2].price_gap.is_some(), "no such VM");
    assert!(all[2].notes.iter().all(|note| !note.contains("1 GiB")), "{:?}", all[2].notes);

    let mut idle = counted();
    idle.iter_mut().for_each(|kind| kind.cpu_ns = 0.0);
    assert!(predict(&layout, &Ok(idle), &Ok(calibration()))[0].gain.is_err());

    let mut none = counted();
    none[0].data_walks = None;
    assert!(predict(&layout, &Ok(none), &Ok(calibration()))[0].gain.is_err());

    let mut small_only = calibration();
    small_only.timings.truncate(4);
    let gain = &predict(&layout, &Ok(counted()), &Ok(small_only))[0].gain;
    assert_eq!(gain.as_ref().map_err(|gap| gap.what.as_str()), Err("what a walk costs on 2 MiB pages"));

    let layout = Layout { reserved: Err(Gap::new("heap", Why::NotInThisRuntime)), ..small_heap() };
    let all = predict(&layout, &Ok(counted()), &Ok(calibration()));
    assert!(all[1].areas.is_empty() && all[1].pool.is_none() && all[1].gain.is_ok());
    assert!(all[0].price_gap.is_none() && all[1].price_gap.is_some());

    let layout = Layout { pages: Err(Gap::new("pages", Why::Denied)), ..small_heap() };
    let all = predict(&layout, &Ok(counted()), &Ok(calibration()));
    assert!(all.iter().all(|one| one.gain.is_err() && one.areas.is_empty() && one.price_gap.is_some()));
    assert!(all[0].notes.iter().all(|note| !note.contains("already")), "unread is not large");
}

#[test]
fn between_two_footprints_the_interval_holds_both() {
    let mut both = calibration();
    let huge = both.timings[8..10].to_vec();
    both.timings.extend(huge.into_iter().map(|mut timing| {
        timing.page_bytes = 2 << 20;
        timing.step_ns = vec![timing.step_ns[0] / 2.0];
        timing
    }));
    let saved = |footprint| saved_by_walk_ns(&both, Side::Data, footprint, Choice::Transparent);
    assert_eq!(saved(64 * MIB), Ok((7.0, 120.0)));
    assert_eq!(saved(1 << 40), Ok((13.0, 120.0)));
    assert_eq!(
        saved_by_walk_ns(&both, Side::Instruction, MIB, Choice::Transparent),
        Ok((7.0, 36.0)),
        "data's stands"
    );
}

#[test]
fn user_walks_of_each_kind_are_taken_from_the_table() {
    use crate::measure::interval::Count;
    use crate::measure::kinds::Kind;
    use crate::measure::tlb::{Bracket, ModeFigures, SideFigures};
    let side = |side, walks| SideFigures {
        side,
        walks: Ok(walks),
        time: Ok(Bracket::default()),
        cycles_each: None,
        pages: Vec::new(),
    };
    let mode = |mode, walks| ModeFigures { mode, cycles: Ok(1e9), sides: vec![side(Side::Data, walks)] };
    let row = |who| Row {
        who,
        threads: 1,
        modes: vec![mode(Mode::Kernel, 5.0), mode(Mode::User, 7.0)],
        cycles: Ok(2e9),
        time: Ok(Bracket { low: 0.01, high: 0.04 }),
        running_share: Some(1.0),
        counts: vec![None, Some(Count { raw: 3, enabled_ns: 250, running_ns: 200 })],
    };
    let mut report = Report {
        seconds: 1.0,
        is_last: false,
        set: "a test",
        model: Model::WalkActive,
        notes: Vec::new(),
        slots: Vec::new(),
        costs_source: None,
        rows: vec![row(Who::Kind(Kind::Gc))],
        total: row(Who::Total),
        effective: None,
        gaps: Vec::new(),
    };
    let expected = Counted {
        kind: "gc".to_string(),
        cpu_ns: 250.0,
        instruction_walks: None,
        data_walks: Some(7.0),
        translation: Some((0.01, 0.04)),
    };
    assert_eq!(super::counted(&report), std::slice::from_ref(&expected));

    report.rows[0].who = Who::Thread { tid: 1, name: "main".to_string(), kind: Kind::Application };
    report.model = Model::Calibrated;
    let all = Counted { kind: "all".to_string(), translation: None, ..expected };
    assert_eq!(
        super::counted(&report),
        [all],
        "by thread: the sum; a share from the same costs bounds nothing"
    );
}
