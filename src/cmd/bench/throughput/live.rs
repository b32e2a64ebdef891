//! One trial on the real machine: the host as the arm needs it, the server on it, its page tables as witness, load.

use super::failed;
use crate::act::server::load::Load;
use crate::act::server::{Server, ServerError, Wanted};
use crate::act::signals;
use crate::base::Known;
use crate::cmd::bench::jdk::Jdk;
use crate::cmd::bench::rounds::{Bench, Run, on_pages};
use crate::experiment::arm_pages::{self, ArmError};
use crate::experiment::bench::gc_work::GcWork;
use crate::experiment::bench::http_load::{self, HttpLoad};
use crate::experiment::bench::throughput::{Arm, FirstTouch, Settings, Trial};
use crate::experiment::bench::trials::Arranged;
use crate::measure::gc_log;
use crate::os::cpu_time::ProcessTime;
use crate::os::process::Process;
use crate::pages::collectors;
use crate::pages::subject::size;
use crate::show::bench::rounds::Nothing;
use std::path::Path;
use std::time::Duration;

/// Next to the load, what a trial may take: start, database, looks at the pages, end.
const ALLOWANCE: Duration = Duration::from_secs(900);
/// A server that answers less of a fixed load is overloaded: its latencies grow for as long as it is measured. The answer to the
/// last request of each client may still come.
const RATE_SHARE_MIN: f64 = 0.98;
pub const GC_LOG: &str = "gc.log";

pub struct Live<'a> {
    pub jdk: &'a Jdk,
    pub installed: &'a Path,
}

/// What decides how large the JVM's reservations are.
fn heap_options(jdk: &Jdk, settings: &Settings, arm: Arm) -> Result<Vec<String>, ArmError> {
    let of_gc =
        collectors::named(&settings.gc, jdk.feature).and_then(|gc| collectors::options(gc, jdk.feature));
    let mut options = of_gc?;
    let heap = size(arm.heap_bytes);
    options.extend([format!("-Xms{heap}"), format!("-Xmx{heap}")]);
    Ok(options)
}

/// What a JVM has used so far.
#[derive(Clone, Copy)]
struct Used {
    time: Option<(f64, f64)>,
    faults: Option<u64>,
}

impl Bench for Live<'_> {
    type Of = Settings;

    fn arranged(&mut self, settings: &Settings, arm: &Arm) -> Result<Arranged<Nothing>, ArmError> {
        let options = heap_options(self.jdk, settings, *arm)?;
        let subject = arm_pages::subject(&self.jdk.home, &options)?;
        on_pages(&subject, options, arm.pages, Nothing {})
    }

    fn trial(&mut self, mut run: Run<Settings>) -> anyhow::Result<bool> {
        match self.work(&mut run) {
            Ok(()) => {}
            Err(ServerError::Signal) => return Ok(false),
            // Without its generator there is no trial at all; a server that does not start is one that says nothing.
            Err(error @ ServerError::NoLoad(_)) => return Err(failed(error)),
            Err(error) => run.trial.discount(error.to_string()),
        }
        Ok(true)
    }
}

impl Live<'_> {
    fn work(&self, run: &mut Run<Settings>) -> Result<(), ServerError> {
        let Run { settings, programs, options, trial, .. } = run;
        options.extend(gc_log::options(self.jdk.feature, GC_LOG));
        if trial.arm.touch == FirstTouch::Start {
            options.push("-XX:+AlwaysPreTouch".to_string());
        }
        let (warm_up, length) = (settings.warm_up_seconds, settings.seconds);
        let wanted = Wanted {
            installed: self.installed,
            java: &self.jdk.java(),
            feature: self.jdk.feature,
            options,
            alive: (trial.arm.live_bytes > 0).then(|| (programs.directory(), trial.arm.live_bytes)),
            limit: Duration::from_secs_f64(warm_up + length) + ALLOWANCE,
        };
        let server = Server::start(&wanted)?;
        trial.figures.ready_seconds = Some(server.ready_seconds);
        let warm = load(&server, settings.clients, None, warm_up)?;
        trial.figures.warm_up_requests_per_second = warm.ok().map(|load| load.requests_per_second);
        look(trial, &server);
        let (before, from) = (used(server.pid), server.elapsed());
        let load = load(&server, settings.clients, settings.rate, length)?;
        let (after, to) = (used(server.pid), server.elapsed());
        trial.figures.load = taken(load, trial);
        if let (Some(rate), Some(load)) = (settings.rate, &trial.figures.load)
            && ((load.requests + u64::from(settings.clients)) as f64) < RATE_SHARE_MIN * rate * load.seconds
        {
            let answered = load.requests_per_second;
            trial.discount(format!("it answered {answered:.0} of {rate:.0} requests a second"));
        }
        trial.figures.user_seconds = between(before, after, |used| used.time.map(|time| time.0));
        trial.figures.system_seconds = between(before, after, |used| used.time.map(|time| time.1));
        trial.figures.minor_faults =
            before.faults.zip(after.faults).map(|(before, after)| after.saturating_sub(before));
        look(trial, &server);
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
}

fn load(
    server: &Server,
    clients: u32,
    rate: Option<f64>,
    seconds: f64,
) -> Result<Known<HttpLoad>, ServerError> {
    let load = Load::start(server, clients, rate, Duration::from_secs_f64(seconds))?;
    Ok(http_load::parse(&load.wait()?))
}

fn look(trial: &mut Trial, server: &Server) {
    trial.saw(arm_pages::verify(server.pid, trial.arm.pages));
    if let Some(status) = Process::open(server.pid).ok().and_then(|process| process.status().ok()) {
        trial.figures.resident_bytes = status.resident_with_hugetlb_bytes();
        trial.figures.page_table_bytes = status.page_table_bytes;
    }
}

/// A gap is kept, and the trial does not count: the table would not be complete with it.
fn taken<T>(figure: Known<T>, trial: &mut Trial) -> Option<T> {
    figure.map_err(|gap| trial.failed(gap)).ok()
}

fn used(pid: i32) -> Used {
    let time = ProcessTime::read(pid).map(|time| (time.user_ms() / 1e3, time.system_ms() / 1e3));
    let faults = Process::open(pid).ok().and_then(|process| process.minor_faults().ok());
    Used { time, faults }
}

fn between(before: Used, after: Used, of: fn(Used) -> Option<f64>) -> Option<f64> {
    Some((of(after)? - of(before)?).max(0.0))
}
