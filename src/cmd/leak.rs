//! `marusa leak FILE`: what grows without bound in a recording, what levels off, and what cannot be judged yet.

use super::diff::{meant, moment};
use super::record::file;
use super::{Failure, answer};
use crate::base::refuse;
use crate::measure::growth::Verdict;
use crate::record::leak_row::{Row, What};
use crate::record::since::Since;
use crate::record::{History, leaks};
use crate::show::leaks as show;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub struct LeakArgs {
    /// A recording (`marusa record`); it may still be written to
    file: PathBuf,
    /// Only this JVM: a pid, or a part of its name
    #[arg(long, value_name = "PID|NAME")]
    jvm: Option<String>,
    /// Start: +10m, -1h (before the end), 14:00, 2026-11-21T14:00:00Z; the warm-up is left out by itself
    #[arg(long, value_name = "TIME", value_parser = moment::parse, allow_hyphen_values = true)]
    from: Option<moment::When>,
    /// End: the answer as it was at that time
    #[arg(long, value_name = "TIME", value_parser = moment::parse, allow_hyphen_values = true)]
    to: Option<moment::When>,
    /// Also the parts of areas
    #[arg(long)]
    parts: bool,
    /// Exit status 1 where something grows without bound, or the live bytes of the heap grow towards its maximum
    #[arg(long, value_enum, value_name = "WHAT")]
    fail_on: Option<FailOn>,
    /// The earlier name of `--fail-on growth`
    #[arg(long, hide = true)]
    fail_if_grows: bool,
    /// Machine-readable, schema marusa/leak/2
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum FailOn {
    Growth,
}

pub fn run(args: &LeakArgs) -> anyhow::Result<u8> {
    let path = args.file.display().to_string();
    let recording = file::load(&args.file)?;
    let histories: Vec<&History> = match &args.jvm {
        Some(jvm) => vec![meant::choose(&recording, Some(jvm), &path)?],
        None => recording.jvms.iter().collect(),
    };
    if histories.is_empty() {
        return Err(Failure::target(format!("{path}: no JVM is in it")));
    }
    let judged = histories.into_iter().map(|history| judge(args, history));
    let judged: Vec<show::Judged> = judged.collect::<anyhow::Result<_>>()?;
    answer(args.json, || show::LeakDocument::of(&judged), |out| show::text(out, &judged))?;
    let leaks = judged.iter().flat_map(|(_, rows, _)| rows).any(is_leak);
    Ok(u8::from((args.fail_if_grows || args.fail_on.is_some()) && leaks))
}

/// Live bytes of the heap that grow end in an OutOfMemoryError, though the heap has a bound.
fn is_leak(row: &Row) -> bool {
    let is_live_heap = row.what == What::HeapInUse && row.growth.verdict == Verdict::GrowsToBound;
    row.growth.verdict == Verdict::GrowsWithoutBound || is_live_heap
}

/// A JVM without an account has no moment and nothing to judge.
fn judge<'a>(args: &LeakArgs, history: &'a History) -> anyhow::Result<show::Judged<'a>> {
    let at = |when: Option<moment::When>| when.and_then(|when| seconds(history, when));
    let (from, to) = (at(args.from).unwrap_or(0.0), at(args.to).unwrap_or(f64::INFINITY));
    if from > to {
        refuse!("--from must precede --to");
    }
    Ok((history, leaks::judge(history, from, to, args.parts), Since::of(history, to)))
}

fn seconds(history: &History, when: moment::When) -> Option<f64> {
    Some(history.seconds(moment::find(history, when)?))
}
