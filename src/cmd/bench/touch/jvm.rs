//! A JVM that touches its heap when it starts, next to one that does not: the difference is the touch.

use crate::act::dialogue::Dialogue;
use crate::act::first_touch::Pages;
use crate::act::programs::Programs;
use crate::base::{Bytes, Gap, Known, Why};
use crate::cmd::bench::jdk::Jdk;
use crate::cmd::bench::rounds::{JVM, Run, java, on_pages};
use crate::experiment::arm_pages::{self, ArmError, PageMode};
use crate::experiment::bench::touch::{Arm, Figures, Settings};
use crate::experiment::bench::trials::Arranged;
use crate::os::cpu_time::ProcessTime;
use crate::os::host::ticks_per_second;
use crate::os::process::Process;
use crate::pages::subject::size;
use crate::show::bench::rounds::Nothing;
use std::time::{Duration, Instant};

const READY: Duration = Duration::from_secs(600);

/// The pages of a JVM's heap; `None`: no option asks for them.
pub fn mode(pages: Pages) -> Option<PageMode> {
    match pages {
        Pages::Small => Some(PageMode::Small),
        Pages::Transparent(bytes) if bytes == crate::os::machine::huge_page() => Some(PageMode::Thp),
        Pages::HugeTlb(bytes) if bytes == 2 << 20 => Some(PageMode::HugeTlb2M),
        Pages::HugeTlb(bytes) if bytes == 1 << 30 => Some(PageMode::HugeTlb1G),
        _ => None,
    }
}

fn of_heap(bytes: Bytes, threads: usize) -> Vec<String> {
    let all = size(bytes);
    [
        format!("-Xms{all}"),
        format!("-Xmx{all}"),
        "-XX:+UseParallelGC".to_string(),
        format!("-XX:ParallelGCThreads={threads}"),
        "-XX:ReservedCodeCacheSize=64m".to_string(),
    ]
    .to_vec()
}

/// The options of the JVM that touches, and what would change on the host.
pub fn arranged(jdk: &Jdk, arm: &Arm, bytes: Bytes) -> Result<Arranged<Nothing>, ArmError> {
    let mode = mode(arm.pages).ok_or_else(|| ArmError::NoPlan("a JVM asks for no such pages".into()))?;
    let options = of_heap(bytes, arm.threads);
    on_pages(&arm_pages::subject(&jdk.home, &options)?, options, mode, Nothing {})
}

/// One start.
struct Started {
    ns: f64,
    cpu_ns: Option<f64>,
    faults: Option<u64>,
    page_table_bytes: Option<Bytes>,
    jvm: Dialogue,
}

/// The figures of a trial, and why it does not count.
pub fn touched(jdk: &Jdk, run: &mut Run<Settings>) -> Known<()> {
    let (bytes, trial) = (run.settings.bytes, &mut *run.trial);
    let start = |touch: &str| start(jdk, run.programs, &run.options, touch);
    let mode = mode(trial.arm.pages).ok_or_else(|| Gap::new(JVM, Why::NotInThisRuntime))?;
    let without = start("-XX:-AlwaysPreTouch")?;
    let Started { ns: before_ns, cpu_ns: before_cpu, faults: before_faults, .. } = without;
    let before_tables = without.page_table_bytes;
    // Its memory goes back before the other takes its own.
    drop(without.jvm);
    let with = start("-XX:+AlwaysPreTouch")?;
    let verified = arm_pages::verify(with.jvm.pid, mode)?;
    let share = verified.share().ok_or_else(|| Gap::new("the heap of the JVM", Why::NotMeasured))?;
    let more = |before: Option<u64>, now: Option<u64>| {
        before.zip(now).map(|(before, now)| now.saturating_sub(before))
    };
    let touch_ns = with.ns - before_ns;
    if touch_ns <= 0.0 {
        trial.discount("the start that touches was not slower: the other touches as much, or others worked");
    }
    trial.saw(Ok(verified));
    trial.figures = Figures {
        bytes,
        share: Some(share),
        touch_ns: Some(touch_ns),
        touch_cpu_ns: before_cpu.zip(with.cpu_ns).map(|(before, now)| (now - before).max(0.0)),
        fill_cpu_ns: None,
        faults: more(before_faults, with.faults),
        page_table_bytes: more(before_tables, with.page_table_bytes),
    };
    Ok(())
}

fn start(jdk: &Jdk, programs: &Programs, options: &[String], touch: &str) -> Known<Started> {
    let options: Vec<String> = options.iter().cloned().chain([touch.to_string()]).collect();
    let started = Instant::now();
    let jvm = java(jdk, &options, programs, &["bench.Touch".to_string()], READY)?;
    let ns = started.elapsed().as_nanos() as f64;
    let process = Process::open(jvm.pid).map_err(|error| Gap::new(JVM, Why::Gone).hint(error.to_string()))?;
    let page_table_bytes = process.status().ok().and_then(|status| status.page_table_bytes);
    let cpu_ns =
        ProcessTime::read(jvm.pid).map(|time| time.cpu_ticks as f64 * 1e9 / ticks_per_second() as f64);
    Ok(Started { ns, cpu_ns, faults: process.minor_faults().ok(), page_table_bytes, jvm })
}
