//! `marusa heap TARGET`: the objects of the Java heap by class, without asking the JVM.

use super::deadline::DeadlineArgs;
use super::{Failure, answer, target};
use crate::base::limits::{TARGET_ALONE, TARGET_FILE};
use crate::jvm::hotspot::histogram::HeapWant;
use crate::map::heap::HeapObjects;
use crate::os::budget;
use crate::show::heap;
use crate::snapshot::{self, Snapshot, Source, Want};
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub struct HeapArgs {
    /// A pid, or a part of the main class, jar or container name
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    target: Option<String>,
    /// The heap of a core dump; a frozen file keeps no objects
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// The N largest classes; without it 40 in the table, and all in JSON
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// page-size: how much of each class lies on pages of each size, folios that are mapped 4 KiB at a time included
    #[arg(long, value_name = "WHAT", conflicts_with = "from")]
    by: Option<By>,
    /// Contents of Strings that are there more than once, and what they waste
    #[arg(long)]
    duplicates: bool,
    /// With --duplicates, the start of those contents: they may be private
    #[arg(long, requires = "duplicates")]
    values: bool,
    /// Machine-readable, schema marusa/heap/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    deadline: DeadlineArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum By {
    PageSize,
}

pub fn run(args: &HeapArgs) -> anyhow::Result<u8> {
    args.deadline.set(if args.from.is_some() { TARGET_FILE } else { TARGET_ALONE });
    budget::within(budget::limits(), || objects(args))
}

fn objects(args: &HeapArgs) -> anyhow::Result<u8> {
    let snapshot = read(args)?;
    let objects = HeapObjects::of(&snapshot, args.top.map(|top| top as usize));
    answer(args.json, || &objects, |out| heap::text(out, &objects, args.by.is_some()))?;
    Ok(0)
}

fn read(args: &HeapArgs) -> anyhow::Result<Snapshot> {
    let wanted = HeapWant { duplicates: args.duplicates, values: args.values };
    let page_sizes = args.by.is_some();
    let want = Want { heap: Some(wanted), is_shallow: true, page_sizes, ..Want::default() };
    let Some(path) = &args.from else {
        let process = target::open(args.target.as_deref().unwrap_or_default())?;
        return snapshot::take_once(&process, want).map_err(|gap| target::unreadable(&process, &gap));
    };
    let snapshot = target::thaw(path, budget::limits(), want)?;
    if snapshot.taken.source == Source::Frozen {
        let path = path.display();
        return Err(Failure::target(format!(
            "cannot count the objects of {path}: a frozen file keeps none of the heap's content; name a running JVM or a core"
        )));
    }
    Ok(snapshot)
}
