//! What logs say of collections, against the counters that the same JVM keeps of them: every test JDK with every collector,
//! as Marusa sets the log and as users do. And recorded logs, whose sums another program counted.

mod counters;
mod recorded;

use crate::common::{Jvm, Row};
use counters::Counters;
use marusa::jvm::Gc;
use marusa::measure::gc_log::{self, GcLog, Kind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a collector may still work after the program has come to rest.
const REST_MAX: Duration = Duration::from_secs(60);

struct Logged {
    jvm: Jvm,
    path: PathBuf,
}

fn feature(row: &Row) -> u32 {
    row.jdk.parse().expect("a number")
}

/// A JVM that has collected, with its log at `path`. `None`: the JDK is missing.
fn start(row: &Row, log: &dyn Fn(&str) -> Vec<String>) -> Option<Logged> {
    let java = crate::common::java(&row.jdk)?;
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gc-{}-{}.log", row.jdk, row.gc));
    let _ = std::fs::remove_file(&path);
    let mut options = row.options.clone();
    options.extend(
        ["-Xmx96m", "-Xms96m", "-XX:+UnlockDiagnosticVMOptions", "-XX:-ZProactive"]
            .map(String::from)
            .into_iter()
            .filter(|option| !option.contains("ZProactive") || row.gc.starts_with("z")),
    );
    options.extend(log(path.to_str().expect("UTF-8")));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let jvm = Jvm::start(&java, &options, &["marusa.Churn", "mb=120", "live=24"]);
    Some(Logged { jvm, path })
}

impl Logged {
    /// Log and counters of one moment: both were the same before and after.
    fn at_rest(&self) -> (GcLog, Counters) {
        let started = Instant::now();
        loop {
            let read = || std::fs::read(&self.path).unwrap_or_default();
            let (before, first) = (read(), Counters::of(self.jvm.pid));
            std::thread::sleep(Duration::from_millis(500));
            let (after, last) = (read(), Counters::of(self.jvm.pid));
            let log = gc_log::parse(&after).ok().filter(|log| log.torn == 0);
            if let Some(log) = log.filter(|_| before == after && first == last) {
                return (log, last);
            }
            assert!(
                started.elapsed() < REST_MAX,
                "the collector does not come to rest: {}",
                String::from_utf8_lossy(&after)
            );
        }
    }
}

fn count(log: &GcLog, kinds: &[Kind]) -> u64 {
    log.pauses.iter().filter(|pause| kinds.contains(&pause.kind)).count() as u64
}

/// Without the time of a full collection within a young one, which the JVM counts for itself.
fn seconds(log: &GcLog, kinds: &[Kind]) -> f64 {
    let (mut sum, mut within) = (0.0, 0.0);
    for pause in &log.pauses {
        let own = if pause.is_nested { pause.ms } else { pause.ms - within };
        within = if pause.is_nested { within + pause.ms } else { 0.0 };
        sum += if kinds.contains(&pause.kind) { own / 1000.0 } else { 0.0 };
    }
    sum
}

/// The JVM's sum of a kind of stops, and ours: equal numbers, and times that differ by no more than where the two begin to
/// count.
fn agree(log: &GcLog, counters: &Counters, index: usize, kinds: &[Kind]) -> Result<(), String> {
    let Some((invocations, their_seconds)) = counters.collector(index) else {
        return Err(format!("no counter of collector {index}"));
    };
    let (ours, seconds) = (count(log, kinds), seconds(log, kinds));
    let apart = 0.001 * invocations as f64 + 0.05 * their_seconds.max(seconds);
    if ours != invocations || (seconds - their_seconds).abs() > apart {
        return Err(format!(
            "{kinds:?}: {ours} in {seconds} s, by collector {index} {invocations} in {their_seconds} s"
        ));
    }
    Ok(())
}

fn check(row: &Row, log: &GcLog, counters: &Counters) -> Result<(), String> {
    let name = row.name();
    assert_eq!(log.gc, Some(expected(&row.gc)), "{name}");
    assert!(log.gaps.is_empty(), "{name}: {:?}", log.gaps);
    match row.gc.as_str() {
        "serial" | "parallel" | "g1" | "cms" => {
            agree(log, counters, 0, &[Kind::Young, Kind::Mixed])?;
            // Steps of cycles have a counter of their own since JDK 11; before, CMS counts them with the full collections.
            match (counters.collector(2), row.gc.as_str()) {
                (None, "cms") => agree(log, counters, 1, &[Kind::Full, Kind::OfCycle])?,
                (None, _) => agree(log, counters, 1, &[Kind::Full])?,
                (Some(_), _) => {
                    agree(log, counters, 1, &[Kind::Full])?;
                    agree(log, counters, 2, &[Kind::OfCycle])?;
                }
            }
        }
        // Its stops have counters since JDK 17: those of the old and those of the young generation.
        "z" | "z-generational" if feature(row) >= 17 => {
            let (invocations, their_seconds) = counters.all();
            let (stops, seconds) = (log.pauses.len() as u64, log.summary().pause_ms / 1000.0);
            if stops != invocations || (seconds - their_seconds).abs() > 0.05 * seconds + 1e-5 * stops as f64
            {
                return Err(format!(
                    "{stops} stops in {seconds} s, by counters {invocations} in {their_seconds} s"
                ));
            }
        }
        "z" => assert_eq!(counters.all().0, 0, "JDK 11 counts none"),
        // One counter for stops and most of the phases next to the program together.
        _ => {
            let (stops, phases) = (log.pauses.len() as u64, log.phases.len() as u64);
            let (invocations, _) = counters.all();
            if invocations < stops || invocations > stops + phases {
                return Err(format!("{stops} stops and {phases} phases, by counters {invocations} of both"));
            }
        }
    }
    let sum = log.summary();
    assert!(sum.pauses > 0 && sum.pause_ms > 0.0, "{name}");
    let heap_max = 96 << 20;
    let is_within =
        |heap: &gc_log::Heap| heap.after <= heap_max && heap.committed.is_none_or(|bytes| bytes <= heap_max);
    assert!(log.heap.iter().all(is_within), "{name}: {:?}", log.heap);
    if let Ok(bytes) = sum.allocated_bytes {
        // 150 MB die at once, and as much goes through the window; what came after the last collection is not seen.
        assert!((200 << 20..310 << 20).contains(&bytes), "{name}: {bytes}");
    }
    Ok(())
}

fn expected(gc: &str) -> Gc {
    match gc {
        "serial" => Gc::Serial,
        "parallel" => Gc::Parallel,
        "cms" => Gc::Cms,
        "g1" => Gc::G1,
        "z" => Gc::Z,
        "z-generational" => Gc::ZGenerational,
        "shenandoah" => Gc::Shenandoah,
        "shenandoah-generational" => Gc::ShenandoahGenerational,
        other => panic!("{other}"),
    }
}

/// A reading that is wrong is wrong in each of them.
const JVMS_MAX: usize = 3;

#[test]
fn stops_are_those_that_the_jvm_counts_itself() {
    let mut wrong = Vec::new();
    for row in crate::common::chosen_rows() {
        let options = |path: &str| gc_log::options(feature(&row), path);
        // Between the clock of the log and that of the counter a thread may lose its processor: then another JVM is asked.
        let mut last = None;
        for _ in 0..JVMS_MAX {
            let Some(logged) = start(&row, &options) else { return };
            let (log, counters) = logged.at_rest();
            println!("{}: {} stops, {:.1} ms", row.name(), log.summary().pauses, log.summary().pause_ms);
            let checked = check(&row, &log, &counters);
            let is_good = checked.is_ok();
            last = Some((logged, checked));
            if is_good {
                break;
            }
        }
        let Some((logged, checked)) = last else { return };
        wrong.extend(checked.err().map(|error| format!("{}: {error}", row.name())));
        if let Ok(keep) = std::env::var("MARUSA_KEEP_LOGS") {
            std::fs::copy(&logged.path, Path::new(&keep).join(format!("{}-{}.log", row.jdk, row.gc)))
                .expect("kept");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
