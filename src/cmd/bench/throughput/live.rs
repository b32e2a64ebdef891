//! One trial on the real machine: the host as the arm needs it, the server on it, its page tables as witness, load.

use super::failed;
use crate::act::server::load::Load;
use crate::act::server::{Server, ServerError, Wanted};
use crate::act::signals;
use crate::base::Known;
use crate::cmd::bench::jdk::Jdk;
use crate::cmd::bench::rounds::on_host;
use crate::experiment::arm_pages::{self, ArmError, Pool};
use crate::experiment::bench::gc_work::GcWork;
use crate::experiment::bench::http_load::{self, HttpLoad};
use crate::experiment::bench::throughput::{Arm, Settings, Trial};
use crate::experiment::bench::trials::Planned;
use crate::measure::gc_log;
use crate::os::cpu_time::ProcessTime;
use crate::os::process::Process;
use crate::pages::subject::size;
use crate::pages::{Step, Subject, collectors};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Next to the load, what a trial may take: start, database, looks at the pages, end.
const ALLOWANCE: Duration = Duration::from_secs(900);
pub const GC_LOG: &str = "gc.log";

pub struct Live<'a> {
    pub jdk: &'a Jdk,
    pub installed: &'a Path,
    pub state: PathBuf,
    pub settings: &'a Settings,
}

/// Why there is no trial.
pub enum Stop {
    Signal,
    /// No trial can be made.
    Failed(anyhow::Error),
}

/// What decides how large the JVM's reservations are.
fn heap_options(jdk: &Jdk, settings: &Settings, arm: Arm) -> Result<Vec<String>, ArmError> {
    let of_gc =
        collectors::named(&settings.gc, jdk.feature).and_then(|gc| collectors::options(gc, jdk.feature));
    let mut options = of_gc.map_err(ArmError::NoPlan)?;
    let heap = size(arm.heap_bytes);
    options.extend([format!("-Xms{heap}"), format!("-Xmx{heap}")]);
    Ok(options)
}

/// The JVM's options, and what must change on the host for them.
fn plan(jdk: &Jdk, settings: &Settings, arm: Arm) -> Result<(Vec<String>, Vec<Step>), ArmError> {
    let mut options = heap_options(jdk, settings, arm)?;
    let subject: Subject = arm_pages::subject(&jdk.home, &options)?;
    options.extend(arm_pages::options(&subject, arm.pages)?);
    Ok((options, arm_pages::steps(&subject, arm.pages, Pool::Auto)?))
}

pub fn planned(jdk: &Jdk, settings: &Settings, arm: Arm) -> Planned<Arm> {
    Planned::of(arm, plan(jdk, settings, arm))
}

/// What a JVM has used so far.
#[derive(Clone, Copy)]
struct Used {
    time: Option<(f64, f64)>,
    faults: Option<u64>,
}

impl Live<'_> {
    /// One that cannot have its pages is a trial that does not count.
    pub fn trial(&self, round: usize, arm: Arm) -> Result<Trial, Stop> {
        let mut trial = Trial::of(round, arm);
        let arranged = plan(self.jdk, self.settings, arm);
        let run = |trial: &mut Trial, options| self.run(trial, options);
        match on_host(&mut trial, "bench throughput", &self.state, arranged, run) {
            Ok(()) => {}
            Err(ServerError::Signal) => return Err(Stop::Signal),
            // Without its generator there is no trial at all; a server that does not start is one that says nothing.
            Err(error @ ServerError::NoLoad(_)) => return Err(Stop::Failed(failed(error))),
            Err(error) => trial.discount(error.to_string()),
        }
        Ok(trial)
    }

    fn run(&self, trial: &mut Trial, mut options: Vec<String>) -> Result<(), ServerError> {
        options.extend(gc_log::options(self.jdk.feature, GC_LOG));
        let (warm_up, length) = (self.settings.warm_up_seconds, self.settings.seconds);
        let wanted = Wanted {
            installed: self.installed,
            java: &self.jdk.java(),
            feature: self.jdk.feature,
            options: &options,
            limit: Duration::from_secs_f64(warm_up + length) + ALLOWANCE,
        };
        let server = Server::start(&wanted)?;
        trial.figures.ready_seconds = Some(server.ready_seconds);
        let warm = self.load(&server, warm_up)?;
        trial.figures.warm_up_requests_per_second = warm.ok().map(|load| load.requests_per_second);
        self.look(trial, &server);
        let (before, from) = (used(server.pid), server.elapsed());
        let load = self.load(&server, length)?;
        let (after, to) = (used(server.pid), server.elapsed());
        trial.figures.load = taken(load, trial);
        trial.figures.user_seconds = between(before, after, |used| used.time.map(|time| time.0));
        trial.figures.system_seconds = between(before, after, |used| used.time.map(|time| time.1));
        trial.figures.minor_faults =
            before.faults.zip(after.faults).map(|(before, after)| after.saturating_sub(before));
        self.look(trial, &server);
        if let Err(gap) = server.can_log_in() {
            if signals::pending() {
                return Err(ServerError::Signal);
            }
            trial.discount(format!("after the load no user can log in: {gap}"));
        }
        let (ended, directory) = server.end();
        if ended.stop != crate::act::trial::Stop::Asked {
            trial.discount(format!("the server did not last: {}", ended.words()));
        }
        let log = std::fs::read(directory.path().join(GC_LOG)).unwrap_or_default();
        let work =
            gc_log::parse(&log).and_then(|log| GcWork::within(&log, from.as_secs_f64(), to.as_secs_f64()));
        trial.figures.gc = taken(work, trial);
        Ok(())
    }

    fn load(&self, server: &Server, seconds: f64) -> Result<Known<HttpLoad>, ServerError> {
        let load = Load::start(server, self.settings.clients, Duration::from_secs_f64(seconds))?;
        Ok(http_load::parse(&load.wait()?))
    }

    fn look(&self, trial: &mut Trial, server: &Server) {
        trial.saw(arm_pages::verify(server.pid, trial.arm.pages));
        if let Some(status) = Process::open(server.pid).ok().and_then(|process| process.status().ok()) {
            trial.figures.resident_bytes = status.resident_with_hugetlb_bytes();
            trial.figures.page_table_bytes = status.page_table_bytes;
        }
    }
}

/// A gap is kept, and the trial does not count: the table would not be complete with it.
fn taken<T>(figure: Known<T>, trial: &mut Trial) -> Option<T> {
    match figure {
        Ok(figure) => Some(figure),
        Err(gap) => {
            trial.discount(gap.to_string());
            trial.gaps.push(gap);
            None
        }
    }
}

fn used(pid: i32) -> Used {
    let time = ProcessTime::read(pid).map(|time| (time.user_ms() / 1e3, time.system_ms() / 1e3));
    let faults = Process::open(pid).ok().and_then(|process| process.minor_faults().ok());
    Used { time, faults }
}

fn between(before: Used, after: Used, of: fn(Used) -> Option<f64>) -> Option<f64> {
    Some((of(after)? - of(before)?).max(0.0))
}
