//! `marusa report FILE -o report.html`: one offline page of what a file holds.

use super::record::file;
use super::{Failure, check_output, doctor, page_file, target};
use crate::base::limits::TARGET_FILE;
use crate::base::{counted, rfc3339};
use crate::doctor::{Finding, recorded};
use crate::map as accounts;
use crate::map::model::GapRow;
use crate::measure::history::History;
use crate::measure::peak::{self, Others};
use crate::os::process::Process;
use crate::record::history::Recording;
use crate::record::since::Since;
use crate::record::{leak_row, leaks, over_time};
use crate::show::html::{Findings, Page};
use crate::snapshot::Want;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// JVMs that a page shows one by one.
const SHOWN_MAX: usize = 20;

#[derive(clap::Args, Debug)]
pub struct ReportArgs {
    /// A recording, a file that `marusa freeze` wrote, or a core dump
    file: PathBuf,
    /// Where the page goes; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// For a recording, also the leak verdicts of parts of areas
    #[arg(long)]
    parts: bool,
}

pub fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    check_output(&args.output)?;
    match file::is_one(&args.file) {
        true => of_recording(args)?,
        false => of_snapshot(&args.file, &args.output)?,
    }
    Ok(0)
}

fn of_recording(args: &ReportArgs) -> anyhow::Result<()> {
    let recording = file::load(&args.file)?;
    let mut recorded = over_time::of(&recording);
    if recorded.histories.iter().all(|history| history.times.is_empty()) {
        return Err(Failure::target(format!(
            "{}: the recording contains no samples; record for longer",
            args.file.display()
        )));
    }
    let order = peak::largest_first(&recorded.histories);
    let (shown, hidden) = order.split_at(order.len().min(SHOWN_MAX));
    let others = Others::of(hidden.iter().map(|index| &recorded.histories[*index]));
    let histories: Vec<History> =
        shown.iter().map(|at| std::mem::take(&mut recorded.histories[*at])).collect();
    let judge = |jvm| (leaks::judge(jvm, 0.0, f64::INFINITY, args.parts), Since::of(jvm, f64::INFINITY));
    let growth: Vec<(Vec<leak_row::Row>, Since)> =
        shown.iter().map(|at| judge(&recording.jvms[*at])).collect();
    let title = match &histories[..] {
        [history] => format!("{}, pid {}", history.name, history.pid),
        _ => counted(order.len(), "JVM"),
    };
    let (findings, looked_at) = found(&recording);
    let page = Page {
        title,
        made_at: rfc3339(SystemTime::now()),
        moment: None,
        histories: &histories,
        others: others.as_ref(),
        growth: &growth,
        findings: Some(Findings { list: &findings, looked_at: &looked_at }),
        gaps: &recorded.gaps.iter().map(GapRow::from).collect::<Vec<_>>(),
        nonce: page_file::nonce(),
    };
    page_file::write(&args.output, &page)
}

/// Findings on the recording; and, where it is one JVM that still runs, on it and its host as they are now.
fn found(recording: &Recording) -> (Vec<Finding>, String) {
    let mut found: Vec<Finding> = recording.jvms.iter().flat_map(recorded::find).collect();
    let mut looked_at =
        "In the recording: an OOM kill, a limit that was nearly reached, freed memory that malloc holds, \
                         memory without an owner, threads that grow in number."
            .to_string();
    let running = match &recording.jvms[..] {
        [one] => {
            Process::open(one.facts.pid).ok().filter(|process| process.start_ticks == one.facts.start_ticks)
        }
        _ => None,
    };
    if let Some(process) = running {
        let now = doctor::of_one(process, page_file::WATCH);
        found.retain(|one| now.iter().all(|other| other.id != one.id));
        found.extend(now);
        looked_at += " And of the JVM and its host as they were when this page was made, by marusa doctor.";
    } else {
        looked_at += " On a running JVM, marusa doctor checks much more.";
    }
    found.sort_by_key(|finding| (std::cmp::Reverse(finding.level), finding.subject, finding.id));
    (found, looked_at)
}

fn of_snapshot(path: &Path, output: &Path) -> anyhow::Result<()> {
    let want = Want { holders: true, ..Want::default() };
    let snapshot = target::thaw(path, TARGET_FILE, want)?;
    let map = accounts::join(&snapshot);
    page_file::of_account(output, &snapshot, &map, &accounts::Account::of(&snapshot, &map), None)
}
