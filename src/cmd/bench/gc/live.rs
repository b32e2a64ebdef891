//! One trial on the real machine: the host as the arm needs it, the program that keeps the collector busy, its page tables as
//! witness, its log.

use crate::act::signals;
use crate::base::{Gap, Known, Refused, Why};
use crate::cmd::bench::jdk::Jdk;
use crate::cmd::bench::rounds::{Bench, JVM, Run, java, on_pages};
use crate::experiment::arm_pages::{self, ArmError};
use crate::experiment::bench::gc::{Arm, Collector, Settings, ThreadCounts, Threads};
use crate::experiment::bench::gc_work::GcWork;
use crate::experiment::bench::trials::Arranged;
use crate::jvm::Gc;
use crate::measure::gc_log;
use crate::os::host;
use crate::pages::collectors;
use crate::pages::gc_threads::{by_formula, gc_threads};
use crate::pages::subject::size;
use std::time::Duration;

const GC_LOG: &str = "gc.log";
/// How long a JVM may take to have its live set, next to the warm-up, and to answer, next to the measured time.
const READY: Duration = Duration::from_secs(120);

pub struct Live<'a> {
    pub jdks: &'a [Jdk],
}

/// The release has it, and this build of it too.
pub fn has(jdk: &Jdk, gc: &str) -> Result<(), Refused> {
    let options = collectors::named(gc, jdk.feature).and_then(|gc| collectors::options(gc, jdk.feature))?;
    arm_pages::subject(&jdk.home, &options)
        .map(|_| ())
        .map_err(|error| format!("JDK {}: {error}", jdk.version).into())
}

pub fn takes_threads(jdk: &Jdk, gc: &str) -> bool {
    let gc = collectors::named(gc, jdk.feature);
    gc.is_ok_and(|gc| by_formula(jdk.feature, gc, 32, 1 << 30).parallel.is_some())
}

/// What the program said when it was done.
struct Done {
    operations: f64,
    from_seconds: f64,
    to_seconds: f64,
    user_seconds: f64,
    system_seconds: f64,
}

impl Bench for Live<'_> {
    type Of = Settings;

    fn arranged(&mut self, settings: &Settings, arm: &Arm) -> Result<Arranged<Collector>, ArmError> {
        let jdk = self.jdk(arm)?;
        let gc = collectors::named(&arm.gc, jdk.feature)?;
        let mut options = collectors::options(gc, jdk.feature)?;
        let heap = size(settings.heap_bytes);
        options.extend([format!("-Xms{heap}"), format!("-Xmx{heap}")]);
        options.extend(threads(jdk.feature, gc, arm.threads, settings.heap_bytes));
        let subject = arm_pages::subject(&jdk.home, &options)?;
        let threads = gc_threads(&subject).map(|found| ThreadCounts {
            parallel: Some(found.parallel),
            concurrent: found.concurrent,
            parallel_by_formula: Some(found.parallel_by_formula),
            concurrent_by_formula: found.concurrent_by_formula,
        });
        on_pages(&subject, options, arm.pages, Collector { threads: threads.unwrap_or_default() })
    }

    fn trial(&mut self, mut run: Run<Settings>) -> anyhow::Result<bool> {
        run.trial.figures.threads = run.more.threads;
        self.work(&mut run).unwrap_or_else(|gap| run.trial.failed(gap));
        // One that a signal cut has no log.
        Ok(run.trial.figures.gc.is_some() || !signals::pending())
    }
}

impl Live<'_> {
    fn jdk(&self, arm: &Arm) -> Result<&Jdk, ArmError> {
        let found = self.jdks.iter().find(|jdk| jdk.feature == arm.jdk);
        found.ok_or_else(|| ArmError::NoPlan(format!("there is no JDK {}", arm.jdk).into()))
    }

    fn work(&self, run: &mut Run<Settings>) -> Known<()> {
        let Run { settings, programs, options, trial, .. } = run;
        let gone = |error: ArmError| Gap::new(JVM, Why::Gone).hint(error.to_string());
        let jdk = self.jdk(&trial.arm).map_err(gone)?;
        // That of the trial before must not be taken for this one's.
        let log = programs.directory().join(GC_LOG);
        let _ = std::fs::remove_file(&log);
        options.extend(gc_log::options(jdk.feature, GC_LOG));
        let Settings { live_bytes, workers, warm_up_seconds, seconds, .. } = settings;
        let program = [
            "bench.LiveSet".to_string(),
            format!("live={}", *live_bytes as f64 / 1048576.0),
            format!("threads={workers}"),
            format!("warm={warm_up_seconds}"),
            format!("seconds={seconds}"),
        ];
        let ready = READY + Duration::from_secs_f64(*warm_up_seconds);
        let mut program = java(jdk, options, programs, &program, ready)?;
        trial.saw(arm_pages::verify(program.pid, trial.arm.pages));
        if signals::pending() {
            return Err(Gap::new("the trial", Why::NotMeasured).hint("it was interrupted"));
        }
        let said = program.ask("go", READY + Duration::from_secs_f64(*seconds))?;
        let done = done(&said)?;
        trial.saw(arm_pages::verify(program.pid, trial.arm.pages));
        drop(program);
        let figures = &mut trial.figures;
        figures.seconds = Some(done.to_seconds - done.from_seconds);
        figures.operations_per_second = figures.seconds.map(|seconds| done.operations / seconds);
        (figures.user_seconds, figures.system_seconds) = (Some(done.user_seconds), Some(done.system_seconds));
        let bytes = std::fs::read(&log).unwrap_or_default();
        figures.gc = Some(GcWork::within(&gc_log::parse(&bytes)?, done.from_seconds, done.to_seconds)?);
        Ok(())
    }
}

/// The options that set the number of a collector's threads. A collector that works next to the program does nearly all of its work
/// in its concurrent threads, so they get the number too.
fn threads(feature: u32, gc: Gc, wanted: Threads, heap_bytes: u64) -> Vec<String> {
    let is_concurrent = matches!(gc, Gc::Z | Gc::ZGenerational | Gc::Shenandoah | Gc::ShenandoahGenerational);
    let (parallel, concurrent) = match wanted {
        Threads::Own => (None, None),
        Threads::OfMachine(cpus) => {
            let threads = by_formula(feature, gc, cpus, heap_bytes);
            (threads.parallel, threads.concurrent)
        }
        Threads::Exactly(count) => (Some(count), is_concurrent.then_some(count)),
    };
    let option = |name: &str, count: Option<u32>| count.map(|count| format!("-XX:{name}={count}"));
    option("ParallelGCThreads", parallel).into_iter().chain(option("ConcGCThreads", concurrent)).collect()
}

/// "DONE operations=1 start_ms=2 end_ms=3 user_ticks=4 system_ticks=5".
fn done(said: &str) -> Known<Done> {
    let word = |name: &str| -> Known<f64> {
        let found =
            said.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
        found.ok_or_else(|| Gap::new(JVM, Why::NotMeasured).hint(format!("no {name} in its output: {said}")))
    };
    let ticks = host::ticks_per_second() as f64;
    Ok(Done {
        operations: word("operations")?,
        from_seconds: word("start_ms")? / 1e3,
        to_seconds: word("end_ms")? / 1e3,
        user_seconds: word("user_ticks")? / ticks,
        system_seconds: word("system_ticks")? / ticks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_as_options() {
        let of = |gc, wanted| threads(17, gc, wanted, 4 << 30).join(" ");
        assert_eq!(of(Gc::Parallel, Threads::Own), "");
        assert_eq!(of(Gc::Parallel, Threads::OfMachine(32)), "-XX:ParallelGCThreads=23");
        assert_eq!(of(Gc::G1, Threads::OfMachine(32)), "-XX:ParallelGCThreads=23 -XX:ConcGCThreads=6");
        assert_eq!(of(Gc::G1, Threads::Exactly(32)), "-XX:ParallelGCThreads=32");
        assert_eq!(of(Gc::Z, Threads::Exactly(32)), "-XX:ParallelGCThreads=32 -XX:ConcGCThreads=32");
        assert_eq!(of(Gc::Serial, Threads::OfMachine(32)), "");
    }

    #[test]
    fn what_the_program_says() {
        let found = done("DONE operations=10 start_ms=1500 end_ms=3500 user_ticks=300 system_ticks=0")
            .expect("all of it");
        assert_eq!((found.operations, found.from_seconds, found.to_seconds), (10.0, 1.5, 3.5));
        assert!(found.user_seconds > 0.0 && found.system_seconds == 0.0);
        assert!(done("DONE operations=10").err().is_some_and(|gap| gap.to_string().contains("start_ms")));
    }
}
