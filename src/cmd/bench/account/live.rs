//! One run on the real machine: the program is started, put to work, and looked at again and again.

use crate::act::dialogue;
use crate::act::programs::Programs;
use crate::act::server::load::Load;
use crate::act::server::{Server, Wanted, recipe};
use crate::act::signals;
use crate::act::trial::{self, Running, Start, Stop, Turn};
use crate::base::{Gap, Why};
use crate::cmd::Failure;
use crate::cmd::bench::jdk::Jdk;
use crate::cmd::bench::throughput::failed;
use crate::cmd::progress;
use crate::experiment::bench::account_series::{Program, Run, Sample, Settings};
use crate::experiment::bench::http_load;
use crate::map::{self, Account, Area};
use crate::os::cpu_time::ProcessTime;
use crate::os::process::Process;
use crate::pages::subject::size;
use crate::snapshot::{self, Want};
use std::path::Path;
use std::time::{Duration, Instant};

/// Next to the sampled time: the start, and samples that take longer than planned.
const ALLOWANCE: Duration = Duration::from_secs(900);
const READY_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);
/// Readings of one moment at most, until no more than this share of memory is unattributed.
const LOOKS_MAX: usize = 3;
const UNATTRIBUTED_MAX: f64 = 0.005;
/// Why a run that was interrupted is not complete.
const INTERRUPTED: &str = "the whole run";

pub struct Live<'a> {
    pub jdk: &'a Jdk,
    pub programs: &'a Programs,
    pub settings: &'a Settings,
}

pub fn is_interrupted(run: &Run) -> bool {
    run.gaps.iter().any(|gap| gap.what == INTERRUPTED)
}

impl Live<'_> {
    pub fn run(&self, program: Program, directory: &Path, number: usize) -> anyhow::Result<Run> {
        let heap = match program.is_server() {
            true => self.settings.heap_bytes,
            false => self.settings.batch_heap_bytes,
        };
        let mut options = vec![format!("-Xmx{}", size(heap))];
        options.extend(self.settings.options.iter().cloned());
        let mut run = Run {
            program,
            run: number,
            interval_seconds: self.settings.interval_seconds,
            wanted_seconds: self.settings.seconds,
            is_complete: false,
            jvm_options: options.clone(),
            samples: Vec::new(),
            load: None,
            cpu_share: None,
            said: None,
            gaps: Vec::new(),
        };
        match program.is_server() {
            true => self.server(&mut run, directory, &options)?,
            false => self.batch(&mut run, directory, options)?,
        }
        Ok(run)
    }

    fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.settings.seconds) + ALLOWANCE
    }

    /// Looked at from the moment on at which the clients begin.
    fn server(&self, run: &mut Run, directory: &Path, options: &[String]) -> anyhow::Result<()> {
        let (java, feature) = (self.jdk.java(), self.jdk.feature);
        let wanted =
            Wanted { installed: directory, java: &java, feature, options, alive: None, limit: self.limit() };
        let server = match Server::start(&wanted) {
            Ok(server) => server,
            Err(crate::act::server::ServerError::Signal) => {
                run.gaps.push(interrupted());
                return Ok(());
            }
            Err(error) => return Err(failed(error)),
        };
        let length = Duration::from_secs_f64(self.settings.seconds);
        let mut load = Load::start(&server, self.settings.clients, None, length).map_err(failed)?;
        let turn = self.watch(run, server.pid, |deadline| load.until(deadline))?;
        if turn == Turn::Signal {
            run.gaps.push(interrupted());
            return Ok(());
        }
        let printed = load.wait().map_err(failed)?;
        match http_load::parse(&printed) {
            Ok(load) => run.load = Some(load),
            Err(gap) => run.gaps.push(gap),
        }
        run.is_complete = self.is_whole(run);
        Ok(())
    }

    /// Looked at from its start to its end.
    fn batch(&self, run: &mut Run, directory: &Path, options: Vec<String>) -> anyhow::Result<()> {
        let place = tempfile::Builder::new().prefix("marusa-batch-").tempdir()?;
        let (output, made) = (place.path().join("output"), place.path().join("made"));
        std::fs::create_dir(&made)?;
        let mut command = vec![self.jdk.java().display().to_string()];
        command.extend(options);
        command.extend([
            "-cp".to_string(),
            format!("{}:{}/lib/*", self.programs.directory().display(), directory.display()),
            "bench.Again".to_string(),
            self.settings.seconds.to_string(),
        ]);
        command.extend(recipe::command(directory, &made)?);
        let mut start = Start::new(command, output.clone(), output.clone(), self.limit());
        // The JDK 8 of a small root sees of the temporary directory only what it is started in.
        start.directory = Some(self.programs.directory().to_path_buf());
        let mut running = trial::start(&start)?;
        let pid = match the_jvm(&mut running) {
            Ok(pid) => pid,
            Err(Turn::Signal) => {
                run.gaps.push(interrupted());
                return Ok(());
            }
            Err(_) => {
                let said = std::fs::read_to_string(&output).unwrap_or_default();
                return Err(Failure::target(format!("the batch program did not start: {}", said.trim())));
            }
        };
        let turn = self.watch(run, pid, |deadline| running.until(deadline))?;
        let ended = running.end();
        let said = std::fs::read_to_string(&output).unwrap_or_default();
        // "RUN 3 12.5": three runs in 12.5 seconds.
        let line = said.lines().rev().find_map(|line| line.strip_prefix("RUN ")?.split_once(' '));
        run.said = line.and_then(|(runs, s)| Some(format!("runs: {runs} in {} s", s.split('.').next()?)));
        if turn == Turn::Signal {
            run.gaps.push(interrupted());
        } else if !ended.is_good() && ended.stop != Stop::Asked {
            let first: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(3).collect();
            let why = format!("the batch program: {}: {}", ended.words(), first.join("; "));
            return Err(Failure::target(why));
        }
        run.is_complete = turn != Turn::Signal && self.is_whole(run);
        Ok(())
    }

    /// Nine tenths of the moments at least: a machine that is busy may leave some out.
    fn is_whole(&self, run: &Run) -> bool {
        let last = run.samples.last().map_or(0.0, |sample| sample.seconds);
        last + 2.0 * self.settings.interval_seconds >= 0.9 * self.settings.seconds
    }

    /// At each moment, until the time is over or something happens; what.
    fn watch(&self, run: &mut Run, pid: i32, mut until: impl FnMut(Instant) -> Turn) -> anyhow::Result<Turn> {
        let process = Process::open(pid)?;
        let name = format!("bench account {} run {} of {}", run.program, run.run, self.settings.runs);
        let bar = progress::bar(&name, self.settings.seconds as usize, "s");
        let (started, before) = (Instant::now(), ProcessTime::read(pid));
        let interval = Duration::from_secs_f64(self.settings.interval_seconds);
        let length = Duration::from_secs_f64(self.settings.seconds);
        let mut moment = Duration::ZERO;
        let mut turn = Turn::Time;
        while moment <= length {
            turn = until(started + moment);
            if turn != Turn::Time {
                break;
            }
            match sample(&process, started) {
                // It was cut short.
                _ if signals::pending() => {}
                Ok(sample) => run.samples.push(sample),
                // It ended while it was read; how is seen by who waits for it.
                Err(_) if !process.is_same() => break,
                Err(gap) if run.gaps.contains(&gap) => {}
                Err(gap) => run.gaps.push(gap),
            }
            let after = ProcessTime::read(pid).zip(before.as_ref());
            run.cpu_share = after.map(|(now, before)| {
                (now.cpu_ms() - before.cpu_ms()) / 1e3 / started.elapsed().as_secs_f64().max(1e-3)
            });
            bar.set_position(moment.as_secs());
            // A sample that took longer than the interval leaves moments out, rather than come late ever after.
            moment += interval;
            while started + moment < Instant::now() {
                moment += interval;
            }
        }
        bar.finish_and_clear();
        Ok(turn)
    }
}

fn interrupted() -> Gap {
    Gap::new(INTERRUPTED, Why::NotMeasured).hint("a signal ended it before its time")
}

/// Or what happened before it was there.
fn the_jvm(running: &mut Running) -> Result<i32, Turn> {
    let deadline = Instant::now() + READY_MAX;
    while Instant::now() < deadline {
        if let Some(pid) = dialogue::jvm_below(running.pid()) {
            return Ok(pid);
        }
        match running.until(Instant::now() + LOOK) {
            Turn::Time => {}
            turn => return Err(turn),
        }
    }
    Err(Turn::Time)
}

/// A busy program changes while it is read. A reading of which more was lost by that than an area may be is done again.
fn sample(process: &Process, started: Instant) -> Result<Sample, Gap> {
    let seconds = started.elapsed().as_secs_f64();
    let begun = Instant::now();
    let mut best = look(process)?;
    for _ in 1..LOOKS_MAX {
        if unattributed(&best) <= UNATTRIBUTED_MAX {
            break;
        }
        let again = look(process)?;
        if unattributed(&again) < unattributed(&best) {
            best = again;
        }
    }
    Ok(Sample { seconds, took_ms: begun.elapsed().as_secs_f64() * 1e3, ..best })
}

fn unattributed(sample: &Sample) -> f64 {
    let all: u64 = sample.areas.values().sum();
    let lost = sample.areas.get(&Area::Unattributed).copied().unwrap_or(0);
    lost as f64 / all.max(1) as f64
}

fn look(process: &Process) -> Result<Sample, Gap> {
    let snapshot = snapshot::take_once(process, Want::default())?;
    let map = map::join(&snapshot);
    let account = Account::of(&snapshot, &map);
    Ok(Sample {
        seconds: 0.0,
        took_ms: 0.0,
        areas: account.areas.iter().map(|area| (area.area, area.amounts.resident_bytes)).collect(),
        kernel_resident_bytes: account.totals.kernel_resident_bytes,
        threads: account.process.threads,
        is_torn: map.gaps.iter().any(|gap| gap.why == Why::Torn),
    })
}
