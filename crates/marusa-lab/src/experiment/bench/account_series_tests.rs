//! The steady state, the mirror, and runs that differ.

use super::*;

/// JIT work and malloc-then-freed in MB, one pair a second; 100 MB of heap and 10 of class metadata as well.
fn run(pairs: &[(u64, u64)]) -> Run {
    let sample = |(at, (work, freed)): (usize, &(u64, u64))| Sample {
        seconds: at as f64,
        took_ms: 10.0 + at as f64,
        areas: [
            (Area::JavaHeap, 100),
            (Area::ClassMetadata, 4),
            (Area::CdsArchive, 6),
            (Area::JitWork, *work),
            (Area::MallocFreed, *freed),
        ]
        .into_iter()
        .map(|(area, mb)| (area, mb * 1_000_000))
        .collect(),
        kernel_resident_bytes: None,
        threads: 20,
        is_torn: false,
    };
    Run {
        program: Program::Compiler,
        run: 1,
        interval_seconds: 1.0,
        wanted_seconds: pairs.len() as f64,
        is_complete: true,
        jvm_options: Vec::new(),
        samples: pairs.iter().enumerate().map(sample).collect(),
        load: None,
        cpu_share: None,
        said: None,
        gaps: Vec::new(),
    }
}

#[test]
fn the_steady_state_leaves_the_warm_up_out() {
    let mut pairs = vec![(50, 0)];
    pairs.extend([(5, 7); 8]);
    pairs.push((5, 9));
    let rows = steady(&run(&pairs));
    let of = |row: Option<Row>| rows.iter().find(|one| one.row == row).expect("a row");
    let freed = of(Some(Row::Paper(PaperArea::MallocFreed)));
    assert_eq!((freed.low_bytes, freed.high_bytes, freed.late_bytes), (7e6, 9e6, 9e6));
    assert_eq!(of(Some(Row::Paper(PaperArea::JitWork))).high_bytes, 5e6);
    assert_eq!(of(Some(Row::Paper(PaperArea::ClassMetadata))).mean_bytes, 10e6, "the archive is metadata");
    assert_eq!(of(None).late_bytes, 24e6, "all but the heap");
    assert_eq!(rows.len(), Row::all().len() + 1);
    assert!(steady(&run(&[])).is_empty());
}

#[test]
fn a_mirror_shows_in_the_changes_even_while_both_grow() {
    let pairs: Vec<(u64, u64)> =
        (0..20).map(|at| (10 * at + 4 * (at % 2), 10 * at + 4 * (1 - at % 2))).collect();
    let found = mirror(&run(&pairs));
    assert!(found.levels.expect("they change") > 0.9, "{found:?}");
    assert!(found.changes.expect("they change") < -0.9, "{found:?}");
    let flat = mirror(&run(&[(1, 1); 5]));
    assert_eq!((flat.levels, flat.changes), (None, None));
}

#[test]
fn runs_differ_moment_by_moment_and_at_the_end() {
    let runs = [run(&[(1, 10), (1, 30)]), run(&[(1, 20), (1, 20), (9, 9)]), run(&[])];
    let found = over_runs(&runs.iter().collect::<Vec<_>>());
    let freed = found.iter().find(|one| one.row == Some(Row::Paper(PaperArea::MallocFreed))).expect("a row");
    assert_eq!(
        (freed.distance_bytes, freed.relative),
        (Some(10e6), Some(0.5)),
        "the means of the first two agree"
    );
    assert_eq!((freed.late_low_bytes, freed.late_high_bytes, freed.late_bytes.trials), (9e6, 30e6, 2));
    let half = freed.late_bytes.plus_minus.expect("of two runs");
    assert!(
        (half - 12.706 * 10.5e6).abs() < 1e4,
        "Student's t of one degree, 12.706, and half their distance: {half}"
    );
    let written = serde_json::to_value(freed).expect("JSON");
    assert_eq!((&written["area"], &written["relative"]), (&"malloc_freed".into(), &0.5.into()));
    let stack = found.iter().find(|one| one.row == Some(Row::Paper(PaperArea::Stack))).expect("a row");
    assert_eq!((stack.distance_bytes, stack.relative), (Some(0.0), None));
    let sum = found.last().expect("all but the heap");
    assert_eq!((sum.row, sum.late_low_bytes, sum.late_high_bytes), (None, 28e6, 41e6));
    assert!(over_runs(&[&run(&[])]).is_empty());
    assert_eq!(over_runs(&[&run(&[(1, 1); 2])])[0].distance_bytes, None);
}

#[test]
fn a_line_a_sample() {
    let text = csv(&[run(&[(1, 2), (3, 4)])]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("program,run,seconds,threads,java_heap_bytes,code_bytes"), "{}", lines[0]);
    assert!(lines[2].starts_with("compiler,1,1.000,20,100000000,0,"), "{}", lines[2]);
    assert_eq!(lines.len(), 3);
}
