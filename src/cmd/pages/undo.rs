//! `marusa pages undo`: puts back what `apply` changed, and lists what is applied.

use super::apply::read_plan;
use super::door::{failure, state_directory};
use crate::act::door::journal::PlanMark;
use crate::act::door::machine::Machine;
use crate::act::door::store::{Kept, State};
use crate::act::door::{self, Linux, Store};
use crate::act::signals::Blocked;
use crate::base::refuse;
use crate::cmd::{Failure, answer};
use crate::show::pages::undo::{self as show, UndoDocument};
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug)]
pub struct UndoArgs {
    /// A plan, or a run as `--list` shows it; optional where only one is applied
    #[arg(value_name = "PLAN|RUN", conflicts_with_all = ["all", "list"])]
    what: Option<String>,
    /// Undo every applied run, the last first
    #[arg(long)]
    all: bool,
    /// Show what is applied, and change nothing
    #[arg(long, conflicts_with = "all")]
    list: bool,
    /// Also with a damaged journal, as far as it can be read
    #[arg(long)]
    damaged: bool,
    /// Directory of the journals [default: $MARUSA_STATE, or /var/lib/marusa]
    #[arg(long, value_name = "DIRECTORY")]
    state: Option<PathBuf>,
    /// Machine-readable, schema marusa/pages-undo/2
    #[arg(long)]
    json: bool,
}

pub fn run(args: &UndoArgs) -> anyhow::Result<u8> {
    let (machine, store) = (Linux::default(), Store::new(state_directory(args.state.as_deref())?));
    let runs = store.list().map_err(failure)?;
    if args.list {
        let open: Vec<Kept> = runs.into_iter().filter(is_open).collect();
        answer(args.json, || UndoDocument::list(&open, &machine.boot_id()), |out| show::list(out, &open))?;
        return Ok(0);
    }
    let ids = wanted(args, &runs)?;
    let (mut receipts, mut errors) = (Vec::new(), Vec::new());
    // A signal to end waits until all is back.
    let _blocked = Blocked::start();
    for id in &ids {
        match door::undo(&machine, &store, id, args.damaged) {
            Ok(receipt) => receipts.push(receipt),
            Err(error) => errors.push(error),
        }
    }
    let document = || UndoDocument::of(&receipts, &errors);
    answer(args.json, document, |out| match ids.is_empty() {
        true => writeln!(out, "nothing to undo"),
        false => receipts.iter().try_for_each(|receipt| show::receipt(out, receipt)),
    })?;
    match errors.into_iter().next() {
        Some(error) => Err(failure(error)),
        None => Ok(u8::from(receipts.iter().any(|receipt| !receipt.complete))),
    }
}

/// Something of it may still be there.
fn is_open(run: &Kept) -> bool {
    run.state() != State::Undone
}

/// The runs that are meant, the last first.
fn wanted(args: &UndoArgs, runs: &[Kept]) -> anyhow::Result<Vec<String>> {
    let open: Vec<&Kept> = runs.iter().rev().filter(|run| is_open(run)).collect();
    let ids = |runs: &[&Kept]| runs.iter().map(|run| run.id.clone()).collect::<Vec<_>>();
    let Some(what) = &args.what else {
        return match open.len() {
            0 | 1 => Ok(ids(&open)),
            _ if args.all => Ok(ids(&open)),
            _ => Err(Failure::usage(format!(
                "several runs are applied: {}; name one, or --all",
                ids(&open).join(", ")
            ))),
        };
    };
    if let Some(run) = runs.iter().find(|run| run.id == *what) {
        return Ok(vec![run.id.clone()]);
    }
    let path = Path::new(what);
    if !path.exists() {
        refuse!("{what} is neither a plan file nor a run ID (see --list)");
    }
    let mark = PlanMark::of(what, &read_plan(path)?);
    let of_plan: Vec<&Kept> = open.into_iter().filter(|run| run.applies(&mark)).collect();
    Ok(ids(&of_plan))
}
