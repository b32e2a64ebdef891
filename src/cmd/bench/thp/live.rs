//! One trial on the real machine: free memory as the arm has it, the policy through the one door, the steps, and what the kernel's
//! trace and counters say of them.

use super::bystander::Bystander;
use crate::act::fragments::{Fragments, FreeMemory};
use crate::act::signals;
use crate::act::tracing::Wanted;
use crate::act::trial::{self, Ended, Start, Turn};
use crate::base::printable::escaped;
use crate::base::{Known, word_of};
use crate::cmd::bench::jdk::Jdk;
use crate::cmd::bench::rounds::{Bench, Run};
use crate::cmd::stalls::trace::Trace;
use crate::experiment::arm_pages::ArmError;
use crate::experiment::bench::thp::{Arm, Figures, Memory, Policy, Settings, Stalls, Trial};
use crate::experiment::bench::trials::Arranged;
use crate::measure::stalls::host::HostLook;
use crate::measure::stalls::interval::Interval;
use crate::os::busy::Busy;
use crate::os::cpu_time::{self, Daemon};
use crate::os::host;
use crate::os::host_pages::HostPages;
use crate::os::machine::huge_page;
use crate::os::process::Process;
use crate::os::thp::DIRECTORY;
use crate::pages::subject::size;
use crate::pages::{Change, Step};
use crate::show::bench::rounds::Nothing;
use itertools::Itertools;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Files that a step compiles, trees of them that it keeps in memory, and threads that compile.
const WORK: [&str; 3] = ["units=60", "retain=200", "threads=2"];
const STEP_MAX: Duration = Duration::from_secs(300);
/// Letters of what a step printed before it failed.
const QUOTED_MAX: usize = 400;
/// How often the trace is read, and how often a step is looked at.
const READ_EVERY: Duration = Duration::from_millis(200);
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub struct Live<'a> {
    pub jdk: &'a Jdk,
    /// From one trial to the next.
    pub fragments: Option<(Memory, Fragments)>,
}

impl Bench for Live<'_> {
    type Of = Settings;

    fn arranged(&mut self, settings: &Settings, arm: &Arm) -> Result<Arranged<Nothing>, ArmError> {
        let heap = format!("-Xmx{}", size(settings.heap_bytes));
        let asked = (arm.policy == Policy::Asked).then_some("-XX:+UseTransparentHugePages");
        let words = asked.into_iter().chain(["-XX:+UseG1GC", "bench.BuildServer"]).chain(WORK);
        let options = std::iter::once(heap).chain(words.map(String::from)).collect();
        Ok(Arranged { options, more: Nothing {}, steps: steps(arm)? })
    }

    fn before(&mut self, settings: &Settings, arm: &Arm) -> Known<()> {
        self.memory(settings, arm.memory)
    }

    fn trial(&mut self, run: Run<Settings>) -> anyhow::Result<bool> {
        let directory = run.programs.directory().to_path_buf();
        let first =
            [self.jdk.java().display().to_string(), "-cp".to_string(), directory.display().to_string()];
        let job = Job {
            command: first.into_iter().chain(run.options).collect(),
            directory,
            steps: run.settings.steps,
        };
        Ok(self.run(&job, run.trial))
    }
}

impl Live<'_> {
    /// Made anew where it was lost, or is of another kind.
    fn memory(&mut self, settings: &Settings, memory: Memory) -> Known<()> {
        let is_there = |(kind, fragments): &mut (Memory, Fragments)| *kind == memory && fragments.are_there();
        if !self.fragments.as_mut().is_some_and(is_there) {
            // What is held goes back before more is taken.
            self.fragments = None;
            if memory != Memory::AsIs {
                let made = Fragments::make(settings.free_bytes, memory == Memory::Pinned)?;
                self.fragments = Some((memory, made));
            }
        }
        self.fragments.iter().for_each(|(_, fragments)| fragments.settle());
        Ok(())
    }

    /// Whether no signal cut it short.
    fn run(&mut self, job: &Job, trial: &mut Trial) -> bool {
        let daemons = cpu_time::daemons();
        let wanted = Wanted { no_allocations: true, ..Wanted::default() };
        // It forks, so before there are threads.
        let mut trace = Trace::begin(&wanted, &daemons, huge_page(), &mut trial.gaps);
        let (host, busy) = (HostLook::take(None, &daemons), Busy::now());
        let figures = &mut trial.figures;
        figures.fragments = self.fragments.as_ref().map(|(_, fragments)| fragments.made);
        figures.free = FreeMemory::now();
        let bystander = Bystander::start();
        let started = Instant::now();
        let done = Steps::run(job, trial.arm.builds, || {
            if let Ok(trace) = &mut trace {
                // What cannot be read from here on is a gap at the end.
                let _ = trace.read();
            }
        });
        figures.wall_seconds = Some(started.elapsed().as_secs_f64());
        figures.bystander_late_ms = bystander.ok().and_then(Bystander::end);
        let shares = busy.and_then(|before| Ok(Busy::now()?.kernel_share_since(&before)));
        figures.host_kernel_share = shares.ok().flatten();
        let grown = HostLook::take(None, &daemons).since(&host);
        let of = |daemon| grown.daemons.as_ref().ok().and_then(|all| all.get(&daemon)).copied();
        (figures.khugepaged_ms, figures.kcompactd_ms) = (of(Daemon::Khugepaged), of(Daemon::Kcompactd));
        figures.huge_faults = grown.grown("thp_fault_alloc");
        figures.huge_fallbacks = grown.grown("thp_fault_fallback");
        figures.compact_stalls = grown.grown("compact_stall");
        match trace.and_then(|mut trace| trace.read().map(|()| trace.pairs.turn())) {
            Ok(interval) => figures.stalls = Some(stalls(&interval, &done.pids)),
            Err(gap) => trial.gaps.push(gap),
        }
        let is_interrupted = signals::pending() || done.is_interrupted;
        done.count_into(trial);
        if self.fragments.as_mut().is_some_and(|(_, fragments)| !fragments.are_there()) {
            trial.discount("memory became short, and what was held was given back");
        }
        !is_interrupted
    }
}

/// What differs from what the host has.
fn steps(arm: &Arm) -> Result<Vec<Step>, ArmError> {
    let mut steps = words(arm.policy)?;
    steps.extend(pieces_stay().filter(|_| arm.memory != Memory::AsIs));
    Ok(steps)
}

/// kcompactd puts pieces together also while nobody asks for a huge page.
fn pieces_stay() -> Option<Step> {
    const FILE: &str = "/proc/sys/vm/compaction_proactiveness";
    (host::text(FILE).ok()?.trim() != "0").then(|| Step {
        what: "vm.compaction_proactiveness: 0".to_string(),
        why: "free memory stays in pieces".to_string(),
        risk: Some(
            "the page cache is dropped first, and a program of ours holds most of the memory".to_string(),
        ),
        change: Change::Set { file: FILE.to_string(), value: 0 },
    })
}

fn words(policy: Policy) -> Result<Vec<Step>, ArmError> {
    let me = Process::own().map_err(|error| ArmError::NoPlan(format!("/proc/self: {error}").into()))?;
    let thp = HostPages::read(&me).thp;
    let thp = thp.ok_or_else(|| ArmError::NoPlan("this kernel has no transparent huge pages".into()))?;
    let (enabled, defrag) = policy.words();
    let size = format!("hugepages-{}kB/enabled", thp.pmd_bytes >> 10);
    let own = thp.sizes.iter().find(|one| one.bytes == thp.pmd_bytes).and_then(|one| one.enabled.clone());
    let wanted = [
        ("enabled".to_string(), Some(thp.enabled), enabled),
        ("defrag".to_string(), thp.defrag, defrag),
        (size, own, "inherit"),
    ];
    let step = |(file, now, word): (String, Option<String>, &str)| {
        (now.as_deref()? != word).then(|| Step {
            what: format!("transparent_hugepage/{file}: {word}"),
            why: format!("the policy {}", word_of(&policy)),
            risk: Some("all programs get their huge pages by it until then".to_string()),
            change: Change::Choose { file: format!("{DIRECTORY}/{file}"), word: word.to_string() },
        })
    };
    Ok(wanted.into_iter().filter_map(step).collect())
}

/// Of threads of these processes, and of ones that ended before they were named.
fn stalls(interval: &Interval, pids: &BTreeSet<i32>) -> Stalls {
    let is_ours =
        |tid: &i32| interval.seen.get(tid).is_none_or(|seen| seen.pid.is_none_or(|pid| pids.contains(&pid)));
    let found = interval.stalls.iter().filter(|(key, _)| key.stall.is_wait() && is_ours(&key.tid));
    let mut stalls = Stalls { lost_events: interval.missing.lost, ..Stalls::default() };
    for (_, figures) in found {
        stalls.waited_ms += figures.ns as f64 / 1e6;
        stalls.count += figures.count;
        stalls.longest_ms = stalls.longest_ms.max(figures.worst_ns as f64 / 1e6);
    }
    stalls
}

/// What each step runs, and how many there are.
struct Job {
    command: Vec<String>,
    directory: PathBuf,
    steps: usize,
}

/// What came of all steps.
#[derive(Default)]
struct Steps {
    ended: Vec<Ended>,
    pids: BTreeSet<i32>,
    /// What they printed: each step does the same work.
    said: BTreeSet<String>,
    why_not: Option<String>,
    is_interrupted: bool,
}

impl Steps {
    /// `builds` at once; `every_so_often` runs in this thread.
    fn run(job: &Job, builds: usize, mut every_so_often: impl FnMut()) -> Steps {
        let (next, stop, steps) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(Steps::default()));
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..builds)
                .map(|_| {
                    scope.spawn(|| {
                        while !stop.load(Ordering::Relaxed) {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            if number >= job.steps {
                                break;
                            }
                            let one = step(job, number, &stop);
                            let mut steps = steps.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                            stop.fetch_or(!steps.add(one), Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            while workers.iter().any(|worker| !worker.is_finished()) {
                std::thread::sleep(READ_EVERY);
                every_so_often();
                stop.fetch_or(signals::pending(), Ordering::Relaxed);
            }
        });
        steps.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether the next one makes sense.
    fn add(&mut self, step: anyhow::Result<Done>) -> bool {
        match step {
            Ok(done) => {
                let ended = done.ended;
                let first: String = done.said.split_whitespace().join(" ").chars().take(QUOTED_MAX).collect();
                let words = || format!("a step failed: {}; it printed: {}", ended.words(), escaped(&first));
                let failed = (!ended.is_good()).then(words);
                self.why_not = self.why_not.take().or(failed);
                self.is_interrupted |= done.is_interrupted;
                self.pids.extend(done.pids);
                self.said.insert(done.said);
                self.ended.push(ended);
            }
            Err(error) => self.why_not = Some(error.to_string()),
        }
        self.why_not.is_none()
    }

    fn count_into(self, trial: &mut Trial) {
        let figures: &mut Figures = &mut trial.figures;
        figures.steps = self.ended.len();
        let sum = |of: fn(&Ended) -> f64| Some(self.ended.iter().map(of).sum());
        (figures.user_seconds, figures.system_seconds) =
            (sum(|ended| ended.usage.user_seconds), sum(|ended| ended.usage.system_seconds));
        figures.longest_step_seconds = self.ended.iter().map(|ended| ended.wall_seconds).reduce(f64::max);
        let differ =
            (self.said.len() > 1).then(|| format!("the steps printed different sums: {:?}", self.said));
        if let Some(why) = self.why_not.or(differ) {
            trial.discount(why);
        }
    }
}

/// A step that ran.
struct Done {
    /// Its processes: where `java` is a script, the JVM is a child of it.
    pids: Vec<i32>,
    ended: Ended,
    said: String,
    /// It took a signal to end.
    is_interrupted: bool,
}

fn step(job: &Job, number: usize, stop: &AtomicBool) -> anyhow::Result<Done> {
    let output = job.directory.join(format!("step-{number}.out"));
    let directory = Some(job.directory.clone());
    let of = Start::new(job.command.clone(), output.clone(), output.clone(), STEP_MAX);
    let start = Start { directory, ..of };
    let mut running = trial::start(&start)?;
    let mut pids = vec![running.pid()];
    let turn = loop {
        let turn = running.until(Instant::now() + LOOK_EVERY);
        if turn != Turn::Time {
            break turn;
        }
        pids.extend(running.pids());
        if stop.load(Ordering::Relaxed) {
            running.interrupted();
            break turn;
        }
    };
    let ended = running.end();
    let said = std::fs::read_to_string(&output)?.trim().to_string();
    Ok(Done { pids, ended, said, is_interrupted: turn == Turn::Signal })
}
