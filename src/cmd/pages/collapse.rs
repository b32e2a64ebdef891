//! `marusa pages collapse TARGET`: puts the memory of a running JVM on 2 MiB pages. Says before what is fit for it, keeps a
//! receipt of what it changes, and looks at the page tables again when it is done.

use super::door;
use super::target::{self, Areas, Bar, Look};
use crate::act::promote::{Change, Done, Pace, Receipt, Stopped, receipt::ReceiptError};
use crate::base::Bytes;
use crate::cmd::{self, Failure, answer};
use crate::os::process::Process;
use crate::os::terminal::stdout;
use crate::show::pages::collapse::{self as show, After, Asked, CollapseDocument, Direction};
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub struct CollapseArgs {
    /// A pid, or a part of the main class, jar or container name
    target: String,
    #[command(flatten)]
    areas: Areas,
    /// CPU budget, of one CPU, including the kernel's copying
    #[arg(long, value_name = "PERCENT", value_parser = target::cpu_share, default_value = "10%")]
    cpu_budget: f64,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Directory of the receipts [default: $MARUSA_STATE, or /var/lib/marusa]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Machine-readable, schema marusa/pages-collapse/2
    #[arg(long)]
    json: bool,
}

pub fn run(args: &CollapseArgs) -> anyhow::Result<u8> {
    let process = cmd::target::open(&args.target)?;
    let before = Look::now(&process, &args.areas.wanted())?;
    let hindrance = hindrance(&process, &before);
    let pace = Pace { cpu_share: args.cpu_budget, ..args.areas.pace() };
    let asked =
        Asked { direction: Direction::Collapse, wanted: args.areas.wanted(), pace, dry_run: args.dry_run };
    let blocks = target::to_change(&before.plan.blocks);
    if !args.json {
        tell_before(&before, &asked, blocks.len())?;
    }
    if args.dry_run || blocks.is_empty() || hindrance.is_err() {
        return nothing_done(args.json, &asked, &before, hindrance);
    }
    let mut receipt =
        Receipt::create(&door::state_directory(args.state.as_deref())?, &process).map_err(unwritten)?;
    let measure = Measure::start(&process);
    let done = Change::Collapse
        .make(&process, &blocks, pace, Some(&mut receipt), &mut Bar::new("collapsing"))
        .map_err(target::refused)?;
    let after = measure.end(&process, &args.areas, Some(receipt.path.display().to_string()));
    tell(args.json, &asked, &before, &done, &after)
}

/// Why it could not be done.
fn hindrance(process: &Process, before: &Look) -> anyhow::Result<()> {
    Change::Collapse.is_allowed(process).map_err(target::refused)?;
    if before.snapshot.os.status.thp_enabled == Some(false) {
        let message = format!(
            "pid {} has transparent huge pages disabled by prctl(PR_SET_THP_DISABLE) (THP_enabled: 0 in /proc/{}/status); \
             it inherited that from what started it (systemd: MemoryTHP=), and only a start without it helps",
            process.pid, process.pid
        );
        return Err(Failure { status: 1, message }.into());
    }
    Ok(())
}

pub(super) fn tell_before(before: &Look, asked: &Asked, blocks: usize) -> std::io::Result<()> {
    let Look { snapshot, map, plan, .. } = before;
    show::before(&mut stdout().lock(), snapshot, map, plan, asked, blocks)
}

pub(super) fn nothing_done(
    json: bool,
    asked: &Asked,
    before: &Look,
    hindrance: anyhow::Result<()>,
) -> anyhow::Result<u8> {
    let why = hindrance.as_ref().err().map(|error| format!("{error:#}"));
    let words = match (&hindrance, asked.dry_run, asked.direction) {
        (Err(_), ..) => "nothing was done",
        (_, true, _) => "dry run, nothing was done",
        (.., Direction::Collapse) => "nothing was done: no block is fit for it",
        (.., Direction::Split) => "nothing was done: nothing of it is on transparent huge pages",
    };
    let document = || CollapseDocument::of(&before.snapshot, &before.plan, asked, None, why.as_deref());
    answer(json, document, |out| writeln!(out, "\n{words}"))?;
    hindrance.map(|()| 0)
}

/// The figures around a run.
pub(super) struct Measure {
    resident: Option<Bytes>,
    faults: Option<u64>,
}

impl Measure {
    pub fn start(process: &Process) -> Measure {
        Measure { resident: cmd::target::resident(process).ok(), faults: process.minor_faults().ok() }
    }

    /// Faults first: the second sample may take some of its own time.
    pub fn end(&self, process: &Process, areas: &Areas, receipt: Option<String>) -> After {
        let faults = self.faults.zip(process.minor_faults().ok());
        let look = Look::now(process, &areas.wanted()).ok();
        After {
            areas: look.map(|look| look.plan.areas),
            resident_before: self.resident,
            resident_after: cmd::target::resident(process).ok().filter(|_| process.is_same()),
            faults: faults.map(|(before, after)| after.saturating_sub(before)),
            receipt,
            note: None,
        }
    }
}

/// Prints what was done; 0 where all of it was, 1 where not, 3 where the target ended.
pub(super) fn tell(
    json: bool,
    asked: &Asked,
    before: &Look,
    done: &Done,
    after: &After,
) -> anyhow::Result<u8> {
    let Look { snapshot, plan, .. } = before;
    let document = || CollapseDocument::of(snapshot, plan, asked, Some((done, after)), None);
    answer(json, document, |out| show::after(out, snapshot, plan, asked, done, after))?;
    if done.stopped == Some(Stopped::TargetEnded) {
        let pid = before.snapshot.os.process.pid;
        return Err(Failure::target(format!(
            "pid {pid} ended in the meantime; nothing of it is left to be undone"
        )));
    }
    Ok(if done.is_all() { 0 } else { 1 })
}

pub(super) fn unwritten(error: ReceiptError) -> anyhow::Error {
    let message = format!(
        "{error}\nnothing was done: what is not noted cannot be undone; --state DIR names another directory"
    );
    match &error {
        ReceiptError::Io { error, .. } if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Failure::rights(message)
        }
        _ => Failure::target(message),
    }
}
