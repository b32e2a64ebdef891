//! `marusa container TARGET`: what fills the cgroup of a process, or the host.

use super::deadline::DeadlineArgs;
use super::{Failure, answer, target};
use crate::base::Gap;
use crate::base::limits::{GROUP_SHOWN, GROUP_TOP, TARGET_ALONE};
use crate::ledger::{self, Ledger, Want};
use crate::os::budget;
use crate::os::group::Group;
use crate::show::container::{self, ContainerDocument};
use crate::show::json::Subject;

#[derive(clap::Args, Debug)]
pub struct ContainerArgs {
    /// A pid, or a part of the main class, jar or container name: its cgroup is examined
    #[arg(required_unless_present_any = ["cgroup", "host"])]
    target: Option<String>,
    /// A cgroup by its directory, or its path in /proc/PID/cgroup
    #[arg(long, value_name = "PATH", conflicts_with = "target")]
    cgroup: Option<String>,
    /// The host instead: its memory less everything that has a counter
    #[arg(long, conflicts_with_all = ["target", "cgroup"])]
    host: bool,
    /// The N largest processes, files and mounts by name [default: 10, with --json 50]; the others are one row
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// Machine-readable, schema marusa/container/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    deadline: DeadlineArgs,
}

pub fn run(args: &ContainerArgs) -> anyhow::Result<u8> {
    args.deadline.set(TARGET_ALONE);
    budget::within(budget::limits(), || examine(args))
}

fn examine(args: &ContainerArgs) -> anyhow::Result<u8> {
    let shown = if args.json { GROUP_TOP } else { GROUP_SHOWN };
    let top = args.top.map_or(shown, |top| top as usize);
    let want = Want { areas: !args.host, top };
    let process = args.target.as_deref().map(target::open_any).transpose()?;
    let ledger = match (&process, &args.cgroup) {
        (Some(process), _) => of_group(Group::of(process), want),
        (None, Some(path)) => of_group(Group::at(path), want),
        (None, None) => ledger::read_host(want),
    };
    let ledger = ledger.map_err(|gap| Failure::unread(gap.why, format!("cannot read the cgroup: {gap}")))?;
    let command = process.as_ref().map(ledger::command).unwrap_or_default();
    let subject = process.as_ref().map(|process| Subject { pid: process.pid, command: &command });
    answer(args.json, || ContainerDocument::of(&ledger, subject), |out| container::text(out, &ledger))?;
    Ok(0)
}

fn of_group(group: Result<Group, Gap>, want: Want) -> Result<Ledger, Gap> {
    ledger::read(&group?, want)
}
