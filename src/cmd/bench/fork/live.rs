//! One trial after the other, on the real machine: the host as the arm needs it, a JVM that starts children on request, and
//! the page tables as witness.

use crate::act::dialogue::Dialogue;
use crate::act::programs::Programs;
use crate::act::signals;
use crate::base::{Bytes, Gap, Known, Why};
use crate::cmd::bench::jdk::Jdk;
use crate::cmd::bench::rounds::{JVM, java};
use crate::experiment::arm_pages::{self, ArmError, PageMode, Pool};
use crate::experiment::bench::fork::{
    self as experiment, Arm, Children, Figures, Mechanism, Planned, Settings, Support, Sweep, SweepWhile,
    Trial,
};
use crate::os::process::Process;
use crate::pages::Subject;
use crate::pages::subject::size;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
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

/// Everything a trial needs.
pub struct Live<'a> {
    jdks: &'a [Jdk],
    programs: &'a Programs,
    state: PathBuf,
    settings: &'a Settings,
    /// What each JDK says of itself with each heap.
    subjects: BTreeMap<(String, Bytes), Subject>,
}

/// What would change on the host for each heap, JDK and pages, whatever the mechanism.
pub fn planned(jdks: &[Jdk], settings: &Settings) -> Vec<Planned> {
    let mut all = Vec::new();
    for heap in &settings.heaps {
        for jdk in jdks {
            let subject = arm_pages::subject(&jdk.home, &of_heap(*heap)).map_err(|error| error.to_string());
            all.extend(settings.pages.iter().map(|pages| {
                let steps = subject.as_ref().map_err(String::clone).and_then(|subject| {
                    let steps = arm_pages::steps(subject, pages.parse()?, Pool::Auto);
                    steps.map_err(|error| error.to_string())
                });
                Planned {
                    jdk: jdk.version.clone(),
                    pages: pages.clone(),
                    heap_bytes: *heap,
                    why_not: steps.as_ref().err().cloned(),
                    steps: steps.unwrap_or_default().into_iter().map(|step| step.what).collect(),
                }
            }));
        }
    }
    all
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

impl<'a> Live<'a> {
    pub fn new(jdks: &'a [Jdk], programs: &'a Programs, state: PathBuf, settings: &'a Settings) -> Live<'a> {
        Live { jdks, programs, state, settings, subjects: BTreeMap::new() }
    }

    /// Which mechanisms each JDK has: each is tried once by a small JVM.
    pub fn support(&self) -> Vec<Support> {
        let one = |jdk: &Jdk| Support {
            jdk: jdk.version.clone(),
            mechanisms: self.settings.mechanisms.iter().map(|one| self.tried(jdk, *one)).collect(),
        };
        self.jdks.iter().map(one).collect()
    }

    fn tried(&self, jdk: &Jdk, mechanism: Mechanism) -> experiment::Tried {
        let options = ["-Xmx32m".to_string(), "-XX:+UseSerialGC".to_string(), launch(mechanism)];
        let tried = self.start(jdk, &options, 0, READY).and_then(|mut jvm| {
            jvm.ask("fork 1 1", ANSWER)?;
            Ok(jvm.complaints())
        });
        let (why_not, said) = match tried {
            Ok(said) => (None, Some(said).filter(|said| !said.is_empty())),
            Err(gap) => (Some(gap.hint.unwrap_or(gap.what)), None),
        };
        experiment::Tried { mechanism, why_not, said }
    }

    fn start(&self, jdk: &Jdk, options: &[String], live_bytes: Bytes, limit: Duration) -> Known<Dialogue> {
        java(jdk, options, self.programs, &["bench.Fork".to_string(), live_bytes.to_string()], limit)
    }

    /// One that cannot be made is a trial that does not count. `None`: a signal ended it.
    pub fn trial(&mut self, round: usize, arm: &Arm) -> Option<Trial> {
        let outcome = match self.prepare(arm) {
            Ok((options, mode, _prepared)) => self.figures(arm, mode, options).map_err(|gap| gap.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let (left_out, figures) = match outcome {
            Ok((left_out, figures)) => (left_out, Some(figures)),
            Err(why) => (Some(why), None),
        };
        let trial = Trial { round, arm: arm.clone(), left_out, figures, others: None };
        (!signals::pending()).then_some(trial)
    }

    fn jdk(&self, arm: &Arm) -> Result<&'a Jdk, ArmError> {
        let found = self.jdks.iter().find(|jdk| jdk.version == arm.jdk);
        found.ok_or_else(|| ArmError::NoPlan(format!("there is no JDK {}", arm.jdk)))
    }

    /// The options of the arm's pages, and the host as they need it for as long as the last lives.
    fn prepare(&mut self, arm: &Arm) -> Result<(Vec<String>, PageMode, arm_pages::Prepared), ArmError> {
        let mode: PageMode = arm.pages.parse().map_err(ArmError::NoPlan)?;
        let jdk = self.jdk(arm)?;
        let mut options = of_heap(arm.heap_bytes);
        let subject = match self.subjects.entry((jdk.version.clone(), arm.heap_bytes)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(arm_pages::subject(&jdk.home, &options)?),
        };
        options.extend(arm_pages::options(subject, mode)?);
        let steps = arm_pages::steps(subject, mode, Pool::Auto)?;
        let name = format!("bench-fork-{mode}-{}m", arm.heap_bytes >> 20);
        Ok((options, mode, arm_pages::prepare(steps, &self.state, &name)?))
    }

    /// Why it does not count, and what it gave.
    fn figures(
        &self,
        arm: &Arm,
        mode: PageMode,
        mut options: Vec<String>,
    ) -> Known<(Option<String>, Figures)> {
        let heap = arm.heap_bytes;
        let limit = READY + READY_PER_GIB.mul_f64(heap as f64 / (1_u64 << 30) as f64);
        options.extend(["-XX:+AlwaysPreTouch".to_string(), launch(arm.mechanism)]);
        let jdk = self.jdk(arm).map_err(|error| Gap::new(JVM, Why::Gone).hint(error.to_string()))?;
        // The old generation holds 7/8; a part is left for what is promoted with the arrays.
        let mut jvm = self.start(jdk, &options, heap / 4 * 3, limit)?;
        let before = arm_pages::verify(jvm.pid, mode)?;
        let figures = self.measure(&mut jvm)?;
        let after = arm_pages::verify(jvm.pid, mode).ok().and_then(|after| after.share());
        let share = before.share().ok_or_else(|| Gap::new("the heap of the JVM", Why::NotMeasured))?;
        let figures = Figures { pages_share_before: share, pages_share_after: after, ..figures };
        Ok((before.why.filter(|_| !before.met), figures))
    }

    fn measure(&self, jvm: &mut Dialogue) -> Known<Figures> {
        let process =
            Process::open(jvm.pid).map_err(|error| Gap::new(JVM, Why::Gone).hint(error.to_string()))?;
        let page_table_bytes = process.status().ok().and_then(|status| status.page_table_bytes);
        jvm.ask(&format!("fork {WARM_UP} 1"), ANSWER)?;
        let before = {
            // The first is slower: what the warm-up's forks made read-only becomes writable again.
            sweep(jvm, &process)?;
            sweep(jvm, &process)?
        };
        let mut children = Vec::new();
        let mut swept = None;
        for (at, threads) in self.settings.threads.iter().enumerate() {
            children.push(self.children(jvm, *threads)?);
            if at == 0 {
                let after = sweep(jvm, &process)?;
                swept = Some(Sweep {
                    pages: before.1,
                    before_ms: before.0,
                    after_ms: after.0,
                    before_faults: before.2,
                    after_faults: after.2,
                });
            }
        }
        Ok(Figures {
            pages_share_before: 0.0,
            pages_share_after: None,
            page_table_bytes,
            children,
            sweep: swept,
            sweep_while: self.sweep_while(jvm, &process)?,
        })
    }

    fn children(&self, jvm: &mut Dialogue, threads: usize) -> Known<Children> {
        let answer = jvm.ask(&format!("fork {} {threads}", self.settings.children), ANSWER)?;
        experiment::children(&answer, threads).ok_or_else(|| strange(&answer))
    }

    fn sweep_while(&self, jvm: &mut Dialogue, process: &Process) -> Known<Option<SweepWhile>> {
        let children = self.settings.children;
        let before = process.minor_faults().ok();
        let answer = jvm.ask(&format!("sweep-while {children}"), ANSWER)?;
        let faults =
            before.zip(process.minor_faults().ok()).map(|(before, after)| after.saturating_sub(before));
        experiment::swept_while(&answer, children, faults).map(Some).ok_or_else(|| strange(&answer))
    }
}

/// Milliseconds, pages and faults.
fn sweep(jvm: &mut Dialogue, process: &Process) -> Known<(f64, u64, Option<u64>)> {
    let before = process.minor_faults().ok();
    let answer = jvm.ask("sweep", ANSWER)?;
    let faults = before.zip(process.minor_faults().ok()).map(|(before, after)| after.saturating_sub(before));
    let (ms, pages) = experiment::swept(&answer).ok_or_else(|| strange(&answer))?;
    Ok((ms, pages, faults))
}

fn strange(answer: &str) -> Gap {
    let start: String = answer.chars().take(100).collect();
    Gap::new(JVM, Why::NotMeasured).hint(format!("its answer is not understood: {start}"))
}
