//! What the experiments with programs of ours that wait at stages share: a reading at a stage, and what becomes of a trial.

use super::rounds::{RoundsArgs, SavedArgs};
use crate::act::attach;
use crate::act::staged::StageError;
use crate::act::trim::{self as act, Way};
use crate::base::Refused;
use crate::cmd::{Failure, target, trim as trim_command};
use crate::experiment::bench::account_row::AccountRow;
use crate::experiment::bench::trials::Trial;
use crate::map::{self, Account};
use crate::os::cpu_time::ProcessTime;
use crate::os::process::Process;
use crate::snapshot::{self, Want};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often it is looked whether a program is at rest, how long it must be, and the most that is waited for it.
const REST_LOOK: Duration = Duration::from_millis(100);
const REST: Duration = Duration::from_millis(500);
const REST_MAX: Duration = Duration::from_secs(30);
/// CPU time within `REST` that a JVM at rest takes: its periodic tasks.
const REST_TICKS: u64 = 1;

#[derive(clap::Args, Debug)]
#[group(skip)]
pub struct AccountArgs {
    /// JVMs of each kind
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub runs: u64,
    /// Draw the results, and what was published, in this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Say what would be run, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Machine-readable, schema marusa/bench-EXPERIMENT/3
    #[arg(long)]
    pub json: bool,
}

impl AccountArgs {
    /// Amounts of memory need no quiet machine, and nothing is changed on the host.
    pub fn turns(&self) -> SavedArgs {
        SavedArgs { save: None, svg: self.svg.clone(), turns: RoundsArgs::at_once(self.dry_run) }
    }
}

pub fn look(pid: i32) -> anyhow::Result<AccountRow> {
    let process = Process::open(pid)?;
    let snapshot =
        snapshot::take(&process, Want::default()).map_err(|gap| target::unreadable(&process, &gap))?;
    let map = map::join(&snapshot);
    if let Err(broken) = map::law::check(&map, &snapshot) {
        crate::say!("marusa: the books do not balance, please report this: {broken}");
    }
    // A reading that a signal cut short is not a figure.
    not_interrupted().map_err(failed)?;
    Ok(AccountRow::of(Account::of(&snapshot, &map)))
}

/// Waits until a program without requests does nothing: its compilers have come to the end of their queue. Whether it did.
pub fn rest(pid: i32) -> Result<bool, StageError> {
    let started = Instant::now();
    let ticks = || ProcessTime::read(pid).map(|time| time.cpu_ticks);
    let (mut since, mut at) = (Instant::now(), ticks());
    while started.elapsed() < REST_MAX {
        pause(REST_LOOK)?;
        let now = ticks();
        match at.zip(now) {
            Some((was, is)) if is.saturating_sub(was) <= REST_TICKS => {
                if since.elapsed() >= REST {
                    return Ok(true);
                }
            }
            _ => (since, at) = (Instant::now(), now),
        }
    }
    Ok(false)
}

/// Sleeps, or ends early on a signal.
pub fn pause(time: Duration) -> Result<(), StageError> {
    std::thread::sleep(time);
    not_interrupted()
}

fn not_interrupted() -> Result<(), StageError> {
    if crate::act::signals::pending() { Err(StageError::Stopped) } else { Ok(()) }
}

/// Has a JVM trim itself, by its own command or by our library. How, or why not.
pub fn trim(pid: i32) -> anyhow::Result<Result<String, Refused>> {
    let process = Process::open(pid)?;
    let way = if act::has_command(&process) == Some(true) { Way::JvmCommand } else { Way::AgentLibrary };
    let snapshot =
        snapshot::take(&process, Want::default()).map_err(|gap| target::unreadable(&process, &gap))?;
    let attached = match attach::open(&process) {
        Ok(attached) => attached,
        Err(error) => return Ok(Err(error.to_string().into())),
    };
    let keeps = trim_command::keeps_libraries(&snapshot);
    Ok(match act::trim(&process, &attached, way, keeps) {
        Ok(receipt) => Ok(match receipt.way {
            Way::JvmCommand => format!("{}, {:.0} ms", act::COMMAND, receipt.call_ms),
            Way::AgentLibrary => format!("library, {:.0} ms", receipt.call_ms),
        }),
        Err(error) => Err(error.to_string().into()),
    })
}

/// A failure of a program of ours, or the end of the experiment by a signal.
pub fn failed(error: StageError) -> anyhow::Error {
    anyhow::Error::new(error)
        .context(Failure { status: 3, message: "a program of the experiment".to_string() })
}

/// What failed says nothing of its arm. Whether the trial is whole: a signal did not cut it short.
pub fn count<A, F>(done: anyhow::Result<()>, trial: &mut Trial<A, F>) -> anyhow::Result<bool> {
    let Err(error) = done else { return Ok(true) };
    trial.discount(format!("{error:#}"));
    Ok(!error.chain().any(|one| matches!(one.downcast_ref::<StageError>(), Some(StageError::Stopped))))
}
