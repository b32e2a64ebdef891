//! `marusa pages verify TARGET [PLAN]`: what was promised next to what the page tables say.

use crate::base::{Gap, Why};
use crate::cmd::{self, Failure};
use crate::jvm::hotspot::report::large_pages::{self, Logged};
use crate::jvm::log_options;
use crate::map::{self, page_claims, why};
use crate::os::process::Process;
use crate::os::{cpus, input_file, output};
use crate::pages::messages;
use crate::pages::types::{Plan, SCHEMA};
use crate::pages::verify::{self, Look, Promise, Said};
use crate::show::pages::verify::{self as show, VerifyDocument};
use crate::snapshot::{Snapshot, Want, page_settings};
use std::path::{Path, PathBuf};

/// A plan that is larger is not a plan.
const PLAN_BYTES_MAX: u64 = 4 << 20;

#[derive(clap::Args, Debug)]
pub struct VerifyArgs {
    /// A pid, or a part of the main class, jar or container name
    target: String,
    /// The file that `marusa pages plan` wrote; without one, what the JVM's own flags ask for
    plan: Option<PathBuf>,
    /// Search this log too for what the JVM reported at its start; its own output and logs are searched where they are files
    #[arg(long, value_name = "FILE")]
    log: Vec<PathBuf>,
    /// Machine-readable, schema marusa/pages-verify/2
    #[arg(long)]
    json: bool,
}

pub fn run(args: &VerifyArgs) -> anyhow::Result<u8> {
    let plan = args.plan.as_deref().map(read_plan).transpose()?;
    let process = cmd::target::open(&args.target)?;
    let mut snapshot = cmd::target::take(&process, Want { page_sizes: true, ..Want::default() })?;
    if let Err(gap) = &snapshot.os.pages {
        let message = format!("the pages of pid {} cannot be read: {gap}", process.pid);
        return Err(Failure::unread(gap.why, message));
    }
    snapshot.taken.page_settings = Some(page_settings::read(&process, &snapshot));
    let logs = logs(args, &process)?;
    if !process.is_same() {
        return Err(Failure::target(format!("pid {} has ended{}", process.pid, last_words(&logs))));
    }
    answer(args, &process, &snapshot, plan.as_ref(), &logs)
}

fn answer(
    args: &VerifyArgs,
    process: &Process,
    snapshot: &Snapshot,
    plan: Option<&Plan>,
    logs: &[output::Said],
) -> anyhow::Result<u8> {
    let map = map::join(snapshot);
    let promise = match (plan, &args.plan) {
        (Some(plan), Some(file)) => Some((Promise::of_plan(plan, file.display().to_string()), None)),
        _ => {
            let counts_above = snapshot.jvm.as_ref().ok().is_some_and(|jvm| {
                // JDK 24 and later count the groups above as well (os/cpus.rs).
                jvm.major.as_ref().is_ok_and(|feature| *feature >= 24)
            });
            verify::by_flags(snapshot, cpus::of(process, counts_above))
        }
    };
    let Some((promise, unknown)) = promise else {
        let document = || VerifyDocument::nothing_promised(snapshot, &map);
        cmd::answer(args.json, document, |out| show::nothing_promised(out, snapshot))?;
        return Ok(0);
    };
    let findings = why::findings(snapshot, &map);
    let logged: Vec<Logged> = logs.iter().flat_map(|log| large_pages::logged(&log.text)).collect();
    let said = said(logs);
    let claims = page_claims::claims(
        snapshot,
        &map,
        &page_claims::Said { logged: logged.clone(), ..page_claims::Said::default() },
    );
    let look = Look { snapshot, map: &map, findings: &findings, logged: &logged, claims: &claims };
    let report = verify::verify(&promise, &look);
    let mut gaps = gaps(process, snapshot, logs);
    gaps.extend(unknown);
    let shown =
        show::Shown { snapshot, map: &map, promise: &promise, report: &report, said: &said, gaps: &gaps };
    cmd::answer(args.json, || VerifyDocument::of(&shown), |out| show::text(out, &shown))?;
    Ok(if report.met { 0 } else { 1 })
}

/// The plan in a file, whole and of this schema.
pub fn read_plan(path: &Path) -> anyhow::Result<Plan> {
    let bad = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let read = input_file::text(path, PLAN_BYTES_MAX);
    let text = read.map_err(|error| bad(error.to_string()))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| bad(format!("no plan: {error}")))?;
    let schema = value["schema"].as_str().unwrap_or("none");
    if schema != SCHEMA {
        return Err(bad(format!("no plan: its schema is {schema}, not {SCHEMA}")));
    }
    serde_json::from_value(value).map_err(|error| bad(format!("a damaged plan: {error}")))
}

/// What the JVM printed, as far as it may be read, and the logs that the user names.
fn logs(args: &VerifyArgs, process: &Process) -> anyhow::Result<Vec<output::Said>> {
    let names = log_options::log_files(&process.arguments().unwrap_or_default());
    let mut logs = output::all(process, &names);
    for path in &args.log {
        let log = output::file(path, process);
        logs.push(log.map_err(|error| Failure::usage(format!("--log {}: {error}", path.display())))?);
    }
    Ok(logs)
}

fn said(logs: &[output::Said]) -> Vec<Said> {
    let of = |log: &output::Said| {
        let said = |found| Said { log: log.name.clone(), may_be_older: log.is_older, found };
        messages::find(&log.text).into_iter().map(said).collect::<Vec<Said>>()
    };
    logs.iter().flat_map(of).collect()
}

/// What a JVM that has ended printed about its pages: ZGC ends when its heap gets none.
fn last_words(logs: &[output::Said]) -> String {
    let said = said(logs);
    let words =
        said.iter().map(|said| format!("\nit said: {} ({})", said.found.text, said.found.message.means));
    words.collect()
}

fn gaps(process: &Process, snapshot: &Snapshot, logs: &[output::Said]) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = Vec::new();
    if let Err(gap) = &snapshot.jvm {
        gaps.push(gap.clone());
    }
    if let Some(Err(gap)) = &snapshot.os.page_sizes {
        gaps.push(gap.clone());
    }
    if logs.is_empty() {
        let hint = format!("--log FILE, where the output of pid {} went", process.pid);
        gaps.push(Gap::new("what the JVM reported at its start", Why::NotRead).hint(hint));
    }
    for log in logs.iter().filter(|log| log.left_out_bytes > 0) {
        gaps.push(Gap::new(format!("the median of {}", log.name), Why::OverLimit));
    }
    gaps
}
