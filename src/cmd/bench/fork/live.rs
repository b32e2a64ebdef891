//! One trial after the other, on the real machine: the host as the arm needs it, a JVM that starts children on request, and
//! the page tables as witness.

use crate::act::dialogue::Dialogue;
use crate::act::programs::Programs;
use crate::act::signals::{self, Blocked};
use crate::base::{Bytes, Gap, Known, Why};
use crate::cmd::Failure;
use crate::cmd::bench::jdk::{Jdk, of_version};
use crate::cmd::bench::rounds::{Bench, JVM, Run, java, on_pages};
use crate::experiment::arm_pages::{self, ArmError};
use crate::experiment::bench::fork::{
    self as experiment, Arm, Children, Figures, Mechanism, Settings, Support, Sweep, SweepWhile, Tried,
};
use crate::experiment::bench::trials::Arranged;
use crate::os::process::Process;
use crate::pages::Subject;
use crate::pages::subject::size;
use crate::show::bench::rounds::Nothing;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

/// How long a JVM may take to be ready, and for each GiB of its heap.
const READY: Duration = Duration::from_secs(60);
const READY_PER_GIB: Duration = Duration::from_secs(60);
/// How long it may take to answer.
const ANSWER: Duration = Duration::from_secs(900);
/// Before anything is timed: the classes are loaded and the way of each child has been gone.
const WARM_UP: usize = 3;
/// Small, so that arrays are copied little when the heap is filled.
const YOUNG_SHARE: Bytes = 8;

pub struct Live<'a> {
    pub jdks: &'a [Jdk],
    /// What each JDK says of itself with each heap.
    pub subjects: BTreeMap<(String, Bytes), Subject>,
}

/// What decides how large the JVM's reservations are. AlwaysPreTouch is not among them: it would touch the heap of a JVM that
/// is only asked for its flags.
fn of_heap(heap: Bytes) -> Vec<String> {
    let all = size(heap);
    let young = size((heap / YOUNG_SHARE) & !((1 << 20) - 1));
    [
        format!("-Xms{all}"),
        format!("-Xmx{all}"),
        format!("-Xmn{young}"),
        "-XX:+UseParallelGC".to_string(),
        "-XX:ReservedCodeCacheSize=64m".to_string(),
    ]
    .to_vec()
}

fn launch(mechanism: Mechanism) -> String {
    format!("-Djdk.lang.Process.launchMechanism={}", mechanism.name())
}

/// Which mechanisms each JDK has: each is tried once by a small JVM.
pub fn support(jdks: &[Jdk], mechanisms: &[Mechanism]) -> anyhow::Result<Vec<Support>> {
    let _blocked = Blocked::start();
    let programs = Programs::unpack().map_err(|gap| Failure::usage(gap.to_string()))?;
    let one = |jdk: &Jdk| Support {
        jdk: jdk.version.clone(),
        mechanisms: mechanisms.iter().map(|one| tried(jdk, *one, &programs)).collect(),
    };
    Ok(jdks.iter().map(one).collect())
}

fn tried(jdk: &Jdk, mechanism: Mechanism, programs: &Programs) -> Tried {
    let options = ["-Xmx32m".to_string(), "-XX:+UseSerialGC".to_string(), launch(mechanism)];
    let tried = start(jdk, &options, programs, 0, READY).and_then(|mut jvm| {
        jvm.ask("fork 1 1", ANSWER)?;
        Ok(jvm.complaints())
    });
    let (why_not, said) = match tried {
        Ok(said) => (None, Some(said).filter(|said| !said.is_empty())),
        Err(gap) => (Some(gap.hint.unwrap_or(gap.what)), None),
    };
    Tried { mechanism, why_not, said }
}

fn start(
    jdk: &Jdk,
    options: &[String],
    programs: &Programs,
    live_bytes: Bytes,
    limit: Duration,
) -> Known<Dialogue> {
    java(jdk, options, programs, &["bench.Fork".to_string(), live_bytes.to_string()], limit)
}

impl Bench for Live<'_> {
    type Of = Settings;

    fn arranged(&mut self, _settings: &Settings, arm: &Arm) -> Result<Arranged<Nothing>, ArmError> {
        let jdk = of_version(self.jdks, &arm.jdk)?;
        let options = of_heap(arm.heap_bytes);
        let subject = match self.subjects.entry((jdk.version.clone(), arm.heap_bytes)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(arm_pages::subject(&jdk.home, &options)?),
        };
        let mut arranged = on_pages(subject, options, arm.pages, Nothing {})?;
        arranged.options.extend(["-XX:+AlwaysPreTouch".to_string(), launch(arm.mechanism)]);
        Ok(arranged)
    }

    fn trial(&mut self, mut run: Run<Settings>) -> anyhow::Result<bool> {
        work(self.jdks, &mut run).unwrap_or_else(|gap| run.trial.failed(gap));
        Ok(!signals::pending())
    }
}

fn work(jdks: &[Jdk], run: &mut Run<Settings>) -> Known<()> {
    let Run { settings, programs, options, trial, .. } = run;
    let (heap, pages) = (trial.arm.heap_bytes, trial.arm.pages);
    let limit = READY + READY_PER_GIB.mul_f64(heap as f64 / (1_u64 << 30) as f64);
    let jdk =
        of_version(jdks, &trial.arm.jdk).map_err(|error| Gap::new(JVM, Why::Gone).hint(error.to_string()))?;
    // The old generation holds 7/8; a part is left for what is promoted with the arrays.
    let mut jvm = start(jdk, options, programs, heap / 4 * 3, limit)?;
    let before = arm_pages::verify(jvm.pid, pages)?;
    let share = before.share().ok_or_else(|| Gap::new("the heap of the JVM", Why::NotMeasured))?;
    measure(settings, &mut jvm, &mut trial.figures)?;
    trial.figures.pages_share_before = Some(share);
    // Children split transparent pages: that is a figure, and no reason to leave the trial out.
    let after = arm_pages::verify(jvm.pid, pages).ok();
    trial.figures.pages_share_after = after.and_then(|after| after.share());
    trial.saw(Ok(before));
    Ok(())
}

fn measure(settings: &Settings, jvm: &mut Dialogue, figures: &mut Figures) -> Known<()> {
    let process = Process::open(jvm.pid).map_err(|error| Gap::new(JVM, Why::Gone).hint(error.to_string()))?;
    figures.page_table_bytes = process.status().ok().and_then(|status| status.page_table_bytes);
    jvm.ask(&format!("fork {WARM_UP} 1"), ANSWER)?;
    // The first is slower: what the warm-up's forks made read-only becomes writable again.
    sweep(jvm, &process)?;
    let before = sweep(jvm, &process)?;
    for (at, threads) in settings.threads.iter().enumerate() {
        figures.children.push(children(settings, jvm, *threads)?);
        if at == 0 {
            let after = sweep(jvm, &process)?;
            figures.sweep = Some(Sweep {
                pages: before.1,
                before_ms: before.0,
                after_ms: after.0,
                before_faults: before.2,
                after_faults: after.2,
            });
        }
    }
    figures.sweep_while = Some(sweep_while(settings, jvm, &process)?);
    Ok(())
}

fn children(settings: &Settings, jvm: &mut Dialogue, threads: usize) -> Known<Children> {
    let answer = jvm.ask(&format!("fork {} {threads}", settings.children), ANSWER)?;
    experiment::children(&answer, threads).ok_or_else(|| strange(&answer))
}

fn sweep_while(settings: &Settings, jvm: &mut Dialogue, process: &Process) -> Known<SweepWhile> {
    let (answer, faults) = counted(jvm, process, &format!("sweep-while {}", settings.children))?;
    experiment::swept_while(&answer, settings.children, faults).ok_or_else(|| strange(&answer))
}

/// The answer, and the faults until it came.
fn counted(jvm: &mut Dialogue, process: &Process, question: &str) -> Known<(String, Option<u64>)> {
    let before = process.minor_faults().ok();
    let answer = jvm.ask(question, ANSWER)?;
    let faults = before.zip(process.minor_faults().ok()).map(|(before, after)| after.saturating_sub(before));
    Ok((answer, faults))
}

/// Milliseconds, pages and faults.
fn sweep(jvm: &mut Dialogue, process: &Process) -> Known<(f64, u64, Option<u64>)> {
    let (answer, faults) = counted(jvm, process, "sweep")?;
    let (ms, pages) = experiment::swept(&answer).ok_or_else(|| strange(&answer))?;
    Ok((ms, pages, faults))
}

fn strange(answer: &str) -> Gap {
    let start: String = answer.chars().take(100).collect();
    Gap::new(JVM, Why::NotMeasured).hint(format!("its answer is not understood: {start}"))
}
