//! `marusa pages split TARGET`: takes `collapse` back: what a receipt names, or all transparent huge pages of the areas.

use super::collapse::{Measure, nothing_done, tell, tell_before};
use super::target::{self, Areas, Bar, Chosen, Look};
use crate::act::promote::{Change, Pace, Receipt, receipt};
use crate::cmd::{self, Failure, amount};
use crate::os::process::Process;
use crate::pages::blocks::PlannedBlock;
use crate::show::pages::collapse::{Asked, Direction};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub struct SplitArgs {
    /// A pid, or a part of the main class, jar or container name
    target: String,
    /// Which areas, with commas, as `marusa map --json` names them; or all
    #[arg(long, value_name = "AREAS", value_parser = target::areas, default_value = target::DEFAULT_AREAS)]
    area: Chosen,
    /// Exactly the blocks of this receipt of `collapse`, whatever their area
    #[arg(long, value_name = "FILE", conflicts_with = "area")]
    receipt: Option<PathBuf>,
    /// Time that a thread of the JVM may wait for one block; a longer call is followed by a pause, many end the command
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = target::STALL_BUDGET)]
    stall_budget: Duration,
    /// CPU budget, of one CPU
    #[arg(long, value_name = "PERCENT", value_parser = target::cpu_share, default_value = "10%")]
    cpu_budget: f64,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Machine-readable, schema marusa/pages-split/2
    #[arg(long)]
    json: bool,
}

pub fn run(args: &SplitArgs) -> anyhow::Result<u8> {
    let process = cmd::target::open(&args.target)?;
    let area = if args.receipt.is_some() { &Chosen::all() } else { &args.area };
    let areas = Areas::to_split(area, args.stall_budget);
    let mut before = Look::now(&process, &areas.wanted())?;
    if let Some(path) = &args.receipt {
        keep_only(&mut before.plan.on_2m, path, &process)?;
    }
    let pace = Pace { cpu_share: args.cpu_budget, ..areas.pace() };
    let asked = Asked { direction: Direction::Split, wanted: areas.wanted(), pace, dry_run: args.dry_run };
    let hindrance = Change::Split.is_allowed(&process).map_err(target::refused);
    let blocks = target::to_change(&before.plan.on_2m);
    if !args.json {
        tell_before(&before, &asked, blocks.len())?;
    }
    if args.dry_run || blocks.is_empty() || hindrance.is_err() {
        return nothing_done(args.json, &asked, &before, hindrance);
    }
    let mut kept = args.receipt.as_deref().map(Receipt::reopen).transpose().map_err(unread)?;
    let measure = Measure::start(&process);
    let done = Change::Split
        .make(&process, &blocks, pace, kept.as_mut(), &mut Bar::new("splitting"))
        .map_err(target::refused)?;
    let mut after =
        measure.end(&process, &areas, args.receipt.as_ref().map(|path| path.display().to_string()));
    after.note = target::khugepaged_note(&before.snapshot, &before.plan.on_2m);
    tell(args.json, &asked, &before, &done, &after)
}

/// Keeps the huge pages that a receipt names.
fn keep_only(on_2m: &mut Vec<PlannedBlock>, path: &Path, process: &Process) -> anyhow::Result<()> {
    let named: HashSet<_> = receipt::blocks(path, process).map_err(unread)?.into_iter().collect();
    on_2m.retain(|block| named.contains(&block.range));
    Ok(())
}

fn unread(error: receipt::ReceiptError) -> anyhow::Error {
    let message = error.to_string();
    match error {
        receipt::ReceiptError::OtherProcess { .. } => Failure::target(message),
        _ => Failure::usage(message),
    }
}
