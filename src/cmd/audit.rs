//! `marusa audit TARGET`: the account against what the JVM itself says. This asks the JVM over the attach protocol, which
//! starts one thread in it; nothing else that only reads does so.

use super::{Failure, target};
use crate::act::attach::{self, AttachError, Attached};
use crate::base::{Gap, Why};
use crate::jvm::hotspot::report::{self, ReportError};
use crate::map;
use crate::map::audit::{self, Label, Said};
use crate::os::terminal::stdout;
use crate::show::{self, audit::AuditDocument, json};
use crate::snapshot::Want;
use std::io::{BufWriter, Write};

/// The share of the resident bytes that the JVM labels on which we must agree for exit status 0.
const AGREEMENT_MIN: f64 = 0.995;

#[derive(clap::Args, Debug)]
pub struct AuditArgs {
    /// A pid, or a part of the main class, jar or container name
    target: String,
    /// Machine-readable, schema marusa/audit/2
    #[arg(long)]
    json: bool,
}

pub fn run(args: &AuditArgs) -> anyhow::Result<u8> {
    let process = target::open(&args.target)?;
    let attached = attach::open(&process).map_err(|error| refused(&error))?;
    let mut gaps = Vec::new();
    let said = ask(&attached, &mut gaps);
    let mut snapshot = target::take(&process, Want::default())?;
    snapshot.taken.attached = true;
    let map = map::join(&snapshot);
    let mut audit = audit::audit(&map, &said);
    audit.malloc = Some(audit::malloc::compare(&snapshot, &said));
    let account = map::Account::of(&snapshot, &map);
    let mut out = BufWriter::new(stdout().lock());
    if args.json {
        let document = AuditDocument::of(account, &audit, &gaps, &attached.receipt);
        json::print(&mut out, &document)?;
    } else {
        show::audit::text(&mut out, &account, &audit, &gaps)?;
        if attached.receipt.listener_started {
            crate::say!("marusa: the JVM now has one more thread, the Attach Listener, until it ends");
        }
    }
    out.flush()?;
    let agrees = audit.agreement.as_ref().and_then(|agreement| agreement.share());
    Ok(if agrees.is_some_and(|share| share < AGREEMENT_MIN) { 1 } else { 0 })
}

/// Everything that the JVM can be asked about its memory; what it cannot say is a gap.
fn ask(attached: &Attached, gaps: &mut Vec<Gap>) -> Said {
    let heap = answer(attached, "GC.heap_info", report::heap_info::parse, gaps);
    let nmt = summary(attached, gaps);
    let labels = match nmt {
        Some(_) => labels(attached, gaps),
        None => None,
    };
    // Last: what the JVM allocates to answer is in the snapshot that follows as it is in this.
    let malloc = malloc_info(attached);
    Said { nmt, labels, heap, malloc }
}

/// malloc_info(3), where the JVM has the command (17.0.9, 18 and on, with glibc); that it has not is not a gap of ours.
fn malloc_info(attached: &Attached) -> Option<report::malloc_info::MallocInfo> {
    report::malloc_info::parse(&attached.command("System.native_heap_info").ok()?).ok()
}

/// In bytes where the JVM can: JDK 8 knows no unit below KB.
fn summary(attached: &Attached, gaps: &mut Vec<Gap>) -> Option<report::nmt::Summary> {
    let exact = attached.command("VM.native_memory summary scale=b").ok();
    match exact.map(|text| report::nmt::summary(&text)) {
        Some(Ok(summary)) => Some(summary),
        _ => answer(attached, "VM.native_memory summary", report::nmt::summary, gaps),
    }
}

/// Which addresses the JVM says are whose: NMT's own regions where it keeps them (NativeMemoryTracking=detail), else
/// `System.map` (21.0.8 and 22 on), which labels whole mappings.
fn labels(attached: &Attached, gaps: &mut Vec<Gap>) -> Option<Vec<Label>> {
    let regions = attached.command("VM.native_memory detail").map(|text| report::nmt::regions(&text));
    if let Ok(Ok(regions)) = regions
        && !regions.is_empty()
    {
        return Some(regions.iter().map(Label::from).collect());
    }
    match attached.command("System.map").map(|text| report::system_map::parse(&text)) {
        Ok(Ok(rows)) => Some(rows.iter().map(Label::from).collect()),
        Ok(Err(error)) => {
            gaps.push(Gap::new("System.map", Why::NotInThisRuntime).hint(error.to_string()));
            None
        }
        Err(_) => {
            gaps.push(
                Gap::new("labels by address", Why::NotInThisRuntime)
                    .hint("this JVM has no System.map: start it with -XX:NativeMemoryTracking=detail"),
            );
            None
        }
    }
}

fn answer<T>(
    attached: &Attached,
    line: &str,
    parse: impl Fn(&str) -> Result<T, ReportError>,
    gaps: &mut Vec<Gap>,
) -> Option<T> {
    let gap = |error: String| Gap::new(line, Why::NotInThisRuntime).hint(error);
    let text = attached.command(line).map_err(|error| gap(error.to_string()));
    let parsed = text.and_then(|text| parse(&text).map_err(|error| gap(error.to_string())));
    parsed.map_err(|gap| gaps.push(gap)).ok()
}

pub(super) fn refused(error: &AttachError) -> anyhow::Error {
    let message = format!("the JVM could not be asked: {error}");
    if error.is_denied() { Failure::rights(message) } else { Failure::target(message) }
}
