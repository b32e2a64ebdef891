//! Recorded logs: of each release and collector with the options that Marusa gives, and as users set them. What must come
//! out of each was counted by another program (scripts/record-gc-logs), not by the parser.

use flate2::read::GzDecoder;
use marusa::measure::gc_log::{self, GcLog, Kind};
use std::io::Read;

fn log(name: &str) -> Vec<u8> {
    let path = crate::common::root().join("tests/data/gc-logs").join(format!("{name}.log.gz"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).expect("whole");
    bytes
}

fn parsed(name: &str) -> GcLog {
    gc_log::parse(&log(name)).unwrap_or_else(|gap| panic!("{name}: {gap}"))
}

/// name, collector, stops, full collections, ms in all, phases next to the program.
#[test]
fn what_was_counted_is_found() {
    let expected = std::fs::read_to_string(crate::common::root().join("tests/data/gc-logs/expected.tsv"))
        .expect("expected.tsv");
    let mut logs = 0;
    for line in expected.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, gc, stops, full, ms, phases] = columns[..] else { panic!("{line}") };
        let log = parsed(name);
        let found = log.gc.map_or("unknown", |gc| gc.name());
        let sum = log.summary();
        let of_kind = sum.by_kind.get(&Kind::Full).copied().unwrap_or(0);
        assert_eq!((found, sum.pauses.to_string().as_str()), (gc, stops), "{name}");
        assert_eq!(
            (of_kind.to_string().as_str(), log.phases.len().to_string().as_str()),
            (full, phases),
            "{name}"
        );
        let ms: f64 = ms.parse().expect("a number");
        assert!(
            (sum.pause_ms - ms).abs() < 0.01 * log.pauses.len() as f64 + 1e-6,
            "{name}: {} and {ms}",
            sum.pause_ms
        );
        logs += 1;
    }
    assert!(logs >= 30, "{logs}");
}

/// A log that is cut has what was complete: never more, and what is there is as in the whole.
#[test]
fn logs_that_are_cut_anywhere() {
    for name in ["8-cms", "8-g1", "17-g1", "21-z-generational"] {
        let bytes = log(name);
        let whole = parsed(name);
        for end in (0..bytes.len()).step_by(997) {
            let Ok(part) = gc_log::parse(&bytes[..end]) else { continue };
            assert!(
                part.pauses.len() <= whole.pauses.len() && part.phases.len() <= whole.phases.len(),
                "{name} {end}"
            );
            // The last one may be known to be within another only when that has ended.
            let known = part.pauses.len().saturating_sub(2);
            for (one, other) in part.pauses.iter().zip(&whole.pauses).take(known) {
                assert_eq!(
                    (one.ms, one.kind, &one.cause),
                    (other.ms, other.kind, &other.cause),
                    "{name} cut at {end}"
                );
            }
        }
    }
}

/// Bytes that are changed anywhere give an answer, and no time that is none.
#[test]
fn logs_that_are_damaged() {
    let mut random = fastrand::Rng::with_seed(1);
    for name in ["8-cms", "8-parallel", "11-cms", "17-z", "25-shenandoah"] {
        let bytes = log(name);
        for _ in 0..40 {
            let mut bad = bytes.clone();
            for _ in 0..random.usize(1..200) {
                let at = random.usize(..bad.len());
                bad[at] = *random.choice(b"[]()0 9.,:->MKmsGC\n\0\xff").expect("a byte");
            }
            let Ok(log) = gc_log::parse(&bad) else { continue };
            assert!(log.pauses.iter().all(|pause| pause.ms.is_finite() && pause.ms >= 0.0), "{name}");
            let sum = log.summary();
            assert!(
                sum.concurrent_ms.is_ok_and(|ms| ms.is_finite())
                    || log.phases.iter().any(|one| one.start_seconds.is_none())
                    || log.pauses.iter().any(|one| one.start_seconds.is_none()),
                "{name}"
            );
        }
    }
}
