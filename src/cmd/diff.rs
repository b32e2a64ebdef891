//! `marusa diff A B`: what grew between two moments, wherever they come from.

pub mod meant;
pub mod moment;
pub mod source;

use super::{Failure, amount, answer};
use crate::base::{Bytes, Refused, refuse};
use crate::jvm::hotspot::histogram::HeapWant;
use crate::map::Area;
use crate::map::diff::{self, Diff};
use crate::map::rows::Named;
use crate::show::diff as show;
use crate::show::units::{human, human_signed};
use crate::snapshot::{LoaderDetail, Want};

#[derive(clap::Args, Debug)]
pub struct DiffArgs {
    /// A frozen file, a core dump, the JSON of `marusa map` or `marusa heap`, a recording (FILE or FILE@TIME), or a running JVM
    #[arg(value_name = "A")]
    before: String,
    /// The same; not needed for the start and the end of a recording
    #[arg(value_name = "B")]
    now: Option<String>,
    /// Which JVM of a recording, where it has several: a pid, or a part of its name; else the one that the other side is of
    #[arg(long, value_name = "PID|NAME")]
    jvm: Option<String>,
    /// What the rows are
    #[arg(long, value_enum, default_value_t = show::By::Area)]
    by: show::By,
    /// Exit status 1 where resident memory, or that of an area (malloc_freed=64M), grew by more; may be repeated
    #[arg(long, alias = "fail-if-grown", value_name = "[AREA=]SIZE", value_parser = limit)]
    fail_on: Vec<Limit>,
    /// Machine-readable, schema marusa/diff/2: all tables
    #[arg(long)]
    json: bool,
}

/// How much more there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    area: Option<Area>,
    bytes: Bytes,
}

fn limit(text: &str) -> Result<Limit, Refused> {
    let Some((name, size)) = text.split_once('=') else {
        return Ok(Limit { area: None, bytes: amount::bytes(text)? });
    };
    let area = Area::ALL.iter().copied().find(|area| area.name() == name).ok_or_else(|| {
        let names: Vec<&str> = Area::ALL.iter().map(|area| area.name()).collect();
        format!("'{name}' is not an area: {}", names.join(", "))
    })?;
    Ok(Limit { area: Some(area), bytes: amount::bytes(size)? })
}

pub fn run(args: &DiffArgs) -> anyhow::Result<u8> {
    let jvm = args.jvm.as_deref();
    let want = Want {
        holders: args.by == show::By::Named(Named::Holder),
        loaders: match args.by {
            show::By::Named(Named::Loader) => LoaderDetail::Brief,
            _ => LoaderDetail::None,
        },
        heap: (args.by == show::By::Named(Named::Class)).then(HeapWant::default),
        ..Want::default()
    };
    let (before, now) = match &args.now {
        Some(now) => source::sides(&args.before, now, jvm, want)?,
        None => source::both_ends(&args.before, jvm)?,
    };
    if let Some(side) = [&before, &now].into_iter().find(|side| side.taken.has_only_classes)
        && (want.heap.is_none() || !args.fail_on.is_empty())
    {
        let from = &side.taken.from;
        refuse!("{from} has only the classes of the heap: compare it with --by class alone");
    }
    let diff = diff::diff(&before.sums, &now.sums);
    let document = || show::json::DiffDocument::of(&before.taken, &now.taken, &diff);
    answer(args.json, document, |out| show::text(out, &before.taken, &now.taken, &diff, args.by))?;
    verdict(&diff, &args.fail_on)
}

/// Whether what there is more stays within the limits. What cannot be compared is not a success.
fn verdict(diff: &Diff, limits: &[Limit]) -> anyhow::Result<u8> {
    let mut is_broken = false;
    for limit in limits {
        let name = limit.area.map_or("resident memory", Area::title);
        let grown = diff.grown(limit.area).map_err(|lost| {
            Failure::target(format!("cannot compare {name}: {}; choose another moment", lost.why))
        })?;
        if u64::try_from(grown).is_ok_and(|grown| grown > limit.bytes) {
            let (grown, limit) = (human_signed(grown), human(limit.bytes));
            crate::say!("marusa: {name} grew by {grown}, more than {limit}");
            is_broken = true;
        }
    }
    Ok(u8::from(is_broken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_all_or_of_an_area() {
        assert_eq!(limit("64M"), Ok(Limit { area: None, bytes: 64 << 20 }));
        assert_eq!(limit("malloc_freed=1G"), Ok(Limit { area: Some(Area::MallocFreed), bytes: 1 << 30 }));
        assert!(limit("heap=1G").is_err_and(|error| error.0.contains("java_heap")));
        assert!(limit("java_heap=").is_err() && limit("").is_err());
    }
}
