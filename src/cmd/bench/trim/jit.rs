//! The program that compiles all the time, once for each way of giving memory back.

use super::super::account_of::{self, failed};
use super::Job;
use crate::act::staged::{self, Launch, Staged};
use crate::act::trim as act;
use crate::experiment::bench::trim::{Compiled, Trial};
use crate::os::cpu_time::ProcessTime;
use crate::os::process::Process;
use anyhow::Context;
use std::time::Duration;

/// A small heap, and a program that waits for the compilers: its time is theirs.
pub const OPTIONS: [&str; 3] = ["-Xmx64m", "-XX:+UseSerialGC", "-Xbatch"];
/// A JVM that compiles a thousand classes on a busy machine.
const STAGE_LIMIT: Duration = Duration::from_secs(1200);
/// `marusa trim` ends when its target does.
const HELPER_LIMIT: Duration = Duration::from_secs(20);

pub fn one(job: &Job, trial: &mut Trial) -> anyhow::Result<()> {
    let arguments = [format!("rounds={}", job.settings.classes)];
    let directory = job.programs.directory();
    let launch = Launch {
        environment: job.means.environment.clone(),
        ..staged::java(&job.jdk.java(), job.options, "bench.CompileHeavy", &arguments, directory)
    };
    let mut program = Staged::start(trial.arm.way.name(), &launch).map_err(failed)?;
    program.reach("warm", STAGE_LIMIT, || {}).map_err(failed)?;
    let pid = program.jvm().map_err(failed)?;
    let process = Process::open(pid)?;
    let helper = job.means.trimmed_every.map(|every| trimmer(&process, every)).transpose()?;
    let (before, faults) = (ProcessTime::read(pid), process.minor_faults().ok());
    program.go_on().map_err(failed)?;
    let mut resident = Resident::default();
    let stage = program.reach("done", STAGE_LIMIT, || resident.look(&process)).map_err(failed)?;
    let after = ProcessTime::read(pid);
    let took = |of: fn(&ProcessTime) -> f64| Some(of(after.as_ref()?) - of(before.as_ref()?));
    let of_helper = |helper: &Staged| ProcessTime::read(helper.pid()).context("no CPU time of marusa trim");
    let end = account_of::look(pid)?;
    trial.figures.jit = Some(Compiled {
        work_ms: stage.figures.get("work_ms").copied(),
        cpu_ms: took(ProcessTime::cpu_ms),
        system_ms: took(|time| time.cpu_ms() - time.user_ms()),
        helper_cpu_ms: helper.as_ref().map(of_helper).transpose()?.map(|time| time.cpu_ms()),
        minor_faults: faults
            .zip(process.minor_faults().ok())
            .map(|(before, after)| after.saturating_sub(before)),
        mean_resident_bytes: resident.mean(),
        peak_resident_bytes: resident.peak,
        end,
    });
    drop(program);
    if let Some(helper) = helper {
        helper.rest(HELPER_LIMIT);
    }
    Ok(())
}

/// `marusa trim PID --every`, as a user would run it.
pub fn trimmer(process: &Process, every: Duration) -> anyhow::Result<Staged> {
    let mut arguments: Vec<String> =
        ["trim", &process.pid.to_string(), "--json", "--every"].map(String::from).into();
    arguments.push(format!("{}ms", every.as_millis()));
    if act::has_command(process) != Some(true) {
        arguments.push("--load-agent".to_string());
    }
    let launch = Launch {
        program: std::env::current_exe()?,
        arguments: arguments.into_iter().map(Into::into).collect(),
        directory: "/".into(),
        ..Launch::default()
    };
    Staged::start("marusa trim", &launch).map_err(failed)
}

/// What a process has in memory while it works.
#[derive(Default)]
struct Resident {
    sum: f64,
    looks: u32,
    peak: Option<u64>,
}

impl Resident {
    fn look(&mut self, process: &Process) {
        let Ok(status) = process.status() else { return };
        if let Some(bytes) = status.resident_bytes {
            self.sum += bytes as f64;
            self.looks += 1;
            self.peak = self.peak.max(Some(bytes));
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.looks > 0).then(|| self.sum / f64::from(self.looks))
    }
}
